"""What a graph names that stands outside of it: models and tools. Only the caller can know which there are."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from ripstop.definitions.problems import ERROR, WARNING, Problem, did_you_mean
from ripstop.definitions.yaml_tree import Value

from .reader import Written


class ModelProblem(Struct, frozen=True):
    text: str
    hint: str = ""
    certain: bool = True
    """False: it may be right elsewhere."""


class Environment(Struct, frozen=True):
    """What there is."""

    about_model: Callable[[str], ModelProblem | None]
    tools: tuple[str, ...]
    """Those that every run has. A program may bring others, so an unknown one is no error."""


def check_outside(written: Written, outside: Environment) -> Iterator[Problem]:
    for item in written.tree.value["agents"].value.value:
        if "model" in item.value:
            yield from _model(item.value["model"].value, outside)
        for named in (item.value["tools"].value.value if "tools" in item.value else None) or ():
            if named.value not in outside.tools:
                hint = f"{did_you_mean(named.value, outside.tools)} (only a program that brings it can run this)"
                yield Problem(named.place, f"ripstop has no tool {named.value!r}", hint, WARNING)


def _model(named: Value, outside: Environment) -> Iterator[Problem]:
    found = outside.about_model(named.value)
    if found:
        yield Problem(named.place, found.text, found.hint, ERROR if found.certain else WARNING)
