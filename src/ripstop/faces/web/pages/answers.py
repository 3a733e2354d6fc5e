"""A person's answer to a question of the desk.

- A question is answered once. The same answer of the same person again (a double click, a reload, a page that never
  came) is done already; any other is refused with the name of who answered, and what was typed is kept.
- An empty form decides nothing: no choice is taken for granted, and feedback has words.
- Feedback is taken word for word, even if the words are the name of a choice.
"""

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ripstop.engine.ports import Question
from ripstop.history.answers import AskedQuestion
from ripstop.history.desk import desk_item, handed_over, records_at
from ripstop.history.runs import shown_status
from ripstop.kernel.desk_kinds import DOUBTED, GUARDED, HANDOFF, QUESTION, REVIEWED
from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import QuestionClosed, RipstopError, UsageError
from ripstop.kernel.events import Answered
from ripstop.kernel.questions import kind_of, read_answer
from ripstop.kernel.resuming import CONTINUE
from ripstop.text.visible_text import visible_line, without_hidden

from ..errors import PageOutdated, error_response, status_of
from ..forms import Form
from ..site import Site, inside, language_of, wants_json
from ..words import word
from .desk import (
    DeskList,
    Typed,
    answered_pane,
    asked_question,
    compared,
    desk_list,
    digest,
    find_question,
    question_pane,
    show_desk,
)

LONGEST_TITLE = 80


class TypedAnswer(Struct, frozen=True):
    """What a form says, as `Engine.answer` takes it."""

    words: str
    choice: str
    document: str | None
    fields: dict[str, str]

    def read(self, ask: AskPerson, by: str) -> PersonAnswered:
        """The answer that it is. Raises `UsageError`."""
        return read_answer(ask, self.words, choice=self.choice, document=self.document, fields=self.fields, by=by)


async def answer(site: Site, request: Request) -> Response:
    form = await site.form(request)
    run_id, number, by = request.path_params["run"], request.path_params["number"], site.by(request)
    question = await find_question(site, run_id, number)
    asked = await asked_question(site, run_id, number)
    said = said_in(form, asked.ask)
    listing = await desk_list(site, request, {"kind": form.text("kind"), "after": form.text("after")})
    try:
        _refuse_empty(asked.ask, said, language_of(request))
        if question and said.document is not None and form.text("base"):
            await _refuse_older(site, question, form.text("base"), language_of(request))
        number = await _record(site, run_id, asked, said, by)
    except RipstopError as error:
        return await _refused(site, request, question, asked, listing, said, error)
    if form.text("then"):
        return site.done(request, inside(form.text("then")), run=run_id, number=number)
    return await _done(site, request, run_id, number, asked.ask, said, listing)


def said_in(form: Form, ask: AskPerson) -> TypedAnswer:
    kind, choice, text = kind_of(ask), form.text("choice"), form.text("text")
    fields = form.starting("field.")
    is_edit = bool(ask.edit) and (choice == ask.edit or (not choice and "document" in form.fields))
    if is_edit:
        choice = ask.edit
    elif kind in (REVIEWED, HANDOFF):
        choice = choice or ask.other
    elif kind == GUARDED and choice != CONTINUE:
        fields = {}  # what a limit is raised by, in case the run continues
    for name, field in ask.fields.items():
        if field.type == "boolean" and field.required and choice != ask.empty:
            fields.setdefault(name, "false")  # a box that is not ticked is not sent
    return TypedAnswer(text, choice, form.text("document") if is_edit else None, fields)


def _refuse_empty(ask: AskPerson, said: TypedAnswer, lang: str) -> None:
    kind, is_blank = kind_of(ask), not without_hidden(said.words).strip()
    if kind in (REVIEWED, HANDOFF) and said.choice and said.choice == ask.other and is_blank:
        raise UsageError(word(lang, "desk.refused.feedback" if kind == REVIEWED else "desk.refused.reply"))
    if kind == QUESTION and said.choice and said.choice == ask.other and is_blank and not any(said.fields.values()):
        raise UsageError(word(lang, "desk.refused.words", choice=ask.choices[said.choice] or said.choice))
    if said.document is not None and not said.document.strip():
        raise UsageError(word(lang, "desk.refused.document"))
    if ask.choices and not said.choice and (is_blank or kind in (DOUBTED, GUARDED)):
        raise UsageError(word(lang, "desk.refused.choice"))


