"""`sessions`: the sessions of bots, and the plans that they share."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.cli.options import Family, Options, allow_option, shared_options
from ripstop.faces.cli.terminal import console_for, say, say_json
from ripstop.faces.cli.trust import with_consent
from ripstop.text.plurals import count

from .messages import documents, resolve_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..feed import SpokenLine
    from ..session_view import SessionView

LIMIT = 50
MESSAGES_SHOWN = 40
MAX_SHOWN = 300
MOST_NAMED = 5
"""Messages that an answer is said to answer; of more, the number is said."""
"""Characters of a message that are shown."""
STATUSES = ("acknowledged", "processing", "typing", "ready", "transferred", "cancelled", "closed")
SHORT_HASH = 8


class _WithList(Family):
    """`sessions` alone, or with anything but a command behind it, lists them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asks_for_help = any(one in ctx.help_option_names for one in args[:1])
        named = next((one for one in args if not one.startswith("-")), "")
        takes_it = args[:1] == [named] and named in self.commands
        return super().parse_args(ctx, args if takes_it or asks_for_help else ["list", *args])


@click.group(cls=_WithList, short_help="List the sessions of bots.")
@shared_options
def sessions() -> None:
    """List the sessions of bots; show one; show the plans that they share, or have a new one made.

    \b
    Examples:
      ripstop sessions
      ripstop sessions bots/shop --status transferred
      ripstop sessions show ann
      ripstop sessions plans --json
    """


@sessions.command("list", short_help="List sessions. `ripstop sessions` does, too.")
@click.argument("config", required=False)
@click.option("--status", type=click.Choice(STATUSES), metavar="STATUS", help=f"One of: {', '.join(STATUSES)}.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help=f"At most so many. Default: {LIMIT}; with --json, all."
)
@shared_options
@click.pass_obj
def list_(options: Options, config: str | None, status: str | None, limit: int | None) -> None:
    """List sessions: all, or those of the bot that a CONFIG or its name means.

    \b
    Examples:
      ripstop sessions
      ripstop sessions list bots/shop --status transferred --json
    """
    from ripstop.app.stores import open_engine

    workflow = _workflow(config) if config else ""
    most = limit or (sys.maxsize if options.as_json else LIMIT)

    async def look() -> tuple[list[dict[str, Any]], bool]:
        found: list[dict[str, Any]] = []
        async with open_engine(options.settings(), or_empty=True) as engine:
            async for one in documents(engine, "sessions"):
                if workflow in ("", one["workflow_id"]) and status in (None, _status(one)):
                    if len(found) == most:
                        return found, True
                    found.append(one)
        return found, False

    found, has_more = asyncio.run(look())
    if options.as_json:
        say_json(found)
        return say(f"Not all sessions are listed: --limit is {most:,}.", err=True) if has_more else None
    if not found:
        return say("No sessions match." if workflow or status else "No sessions yet. Begin one:  ripstop chat CONFIG")
    from ripstop.faces.cli.blocks import print_table, table_width

    rows = [
        (one["id"], _status(one), one["workflow_id"], one["workflow_state"]["hash"][:SHORT_HASH], one["taken_by"])
        for one in found
    ]
    print_table(("session", "status", "bot", "plan", "with"), rows, table_width())
    if has_more:
        say((f"… more; --limit N lists more than {most}.", "dim"))
    return None


@sessions.command("show", short_help="Show a session.")
@click.argument("named", metavar="SESSION|RUN")
@shared_options
@click.pass_obj
def show(options: Options, named: str) -> None:
    """Show a session: its status, what was said last, and its timers.

    A message of the user has its number, and an answer the numbers of the messages that it answers.

    With --json: what both sides have said and what was done, up to the newest record; "before" is the number of earlier
    records, which `ripstop log` has.

    \b
    Example:
      ripstop sessions show ann
    """
    from ripstop.app.stores import open_engine
    from ripstop.faces.cli.blocks import show_parts
    from ripstop.kernel.parts import Talk, Timers

    async def look() -> Any:
        from ..feed import spoken_before
        from ..session_view import view_of

        async with open_engine(options.settings()) as engine:
            run_id = await resolve_session(engine, named)
            view = await engine.look(run_id)
            parts = engine.style(view.run).view.parts(view.run)
            return view, parts, spoken_before(view.run), await view_of(engine, view)

    view, parts, spoken, session = asyncio.run(look())
    if options.as_json:
        import msgspec

        from .messages import plain

        messages = [msgspec.to_builtins(one) for one in session.messages]
        return say_json({**plain(session), "messages": messages, "before": session.before, "records": session.records})
    status = f"ended ({view.status})" if view.run.ended else "closed" if session.closed else session.status
    say((session.run, "bold"), f"  {status}")
    show_parts(console_for(), tuple(part for part in parts if not isinstance(part, Talk | Timers)))
    _show_talk(session, spoken)
    show_parts(console_for(), tuple(part for part in parts if isinstance(part, Timers)))
    say()
    return _tell_ways(session)


