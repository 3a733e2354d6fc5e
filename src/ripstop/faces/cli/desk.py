"""`desk`: everything that waits for a person, in one place."""

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from ripstop.kernel.desk_kinds import DOUBTED, HANDOFF, KINDS, PAUSED, SET_ASIDE, STUCK
from ripstop.text.plurals import count

from .options import Options, pairs, shared_options, user_name
from .terminal import at_terminal, can_ask, confirm, console_for, say, say_json
from .words import (
    CHOICE,
    TEXT,
    answer_command,
    answer_words,
    choices_line,
    field_options,
    field_words,
    first_line,
    handoff_commands,
    local_time,
    one_of,
    outage_commands,
    outage_words,
    seen_status,
)

if TYPE_CHECKING:
    from ripstop.engine.engine import Engine
    from ripstop.engine.ports import Question
    from ripstop.history.answers import GivenAnswer
    from ripstop.history.desk import DeskItem
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.run import Run

    from .init import EditedCopy


# `answer`: a person's answer to a question on the desk, later and from anywhere.


BULK = {"doubt": "ripstop:doubt", "restored": "ripstop:restored"}
"""The kinds of questions that can be answered all at once, by the purpose of the question."""
SHOWN = 80
"""Characters of an answer's text that are repeated."""
WITH_TOOLS = "  (with the --tools and --allow that it needs)"


@click.command(short_help="Answer a question on the desk.")
@click.argument("question", metavar="[ID]", required=False, default="")
@click.argument("words", metavar="[CHOICE|TEXT]", required=False, default="")
@click.argument("text", required=False, default="")
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="Take the text, or the edited document, from a file."
)
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the answer; can be repeated.")
@click.option("--as", "by", metavar="NAME", help="Who answers. Default: your user name.")
@click.option(
    "--all",
    "every",
    type=click.Choice(tuple(BULK)),
    metavar="KIND",
    help="Answer every question of this kind: doubt, or restored (runs of a restored journal).",
)
@click.option("--tool", metavar="NAME", help="With --all: only where a call of this tool is in doubt, or open.")
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
    every: str | None,
    tool: str | None,
) -> None:
    """Answer a question on the desk. If no worker is alive, `ripstop resume` then resumes the run.

    The first word is the choice or its label, in any case; where the question takes any text, it may also be the whole
    answer. `ripstop desk ID` shows the choices and the fields that an answer can have.

    The choice that edits a document takes the edited one from --file. Without it, in a terminal, $VISUAL or $EDITOR
    opens a copy. If somebody else has answered meanwhile, nothing is changed, and your text is kept in .ripstop/kept.

    \b
    Examples:
      ripstop answer deploy-k3f9x/12 happened "release 4 is live"
      ripstop answer draft-k3f9x/9 edit --file draft.md
      ripstop answer draft-k3f9x/9 "Name the risks." --field severity=major
      ripstop answer chat:shop:ann/77 "Your parcel is at the depot."

    A conversation that was handed over stays on the desk until it is answered with `release`; a text with it is sent
    first.

    With --all there is no ID: the choice comes first, and is given to all of them, in every run.

    \b
    Examples:
      ripstop answer --all restored happened
      ripstop answer --all doubt --tool pay happened "all are in the bank's list"
    """
    if every or tool:
        if text or file or fields or not every:
            raise click.UsageError("Write --all KIND CHOICE [TEXT], with --tool NAME, and without an ID.")
        return _answer_all(options, every, tool or "", question, words, user_name() if by is None else by)
    return _answer_one(options, question, words, text, file, fields, user_name() if by is None else by)


