"""What a server's answer to a call means for the run.

| answer | for the run |
|---|---|
| a result | its text; without text its structured content; other things as a note with type and size |
| a result with `isError` | failed, and the agent's to mend |
| -32602 invalid arguments | failed, and the agent's to mend |
| -32601, -32600, -32700, -32021 | failed: the server did not take the call |
| closed, timed out, any other error, the wrong shape | tried again if the tool is pure, otherwise in doubt |
"""

from collections.abc import Iterable
from typing import Any

from mcp import MCPError
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from ripstop.kernel.effects import Answer, Failed, ToolReturned
from ripstop.kernel.plain import plain
from ripstop.runtime.performers import InDoubt, Kind, Refused, TryAgain

from .card import ToolCard, clean

LONGEST_RESULT = 200_000
"""Characters."""
LONGEST_ERROR = 2_000
_NOT_TAKEN = (METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY)


def read_result(card: ToolCard, result: CallToolResult) -> Answer:
    text = "\n".join(_texts(result.content))
    if result.is_error:
        return Failed(
            reason=f"{card.name}: {clean(text, LONGEST_ERROR) or 'it failed, and did not say why'}", fault="agent"
        )
    if not text and result.structured_content is not None:
        value: Any = plain(result.structured_content)
        if len(str(value)) <= LONGEST_RESULT:
            return ToolReturned(value=value)
        text = str(value)
    if len(text) > LONGEST_RESULT:
        text = f"{text[:LONGEST_RESULT]}\n[cut: it has {len(text):,} characters]"
    return ToolReturned(value=text)


def read_error(card: ToolCard, error: MCPError) -> Exception | None:
    """The exception that says that the server did not do it; `None` if it may have."""
    said = f"{card.name}: {clean(error.message, LONGEST_ERROR)}"
    if error.code == INVALID_PARAMS:
        return Refused(said, "agent")
    return Refused(said, "tool") if error.code in _NOT_TAKEN else None


def broken_off(kind: Kind, reason: str) -> Exception:
    """A call that may have taken effect. A pure one can simply be made again; of a keyed one the worker knows how."""
    return TryAgain(reason) if kind is Kind.PURE else InDoubt(reason)


def _texts(content: Iterable[Any]) -> Iterable[str]:
    for block in content:
        match block:
            case TextContent(text=text):
                yield text
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                yield text
            case EmbeddedResource(resource=BlobResourceContents(blob=blob, mime_type=kind)):
                yield _note(kind, blob)
            case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
                yield _note(kind, data)
            case ResourceLink(uri=uri, name=name):
                yield f"[a link to {clean(name, 200)}: {clean(str(uri), 500)}]"


def _note(kind: str | None, data: str) -> str:
    return f"[{clean(kind or 'unknown type', 100)}, {len(data) * 3 // 4:,} bytes, not shown]"
