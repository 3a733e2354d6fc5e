"""The files and tool calls of a turn that came to nothing, and what the agent is told about its files.

A failure is settled when the file gets there after all:

- A whole file, written later, settles every failure of the same path.
- An edit that is made in a later reply settles one failed edit of the same path.
- A file that is written in a later reply with the same name in another folder, or with the same content,
  settles one: the agent was told that the path is wrong, and has chosen another.

A tool call that fails is answered with the reason, so whether to repeat it is up to the agent: if that was the
agent's own fault, what it leaves undone is only worth a warning. A full disk is not the agent's fault.

A call that names no file, because its arguments are wrong, its tool is denied or it is another tool, is settled by one
operation of a later reply that succeeds, unless that settles something else: the same arguments, or anything that does
not only read. What only reads and fails is not worth a warning.
"""

import posixpath
from collections.abc import Iterable

from ripstop.text.plurals import count

from .reply_files import Delivery, Edit, Unclear, WholeFile
from .reply_operations import EDIT, ERROR, MAX_FILES, WRITE, Exchange, Operation, as_delivery, in_order, operation

MAX_REASON = 500
"""Characters of a reason that an agent or a person is shown."""
MAX_LISTED = 250
"""Failures that are listed; the others are counted."""


class Failure:
    """A file that could not be written."""

    __slots__ = ("exchange", "file", "left_to_agent", "reason", "settled")

    def __init__(self, exchange: int, file: WholeFile | Edit, reason: str, left_to_agent: bool) -> None:
        self.exchange = exchange
        self.file = file
        self.reason = reason
        self.left_to_agent = left_to_agent
        self.settled = False


class UnmadeCall:
    """A tool call that was denied or failed, and that names no file of the workspace."""

    __slots__ = ("arguments", "exchange", "reason", "settled", "what")

    def __init__(self, exchange: int, done: Operation, reason: str, denied: bool) -> None:
        self.exchange = exchange
        self.arguments = done.arguments
        self.reason = reason
        self.settled = False
        self.what = f"a call of {done.tool!r} failed"
        if denied:
            self.what = "a tool call was denied"
        elif done.tool in (WRITE, EDIT):
            self.what = "a call to write a file failed"


class FileResults:
    """What became of the files of a turn, and of the calls that were not made."""

    def __init__(self, exchanges: Iterable[Exchange], tools: tuple[str, ...]) -> None:
        """`tools`: those that the agent may call. What it may not write is not missing."""
        self._tools = tools
        self._failures: list[Failure] = []
        self._by_key: dict[tuple[str, str], list[Failure]] = {}
        self._unmade: list[UnmadeCall] = []
        self.written: dict[str, None] = {}
        """Paths of files in the text that were written or edited."""
        for number, exchange in enumerate(exchanges):
            for index, said in in_order(exchange):
                self._add(number, exchange, index, said)

    @property
    def missing(self) -> tuple[str, ...]:
        return _listed([one for one in self._failures if not one.settled and not one.left_to_agent])

    @property
    def left_undone(self) -> tuple[str, ...]:
        """Failed and denied calls that the agent knows of and has not made good, as sentences."""
        failed = _listed([one for one in self._failures if not one.settled and one.left_to_agent])
        said = [f"a call to write a file failed and was not made good: {reason}" for reason in failed]
        said += [
            f"{call.what} and was not made good: {call.reason[:MAX_REASON].rstrip('.')}"
            for call in self._unmade
            if not call.settled
        ]
        different = list(dict.fromkeys(said))
        more = len(different) - MAX_LISTED
        return tuple(different if more <= 0 else [*different[:MAX_LISTED], f"{count(more, 'more call')} not made good"])

    def _add(self, number: int, exchange: Exchange, index: int, said: str) -> None:
        done = operation(exchange, index)
        by_call, permitted = done.file is None, done.tool in self._tools
        failed, reason = said.startswith(ERROR), said.removeprefix(ERROR)
        file = done.file if done.file is not None else as_delivery(done.tool, done.arguments)
        if failed and by_call and not permitted:
            self._unmade.append(UnmadeCall(number, done, reason, denied=True))
        elif file is None or not permitted:
            if not failed:
                self._settle_call(number, done)
            elif permitted and not done.looks and not done.beyond:
                self._unmade.append(UnmadeCall(number, done, reason, denied=False))
        elif not failed:
            assert not isinstance(file, Unclear)  # is never written
            if not self._settle(number, file):
                self._settle_call(number, done)
            if not by_call:
                self.written[file.path] = None
        else:
            beyond = exchange.files[MAX_FILES:] if done.beyond and not by_call else (file,)
            for one in beyond:
                if not isinstance(one, Unclear):
                    self._fail(Failure(number, one, reason, by_call and index not in exchange.unable))

    def _fail(self, failure: Failure) -> None:
        self._failures.append(failure)
        for key in _keys(failure.file):
            self._by_key.setdefault(key, []).append(failure)

    def _settle(self, number: int, file: WholeFile | Edit) -> bool:
        """Settle what the file makes good; returns whether that is anything."""
        path, *others = _keys(file)
        if isinstance(file, WholeFile):
            settled = self._by_key.pop(path, [])
            for failure in settled:
                failure.settled = True
        else:
            settled = _settle_one(self._by_key.get(path, ()), number, (Edit,))
        if settled:
            return True
        kinds = (Edit,) if isinstance(file, Edit) else (Edit, WholeFile)
        return any(_settle_one(self._by_key.get(key, ()), number, kinds) for key in others)

    def _settle_call(self, number: int, done: Operation) -> None:
        earlier = [call for call in self._unmade if not call.settled and call.exchange < number]
        if not earlier:  # the usual case
            return
        same = next((call for call in earlier if call.arguments == done.arguments), None)
        made_good = same or (None if done.looks else earlier[0])
        if made_good:
            made_good.settled = True


