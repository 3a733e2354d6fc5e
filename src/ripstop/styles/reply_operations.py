"""An exchange: one reply of an agent, the operations in it, and what came back.

- The operations of a reply take effect in this order: the files in its text from top to bottom, then its tool calls.
- A tool call has its own index in the reply. A file comes behind them: its index is the number of calls plus its
  place among the files.
- `MAX_FILES` files and `MAX_TOOL_CALLS` calls of a reply are performed. One more operation represents all the
  others: it is denied, and the agent is told of the limit.
"""

from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import AgentReplied

from .reply_files import Delivery, Edit, Unclear, WholeFile, deliveries

WRITE, EDIT = "write_file", "edit_file"
"""The tools that write what a reply's text delivers."""
LOOKING = ("list_files", "read_file", "search_files")
"""The tools that change nothing."""
ERROR = "Error: "
"""The beginning of a result that explains to an agent what went wrong."""
MAX_FILES = 200
"""Files and edits that are taken from the text of one reply."""
MAX_TOOL_CALLS = 100
"""Tool calls that are taken from one reply."""
NAMES_SHOWN = 20
"""Names of files beyond the limit that a denial lists."""


class Exchange(Struct, frozen=True, gc=False):
    """A reply, and what came back to the agent."""

    number: int
    """Of the record that holds the reply."""
    reply: AgentReplied
    results: tuple[tuple[int, str], ...] = ()
    """(index of the operation, its result as text), in the order in which they came."""
    correction: str = ""
    """What was wrong with the reply, if the agent was asked again."""
    last: int = -1
    """Index of the operation that was asked for or denied last; -1: none yet."""
    unable: tuple[int, ...] = ()
    """Indices of operations that failed through no fault of the agent, such as on a full disk."""
    goes_on: bool = False
    """The reply was cut off, and the agent is asked for the rest of it."""
    parts: tuple[int, ...] = ()
    """Numbers of the records with the earlier parts of the reply, if it came in several."""
    as_json: tuple[int, ...] = ()
    """Indices of operations whose results are JSON; the others are texts."""
    longest: int = 0
    """Characters that each of its texts keeps in a prompt; 0: they are not shortened."""

    @property
    def files(self) -> tuple[Delivery, ...]:
        return deliveries(self.reply.text)


class Operation(Struct, frozen=True):
    """A file to write, or a tool to call."""

    index: int
    tool: str
    arguments: dict[str, Any]
    file: Delivery | None = None
    """The file in the text; none for a tool call."""
    beyond: str = ""
    """Why this one and all of its kind after it are not carried out; empty if it may be."""
    malformed: str = ""
    """Why the arguments of the call could not be read; empty if they could."""

    @property
    def looks(self) -> bool:
        """Whether it changes nothing, so that others like it can run concurrently."""
        return self.file is None and self.tool in LOOKING


def operation_after(exchange: Exchange, last: int) -> Operation | None:
    """The operation that follows the one with the index `last` (-1: the first one); none if that was the last."""
    calls, files = exchange.reply.calls, exchange.files
    slots = min(len(files), MAX_FILES + 1)
    place = _place(last, len(calls), slots) + 1
    if place < slots:
        return operation(exchange, len(calls) + place)
    return operation(exchange, place - slots) if place - slots < min(len(calls), MAX_TOOL_CALLS + 1) else None


def in_order(exchange: Exchange) -> list[tuple[int, str]]:
    """The results in the order of their operations."""
    calls = len(exchange.reply.calls)
    return sorted(exchange.results, key=lambda result: (result[0] < calls, result[0]))


def _place(index: int, calls: int, slots: int) -> int:
    if index < 0:
        return -1
    return index - calls if index >= calls else slots + index


def operation(exchange: Exchange, index: int) -> Operation:
    calls = exchange.reply.calls
    if index < len(calls):
        call = calls[index]
        beyond = calls_beyond(len(calls)) if index >= MAX_TOOL_CALLS else ""
        return Operation(index, call.tool, call.arguments, beyond=beyond, malformed=call.malformed)
    files = exchange.files
    place = index - len(calls)
    item = files[place]
    beyond = _files_beyond(files) if place >= MAX_FILES else ""
    return Operation(index, *as_call(item), file=item, beyond=beyond)


def as_call(item: Delivery) -> tuple[str, dict[str, Any]]:
    """The tool that writes a file of the text, and its arguments; none for what is not clearly a file."""
    match item:
        case WholeFile(path=path, content=content):
            return WRITE, {"path": path, "content": content}
        case Edit(path=path, search=search, replace=new):
            return EDIT, {"path": path, "search": search, "replace": new}
        case Unclear():
            return WRITE, {}


def as_delivery(tool: str, arguments: dict[str, Any]) -> Delivery | None:
    """The same the other way round; none for other tools and for wrong arguments."""
    path, values = arguments.get("path"), [arguments.get(name) for name in ("content", "search", "replace")]
    if not isinstance(path, str):
        return None
    match tool, values:
        case "write_file", [str(content), _, _]:
            return WholeFile(path, content)
        case "edit_file", [_, str(search), str(new)]:
            return Edit(path, search, new)
    return None


def calls_beyond(count: int) -> str:
    return (
        f"the reply has {count} tool calls, and at most {MAX_TOOL_CALLS} of one reply are carried out; "
        "make the others in your next replies"
    )


def _files_beyond(files: tuple[Delivery, ...]) -> str:
    names = [item.path for item in files[MAX_FILES : MAX_FILES + NAMES_SHOWN]]
    more = len(files) - MAX_FILES - len(names)
    listed = ", ".join(repr(name[: NAMES_SHOWN * 5]) for name in names) + (f" and {more} more" if more else "")
    return (
        f"the reply has {len(files)} files, and at most {MAX_FILES} of one reply are written; these were not: {listed}"
    )
