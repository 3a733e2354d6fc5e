"""`desk`, `answer`, `cancel` and `fork`: the commands with which people steer."""

import asyncio
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import FolderPath, Options, pairs, shared_options, without_tools
from .summary import seen_status
from .terminal import console_for, say, say_json, say_text
from .words import (
    CHOICE,
    TEXT,
    answer_command,
    choices_line,
    command_for,
    field_options,
    field_words,
    first_line,
    local_time,
    one_of,
)

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine
    from ripstop.views import DeskItem

SHOWN = 80
"""Characters of an answer's text that are repeated."""
MAX_ANSWER = 4_000_000
"""Bytes of a file with an answer."""


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


@click.command(short_help="List what waits for a person, over all runs.")
@click.argument("item", metavar="[ID]", required=False)
@click.option("--to", metavar="NAME", help="Only what is meant for this role or person, or for anyone.")
@shared_options
@click.pass_obj
def desk(options: Options, item: str | None, to: str | None) -> None:
    """List everything that waits for a person, over all runs; with ID, one question with the text behind it and the
    fields that an answer takes.

    \b
    Examples:
      ripstop desk
      ripstop desk deploy-k3f9x/12
    """
    from ripstop.opening import open_engine
    from ripstop.runtime.ports import DeskQuery
    from ripstop.views import desk_item

    from .pages import all_questions

    async def look() -> Any:
        async with open_engine(options.settings(), or_empty=True) as engine:
            found = await all_questions(engine, DeskQuery(to=to))
            wanted = [one for one in found if item in (None, f"{one.run_id}/{one.number}")]
            if item and not wanted:
                raise click.UsageError(f"{item} is not an open question. `ripstop desk` lists those that are.")
            with_texts = options.as_json or item is not None
            return [(one, await desk_item(engine, one, with_texts)) for one in wanted]

    questions = asyncio.run(look())
    if options.as_json:
        return say_json([_plain(one) for _, one in questions])
    if not questions:
        return say("Nothing waits for you.")
    for question, one in questions:
        _show_question(one, question.at, whole=item is not None)
    return None


def _show_question(one: "DeskItem", at: int, whole: bool) -> None:
    """Show a question and how to answer it; `whole`: with the text behind it, and all fields."""
    from .paragraphs import print_indented

    console = console_for()
    title = f"  {one.title}" if one.title else ""
    say((one.id, "bold"), f"  {local_time(at)}{title}")
    if len(one.family) > 1:
        say((f"  {' ← '.join(one.family)}", "dim"))
    print_indented(console, 2, one.question)
    if whole:
        for record in one.evidence:
            print_indented(console, 4, (f"record {record.number}  ", "dim"), record.text)
        if one.document is not None:
            say_text(one.document)
        for name, field in one.fields.items():
            print_indented(console, 2, (f"field {name}  ", "dim"), field_words(field))
    needed = {name: field for name, field in one.fields.items() if whole or field.required}
    say((f"  ripstop {answer_command(one.id, one.choices, field_options(needed))}", "dim"))
    for line in choices_line(one.choices):
        say((f"  {line}", "dim"))
    say()


