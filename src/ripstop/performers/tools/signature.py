"""A tool's signature: the parameters that agents give, and those that the engine fills in."""

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from ripstop.kernel.errors import DefinitionError

from .context import ToolContext

KEY = "key"
"""The parameter that gets the idempotency key."""


class Signature(msgspec.Struct, frozen=True):
    arguments: type[msgspec.Struct]
    """What an agent gives; nothing else is taken."""
    takes_key: bool
    context: str
    """The parameter that gets the `ToolContext`; empty if there is none."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments: an object."""
        (reference,), components = msgspec.json.schema_components([self.arguments])
        name = reference["$ref"].rpartition("/")[2]
        schema = dict(components.pop(name))
        schema.pop("title", None)
        if components:
            schema["$defs"] = components
        return schema


def read_signature(function: Callable[..., Any]) -> Signature:
    """Raises `DefinitionError` for a function that cannot be a tool."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    contexts: list[str] = []
    takes_key = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or name not in hints:
            raise DefinitionError(f"Parameter {name!r} of the tool {function.__name__!r} needs a name and a type.")
        if _is_context(hints[name]):
            contexts.append(name)
        elif _mentions_context(hints[name]):
            # msgspec could make one from what an agent says
            raise DefinitionError(f"Parameter {name!r} of the tool {function.__name__!r}: write `{name}: ToolContext`.")
        elif name == KEY:
            takes_key = True
        else:
            default = () if parameter.default is parameter.empty else (parameter.default,)
            fields.append((name, hints[name], *default))
    if len(contexts) > 1:
        raise DefinitionError(f"The tool {function.__name__!r} takes the ToolContext twice; once is enough.")
    arguments = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(arguments, takes_key, contexts[0] if contexts else "")


def context_parameter(function: Callable[..., Any]) -> str:
    """The parameter of any function that gets the `ToolContext`; empty if there is none."""
    return next((name for name, hint in get_type_hints(function).items() if _is_context(hint)), "")


def _is_context(hint: Any) -> bool:
    """`ToolContext`, or `ToolContext | None` for a function that is also called without one."""
    return hint is ToolContext or set(get_args(hint)) == {ToolContext, NoneType}


def _mentions_context(hint: Any) -> bool:
    return hint is ToolContext or any(map(_mentions_context, get_args(hint)))