async def _refuse_older(site: Site, question: Question, base: str, lang: str) -> None:
    item = await desk_item(site.engine, question, log=site.questions)
    if base != digest(item.document or ""):
        raise PageOutdated(word(lang, "desk.refused.older"))


async def _record(site: Site, run_id: str, asked: AskedQuestion, said: TypedAnswer, by: str) -> int:
    """Record the answer, unless it is on record already. Returns the number of the question that it answered."""
    number, engine = asked.number, site.engine
    try:
        await engine.answer(
            run_id, number, said.words, choice=said.choice, document=said.document, fields=said.fields, by=by
        )
    except QuestionClosed:
        mine = said.read(asked.ask, by)
        since = await _answers_since(site, run_id, asked)
        for answered, given in since:
            if given == mine:
                return answered
        now = handed_over((await site.engine.look(run_id)).run) if kind_of(asked.ask) == HANDOFF else 0
        if not (now and since and all(given.by == by for _, given in since)):
            raise
        # every answer to a user is a question of its own; a page that was left open still means the conversation
        await engine.answer(run_id, now, said.words, choice=said.choice, fields=said.fields, by=by)
        return now
    return number


async def _answers_since(site: Site, run_id: str, asked: AskedQuestion) -> list[tuple[int, PersonAnswered]]:
    """What was answered to a question; for a conversation, also to those that came after it."""
    questions = await site.questions.of(run_id)
    is_talk = kind_of(asked.ask) == HANDOFF
    later = [one for one in questions.values() if one.number > asked.number and one.ask.purpose == asked.ask.purpose]
    given = [one.given for one in (questions[asked.number], *(later if is_talk else ())) if one.given]
    records = await records_at(site.engine, run_id, {one.number for one in given})
    events = [records[one.number].event for one in given if one.number in records]
    answered = [(event.to, event.answer) for event in events if isinstance(event, Answered)]
    return [(to, answer) for to, answer in answered if isinstance(answer, PersonAnswered)]


# Answers to the request


async def _refused(
    site: Site,
    request: Request,
    question: Question | None,
    asked: AskedQuestion,
    listing: DeskList,
    said: TypedAnswer,
    error: RipstopError,
) -> Response:
    """The item as it is now, with what was typed."""
    if wants_json(request) or not isinstance(error, UsageError):
        return await error_response(site, request, error, said.document or said.words)
    run_id = request.path_params["run"]
    typed = Typed(str(error), said.choice, said.words, said.document, dict(said.fields))
    status = status_of(error)
    still_open = await find_question(site, run_id, asked.number) if question else None
    if still_open is None:
        asked, status = await asked_question(site, run_id, asked.number), 409
        pane = await answered_pane(site, asked, run_id, listing, typed)
    else:
        pane = await question_pane(site, request, still_open, listing, typed=typed)
        if isinstance(error, PageOutdated) and said.document is not None:
            pane |= compared(pane["item"], said.document)
    return await show_desk(site, request, listing, pane, chosen=f"{run_id}/{asked.number}", status=status)


async def _done(
    site: Site, request: Request, run_id: str, number: int, ask: AskPerson, said: TypedAnswer, listing: DeskList
) -> Response:
    """The next item of the list; a conversation that goes on is the next one itself."""
    view = await site.engine.look(run_id)
    status = shown_status(view.status, await site.engine.has_workers())
    lang, item = language_of(request), f"{run_id}/{number}"
    data: dict[str, Any] = {"run": run_id, "number": number, "status": status}
    if kind_of(ask) == HANDOFF and (now := handed_over(view.run)):
        return site.done(request, listing.address(f"/desk/{run_id}/{now}"), **data)
    if (following := listing.following(item)) is None:
        listing = await desk_list(site, request, {"kind": "", "after": ""})
        following = listing.following(item)
    notice = word(lang, _did(ask, said), id=item, choice=ask.choices.get(said.choice) or said.choice)
    if following is None:
        return site.done(request, "/desk", visible_line(notice), **data)
    title = " ".join(following.title[:300].split())[:LONGEST_TITLE]
    notice = f"{notice} {word(lang, 'desk.next_is', title=title)}"
    return site.done(request, listing.address(f"/desk/{following.id}"), visible_line(notice), **data)


def _did(ask: AskPerson, said: TypedAnswer) -> str:
    """The key of the words for what a person has done."""
    names = {ask.empty: "passed", ask.other: "feedback", ask.edit: "edited"} if kind_of(ask) == REVIEWED else {}
    return f"desk.did.{names.get(said.choice, 'choice')}" if said.choice else "desk.did.answer"