def _show_talk(session: "SessionView", spoken: "Sequence[SpokenLine]") -> None:
    """Print what was said last, and how much there is before it."""
    from ripstop.faces.cli.blocks import print_indented
    from ripstop.faces.cli.words import first_line

    if not spoken:
        return
    shown = spoken[-MESSAGES_SHOWN:]
    earlier = len(session.messages) - len(shown)
    say()
    say(("Conversation", "bold"))
    if earlier > 0 or session.before:
        more = "" if not session.before else f", and {session.before:,} records before them"
        say((f"  … {count(earlier, 'earlier message')}{more}; --json has the messages.", "dim"))
    answers = {one.id: one.answers for one in session.messages}
    for line in shown:
        of_users = answers.get(f"{session.run}/{line.number}", ())
        to = ", ".join(id.rpartition("/")[2] for id in of_users[:MOST_NAMED])
        more = f" and {len(of_users) - MOST_NAMED} more" if len(of_users) > MOST_NAMED else ""
        about = f" (answers {to}{more})" if to else ""
        number = f"{line.number} " if line.side == "user" else ""
        speaker = f"{number}{line.by or line.side}{about}"
        print_indented(console_for(), 2, f"{speaker}: {first_line(line.text, MAX_SHOWN)}")


def _tell_ways(session: "SessionView") -> None:
    if session.status == "transferred":
        return say((f"ripstop chat --as-desk {session.run}", "dim"))
    return say((f"ripstop chat --as-desk {session.run} --take   ·   ripstop log {session.run}", "dim"))


@sessions.command(short_help="Show the plans that sessions share.")
@shared_options
@click.pass_obj
def plans(options: Options) -> None:
    """Show the plans that were made of configurations: one for each, whatever the number of its sessions.

    \b
    Example:
      ripstop sessions plans --json
    """
    from ripstop.app.stores import open_engine

    async def look() -> list[dict[str, Any]]:
        async with open_engine(options.settings(), or_empty=True) as engine:
            return [one async for one in documents(engine, "plan_cache")]

    found = asyncio.run(look())
    if options.as_json:
        return say_json(found)
    if not found:
        return say("No plans yet. The first message to a bot makes one.")
    from ripstop.faces.cli.blocks import print_table, table_width
    from ripstop.faces.cli.words import first_line

    rows = [(one["workflow_id"], one["hash"][:SHORT_HASH], one["name"], first_line(one["sop"], 200)) for one in found]
    print_table(("bot", "plan", "name", "procedure"), rows, table_width())
    return None


@sessions.command(short_help="Have a new plan made of a configuration.")
@click.argument("config")
@allow_option
@shared_options
@click.pass_obj
def replan(options: Options, config: str) -> None:
    """Have a new plan made of a CONFIG as it is now, by the model that made the last one, or by --model.

    Its sessions use the old plan until the new one is there.

    \b
    Example:
      ripstop sessions replan bots/shop
    """
    sys.exit(with_consent(options, lambda: asyncio.run(_replan(options, config))))


async def _replan(options: Options, config: str) -> int:
    from ripstop.engine.ports import Tree
    from ripstop.faces.cli.signals import resume_with, stop_requested
    from ripstop.faces.cli.words import command_for, exit_code

    from ..chats import Chats
    from .messages import settled

    settings = options.settings()
    interrupted = stop_requested()
    async with options.app(settings, create=False, scope=None) as app:
        chats = Chats(app)
        run = await chats.replan(config, options.other_model(), options.base_url or "")
        again = f"{command_for(settings.store)} resume {run.id}"
        resume_with(again)
        async with app.working(Tree(run.id)) as worker:
            view = await settled(app, worker, run.id, interrupted, again)
        if view is None:
            return 128 + interrupted.result()
        known = await chats.bots.get(config)
        using = [1 async for one in documents(app.engine, "sessions") if one["workflow_id"] == known.bot.name]
        outcome = view.status
        because = view.run.ended.because if view.run.ended else ""
    if options.as_json:
        say_json({"run": run.id, "outcome": outcome, "because": because, "sessions": len(using)})
    elif outcome == "completed":
        say(f"There is a new plan ({run.id}). {count(len(using), 'session')} will use it from the next message on.")
    else:
        say(f"No new plan: {outcome}{f', {because}' if because else ''}.", err=True)
    return exit_code(outcome)


def _workflow(config: str) -> str:
    """The name under which a bot's sessions are kept: of a configuration, or that name itself."""
    from pathlib import Path

    from ripstop.app.plugins import installed
    from ripstop.definitions.loading import FOLDER, find
    from ripstop.definitions.reader import Environment

    if not (Path(config).exists() or (Path(FOLDER) / config).exists()):
        return config
    return find(installed().readers, config, Environment(any_name=True)).name


def _status(session: dict[str, Any]) -> str:
    return "closed" if session["closed"] else str(session["workflow_state"]["status"])
