"""The page of one record: the whole of it, as it was sent and answered; and why it came to be.

Lists mask what looks like a key and cut what is long. Here nothing is masked, and a text is cut only where a browser
would suffer: the download has all of it.
"""

import re
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.engine.ports import text_in
from ripstop.history.narration import kind_name, sentence
from ripstop.history.outline import Outline
from ripstop.history.timeline import TimelineEntry, Why, record_as_json
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, text_of
from ripstop.kernel.events import Answered, Asked
from ripstop.kernel.prompt import Prompt, seal
from ripstop.kernel.style import Reason, arguments_for
from ripstop.text.translation import Translation
from ripstop.text.visible_text import visible_line

from ..site import Site, language_of
from ..words import word
from .timeline import RecordRow, kind_of, record_row

MOST_SHOWN = 256 * 1024
"""Characters of the texts of one record that are shown."""
MOST_SEARCHED = 5000
"""Records behind a command among which its answer is looked for."""
CHUNK = 500

Seal = Literal["genuine", "not_genuine", "not_sent", "unknown"]


class RecordText(Struct, frozen=True):
    """A text that a record holds or leads to."""

    title: str
    text: str
    left_out: int = 0
    """How many of its characters are not shown."""


async def record_page(site: Site, request: Request) -> Response:
    run_id, number = request.path_params["run"], request.path_params["number"]
    entry = await site.outlines.at(run_id, number)
    if request.query_params.get("download") == "1":
        return _download(run_id, entry)
    outline, lang = await site.outlines.of(run_id), language_of(request)
    answer = await _answer_to(site, outline, entry)
    record = entry.record
    return await site.render(
        request,
        "record.html",
        title=word(lang, "record.title", n=number),
        section="runs",
        run=run_id,
        record=record,
        name=kind_name(kind_of(record), site.translation(request)),
        told=sentence(outline.style, record, entry.before, entry.run, site.translation(request)),
        trouble=outline.is_trouble(record),
        seal=_seal(entry, answer, outline.run is not None and number in outline.run.open),
        to=record.event.to if isinstance(record.event, Answered) else 0,
        answer=answer[0] if answer else 0,
        texts=_cut(_texts(outline, entry, lang)),
        last=outline.records,
        can_fork=not outline.style.unforkable,
    )


def _texts(outline: Outline, entry: TimelineEntry, lang: str) -> list[tuple[str, str]]:
    """The texts of a record, each with its title; its JSON is the last."""
    event = entry.record.event
    texts: list[tuple[str, str]] = []
    if entry.prompt is not None:
        texts += _prompt_texts(entry.prompt, lang)
    elif isinstance(event, Asked) and isinstance(event.command, CallTool):
        opened = entry.run.open.get(entry.record.number)
        given = arguments_for(outline.style, opened.state, event.command) if opened else event.command.arguments
        texts.append((word(lang, "record.arguments", tool=event.command.tool), pretty(given)))
    elif isinstance(event, Answered):
        texts += _answer_texts(event, lang)
    elif said := text_in(entry.record):
        texts.append((word(lang, "record.text"), said))
    return [*texts, ("JSON", pretty(record_as_json(replace(entry, prompt=None))))]


def _prompt_texts(prompt: Prompt, lang: str) -> list[tuple[str, str]]:
    texts = []
    for message in prompt.messages:
        role = word(lang, f"record.role.{message.role}") if message.role in ROLES else message.role
        if message.text or not message.calls:
            texts.append((role, message.text))
        texts += [(word(lang, "record.arguments", tool=call.tool), pretty(call.arguments)) for call in message.calls]
    if prompt.tools:
        texts.append((word(lang, "record.tools"), "\n".join(prompt.tools)))
    if prompt.schema:
        texts.append((word(lang, "record.schema"), pretty(prompt.schema)))
    return texts


ROLES = ("system", "user", "assistant", "tool")


def _answer_texts(event: Answered, lang: str) -> list[tuple[str, str]]:
    answer = event.answer
    if isinstance(answer, AgentReplied):
        calls = [(word(lang, "record.arguments", tool=call.tool), pretty(call.arguments)) for call in answer.calls]
        return [*([(word(lang, "record.reply"), answer.text)] if answer.text else []), *calls]
    value = getattr(answer, "value", None)
    if value is not None:
        return [(word(lang, "record.value"), value if isinstance(value, str) else pretty(value))]
    document = getattr(answer, "document", None)
    said = [(word(lang, "record.text"), text_of(answer))] if text_of(answer) else []
    return [*said, *([(word(lang, "record.document"), document)] if document is not None else [])]