def _answer_one(
    options: Options, question: str, words: str, text: str, file: Path | None, fields: tuple[str, ...], name: str
) -> None:
    from ripstop.app.stores import open_engine
    from ripstop.history.desk import handed_over

    from .init import read_text

    if not question:
        raise click.UsageError("Which question? `ripstop desk` lists them: ripstop answer ID CHOICE.")
    run_id, slash, number = question.rpartition("/")
    if not slash or not (number.isascii() and number.isdigit()):
        raise click.UsageError(f"{question!r} is not RUN/NUMBER, as `ripstop desk` shows it.")
    content = read_text(file) if file else None
    given = pairs(fields, "--field")

    async def tell() -> Any:
        async with open_engine(options.settings(), to_act=True) as engine:
            asked = await _asked_now(engine, run_id, int(number), name)
            run = (await engine.look(run_id)).run
            opened = run.open.get(asked)
            _check_unobjected(engine, run, asked, name)
            said = _said(opened.command if opened else None, words, text, content)
            if await _edits_here(options, engine, run_id, asked, said):
                await _answer_from_editor(engine, run_id, asked, {**said, "fields": given, "by": name})
            else:
                await answer_or_keep(engine, run_id, asked, {**said, "fields": given, "by": name})
            recorded = await recorded_answer(engine, run_id, asked)
            view = await engine.look(run_id)
            status = await seen_status(engine, run_id, view.status)
            # the run that waits for it, and with which the family continues
            root = await engine.root_of(run_id)
            left = "interrupted" in (status, await seen_status(engine, root, (await engine.look(root)).status))
            purpose = getattr(opened and opened.command, "purpose", "")
            return recorded, status, handed_over(view.run), purpose, root if left else ""

    recorded, status, stays, purpose, root = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = _how_to_resume(root, purpose) if root else ""
    say(f"Answered: {recorded}. {run_id} is {status}.{resume}")
    return say((f"The conversation stays on the desk as {run_id}/{stays}.", "dim")) if stays else None


def _answer_all(options: Options, kind: str, tool: str, choice: str, words: str, by: str) -> None:
    from ripstop.app.bulk_answers import CHOICES, BulkAnswers, answer_all
    from ripstop.app.stores import open_engine
    from ripstop.history.desk import desk_item

    if not choice:
        raise click.UsageError(f"The answer is missing. Expected one of: {', '.join(CHOICES[BULK[kind]])}.")

    async def tell() -> BulkAnswers | None:
        async with open_engine(options.settings(), to_act=True) as engine:
            agreed = True

            async def agree(questions: "list[Question]") -> bool:
                nonlocal agreed
                for one in questions:
                    show_item(await desk_item(engine, one, with_texts=False), whole=True, with_command=False)
                    say()
                agreed = not can_ask() or confirm("All of these calls can be made after that. Answer so?")
                return agreed

            done = await answer_all(engine, BULK[kind], choice, words, by, tool, None if options.as_json else agree)
            return done if agreed else None

    done = asyncio.run(tell())
    if done is None:
        return say("Nothing was answered.", err=True)
    if options.as_json:
        return say_json({"answered": list(done.answered), "refused": done.refused})
    for question, reason in done.refused.items():
        say(f"{question} stays open: {reason}", err=True)
    say(f"Answered {count(len(done.answered), 'question')}: {choice}.")
    return say(("`ripstop work` or `ripstop resume --all` continues the runs.", "dim")) if done.answered else None


def _how_to_resume(run_id: str, purpose: str) -> str:
    from ripstop.kernel.run import DOUBT

    # a bot, and a call in doubt, mostly need what the run was started with
    return f"  Resume it:  ripstop resume {run_id}{WITH_TOOLS if purpose in (HANDOFF, DOUBT) else ''}"


def _check_unobjected(engine: "Engine", run: "Run[Any]", number: int, by: str) -> None:
    """Raise `UsageError`, with the commands that change it, if the style lets only another person answer."""
    from ripstop.kernel.errors import UsageError

    style = engine.style(run)
    if objection := style.people.objection(run, number, by):
        ways = [
            f"`ripstop act {run.id} {one.name} --as {shlex.quote(by)}` does so." for one in style.people.actions(run)
        ]
        raise UsageError(" ".join([objection, *ways]))


async def _asked_now(engine: "Engine", run_id: str, number: int, by: str) -> int:
    """The number of a question now. A conversation is asked for again with every answer, so the number that its person
    knows still means it, as long as nobody else has answered; if somebody else has it, that is what is to be said."""
    from ripstop.history.answers import answers_in
    from ripstop.history.desk import handed_over

    run = (await engine.look(run_id)).run
    now = handed_over(run)
    if number in run.open or not now:
        return number
    given = [one for ask, one in answers_in(await engine.journal.read(run_id)) if ask.purpose == HANDOFF]
    since = [one for one in given if one.to >= number]
    is_meant = all(one.by == by for one in since) or bool(engine.style(run).people.objection(run, now, by))
    return now if since and since[0].to == number and is_meant else number


