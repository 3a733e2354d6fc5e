"""Words of prompts and conditions that do not fit together: warnings about values that can never be equal.

A condition compares exactly: case matters, and a text is never a number or a boolean. So a word that the prompt spells
otherwise than the condition is almost certainly a slip.
"""

import re
from collections.abc import Iterator
from typing import Any

from ripstop.definitions.problems import WARNING, Problem, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.kernel.events import OUTCOMES
from ripstop.styles import condition, template
from ripstop.styles.condition import Compare, Expression, Literal, Name
from ripstop.styles.graph.dead_end import described
from ripstop.styles.graph.definition import OUTCOME, Graph
from ripstop.styles.graph.schema import ENGINE_NAMES, TURNS_OF, is_engine_name, shown_decisions

from .warnings import warning_inside

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_BEFORE, _AFTER = "\"'`“‘「", "\"'`”’」"


def lint_speakers(graph: Graph, prompt: Value) -> Iterator[Problem]:
    """`{% if last_agent_name == "…" %}` with a name that no agent has."""
    agents = [*(agent.name for agent in graph.agents), *graph.workflows]
    for offset, name in template.speakers(prompt.value):
        if name and name not in agents:
            text = f"no agent is named {name!r}, so this {{% if %}} never holds"
            yield warning_inside(prompt, offset, text, did_you_mean(name, agents))


def lint_engine_names(graph: Graph, prompt: Value) -> Iterator[Problem]:
    """A prompt that asks for a decision which the engine's own value hides."""
    names = [*ENGINE_NAMES, *(f"{TURNS_OF}{state.name}" for state in graph.states)]
    for name in names:
        found = re.search(rf"[{_BEFORE}]{re.escape(name)}[{_AFTER}]", prompt.value)
        if found:
            text = f"a decision cannot be named {name!r}: conditions use the engine's own value of that name"
            yield warning_inside(prompt, found.start() + 1, text, "use another name")


def lint_outcomes(node: Expression, written: Value) -> Iterator[Problem]:
    """The outcome of a workflow, compared with a text that is not an outcome."""
    for compare in condition.comparisons(node):
        name, value = _sides(compare)
        if name is not None and name.name == OUTCOME and value not in OUTCOMES:
            text = f"a workflow never ends as {described(value)}, so this comparison says nothing"
            yield warning_inside(written, name.column, text, did_you_mean(str(value), OUTCOMES))


def lint_values(graph: Graph, top: dict[str, YamlEntry]) -> Iterator[Problem]:
    """Values that are declared and that no prompt uses."""
    used = {name for state in graph.states for name in template.variables(state.prompt or state.input)}
    for name in graph.values:
        if name not in used:
            hint = f"write {{{{{name}}}}} in one, or remove it"
            yield Problem(top["values"].value.value[name].key, f"no prompt uses the value {name!r}", hint, WARNING)


class Comparisons:
    """Checks what conditions compare decisions with against what prompts say."""

    def __init__(self, graph: Graph) -> None:
        nodes = [node for state in graph.states for _, _, node in state.ways]
        nodes += [condition.parse(each.condition) for each in graph.exit_conditions]
        self._booleans = {name for node in nodes for name in _booleans(node)}

    def lint(self, node: Expression, written: Value, prompt: str, told: str) -> Iterator[Problem]:
        """Warnings about one condition; `told` is all that the agent reads, without tags."""
        shown = shown_decisions(prompt)
        for compare in condition.comparisons(node):
            name, value = _sides(compare)
            if name is None or is_engine_name(name.name):
                continue
            found = self._as_text(name.name, compare.operator, value, told) or _other_case(name.name, value, told)
            if not found and name.name in shown:
                found = _other_type(name.name, value, shown[name.name])
            if found:
                yield warning_inside(written, name.column, *found)

    def _as_text(self, name: str, operator: str, value: Any, told: str) -> tuple[str, str] | None:
        """A boolean or a number in quotes, unless the prompt asks for just that text."""
        plain = value.strip().lower() if isinstance(value, str) else ""
        is_boolean = plain in ("true", "false")
        if not is_boolean and not _NUMBER.fullmatch(plain):
            return None
        asked_for = any(f"{quote}{value}{quote}" in told for quote in "\"'")
        if asked_for and not (is_boolean and name in self._booleans):
            return None
        kind = "a decision that is true or false" if is_boolean else "a number"
        return f'"{value}" is text, and {kind} is never equal to it', f"did you mean `{name} {operator} {plain}`?"


def _other_case(name: str, value: Any, told: str) -> tuple[str, str] | None:
    """A text that the prompt spells with other capitals."""
    if not isinstance(value, str) or not value.strip() or mentions(told, value):
        return None
    near = re.search(_word(value.strip()), told, re.IGNORECASE)
    if not near:
        return None
    return f'{name!r} is compared with "{value}", but the prompt says "{near[0]}"', f'did you mean "{near[0]}"?'


def _other_type(name: str, value: Any, example: Any) -> tuple[str, str] | None:
    """A value of another type than the one in the prompt's example."""
    if isinstance(example, list | dict) or example is None or condition.comparable(value, example):
        return None
    text = f"{name!r} is compared with {described(value)}, but the prompt shows it as {described(example)}"
    return text, "use one type in both"


def mentions(text: str, name: str) -> bool:
    """Whether a text holds a name as a word. Chinese text may touch it; Latin letters and digits may not."""
    return re.search(_word(name), text) is not None


def _word(text: str) -> str:
    return rf"(?<![A-Za-z0-9_]){re.escape(text)}(?![A-Za-z0-9_])"


def _sides(compare: Compare) -> tuple[Name | None, Any]:
    """The decision and the value of a comparison that has one of each."""
    match compare.left, compare.right:
        case (Name() as name, Literal(value=value)) | (Literal(value=value), Name() as name):
            return name, value
    return None, None


def _booleans(node: Expression) -> set[str]:
    """The names that a condition uses as true or false."""
    compared: set[Name] = set()
    names: set[str] = set()
    for compare in condition.comparisons(node):
        compared |= {side for side in (compare.left, compare.right) if isinstance(side, Name)}
        name, value = _sides(compare)
        if name and isinstance(value, bool):
            names.add(name.name)
    return names | {name.name for name in condition.names(node) if name not in compared}
