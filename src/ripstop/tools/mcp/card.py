"""A tool of a server as we use it: made from what the server says, which is data and can be hostile.

- Words for the model lose what acts or hides (control, direction and zero-width characters), and are bounded.
- What is not words for people (names, values of a schema) must not hide anything; such a tool is left out.
- The pin is a hash over all that a model is told and all that we decide by. It also covers what we declare to servers,
  because they offer other tools to clients that can do more.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ripstop.engine.performers import ToolSpec
from ripstop.text.visible_text import without_hidden

from .schema_check import schema_problem

DECLARED = "elicitation roots"
"""What we tell servers that we can do."""
SEPARATOR = "__"
"""The only one that all models accept in a name."""
ALL = f"{SEPARATOR}*"
"""The end of a name that means all tools of a server: `git__*`."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 8_000
MAX_BYTES = 20_000
"""Of one tool, as the server describes it."""
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_WORDS = ("description", "title", "$comment")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Unusable(ValueError):
    """Raised for a tool that cannot be offered; says why."""


class ToolCard(msgspec.Struct, frozen=True):
    server: str
    tool: str
    """As the server calls it."""
    description: str
    schema: dict[str, Any]
    annotations: dict[str, bool] = {}

    @property
    def name(self) -> str:
        """As agents call it. A long one is shortened, with a hash so that it stays the only one."""
        whole = f"{self.server}{SEPARATOR}{self.tool}"
        if len(whole) <= LONGEST_NAME:
            return whole
        return f"{whole[: LONGEST_NAME - 9]}_{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @property
    def pin(self) -> str:
        parts = [DECLARED, self.tool, self.description, self.schema, self.annotations]
        return hashlib.sha256(_encode(parts)).hexdigest()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=self.schema)

    def hint(self, name: str) -> bool:
        return self.annotations.get(name) is True

    def as_text(self) -> str:
        """All of it, for people who have to agree to it."""
        hints = ", ".join(name for name in self.annotations if self.annotations[name]) or "none"
        schema = msgspec.json.format(_encode(self.schema), indent=2).decode()
        return f"{self.name}\n{self.description}\nhints: {hints}\nschema: {schema}\n"


def read_card(server: str, raw: Mapping[str, Any]) -> ToolCard:
    """A tool as a server describes it. Raises `Unusable`."""
    tool = raw.get("name")
    if not isinstance(tool, str) or not _NAME.fullmatch(tool):
        raise Unusable("its name has other characters than letters, digits, _ and -")
    described = {key: raw.get(key) for key in ("description", "inputSchema", "annotations")}
    try:
        size = len(_encode(described))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise Unusable("its description cannot be read") from None
    if size > MAX_BYTES:
        raise Unusable(f"its description has {size:,} bytes; at most {MAX_BYTES:,} are read")
    execution = raw.get("execution")
    if isinstance(execution, Mapping) and execution.get("taskSupport") == "required":
        raise Unusable("it can only be called as a task, which ripstop does not do")
    description, hints = raw.get("description") or "", raw.get("annotations") or {}
    if not isinstance(description, str) or not isinstance(hints, Mapping):
        raise Unusable("its description is not text, or its annotations are not an object")
    annotations = {name: hints[name] for name in HINTS if isinstance(hints.get(name), bool)}
    words = clean(description, LONGEST_DESCRIPTION)
    return ToolCard(server, tool, words, _read_schema(raw.get("inputSchema")), annotations)


def clean(text: str, longest: int) -> str:
    """Words of a server, for models and people: nothing in them acts or hides, and they are bounded."""
    words = without_hidden(text).strip()
    return words if len(words) <= longest else f"{words[:longest]}…"


def _read_schema(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict) or raw.get("type", "object") != "object":
        raise Unusable("its schema does not describe an object")
    schema: dict[str, Any] = _without_hidden_words({"type": "object", **raw})
    if problem := schema_problem(schema):
        raise Unusable(f"its schema cannot be used: {problem}")
    return schema


def _without_hidden_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            _plain(key): without_hidden(one) if key in _WORDS and isinstance(one, str) else _without_hidden_words(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_without_hidden_words(one) for one in value]
    return _plain(value) if isinstance(value, str) else value


def _plain(text: str) -> str:
    if without_hidden(text) != text:
        raise Unusable("its schema hides characters in a name or a value")
    return text