def _said(ask: Any, words: str, text: str, content: str | None) -> dict[str, Any]:
    """What the arguments mean: a choice with a text or a document, or words alone."""
    from ripstop.kernel.questions import choice_named

    choices, edit = getattr(ask, "choices", {}), getattr(ask, "edit", "")
    if words in (CHOICE, TEXT) and words not in choices:  # a suggested command, with nothing replaced in it
        raise click.UsageError(f"Replace {words} with your answer{f': {one_of(choices)}' if choices else ''}.")
    if content is not None and not content.strip():
        raise click.UsageError("The file is empty, so nothing was answered.")
    if not choices:
        return {"words": content if content is not None else f"{words} {text}".rstrip()}
    choice = choice_named(choices, words)
    if choice and choice == edit and content is not None:
        return {"words": text, "choice": choice, "document": content}
    if choice or text:
        return {"words": text if content is None else content, "choice": choice or words}
    return {"words": words if content is None else content}


async def _edits_here(options: Options, engine: "Engine", run_id: str, number: int, said: dict[str, Any]) -> bool:
    """Whether an open question is answered with a document that is still to be edited, and a person is there to."""
    opened = (await engine.look(run_id)).run.open.get(number)
    edit = getattr(opened.command, "edit", "") if opened else ""
    return bool(edit and said.get("choice") == edit and "document" not in said and at_terminal(options.as_json))


async def _answer_from_editor(engine: "Engine", run_id: str, number: int, said: dict[str, Any]) -> None:
    """Let the person edit the document of a question, and answer with it. Raises `UsageError`; the text is kept."""
    from ripstop.engine.ports import DeskQuery
    from ripstop.history.desk import desk_item

    from .init import EditedCopy
    from .log import all_questions

    info = await engine.journal.run(run_id)
    found = await all_questions(engine, DeskQuery(root=info.root if info else run_id))
    question = next(one for one in found if (one.run_id, one.number) == (run_id, number))
    copy = EditedCopy((await desk_item(engine, question)).document or "", f"{run_id}-{number}")
    try:
        await answer_with_copy(engine, run_id, number, said, copy)
    finally:
        copy.close()


async def answer_with_copy(
    engine: "Engine", run_id: str, number: int, said: dict[str, Any], copy: "EditedCopy"
) -> None:
    """Open the editor on a copy, and answer with its text. Raises `UsageError` that says where the text is."""
    from ripstop.kernel.errors import QuestionClosed, UsageError

    document = await copy.edit()
    try:
        await engine.answer(run_id, number, **{**said, "document": document})
    except QuestionClosed as error:
        raise await _kept(engine, run_id, number, error, copy.where()) from error
    except UsageError as error:
        raise UsageError(f"{error}{copy.where()}") from error
    copy.is_recorded = True


async def answer_or_keep(engine: "Engine", run_id: str, number: int, said: dict[str, Any]) -> None:
    """Answer a question. If it is not open any more, keep the text and say where. Raises `UsageError`."""
    from ripstop.kernel.errors import QuestionClosed
    from ripstop.security.files import keep_text

    try:
        await engine.answer(run_id, number, **said)
    except QuestionClosed as error:
        text = said.get("document") or said.get("words", "")
        if not text.strip() or await _is_choice(engine, run_id, number, text):
            raise
        try:
            where = f" Your text is in {keep_text(text, f'{run_id}-{number}')}."
        except OSError as problem:
            where = f" Your text could not be kept: {problem}."
        raise await _kept(engine, run_id, number, error, where) from error


async def _is_choice(engine: "Engine", run_id: str, number: int, text: str) -> bool:
    """Whether a text is nothing but a choice of the question, which nobody needs to keep."""
    from ripstop.kernel.effects import AskPerson
    from ripstop.kernel.events import Asked
    from ripstop.kernel.questions import choice_named

    records = await engine.journal.read(run_id, number - 1, most=1)
    asked = records[0].event if records else None
    if not isinstance(asked, Asked) or not isinstance(asked.command, AskPerson):
        return False
    return bool(choice_named(asked.command.choices, text))


