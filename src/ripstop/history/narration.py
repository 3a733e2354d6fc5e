"""What a record says, in one sentence for people; and whether it is trouble.

Pure: from a record and the run right before and right after it. A sentence is plain text on one line, with the words of
agents and people in it as they are, cut: a face makes it safe to show. It is made of phrases, which `texts.zh.json` has
in Chinese.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
    text_of,
)
from ripstop.kernel.events import (
    Allowed,
    Answered,
    Asked,
    CallHeldBack,
    CallRefused,
    CancelRequested,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Heard,
    Record,
    Redefined,
    Reopened,
    Repeated,
    Restored,
    Resumed,
    ResumeRequested,
    RetryRequested,
    SettingsChanged,
    Started,
    TurnRestarted,
    Warned,
    Withdrawn,
)
from ripstop.kernel.outbox import child_id
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style, arguments_for
from ripstop.text.markdown import blocks
from ripstop.text.translation import ENGLISH, Phrase, Told, Translation, joined, phrase

MAX_SENTENCE = 300
"""Characters of a sentence."""
LONGEST_TROUBLE = 120
LONGEST_VALUE, LONGEST_FIELD = 60, 200
"""Characters of one argument of a tool call, and of one field of a style's event."""
MOST_VALUES = 8
MOST_READ = 20_000
"""Characters of a reply in which its first words are looked for."""
PIECE, ROOM = 300, 40
"""How much of it is read at once, and how many spaces may be in the words that are enough."""
UNTOLD = frozenset({"type", "digest", "at", "via", "index", "number", "reply", "report", "evidence", "answer"})
"""Fields of a style's event that tell a person nothing: hashes, times, and numbers of other records."""


def is_trouble(record: Record) -> bool:
    """Whether something went wrong, or was done again, or is odd."""
    event = record.event
    if type(event) is Answered:
        if event.attempt > 1 or event.retries or type(event.answer) is Failed:
            return True
        return type(event.answer) is RunFinished and event.answer.outcome != "completed"
    if type(event) is Ended:
        return event.outcome != "completed"
    return event.is_trouble


def trouble(record: Record, before: Run[Any] | None) -> Told:
    """What went wrong, for `in_short`; empty for a record that is not trouble."""
    if not is_trouble(record):
        return ""
    event = record.event
    if isinstance(event, Answered) and not isinstance(event.answer, Failed | RunFinished):
        reasons = _after(", ".join(dict.fromkeys(reason for reason, _ in event.retries)))
        said: Told = phrase("{who} was tried again{why}", who=_asked_of(before, event.to), why=reasons)
    elif isinstance(event, GuardTripped):
        said = phrase("{guard}: {text}", guard=Phrase(event.guard, kind="guard"), text=Phrase(event.text))
    elif isinstance(event, Warned):
        said = Phrase(event.text, kind="warning") if event.text.strip() else Phrase("a warning")
    else:
        said = _told(record, before, None, None)
    return _shortened(said)


def in_short(said: Told, translation: Translation = ENGLISH) -> str:
    """What went wrong, on one short line."""
    return cut(translation.tell(said), LONGEST_TROUBLE)


def _shortened(said: Told) -> Told:
    """A phrase that can be kept: what is filled in has no more characters than are shown."""
    if isinstance(said, str):
        return cut(said, LONGEST_TROUBLE)
    if not said.values and len(said.pattern) > MAX_SENTENCE:
        return Phrase(cut(said.pattern, LONGEST_TROUBLE))
    return replace(said, values=tuple((name, _shortened(value)) for name, value in said.values))


def sentence(
    style: Style[Any],
    record: Record,
    before: Run[Any] | None,
    run: Run[Any],
    translation: Translation = ENGLISH,
) -> str:
    """What a record says, in a language. `before` and `run` are the run right before and right after it."""
    return cut(translation.tell(told(style, record, before, run)), MAX_SENTENCE)


def told(style: Style[Any], record: Record, before: Run[Any] | None, run: Run[Any]) -> Told:
    """The same in no language yet, and not cut."""
    return _told(record, before, run, style)


def kind_name(kind: str, translation: Translation) -> str:
    """What an event is called, by its tag: the tag itself, unless the language has a word for it."""
    plain = _event_name(kind)
    name = translation.tell(plain)
    return kind if name == plain.pattern else name


def _event_name(kind: str) -> Phrase:
    return Phrase(kind.rpartition(".")[2].replace("_", " "), kind="event")


