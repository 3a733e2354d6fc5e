"""`chat --message`: one message, and what came of it."""

from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.output import keep_working_without_readers
from ripstop.faces.cli.signals import resume_with, stop_requested
from ripstop.faces.cli.summary import WAITING, exit_code
from ripstop.faces.cli.terminal import say, say_json, say_text

from .user_side import UserSide

if TYPE_CHECKING:
    from ripstop.runtime.engine import View
    from ripstop.services.conversation.session_view import SessionView
    from ripstop.settings.settings_file import Settings

CANCELLED = 1
SHOWN = ("run", "session", "status", "messages", "actions", "timers", "usage", "because")


async def send_one(user: UserSide, settings: "Settings", text: str, message_id: str) -> int:
    """Send a message, work until its pass is over, and say what was said."""
    from ripstop.runtime.ports import Tree

    from .settling import settled

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
        tell_waiting(view, session)
        return code_of(view, session)


def plain(session: "SessionView") -> dict[str, Any]:
    """A session as `--json` prints it."""
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(session)
    closed = {"closed": True} if session.closed else {}
    return {name: document[name] for name in SHOWN if name in document} | closed


def show(session: "SessionView") -> None:
    for message in session.answers:
        say_text(message.text)


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


def code_of(view: "View", session: "SessionView") -> int:
    """The exit code that says how a pass went. Timers of an idle session are not waited for."""
    if view.run.ended:
        return exit_code(view.status)
    if session.status == "cancelled":
        return CANCELLED
    return 0 if view.status == "listening" else WAITING
