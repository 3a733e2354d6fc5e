"""`chat --message`: one message, and what came of it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ripstop.engine.following import until_settled
from ripstop.faces.cli.signals import interruption, resume_with, stop_requested, undisturbed
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_json, say_text
from ripstop.faces.cli.words import GRACE, WAITING, exit_code, one_of
from ripstop.kernel.errors import UsageError
from ripstop.kernel.text_limits import shown

from .user_side import UserSide

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.engine import Engine, View
    from ripstop.engine.worker import Worker

    from ..session_view import SessionView


# Which session a person means: by the id of its run, or by its own name.


PAGE = 200
MOST_LISTED = 10


async def resolve_session(engine: "Engine", named: str) -> str:
    """The id of a session's run. Raises `UsageError` if there is none, or if several bots have one of that name."""
    from ripstop.kernel.errors import UsageError

    from ..bots import STYLE
    from ..chats import run_of

    info = await engine.journal.run(named)
    if info is not None:
        if info.style != STYLE:
            raise UsageError(f"{named} is a run of the style {info.style!r}, not a session of a bot.")
        return named
    found = [run_of(one["workflow_id"], one["id"]) async for one in documents(engine, "sessions") if one["id"] == named]
    if len(found) > 1:
        raise UsageError(f"Several bots have a session {named!r}. Say which: {one_of(found[:MOST_LISTED])}.")
    if not found:
        raise UsageError(f"There is no session {named!r}. `ripstop sessions` lists those that there are.")
    return found[0]


async def documents(engine: "Engine", collection: str) -> Any:
    """All documents of a collection, as they are."""
    import msgspec

    cursor = ""
    while True:
        page = await engine.journal.documents(collection, cursor, PAGE)
        for _, body in page.items:
            yield msgspec.json.decode(body)
        cursor = page.next
        if not cursor:
            return


CANCELLED = 1
SHOWN = ("run", "session", "status", "messages", "actions", "timers", "usage", "because")


async def send_one(user: UserSide, settings: "Settings", text: str, message_id: str) -> int:
    """Send a message, work until its pass is over, and say what was said."""
    from ripstop.engine.ports import Tree

    interrupted = stop_requested()
    keep_working_without_readers()
    options = user.options
    async with options.app(settings, scope=None) as app:
        await user.prepare(app)
        number = await user.tell(text, message_id)
        resume_with(f"{user.again(settings)} --message …")
        if user.is_unnamed and not options.as_json:
            say((f"session {user.session}   {user.again(settings)}", "dim"), err=True)
        async with app.working(Tree(user.run_id)) as worker:
            view = await settled(app, worker, user.run_id, interrupted, user.again(settings))
            session = await user.chats.look(user.run_id, number)
        if options.as_json:
            say_json(plain(session))
        else:
            show(session)
        if view is None:
            return 128 + interrupted.result()
        if not options.as_json:
            show_checking(view, session)
        tell_waiting(view, session)
        return code_of(view, session)


def plain(session: "SessionView") -> dict[str, Any]:
    """A session as `--json` prints it."""
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(session)
    document["messages"] = [{"kind": one.kind, "text": one.text} for one in session.messages]
    closed = {"closed": True} if session.closed else {}
    return {name: document[name] for name in SHOWN if name in document} | closed


def show(session: "SessionView") -> None:
    for message in session.answers:
        say_text(message.text)


def show_checking(view: "View", session: "SessionView") -> None:
    """Say the bot's words for it if a workflow waits and nothing was said: no process stays that could do so later."""
    from ripstop.kernel.effects import StartRun

    from ..prompts import spoken

    state = view.run.state
    acting = view.run.open.get(state.acting)
    waits = (
        acting
        and type(acting.command) is StartRun
        and not state.asking
        and not view.run.ended
        and session.status != "transferred"
    )
    if waits and not session.answers:
        say_text(spoken(state, state.definition.checking))


def tell_waiting(view: "View", session: "SessionView") -> None:
    """Say what the user cannot see: why it was broken off, and that a person is waited for, or another process."""
    if session.because:
        say(f"The pass was broken off: {session.because}  More:  ripstop why {session.run}", err=True)
    for needs in view.needs:
        kind, _, name = needs.partition(":")
        say(f"{session.run} waits for a worker that has the {kind} {name!r}.", err=True)
    if session.status == "transferred":
        say(f"A person has this conversation, or is to take it:  ripstop chat --as-desk {session.run}", err=True)
    elif view.run.ended:
        say(f"The session has ended ({view.run.ended.outcome}: {view.run.ended.because}).", err=True)
    elif view.run.state.acting and not view.run.state.asking:
        say(f"What it has started is not done, and waits. See for what:  ripstop show {session.run}", err=True)


def code_of(view: "View", session: "SessionView") -> int:
    """The exit code that says how a pass went. Timers of an idle session are not waited for."""
    if view.run.ended:
        return exit_code(view.status)
    if session.status == "cancelled" and not view.run.state.in_pass:
        return CANCELLED
    return 0 if view.status == "listening" else WAITING


# Work until a run has nothing to do now, or a signal comes; the process says then how to continue.


async def settled(
    app: "App", worker: "Worker", run_id: str, interrupted: "asyncio.Future[int]", again: str
) -> "View | None":
    """The run when it is settled. If a signal comes first: none, once work is stopped and `again` was told."""
    following = asyncio.ensure_future(until_settled(app.engine, worker, run_id))
    waited: list[asyncio.Future[Any]] = [following, interrupted]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if following.done():
        return following.result()
    following.cancel()
    await asyncio.wait([following])
    await worker.stop(GRACE)
    with undisturbed():
        say(interruption(again), err=True)
    return None


# The lines of stdin, read without holding up the work of this process; whether it is a pipe, a file or a terminal.


PIECE = 65536
MAX_LINE = 100_000
"""Bytes of a line."""


async def stdin_lines() -> AsyncIterator[str]:
    """Raises `UsageError` for a line that is too long or not UTF-8."""
    rest = b""
    while sys.stdin is not None:
        piece = await _piece(sys.stdin.fileno())
        *lines, rest = (rest + piece).split(b"\n")
        for line in (*lines, rest) if not piece else lines:
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise UsageError(f"This line of stdin is not UTF-8 text: {shown(line)}.") from None
            yield text
        if not piece:
            return
        if len(rest) > MAX_LINE:
            raise UsageError(f"A line of stdin has at most {MAX_LINE:,} bytes.")


async def _piece(handle: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(handle, ready.set)
    except PermissionError:  # a file, which can always be read
        return os.read(handle, PIECE)
    try:
        await ready.wait()
        return os.read(handle, PIECE)
    except OSError:  # EIO: the terminal was closed
        return b""
    finally:
        loop.remove_reader(handle)
