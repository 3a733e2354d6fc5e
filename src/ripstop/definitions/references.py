"""What a definition names that is outside of it: models, tools and workflows. Only the caller knows which there are."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.prompt import permits

from .problems import ERROR, WARNING, Position, Problem, nearest
from .reader import Environment

A_SLIP = 0.8
"""How much alike a tool's name is to the one that was meant: names of tools share words, so many are a little alike."""


class Reference(Struct, frozen=True):
    kind: Literal["model", "tool", "workflow"]
    name: str
    place: Position


def check_references(references: Iterable[Reference], environment: Environment) -> Iterator[Problem]:
    for one in references:
        match one.kind:
            case "model":
                yield from _model(one, environment)
            case "tool":
                yield from _tool(one, environment)
            case "workflow":
                yield from _workflow(one, environment)


def _model(named: Reference, environment: Environment) -> Iterator[Problem]:
    found = environment.about_model(named.name) if environment.about_model else None
    if found:
        yield Problem(named.place, found.text, found.hint, ERROR if found.certain else WARNING)


def _tool(named: Reference, environment: Environment) -> Iterator[Problem]:
    if environment.tools is not None and not _is_known(named.name, environment.tools):
        near = nearest(named.name, environment.tools, cutoff=A_SLIP)
        agree = NextStep("trust_server", "agree to it", "agree to it with `{}`", "SERVER")
        bring = agree if "__" in named.name else "bring it with --tools MODULE"
        hint = f"did you mean {near!r}?" if near else Advice(bring, ", or from a program")
        yield Problem(named.place, f"there is no tool {named.name!r} here", hint, WARNING)


def _is_known(name: str, tools: tuple[str, ...]) -> bool:
    """`git__*` stands for all tools of a server."""
    return name in tools or any(permits((name,), tool) for tool in tools)


def _workflow(named: Reference, environment: Environment) -> Iterator[Problem]:
    missing = environment.about_workflow(named.name) if environment.about_workflow else ""
    if missing:
        yield Problem(named.place, missing)
    elif environment.cycle_through and (way := environment.cycle_through(named.name)):
        text = f"the workflow {way[0]!r} reaches itself: {' → '.join(way)}"
        yield Problem(named.place, text, "only its decisions and the limits (depth, calls) end that", WARNING)