def _settle_one(failures: Iterable[Failure], number: int, kinds: tuple[type, ...]) -> list[Failure]:
    """Settle the first failure of an earlier reply, if there is one."""
    for failure in failures:
        if not failure.settled and failure.exchange < number and isinstance(failure.file, kinds):
            failure.settled = True
            return [failure]
    return []


def _keys(file: WholeFile | Edit) -> tuple[tuple[str, str], ...]:
    path = posixpath.normpath(file.path)
    content = file.content if isinstance(file, WholeFile) else f"{file.search}\0{file.replace}"
    return ("path", path), ("name", posixpath.basename(path)), (type(file).__name__, content)


def _listed(failures: list[Failure]) -> tuple[str, ...]:
    shown = [_shown(failure.file, failure.reason) for failure in failures[:MAX_LISTED]]
    if len(failures) > MAX_LISTED:
        shown.append(f"{len(failures) - MAX_LISTED} more")
    return tuple(shown)


def _shown(file: Delivery, reason: str) -> str:
    what = repr(file.path[:MAX_REASON]) if file.path else "an edit without a path"
    return f"{what}: {reason[:MAX_REASON].rstrip('.')}"


def failed_files(exchange: Exchange) -> tuple[str, ...]:
    """The files in the text of one reply that were not written."""
    failed = []
    for index, said in in_order(exchange):
        file = operation(exchange, index).file
        if file is not None and said.startswith(ERROR):
            failed.append(_shown(file, said.removeprefix(ERROR)))
    return tuple(failed)


def repeated_edit(exchanges: tuple[Exchange, ...], file: Delivery) -> bool:
    """Whether an agent that was asked again repeats an edit that was made, with the file not written since."""
    if not isinstance(file, Edit) or not any(exchange.correction for exchange in exchanges):
        return False
    made = False
    for exchange in exchanges:
        for index, said in in_order(exchange):
            if said.startswith(ERROR):
                continue
            done = operation(exchange, index)
            if exchange.correction and done.file == file:
                made = True
            elif done.tool == WRITE and done.arguments.get("path") == file.path:
                made = False
    return made


def correction(missing: tuple[str, ...], written: Iterable[str]) -> str:
    """What an agent is told whose files were not all written; empty if there is nothing to tell."""
    parts = []
    if missing:
        parts.append("These files of your reply were not written:\n" + "".join(f"- {one}.\n" for one in missing))
    if done := ", ".join(written):
        parts.append(f"These were written, so do not send them again: {done}.\n")
    if missing:
        parts.append(
            "Send each of the missing files once more, so that it can be written; instead of an edit you may send "
            f"the whole file. One reply can have at most {MAX_FILES} files.\n"
        )
    return "".join(parts)