def _plain(item: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(item)
    return {**plain, "choices": list(plain["choices"]), "labels": plain["choices"]}


@click.command(short_help="Answer a question on the desk.")
@click.argument("question", metavar="ID")
@click.argument("words", metavar="[CHOICE|TEXT]", required=False, default="")
@click.argument("text", required=False, default="")
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="Take the text, or the edited document, from a file."
)
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the answer; can be repeated.")
@click.option("--as", "by", metavar="NAME", help="Who answers. Default: your user name.")
@shared_options
@click.pass_obj
def answer(
    options: Options,
    question: str,
    words: str,
    text: str,
    file: Path | None,
    fields: tuple[str, ...],
    by: str | None,
) -> None:
    """Answer a question on the desk. If no worker is alive, `ripstop resume` then resumes the run.

    The first word is the choice; where the question takes any text, it may also be the whole answer. `ripstop desk ID`
    shows the fields that an answer can have.

    \b
    Examples:
      ripstop answer deploy-k3f9x/12 happened "release 4 is live"
      ripstop answer draft-k3f9x/9 edit --file draft.md
    """
    from ripstop.opening import open_engine

    run_id, slash, number = question.rpartition("/")
    if not slash or not number.isdigit():
        raise click.UsageError(f"{question!r} is not RUN/NUMBER, as `ripstop desk` shows it.")
    from ripstop.files.plain_file import read_plain_file

    content: str | None = None
    if file:
        try:
            content = read_plain_file(file, MAX_ANSWER).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} cannot be read: {error}") from error

    async def tell() -> Any:
        async with open_engine(options.settings()) as engine:
            opened = (await engine.look(run_id)).run.open.get(int(number))
            ask = opened.command if opened else None
            said = _said(ask, words, text, content, pairs(fields, "--field"))
            await engine.answer(run_id, int(number), by=_me() if by is None else by, **said)
            recorded = await _recorded(engine, run_id, int(number))
            return recorded, await seen_status(engine, run_id, (await engine.look(run_id)).status)

    recorded, status = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = f"  Resume it:  ripstop resume {run_id}" if status == "interrupted" else ""
    return say(f"Answered: {recorded}. {run_id} is {status}.{resume}")


def _said(ask: Any, words: str, text: str, content: str | None, fields: dict[str, str]) -> dict[str, Any]:
    """What the arguments mean: a choice with a text or a document, or words alone."""
    choices, edit = getattr(ask, "choices", {}), getattr(ask, "edit", "")
    if words in (CHOICE, TEXT) and words not in choices:  # a suggested command, with nothing replaced in it
        raise click.UsageError(f"Replace {words} with your answer{f': {one_of(choices)}' if choices else ''}.")
    if words in choices or text or not choices:
        if not choices:
            return {"words": content if content is not None else f"{words} {text}".rstrip(), "fields": fields}
        if edit and words == edit and content is not None:
            return {"words": text, "choice": words, "document": content, "fields": fields}
        return {"words": text if content is None else content, "choice": words, "fields": fields}
    return {"words": words if content is None else content, "fields": fields}


async def _recorded(engine: "Engine", run_id: str, number: int) -> str:
    """What was recorded as the answer to a question: words that are not a choice can count as one."""
    from ripstop.kernel.effects import PersonAnswered
    from ripstop.kernel.events import Answered

    events = [record.event for record in await engine.journal.read(run_id, after=number)]
    answers = (event.answer for event in events if isinstance(event, Answered) and event.to == number)
    said = next(one for one in answers if isinstance(one, PersonAnswered))
    text = f'"{first_line(said.text, SHOWN)}"' if said.text.strip() else ""
    fields = ", ".join(f"{name}={value}" for name, value in said.fields.items())
    note = ", ".join(filter(None, (text, fields)))
    return f"{said.choice} ({note})" if said.choice and note else said.choice or note


