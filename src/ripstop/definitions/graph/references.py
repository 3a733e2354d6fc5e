"""What a graph names that is outside of it."""

from collections.abc import Iterator

from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import YamlEntry

from .reader import Written


def references_of(written: Written) -> Iterator[Reference]:
    top: dict[str, YamlEntry] = written.tree.value
    for item in top["agents"].value.value if "agents" in top else ():
        if "model" in item.value:
            named = item.value["model"].value
            yield Reference("model", named.value, named.place)
        for named in (item.value["tools"].value.value if "tools" in item.value else None) or ():
            yield Reference("tool", named.value, named.place)
    for item in top["states"].value.value:
        if "workflow" in item.value:
            named = item.value["workflow"].value
            yield Reference("workflow", named.value, named.place)