def first_words(style: Style[Any], text: str, most: int) -> str:
    """The first words for people in a reply, on one line: without the JSON around them, thoughts, and whole files."""
    text = text[:MOST_READ]
    said = _first_words(style, _without_files(text), most) if "```" in text or "~~~" in text else ""
    return said or _first_words(style, text, most)


def _first_words(style: Style[Any], text: str, most: int) -> str:
    read, said = style.view.word_reader(), ""
    for at in range(0, len(text), PIECE):
        said = f"{said}{read(text[at : at + PIECE])}".lstrip()
        if len(said) > most + ROOM:
            break
    return cut(said, most)


def _without_files(text: str) -> str:
    """A reply without the files in it, each a fence below a line with its path. An object in a fence is the reply."""
    lines = text.split("\n")
    kept: list[str] = []
    at = 0
    for block in blocks(lines):
        if not block.is_closed:
            break
        kept += lines[at : block.start]
        at, inside = block.end, block.inside(lines)
        if inside and inside[0].lstrip().startswith("{"):
            kept += lines[block.start : block.end]
        elif kept and kept[-1] and " " not in kept[-1]:
            kept.pop()
    return "\n".join(kept + lines[at:])


def cut(text: str, most: int) -> str:
    """A text on one line, at most so many characters."""
    if len(text) <= most and text.isprintable() and "  " not in text:
        return text  # nearly always
    head = text[: most + 1]
    if len(head) > most and head.isprintable() and "  " not in head and head[0] != " " != head[-1]:
        return f"{head[: most - 1].rstrip()}…"  # the same as below, in a tenth of the time
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1].rstrip()}…"