def pretty(value: Any) -> str:
    """A value as JSON with indentation."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _cut(texts: list[tuple[str, str]]) -> list[RecordText]:
    """The texts, as long as they fit on a page together."""
    left, shown = MOST_SHOWN, []
    for title, text in texts:
        kept = text[:left]
        left -= len(kept)
        shown.append(RecordText(title, kept, len(text) - len(kept)))
    return shown


async def _answer_to(site: Site, outline: Outline, entry: TimelineEntry) -> tuple[int, str] | None:
    """The number of the record that answers a command, and the seal of what was sent; `None` if none was found."""
    number = entry.record.number
    if not isinstance(entry.record.event, Asked):
        return None
    run_id, journal = entry.run.id, site.engine.journal
    for after in range(number, min(outline.records, number + MOST_SEARCHED), CHUNK):
        for record in await journal.read(run_id, after=after, most=CHUNK):
            event = record.event
            if isinstance(event, Answered) and event.to == number:
                return record.number, event.answer.sent if isinstance(event.answer, AgentReplied) else ""
    return None


def _seal(entry: TimelineEntry, answer: tuple[int, str] | None, is_open: bool) -> Seal | None:
    """Whether what is shown is what was sent; `None` for a record that sends nothing to an agent."""
    event = entry.record.event
    if isinstance(event, Answered) and isinstance(event.answer, AgentReplied):
        return None if entry.genuine is None else "genuine" if entry.genuine else "not_genuine"
    if not isinstance(event, Asked) or not isinstance(event.command, AskAgent) or entry.prompt is None:
        return None
    if is_open:
        return "not_sent"
    if answer is None or not answer[1]:
        return "unknown"
    return "genuine" if seal(entry.prompt) == answer[1] else "not_genuine"


def _download(run_id: str, entry: TimelineEntry) -> Response:
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", run_id)[:100]
    return Response(
        pretty(record_as_json(entry)).encode(),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}-{entry.record.number}.json"'},
    )


class ExplainedRecord(Struct, frozen=True):
    """A record of a step with the reasons for it, as a page shows them."""

    row: RecordRow
    title: str
    why: Why
    reasons: tuple[Reason, ...]

    @property
    def has_reasons(self) -> bool:
        why = self.why
        return bool(why.verdict or why.reasons or why.ways or why.child or why.evidence)


async def why_page(site: Site, request: Request) -> Response:
    run_id, number = request.path_params["run"], request.path_params["number"]
    found, outline = await site.outlines.why(run_id, number), await site.outlines.of(run_id)
    lang = language_of(request)
    explained = [
        ExplainedRecord(
            record_row(outline, entry, site.translation(request)),
            _why_title(outline, entry.record.number, lang, site.translation(request)),
            why,
            rows_of(why.reasons, lang, site.translation(request)),
        )
        for entry, why in found
    ]
    context: dict[str, Any] = {"run": run_id, "number": number, "length": outline.records, "explained": explained}
    if request.headers.get("x-fragment") == "1":
        return site.fragment(request, "_why.html", **context)
    return await site.render(request, "why.html", title=word(lang, "why.title", n=number), section="runs", **context)


def _why_title(outline: Outline, number: int, lang: str, translation: Translation) -> str:
    """The question that a record answers: why this way was taken, where it is the decision of a turn."""
    place = outline.place_of(number)
    line = outline[place] if place is not None else None
    if line is not None and line.decided == number and line.way:
        return word(lang, "why.way", way=visible_line(translation.of(line.way, "reason")))
    return word(lang, "why.title", n=number)


def rows_of(reasons: tuple[Reason, ...], lang: str, translation: Translation) -> tuple[Reason, ...]:
    """The reasons; conditions behind the one that was acted on say what became of them."""
    rows, is_taken = [], False
    for reason in reasons:
        if is_taken and reason.holds is not None and not reason.taken and not reason.is_check:
            note = word(lang, "why.comes_later" if reason.holds else "why.not_needed")
            rows.append(replace(reason, text=f"{translation.of(reason.text, 'reason')} ({note})"))
        else:
            rows.append(reason)
        is_taken = is_taken or reason.taken
    return tuple(rows)
