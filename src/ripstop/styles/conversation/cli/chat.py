"""`chat`: a conversation with a bot, from either side."""

import asyncio
import io
import sys
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Options, allow_option, pairs, shared_options, user_name
from ripstop.faces.cli.terminal import at_terminal
from ripstop.faces.cli.trust import agree_or_warn, with_consent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripstop.app.settings.settings_file import Settings

    from .user_side import UserSide


@click.command(short_help="Talk to a bot.")
@click.argument("named", metavar="CONFIG")
@click.option("--session", default=None, metavar="ID", help="Begin or continue this session. Default: a new one.")
@click.option("--by", default=None, metavar="NAME", help="Who is speaking.")
@click.option("--message", default=None, metavar="TEXT", help="Send one message, and print the answer; -: from stdin.")
@click.option("--message-id", default=None, metavar="ID", help="Sent twice with the same id, it is heard once.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="A variable of a new session; repeatable.")
@click.option("--as-desk", is_flag=True, help="The person's side of a conversation that was handed over.")
@click.option("--take", is_flag=True, help="With --as-desk: take it over from the bot, or from another person.")
@click.option("--release", is_flag=True, help="With --as-desk: give it back to the bot.")
@allow_option
@shared_options
@click.pass_obj
def chat(
    options: Options,
    named: str,
    session: str | None,
    by: str | None,
    message: str | None,
    message_id: str | None,
    values: tuple[str, ...],
    as_desk: bool,
    take: bool,
    release: bool,
) -> None:
    """Talk to a bot: the file or folder of its configuration, or a name found in workflows/.

    On a terminal it is a chat; /quit leaves it, and the session stays. Elsewhere every line of stdin is a message,
    and what the bot says is printed.

    With --message it sends one message and waits until it is dealt with. With --json it prints {"run", "session",
    "status", "messages", "actions", "timers", "usage"} of that. Exit codes: 0 answered, 4 a person is waited for, 1
    broken off.

    With --as-desk, CONFIG is the session or the run of a conversation that was handed over, and you are the person who
    answers: what you type is sent, /release gives the conversation back to the bot.

    \b
    Examples:
      ripstop chat bots/shop
      ripstop chat bots/shop --session ann --message "Where is my order?" --json
      ripstop chat --as-desk ann
    """
    words = _message(message)
    users = {"--session": session, "--message-id": message_id, "--set": values}
    if as_desk:
        _refuse(users, "{} is for the user's side, not for --as-desk.")
        from .desk_side import DeskSide, work_at_desk

        side = DeskSide(options, named, user_name() if by is None else by)
        sys.exit(asyncio.run(work_at_desk(side, options.settings(), words, take, release)))
    _refuse({"--take": take, "--release": release}, "{} needs --as-desk.")
    if message_id is not None and (words is None or not session or not message_id):
        raise click.UsageError("--message-id needs --message and --session, and must not be empty.")
    from ..chats import checked_session
    from .user_side import UserSide

    if session is not None:
        checked_session(session)
    user = UserSide(options, named, session or "", by or "", pairs(values))
    sys.exit(with_consent(options, lambda: _talk(user, words, message_id or "")))


def _refuse(options: "Mapping[str, object]", said: str) -> None:
    for name, value in options.items():
        if value:
            raise click.UsageError(said.format(name))


def _talk(user: "UserSide", words: str | None, message_id: str) -> int:
    from .user_side import check_before_journal

    options = user.options
    settings: Settings = options.settings()
    check_before_journal(settings, user.config)
    agree_or_warn(options, settings, user.config)
    if words is not None:
        from .messages import send_one

        return asyncio.run(send_one(user, settings, words, message_id))
    if at_terminal(options.as_json):
        from .terminal_chat import chat_at_terminal

        return asyncio.run(chat_at_terminal(user, settings))
    if options.as_json:
        raise click.UsageError("--json needs --message TEXT.")
    from .line_by_line import chat_line_by_line

    return asyncio.run(chat_line_by_line(user, settings))


def _message(given: str | None) -> str | None:
    """The message that the command line gives: a text, or what stdin holds. Raises `UsageError`."""
    from ripstop.kernel.text_limits import LONGEST_MESSAGE

    from ..chats import checked_message

    if given is None:
        return None
    if given != "-":
        return checked_message(given)
    text = _from_stdin(LONGEST_MESSAGE + 2).removesuffix("\n")
    if len(text) > LONGEST_MESSAGE:
        raise click.UsageError(f"A message has at most {LONGEST_MESSAGE:,} characters, and stdin has more.")
    return checked_message(text)


def _from_stdin(most: int) -> str:
    """The first characters of stdin, at most so many."""
    if isinstance(sys.stdin, io.TextIOWrapper):  # else it is none, or made of text already
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    try:
        return sys.stdin.read(most) if sys.stdin else ""
    except UnicodeDecodeError:
        raise click.UsageError("What stdin holds is not UTF-8 text.") from None