@click.command(short_help="Perform an action that a run's style offers.")
@click.argument("run_id", metavar="RUN")
@click.argument("name", metavar="ACTION")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the action; can be repeated.")
@click.option("--as", "by", metavar="NAME", help="Who does it. Default: your user name.")
@shared_options
@click.pass_obj
def act(options: Options, run_id: str, name: str, fields: tuple[str, ...], by: str | None) -> None:
    """Do what a run's style lets people do with it now; `ripstop show RUN` lists the actions, and says in whose name
    they are done where only one may do them.

    The file of a hand-off document is written at once, unless an agent has to work on it or its folder is not one that
    you have named: then `ripstop resume` writes it.

    \b
    Example:
      ripstop act report-k3f9x pass --as writer --field to=reviewer
    """
    from ripstop.app import App
    from ripstop.runtime.following import until_settled
    from ripstop.runtime.ports import Tree

    async def tell() -> Any:
        async with App(without_tools(options.settings()), create=False, scope=None) as app:
            app.attach(Path.cwd())
            run = await app.engine.act(run_id, name, pairs(fields, "--field"), _me() if by is None else by)
            if await app.is_own_work(run):
                async with app.working(Tree(run_id)) as worker:
                    await until_settled(app.engine, worker, run_id)
            return await seen_status(app.engine, run_id, (await app.engine.look(run_id)).status)

    status = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = f"  Resume it:  ripstop resume {run_id}" if status == "interrupted" else ""
    return say(f"Done. {run_id} is {status}.{resume}")


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@click.pass_obj
def cancel(options: Options, run_id: str) -> None:
    """End a run at once. What it was doing is stopped; what it did stays in the journal.

    \b
    Example:
      ripstop cancel haiku-k3f9x
    """
    from ripstop.app import App
    from ripstop.runtime.following import until_settled
    from ripstop.runtime.ports import Tree

    async def tell() -> Any:
        async with App(without_tools(options.settings()), create=False, scope=None) as app:
            app.attach(Path.cwd())
            await app.engine.cancel(run_id, by=_me())
            async with app.working(Tree(run_id)) as worker:
                return await until_settled(app.engine, worker, run_id)  # some have a last word to say

    view = asyncio.run(tell())
    because = view.run.ended.because if view.run.ended else "a person is asked: ripstop desk"
    if options.as_json:
        return say_json({"run": run_id, "outcome": view.status, "because": because})
    say(f"{run_id}: {view.status}, {because}.")


@click.command(short_help="Start a new run from any record of another.")
@click.argument("run_id", metavar="RUN")
@click.option("--at", "at", type=click.IntRange(1), metavar="N", help="The last record to keep. Default: the last one.")
@click.option("--definition", metavar="PATH", help="Continue with this workflow instead of the pinned one.")
@click.option("--workspace", type=FolderPath(), metavar="DIR", help="Where its agents put their files.")
@shared_options
@click.pass_obj
def fork(options: Options, run_id: str, at: int | None, definition: str | None, workspace: Path | None) -> None:
    """Start a new run from any record of another; the old run stays as it is. `ripstop resume` then works on it.

    At a fact (an answer, say) what was decided on it is decided again; elsewhere the open question is
    asked again. At an open tool call the agent's whole turn is taken again: it is asked as at the beginning of the
    turn, and tools that it called in this turn may be called again. `ripstop log RUN` shows the numbers. Without
    --at it is the last record; of a run that failed through its agent it is the last question to the agent, so that
    the call is made again.

    The fork has its own folder, .ripstop/workspaces/FORK or --workspace DIR, which begins as a copy of the
    old run's files as they are now. A DIR that has files in it is used as it is; so the old run's own folder is
    worked on only if you name it.

    \b
    Example:
      ripstop fork haiku-k3f9x --at 7 --definition examples/haiku
    """
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment
    from ripstop.forked_run import fork_run
    from ripstop.opening import open_engine
    from ripstop.plugins import installed
    from ripstop.runtime.timeline import forked_at

    settings, plugins = options.settings(), installed()
    goal = Environment(goal="kept from the run")
    found = find(plugins.readers, definition, goal) if definition else None

    async def tell() -> Any:
        async with open_engine(settings) as engine:
            run = await fork_run(engine, plugins, run_id, at, found, workspace)
            status = await seen_status(engine, run.id, (await engine.look(run.id)).status)
            return run, status, await forked_at(engine, run.id)

    run, status, number = asyncio.run(tell())
    folder = run.settings.workspace or None
    if options.as_json:
        told = {"run": run.id, "from": run_id, "records": run.length, "status": status, "workspace": folder}
        return say_json(told)
    say(f"Forked {run_id} at record {number} as {run.id}{f' ({status})' if run.ended else ''}.")
    if folder:
        say(f"Files:  {folder}")
    if not run.ended:
        say(f"Start it:  {command_for(settings.store)} resume {run.id}")
    return None
