"""A tool as an agent is told about it: a name, what it is for, and what it takes."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class ToolSpec(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments: an object."""


ToolSpecs = Callable[[tuple[str, ...]], list[ToolSpec]]
"""The specs of the tools with these names, in this order."""


def no_tools(_names: tuple[str, ...]) -> list[ToolSpec]:
    """For agents that have no tools."""
    return []
