"""What a graph names that is outside of it: models, tools and workflows. Only the caller can know which there are."""

from collections.abc import Iterator

from ripstop.definitions.problems import ERROR, WARNING, Problem, nearest
from ripstop.definitions.reader import Environment
from ripstop.definitions.yaml_tree import Value, YamlEntry

from .reader import Written


def check_references(written: Written, environment: Environment) -> Iterator[Problem]:
    top: dict[str, YamlEntry] = written.tree.value
    for item in top["agents"].value.value if "agents" in top else ():
        if "model" in item.value:
            yield from _model(item.value["model"].value, environment)
        for named in (item.value["tools"].value.value if "tools" in item.value else None) or ():
            if environment.tools is not None and named.value not in environment.tools:
                near = nearest(named.value, environment.tools)
                hint = f"did you mean {near!r}?" if near else "bring it with --tools MODULE, or from a program"
                yield Problem(named.place, f"there is no tool {named.value!r} here", hint, WARNING)
    for item in top["states"].value.value:
        if "workflow" in item.value:
            yield from _workflow(item.value["workflow"].value, environment)


def _model(named: Value, environment: Environment) -> Iterator[Problem]:
    found = environment.about_model(named.value) if environment.about_model else None
    if found:
        yield Problem(named.place, found.text, found.hint, ERROR if found.certain else WARNING)


def _workflow(named: Value, environment: Environment) -> Iterator[Problem]:
    missing = environment.about_workflow(named.value) if environment.about_workflow else ""
    if missing:
        yield Problem(named.place, missing)
    elif environment.cycle_through and (way := environment.cycle_through(named.value)):
        text = f"the workflow {way[0]!r} reaches itself: {' → '.join(way)}"
        yield Problem(named.place, text, "only its decisions and the limits (depth, calls) end that", WARNING)