async def _kept(engine: "Engine", run_id: str, number: int, error: Exception, where: str) -> "UsageError":
    """The error for a text that came too late: what happened, where the text is, and what can be done with it."""
    from ripstop.kernel.errors import UsageError

    from .errors import error_report

    return UsageError(f"{error_report(error).error}{where} {await what_next(engine, run_id, number)}")


async def what_next(engine: "Engine", run_id: str, number: int) -> str:
    """How to use a text that was meant for a question which is not open any more."""
    from ripstop.kernel.effects import AskPerson

    asked = [record for record in await engine.journal.read(run_id) if record.number == number]
    before = getattr(asked[0].event, "command", None) if asked else None
    for newer, opened in (await engine.look(run_id)).run.open.items():
        ask = opened.command
        if isinstance(ask, AskPerson) and isinstance(before, AskPerson) and ask.purpose == before.purpose:
            choice = f" {ask.edit}" if ask.edit else ""
            return (
                f"The question is {run_id}/{newer} now: look at it with `ripstop desk {run_id}/{newer}`, and answer "
                f"it with `ripstop answer {run_id}/{newer}{choice} --file FILE`."
            )
    return "`ripstop desk` lists what is open."


async def recorded_answer(engine: "Engine", run_id: str, number: int) -> str:
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


CHANGES_SHOWN = 2000
"""Lines of a difference that are shown; a terminal takes long for more."""
ANSWERS_SHOWN = 10
"""Earlier answers; `--json` has all of them."""
LINES_SHOWN = 40
"""Of a conversation; `--json` has all of them."""


@click.command(short_help="List what waits for a person, over all runs.")
@click.argument("item", metavar="[ID]", required=False)
@click.option("--to", metavar="NAME", help="Only what is meant for this role or person, or for anyone.")
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", help=f"One of: {', '.join(KINDS)}.")
@click.option("--run", "run_id", metavar="RUN", help="Only what this run and those that it started wait for.")
@shared_options
@click.pass_obj
def desk(options: Options, item: str | None, to: str | None, kind: str | None, run_id: str | None) -> None:
    """List everything that waits for a person, over all runs: reviews, questions, effects in doubt, guards that ask,
    conversations that were handed over, and runs that are stuck or set aside, each with what can be done.

    With ID, one of them with the text behind it: in a terminal a document is rendered, and one that you have seen
    before is shown as what has changed since. Written to a file or a pipe, it is there as it is.

    \b
    Examples:
      ripstop desk
      ripstop desk --kind review
      ripstop desk draft-k3f9x/12
      ripstop desk draft-k3f9x/12 --json | jq -r '.[0].document'
    """
    from ripstop.app.settings.settings_file import store_path
    from ripstop.app.stores import open_engine

    async def look() -> "list[DeskItem]":
        async with open_engine(options.settings(), or_empty=True) as engine:
            found = await _items(engine, item, to, run_id, options.as_json or item is not None)
            wanted = [one for one in found if kind in (None, one.kind) and item in (None, one.id)]
            if item and not wanted:
                raise await _not_open(engine, item)
            return wanted

    items = asyncio.run(look())
    if options.as_json:
        return say_json([_plain(one) for one in items])
    if not items:
        narrowed = kind or run_id or to
        if narrowed:
            return say("Nothing of that waits for you. `ripstop desk` lists all.")
        path = store_path(options.settings().store)
        return say(f"Nothing waits for you.{'' if path.exists() else f' There is no journal at {path} yet.'}")
    for one in items:
        show_item(one, whole=item is not None)
        say()
    return None


async def _items(
    engine: "Engine", item: str | None, to: str | None, run_id: str | None, with_texts: bool
) -> "list[DeskItem]":
    from ripstop.engine.ports import DeskQuery
    from ripstop.history.desk import desk_item, halted_runs

    from .log import all_questions

    named = run_id or ((item.rpartition("/")[0] or item) if item else "")
    info = await engine.journal.run(named) if named else None
    if run_id and info is None:
        raise await engine.not_found(run_id)
    root = info.root if info else ""
    questions = await all_questions(engine, DeskQuery(to=to, root=root))
    texts = [one for one in questions if item in (None, f"{one.run_id}/{one.number}")]
    found = [await desk_item(engine, one, with_texts) for one in texts]
    found += await halted_runs(engine, root)
    return [one for one in found if not run_id or one.run == run_id or one.run.startswith(f"{run_id}.")]