def shown_seconds(seconds: float) -> str:
    """`4.1 s`, `31 s`, `5 min`, `2 h`, `3 d`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s".replace(".0 s", " s")
    for unit, length, until in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < until:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


# Each kind of event


def _told_of_trouble(event: Event, before: Run[Any] | None) -> Told:
    """A call that may have happened, or that was refused, and what became of it."""
    match event:
        case Doubted(to=to, evidence=evidence):
            pattern = "{who} may or may not have taken effect: {evidence}"
            return phrase(pattern, who=_asked_of(before, to), evidence=Phrase(evidence))
        case DoubtResolved(to=to, answer=answer):
            pattern = "a person said what became of {who}{after}"
            return phrase(pattern, who=_asked_of(before, to), after=_after(text_of(answer)))
        case CallRefused(to=to, reason=reason, by=by, again=again, pauses=pauses):
            then = Phrase("the run is paused" if pauses else "it is tried again")
            if pauses and not again:
                then = Phrase("the run is paused until somebody has it retried")
            who, other = _asked_of(before, to), by or Phrase("the other side")
            return phrase("{other} refused {who}, {then}{after}", other=other, who=who, then=then, after=_after(reason))
        case CallHeldBack(to=to, over=True):
            return phrase("{who} waits no longer", who=_asked_of(before, to))
        case CallHeldBack(to=to, by=by):
            who, other = _asked_of(before, to), by or Phrase("the other side")
            return phrase("{who} waits for {other}; that is not time at work", who=who, other=other)
        case Repeated(number=number) | Reopened(number=number):
            return phrase("{who} is performed again", who=_asked_of(before, number))
    return ""


def _told(record: Record, before: Run[Any] | None, run: Run[Any] | None, style: Style[Any] | None) -> Told:
    """Without `run` and `style` only what the record itself and the run before it say."""
    event = record.event
    match event:
        case Answered():
            return _answered(record, event, before, style)
        case Asked(command=command, waits=waits):
            said = _asked(record.number, command, run, style)
            return f"{said} (it waits until what is set aside of the budget has come back)" if waits else said
        case Allowed(number=number):
            return f"{_asked_of(before, number)} is performed now: what it waited for has come back"
        case Doubted() | DoubtResolved() | CallRefused() | CallHeldBack() | Repeated() | Reopened():
            return _told_of_trouble(event, before)
        case Withdrawn(number=number, because=because):
            who = _asked_of(before, number)
            return phrase("{who} is no longer needed: {because}", who=who, because=Phrase(because))
        case TurnRestarted(number=number):
            return phrase("the turn that began with record {number} is restarted", number=str(number))
        case GuardTripped(guard=guard, text=text):
            return phrase("guard {guard} stopped it: {text}", guard=Phrase(guard, kind="guard"), text=Phrase(text))
        case Warned(text=text):
            return phrase("warning: {text}", text=Phrase(text, kind="warning"))
        case Ended(outcome=outcome, because=because):
            return phrase(
                "ended as {outcome}: {because}", outcome=Phrase(outcome, kind="outcome"), because=Phrase(because)
            )
        case Resumed(raises=raises, waits=waits):
            wait = Phrase(", once its children have reported") if waits else ""
            return phrase("resumed{raises}{wait}", raises=_raised(raises), wait=wait)
    return _from_outside(event) or _of_style(event)


def _from_outside(event: Event) -> Told:
    match event:
        case Started(style=style, input=input):
            return phrase("started ({style}){after}", style=style, after=_after(input))
        case Forked(run=run, at=at, definition=definition):
            new = Phrase(", with a new definition") if definition else ""
            return phrase("forked from {run} at record {at}{new}", run=run, at=str(at), new=new)
        case Redefined(definition=definition):
            return phrase("continues with a new definition ({definition})", definition=definition[:12])
        case Heard(text=text, by=by, attachments=attachments):
            one = " ({n} attachment)" if len(attachments) == 1 else " ({n} attachments)"
            files = phrase(one, n=str(len(attachments))) if attachments else ""
            return phrase("{by} wrote{files}{after}", by=_person(by), files=files, after=_after(text))
        case ChildSpoke(run=run, text=text, ask=ask):
            if ask:
                return phrase("{run} asks: {question}", run=run, question=Phrase(ask.question))
            return phrase("{run} said{after}", run=run, after=_after(text))
        case CancelRequested(by=by, because=because):
            return phrase("{by} cancelled it{after}", by=_person(by), after=_after(Phrase(because)))
        case RetryRequested(by=by):
            return phrase("{by} had it retried", by=_person(by))
        case ResumeRequested(raises=raises, by=by):
            return phrase("{by} resumed it{raises}", by=_person(by), raises=_raised(raises))
        case Restored(evidence=evidence):
            return phrase("its journal was restored: {evidence}", evidence=Phrase(evidence))
        case SettingsChanged(settings=settings, by=by):
            model = settings.model_for_all or settings.model
            after = _after(phrase("model {model}", model=model) if model else "")
            return phrase("{by} changed the settings{after}", by=_person(by), after=after)
    return ""


def _answered(record: Record, event: Answered, before: Run[Any] | None, style: Style[Any] | None) -> Told:
    who, took, tries = _asked_of(before, event.to), _took(record, event, before), _tries(event)
    match event.answer:
        case AgentReplied(text=text, calls=calls):
            words = first_words(style, text, MAX_SENTENCE) if style else text[:MAX_SENTENCE]
            tools = ", ".join(dict.fromkeys(call.tool for call in calls))
            wants = phrase(" and calls {tools}", tools=tools) if tools else ""
            pattern = "{who} replied{took}{tries}{wants}{after}"
            return phrase(pattern, who=who, took=took, tries=tries, wants=wants, after=_after(words))
        case ToolReturned(value=value):
            after = _after(_value(value, MAX_SENTENCE))
            return phrase("{who} returned{took}{tries}{after}", who=who, took=took, tries=tries, after=after)
        case PersonAnswered(choice=choice, text=text, by=by, document=document):
            edited = Phrase(" with an edited document") if document is not None else ""
            chosen = phrase(" {choice}", choice=choice) if choice else ""
            pattern = "{by} answered{choice}{edited}{after}"
            return phrase(pattern, by=_person(by), choice=chosen, edited=edited, after=_after(text))
        case TimerFired():
            return phrase("{who} fired", who=who)
        case Said():
            return phrase("{who} was delivered{took}{tries}", who=who, took=took, tries=tries)
        case RunFinished(run=child, outcome=outcome, because=because):
            pattern, end = "child {child} ended as {outcome}{took}{after}", Phrase(outcome, kind="outcome")
            return phrase(pattern, child=child, outcome=end, took=took, after=_after(Phrase(because)))
        case Failed(reason=reason):
            pattern = "{who} failed{took}{tries}{after}"
            return phrase(pattern, who=who, took=took, tries=tries, after=_after(Phrase(reason)))


def _asked(number: int, command: Command, run: Run[Any] | None, style: Style[Any] | None) -> Told:
    match command:
        case AskAgent(agent=agent, continues=continues, model=model):
            pattern = "asked {agent} again{model}" if continues is not None else "asked {agent}{model}"
            return phrase(pattern, agent=agent, model=phrase(" ({model})", model=model) if model else "")
        case CallTool(tool=tool):
            opened = run.open.get(number) if run else None
            given = arguments_for(style, opened.state, command) if style and opened else command.arguments or {}
            return phrase("called tool {tool}{fields}", tool=tool, fields=_fields(given))
        case AskPerson(question=question, to=to):
            return phrase("asked {who}: {question}", who=_person(to), question=Phrase(question))
        case SetTimer(name=name, after=after):
            return phrase("timer {name} was set for {seconds} s", name=name, seconds=f"{after:g}")
        case Say(text=text, about=about, channel=channel, to=to):
            words = text or phrase("the words of record {number}", number=str(about))
            whom = phrase(" to {to}", to=to) if to else ""
            where = phrase(" on {channel}", channel=channel) if channel else ""
            return phrase("said{whom}{where}: {words}", whom=whom, where=where, words=words)
        case StartRun(workflow=workflow):
            name = child_id(run.id if run else "", number, command)
            return phrase("started {workflow} as {run}", workflow=workflow, run=name)
        case AnswerChild(asked=asked, choice=choice):
            return phrase("answered the question in record {number}{after}", number=str(asked), after=_after(choice))


def _of_style(event: Event) -> Told:
    """An event of a style, by its name and its fields."""
    tag = str(type(event).__struct_config__.tag)
    name = _event_name(tag)
    fields = msgspec.to_builtins(event)  # without those that have their default
    actors = ", ".join(dict.fromkeys(filter(None, (fields.pop("agent", ""), fields.pop("by", "")))))
    shown = {key.replace("_", " "): value for key, value in fields.items() if key not in UNTOLD}
    whose = phrase(" ({actors})", actors=cut(actors, LONGEST_VALUE)) if actors else ""
    return phrase("{name}{whose}{fields}", name=name, whose=whose, fields=_fields(shown, LONGEST_FIELD, is_own=True))


# Parts of sentences


def _asked_of(run: Run[Any] | None, number: int) -> Told:
    """Who or what a command went to."""
    opened = run.open.get(number) if run else None
    match opened.command if opened else run.late.get(number) if run else None:
        case AskAgent(agent=agent):
            return agent
        case CallTool(tool=tool):
            return phrase("tool {tool}", tool=tool)
        case AskPerson(to=to):
            return phrase("the question to {who}", who=_person(to))
        case SetTimer(name=name):
            return phrase("timer {name}", name=name)
        case Say():
            return phrase("the message of record {number}", number=str(number))
        case StartRun(workflow=workflow):
            return phrase("workflow {workflow}", workflow=workflow)
    return phrase("record {number}", number=str(number))


def _person(name: str) -> Told:
    return name or Phrase("a person")


def _took(record: Record, event: Answered, before: Run[Any] | None) -> Told:
    opened = before.open.get(event.to) if before else None
    since = record.at - max(opened.at, event.began) if opened else 0
    seconds = event.took or since / 1_000_000
    return phrase(" in {time}", time=shown_seconds(seconds)) if seconds > 0 else ""


def _tries(event: Answered) -> Told:
    return phrase(" at attempt {n}", n=str(event.attempt)) if event.attempt > 1 else ""


def _raised(raises: Mapping[str, float]) -> Told:
    said: Told = ""
    for name, amount in reversed(list(raises.items())):
        said = phrase(", {limit} raised by {amount}{more}", limit=Phrase(name), amount=f"{amount:g}", more=said)
    return said


def _after(said: Told) -> Told:
    return phrase(": {text}", text=said) if said and said != Phrase("") else ""


def _fields(values: Mapping[str, Any], most: int = LONGEST_VALUE, is_own: bool = False) -> Told:
    """The names and values of what there is; names of a style's event are its own words."""
    shown = [
        phrase("{name} {value}", name=Phrase(name, kind="field") if is_own else name, value=_value(value, most))
        for name, value in values.items()
        if value not in (None, "", [], {})
    ]
    return _after(joined(shown[:MOST_VALUES]))


def _value(value: Any, most: int = LONGEST_VALUE) -> Told:
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list) and all(isinstance(one, str | int) for one in value[:20]):
        return cut(", ".join(str(one) for one in value[:20]), most)
    if isinstance(value, bool) or value is None:
        return Phrase({True: "yes", False: "no", None: "nothing"}[value])
    return cut(msgspec.json.encode(value)[: most * 8].decode(errors="ignore"), most)
