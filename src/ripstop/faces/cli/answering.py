"""`answer`: a person's answer to a question on the desk, later and from anywhere."""

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.kernel.desk_kinds import HANDOFF

from .options import Options, pairs, shared_options
from .summary import seen_status
from .terminal import at_terminal, say, say_json
from .user_name import user_name
from .words import CHOICE, TEXT, first_line, one_of

if TYPE_CHECKING:
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.run import Run
    from ripstop.runtime.engine import Engine

    from .editing import EditedCopy

SHOWN = 80
"""Characters of an answer's text that are repeated."""
WITH_TOOLS = "  (with the --tools and --allow that it needs)"


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
    """
    from ripstop.opening import open_engine

    from .editing import read_text

    run_id, slash, number = question.rpartition("/")
    if not slash or not (number.isascii() and number.isdigit()):
        raise click.UsageError(f"{question!r} is not RUN/NUMBER, as `ripstop desk` shows it.")
    content = read_text(file) if file else None
    given, name = pairs(fields, "--field"), user_name() if by is None else by

    async def tell() -> Any:
        async with open_engine(options.settings()) as engine:
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
            return recorded, status, _handed_over(view.run), getattr(opened and opened.command, "purpose", "")

    recorded, status, stays, purpose = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = _how_to_resume(run_id, purpose) if status == "interrupted" else ""
    say(f"Answered: {recorded}. {run_id} is {status}.{resume}")
    return say((f"The conversation stays on the desk as {run_id}/{stays}.", "dim")) if stays else None


def _how_to_resume(run_id: str, purpose: str) -> str:
    from ripstop.kernel.run import DOUBT

    # a bot, and a call in doubt, mostly need what the run was started with
    return f"  Resume it:  ripstop resume {run_id}{WITH_TOOLS if purpose in (HANDOFF, DOUBT) else ''}"


def _check_unobjected(engine: "Engine", run: "Run[Any]", number: int, by: str) -> None:
    """Raise `UsageError`, with the commands that change it, if the style lets only another person answer."""
    from ripstop.kernel.errors import UsageError

    style = engine.style(run)
    if objection := style.objection(run, number, by):
        ways = [f"`ripstop act {run.id} {one.name} --as {shlex.quote(by)}` does so." for one in style.actions(run)]
        raise UsageError(" ".join([objection, *ways]))


async def _asked_now(engine: "Engine", run_id: str, number: int, by: str) -> int:
    """The number of a question now. A conversation is asked for again with every answer, so the number that its person
    knows still means it, as long as nobody else has answered; if somebody else has it, that is what is to be said."""
    from ripstop.views import answers_in

    run = (await engine.look(run_id)).run
    now = _handed_over(run)
    if number in run.open or not now:
        return number
    given = [one for ask, one in answers_in(await engine.journal.read(run_id)) if ask.purpose == HANDOFF]
    since = [one for one in given if one.to >= number]
    is_meant = all(one.by == by for one in since) or bool(engine.style(run).objection(run, now, by))
    return now if since and since[0].to == number and is_meant else number


def _handed_over(run: "Run[Any]") -> int:
    """The number of the question whether a person gives a conversation back; 0 if none has it."""
    questions = (n for n, opened in run.open.items() if getattr(opened.command, "purpose", "") == HANDOFF)
    return next(questions, 0)


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
    from ripstop.runtime.ports import DeskQuery
    from ripstop.views import desk_item

    from .editing import EditedCopy
    from .pages import all_questions

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
    from ripstop.files.kept_files import keep_text
    from ripstop.kernel.errors import QuestionClosed

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

    from .complaints import complaint_about

    return UsageError(f"{complaint_about(error).error}{where} {await what_next(engine, run_id, number)}")


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
