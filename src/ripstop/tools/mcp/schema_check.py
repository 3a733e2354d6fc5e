"""Checks of a server's JSON Schema, and of arguments against it, so that a wrong call costs nothing.

The schema is hostile: it must not make us read something from elsewhere, nor keep us busy.

- A `$ref` can only lead into the schema itself.
- A call follows at most `MOST_REFERENCES` of them; without them a schema of bounded size is checked in bounded time.
- Regular expressions are left to the server: some take for ever, and nothing can interrupt them.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

MOST_REFERENCES = 2_000
LONGEST_PROBLEM = 300
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_REGULAR_EXPRESSIONS = ("pattern", "patternProperties")


class TooManyReferences(Exception):
    """Raised to stop a check that would take too long."""


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Why a schema cannot be used; empty if it can."""
    if outside := next(_outside(schema), ""):
        return f"it refers to {outside[:80]!r}, which is not part of it"
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return str(error.message)[:LONGEST_PROBLEM]
    except RecursionError:
        return "it is nested too deeply"
    return ""


def wrong_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with arguments; empty if nothing is."""
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        found = best_match(_validator(msgspec.json.encode(schema)).iter_errors(dict(arguments)))
    except (TooManyReferences, RecursionError):
        return "its schema refers to itself too often to be checked"
    except Unresolvable as error:
        return f"its schema refers to something that it does not have: {error.ref[:80]!r}"
    if found is None:
        return ""
    where = "".join(f"[{part!r}]" for part in found.absolute_path)
    return f"{where}: {found.message}"[:LONGEST_PROBLEM].removeprefix(": ")


def _outside(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key in _REFERENCES and isinstance(one, str) and not one.startswith("#"):
                yield one
            yield from _outside(one)
    elif isinstance(value, list):
        for one in value:
            yield from _outside(one)


@lru_cache(maxsize=256)
def _validator(encoded: bytes) -> Any:
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing import Registry

    schema = msgspec.json.decode(encoded)
    base = validator_for(schema, default=Draft202012Validator)
    counted = {name: _Counted(base.VALIDATORS[name]) for name in _REFERENCES if name in base.VALIDATORS}
    unchecked = dict.fromkeys(_REGULAR_EXPRESSIONS, _no_errors)
    limited = extend(base, {**counted, **unchecked})
    made = limited(schema, registry=Registry())
    return _Validator(made, tuple(counted.values()))


class _Counted:
    """A keyword that can only be followed so often."""

    def __init__(self, keyword: Any) -> None:
        self._keyword = keyword
        self.left = MOST_REFERENCES

    def __call__(self, validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise TooManyReferences
        return self._keyword(validator, value, instance, schema)


class _Validator:
    def __init__(self, validator: Any, counted: tuple[_Counted, ...]) -> None:
        self._validator = validator
        self._counted = counted

    def iter_errors(self, arguments: dict[str, Any]) -> Any:
        for one in self._counted:
            one.left = MOST_REFERENCES
        return self._validator.iter_errors(arguments)


def _no_errors(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> tuple[()]:
    return ()
