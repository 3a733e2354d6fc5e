"""What a record says, in one sentence for people; and whether it is trouble.

Pure: from a record and the run right before and right after it. A sentence is plain text on one line, with the words of
agents and people in it as they are, cut: a face makes it safe to show.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

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
from ripstop.text.plurals import count

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


def trouble(record: Record, before: Run[Any] | None) -> str:
    """What went wrong, in a few words; empty for a record that is not trouble."""
    if not is_trouble(record):
        return ""
    event = record.event
    if isinstance(event, Answered) and not isinstance(event.answer, Failed | RunFinished):
        said = f"{_asked_of(before, event.to)} was tried again{_why_tried_again(event)}"
    elif isinstance(event, GuardTripped):
        said = f"{event.guard}: {event.text}"
    elif isinstance(event, Warned):
        said = event.text if event.text.strip() else "a warning"
    else:
        said = _told(record, before, None, None)
    return cut(said, LONGEST_TROUBLE)


def sentence(style: Style[Any], record: Record, before: Run[Any] | None, run: Run[Any]) -> str:
    """What a record says. `before` and `run` are the run right before and right after it."""
    return cut(_told(record, before, run, style), MAX_SENTENCE)


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


def _told_of_trouble(event: Event, before: Run[Any] | None) -> str:
    """A call that may have happened, or that was refused, and what became of it."""
    match event:
        case Doubted(to=to, evidence=evidence):
            return f"{_asked_of(before, to)} may or may not have taken effect: {evidence}"
        case DoubtResolved(to=to, answer=answer):
            return f"a person said what became of {_asked_of(before, to)}{_after(text_of(answer))}"
        case CallRefused(to=to, reason=reason, by=by, again=again, pauses=pauses):
            then = "the run is paused" if pauses else "it is tried again"
            waits = "" if again or not pauses else " until somebody has it retried"
            return f"{by or 'the other side'} refused {_asked_of(before, to)}, {then}{waits}{_after(reason)}"
        case Repeated(number=number) | Reopened(number=number):
            return f"{_asked_of(before, number)} is performed again"
    return ""


def _told(record: Record, before: Run[Any] | None, run: Run[Any] | None, style: Style[Any] | None) -> str:
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
        case Doubted() | DoubtResolved() | CallRefused() | Repeated() | Reopened():
            return _told_of_trouble(event, before)
        case Withdrawn(number=number, because=because):
            return f"{_asked_of(before, number)} is no longer needed: {because}"
        case TurnRestarted(number=number):
            return f"the turn that began with record {number} is restarted"
        case GuardTripped(guard=guard, text=text):
            return f"guard {guard} stopped it: {text}"
        case Warned(text=text):
            return f"warning: {text}"
        case Ended(outcome=outcome, because=because):
            return f"ended as {outcome}: {because}"
        case Resumed(raises=raises, waits=waits):
            return f"resumed{_raised(raises)}{', once its children have reported' if waits else ''}"
    return _from_outside(event) or _of_style(event)


def _from_outside(event: Event) -> str:
    match event:
        case Started(style=style, input=input):
            return f"started ({style}){_after(input)}"
        case Forked(run=run, at=at, definition=definition):
            return f"forked from {run} at record {at}{', with a new definition' if definition else ''}"
        case Redefined(definition=definition):
            return f"continues with a new definition ({definition[:12]})"
        case Heard(text=text, by=by, attachments=attachments):
            files = f" ({count(len(attachments), 'attachment')})" if attachments else ""
            return f"{by or 'a person'} wrote{files}{_after(text)}"
        case ChildSpoke(run=run, text=text, ask=ask):
            return f"{run} asks: {ask.question}" if ask else f"{run} said{_after(text)}"
        case CancelRequested(by=by, because=because):
            return f"{by or 'a person'} cancelled it{_after(because)}"
        case RetryRequested(by=by):
            return f"{by or 'a person'} had it retried"
        case ResumeRequested(raises=raises, by=by):
            return f"{by or 'a person'} resumed it{_raised(raises)}"
        case Restored(evidence=evidence):
            return f"its journal was restored: {evidence}"
        case SettingsChanged(settings=settings, by=by):
            model = settings.model_for_all or settings.model
            return f"{by or 'a person'} changed the settings{_after(f'model {model}' if model else '')}"
    return ""


def _answered(record: Record, event: Answered, before: Run[Any] | None, style: Style[Any] | None) -> str:
    who, took = _asked_of(before, event.to), _took(record, event, before)
    match event.answer:
        case AgentReplied(text=text, calls=calls):
            words = first_words(style, text, MAX_SENTENCE) if style else text[:MAX_SENTENCE]
            tools = ", ".join(dict.fromkeys(call.tool for call in calls))
            wants = f" and calls {tools}" if tools else ""
            return f"{who} replied{took}{_tries(event)}{wants}{_after(words)}"
        case ToolReturned(value=value):
            return f"{who} returned{took}{_tries(event)}{_after(_value(value, MAX_SENTENCE))}"
        case PersonAnswered(choice=choice, text=text, by=by, document=document):
            edited = " with an edited document" if document is not None else ""
            return f"{by or 'a person'} answered{f' {choice}' if choice else ''}{edited}{_after(text)}"
        case TimerFired():
            return f"{who} fired"
        case Said():
            return f"{who} was delivered{took}{_tries(event)}"
        case RunFinished(run=child, outcome=outcome, because=because):
            return f"child {child} ended as {outcome}{took}{_after(because)}"
        case Failed(reason=reason):
            return f"{who} failed{took}{_tries(event)}{_after(reason)}"


def _asked(number: int, command: Command, run: Run[Any] | None, style: Style[Any] | None) -> str:
    match command:
        case AskAgent(agent=agent, continues=continues, model=model):
            again = " again" if continues is not None else ""
            return f"asked {agent}{again}{f' ({model})' if model else ''}"
        case CallTool(tool=tool):
            opened = run.open.get(number) if run else None
            given = arguments_for(style, opened.state, command) if style and opened else command.arguments or {}
            return f"called tool {tool}{_fields(given)}"
        case AskPerson(question=question, to=to):
            return f"asked {to or 'a person'}: {question}"
        case SetTimer(name=name, after=after):
            return f"timer {name} was set for {after:g} s"
        case Say(text=text, about=about, channel=channel, to=to):
            where = " ".join(filter(None, (f"to {to}" if to else "", f"on {channel}" if channel else "")))
            words = text or f"the words of record {about}"
            return f"said{f' {where}' if where else ''}: {words}"
        case StartRun(workflow=workflow):
            return f"started {workflow} as {child_id(run.id if run else '', number, command)}"
        case AnswerChild(asked=asked, choice=choice):
            return f"answered the question in record {asked}{_after(choice)}"


def _of_style(event: Event) -> str:
    """An event of a style, by its name and its fields."""
    tag = str(type(event).__struct_config__.tag)
    name = tag.rpartition(".")[2].replace("_", " ")
    fields = msgspec.to_builtins(event)  # without those that have their default
    actors = ", ".join(dict.fromkeys(filter(None, (fields.pop("agent", ""), fields.pop("by", "")))))
    told = {key.replace("_", " "): value for key, value in fields.items() if key not in UNTOLD}
    return f"{name}{f' ({cut(actors, LONGEST_VALUE)})' if actors else ''}{_fields(told, LONGEST_FIELD)}"


# Parts of sentences


def _asked_of(run: Run[Any] | None, number: int) -> str:
    """Who or what a command went to."""
    opened = run.open.get(number) if run else None
    match opened.command if opened else run.late.get(number) if run else None:
        case AskAgent(agent=agent):
            return agent
        case CallTool(tool=tool):
            return f"tool {tool}"
        case AskPerson(to=to):
            return f"the question to {to or 'a person'}"
        case SetTimer(name=name):
            return f"timer {name}"
        case Say():
            return f"the message of record {number}"
        case StartRun(workflow=workflow):
            return f"workflow {workflow}"
    return f"record {number}"


def _took(record: Record, event: Answered, before: Run[Any] | None) -> str:
    opened = before.open.get(event.to) if before else None
    since = record.at - max(opened.at, event.began) if opened else 0
    seconds = event.took or since / 1_000_000
    return f" in {shown_seconds(seconds)}" if seconds > 0 else ""


def _tries(event: Answered) -> str:
    return f" at attempt {event.attempt}" if event.attempt > 1 else ""


def _why_tried_again(event: Answered) -> str:
    return _after(", ".join(dict.fromkeys(reason for reason, _ in event.retries)))


def _raised(raises: Mapping[str, float]) -> str:
    return "".join(f", {name} raised by {amount:g}" for name, amount in raises.items())


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _fields(values: Mapping[str, Any], most: int = LONGEST_VALUE) -> str:
    told = [f"{name} {_value(value, most)}" for name, value in values.items() if value not in (None, "", [], {})]
    return _after(", ".join(told[:MOST_VALUES]))


def _value(value: Any, most: int = LONGEST_VALUE) -> str:
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list) and all(isinstance(one, str | int) for one in value[:20]):
        return cut(", ".join(str(one) for one in value[:20]), most)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    return cut(msgspec.json.encode(value)[: most * 8].decode(errors="ignore"), most)