async def _not_open(engine: "Engine", item: str) -> Exception:
    """Why an item is not on the desk; if it was answered, by whom and when."""
    from ripstop.history.answers import answers_in

    run_id, _, number = item.rpartition("/")
    if await engine.journal.run(run_id):
        for _, given in answers_in(await engine.journal.read(run_id)):
            if str(given.to) == number:
                return click.UsageError(f"{item} is not an open question any more: {given_words(given)}.")
    return click.UsageError(f"{item} is not an open question. `ripstop desk` lists those that are.")


def given_words(given: "GivenAnswer") -> str:
    """Who answered what, and when, on one line."""
    said = answer_words(given.choice, given.text, given.fields)
    return f"{given.by or 'somebody'} answered at {local_time(given.at)}: {said}"


def show_item(one: "DeskItem", whole: bool, most: int | None = None, with_command: bool = True) -> None:
    """Show what waits, and what can be done about it.

    Args:
        whole: With the text behind it, and all fields.
        most: Lines that are shown of a document or, if it has changed, of what has changed; `None`: all of both.
        with_command: With the commands that answer it.
    """
    from .blocks import print_arguments, print_indented

    console = console_for()
    say((one.id, "bold"), f"  {local_time(one.asked)}  ", (one.kind, "magenta"), f"  {one.title}" if one.title else "")
    if len(one.family) > 1:
        say((f"  {' ← '.join(one.family)}", "dim"))
    if one.to:
        say((f"  for {one.to}", "dim"))
    if whole:
        _show_texts(one, most)
    print_indented(console, 2, one.question)
    if one.outage is not None:
        known = outage_words(asdict(one.outage))
        print_indented(console, 2, (known, "dim"))
    print_arguments(console, one.arguments or {}, None if whole else f"ripstop desk {one.id}")
    if whole:
        for name, field in one.fields.items():
            print_indented(console, 2, (f"field {name}  ", "dim"), field_words(field))
    if with_command:
        _show_commands(one, whole)


def _show_texts(one: "DeskItem", most: int | None) -> None:
    from .blocks import print_indented
    from .previews import print_difference, print_document

    console, rest = console_for(), f"ripstop desk {one.id}"
    for given in one.answers[-ANSWERS_SHOWN:]:
        print_indented(console, 2, (given_words(given), "dim"))
    for line in one.talk[-LINES_SHOWN:]:
        print_indented(console, 4, (f"{line.by}:  ", "dim" if line.is_reply else "bold"), _indented(line.text))
    for record in one.evidence if one.kind != DOUBTED else ():  # the question itself names the call, and what it got
        print_indented(console, 4, (f"record {record.number}  ", "dim"), record.text)
    if one.document is not None and (most is None or not one.difference):
        print_document(console, one.document, most, rest)
    if one.difference is not None:
        say(
            ("  Changed since the draft that was answered last:" if one.difference else "  Nothing has changed.", "dim")
        )
        print_difference(console, one.difference, most or CHANGES_SHOWN, rest if most else f"{rest} --json")


def _indented(text: str) -> str:
    """Further lines of a text are set off, so that none of them looks like what somebody else has said."""
    return text.replace("\n", "\n  ")


def _show_commands(one: "DeskItem", whole: bool) -> None:
    if one.kind == STUCK:
        return say(
            (f"  ripstop fork {one.run} --at N   ·   ripstop log {one.run}   ·   ripstop cancel {one.run}", "dim")
        )
    if one.kind == PAUSED:
        return say((f"  {outage_commands(one.id, one.outage.root if one.outage else one.run)}", "dim"))
    if one.kind == SET_ASIDE:
        return say((f"  ripstop resume {one.run}   ·   ripstop cancel {one.run}", "dim"))
    if one.kind == HANDOFF:
        say((f"  {handoff_commands(one.id)}", "dim"))
        return say((f"  ripstop chat --as-desk {one.run}", "dim"))
    needed = {name: field for name, field in one.fields.items() if whole or field.required}
    say((f"  ripstop {answer_command(one.id, one.choices, field_options(needed))}", "dim"))
    for line in choices_line(one.choices):
        say((f"  {line}", "dim"))
    return None


def _plain(item: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(item)
    return {**plain, "choices": list(plain["choices"]), "labels": plain["choices"]}
