"""Whatever comes in whatever order: every journal is `step*`, every step `fact decision*`, and nothing is lost."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import Struct

from ripstop.kernel.codec import Codec
from ripstop.kernel.doubts import AGAIN, GIVE_UP, HAPPENED
from ripstop.kernel.effects import (
    ANSWER_TO,
    AgentReplied,
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
    Usage,
)
from ripstop.kernel.errors import RipstopError, Unworkable
from ripstop.kernel.events import (
    FORMAT,
    Allowed,
    Answered,
    Asked,
    CancelRequested,
    ChildSpoke,
    Doubted,
    Ended,
    Event,
    Fact,
    Forked,
    Heard,
    Record,
    Redefined,
    ResumeRequested,
    RunSettings,
    SettingsChanged,
    Started,
    TurnResult,
)
from ripstop.kernel.folding import KNOWN_LATE, replay
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.resuming import CONTINUE
from ripstop.kernel.run import DOUBT, GUARD, fingerprint, is_deadline
from ripstop.kernel.step import Step
from ripstop.kernel.style import BARE, NO_CONTENTS, Ending, News, Settled, Style
from tests.kernel.followed import Followed, rebuilt, steps_of


class Whims(Struct, frozen=True):
    """What a restless style does, one after the other, for ever."""

    whims: tuple[str, ...]


class Whim(Event, tag="restless.whim", frozen=True):
    index: int


class Turn(TurnResult, tag="restless.turn", frozen=True, kw_only=True):
    pass


class Poked(Fact, tag="restless.poked", frozen=True):
    pass


class Mood(Struct, frozen=True):
    definition: Whims
    index: int = 0
    seen: int = 0


COMMANDS: dict[str, Command] = {
    "agent": AskAgent(agent="ada"),
    "more": AskAgent(agent="ada", continues=2),
    "tool": CallTool(tool="hammer", agent="ada"),
    "duty": CallTool(tool="tidy"),
    "person": AskPerson(question="?", purpose="restless.go", choices={CONTINUE: "", "stop": ""}),
    "tea": SetTimer(name="tea", after=5),
    "nap": SetTimer(name="nap", after=0.5),
    "mail": Say(text="hello", channel="mail"),
    "chat": Say(text="hello", channel="chat"),
    "murmur": Say(text="hello"),
    "child": StartRun(workflow="w", surface=True),
    "slice": StartRun(workflow="w", limits=Limits(calls=1, tokens=100)),
    "shared": StartRun(workflow="w", name="plan:1"),
    "relay": AnswerChild(asked=1),
}
OTHER = ("withdraw", "withdraw last", "no tea", "warn", "end", "restart", "turn", "unworkable", "fault", "again")
WHIMS = ("rest", *COMMANDS, *OTHER)


class Restless(Style[Mood]):
    name = "restless"

    def begin(self, definition: Whims, started: Started) -> Mood:
        return Mood(definition)

    def evolve(self, state: Mood, number: int, event: Event) -> Mood:
        return Mood(state.definition, event.index if type(event) is Whim else state.index, state.seen + 1)

    def render(self, state: Mood, command: AskAgent) -> Prompt:
        return Prompt(messages=(Message(role="user", text="Go on."),))

    def ending(self, state: Mood) -> Ending:
        return Ending(is_resumable=state.index % 2 == 0)

    def decide(self, step: Step[Mood], news: News) -> None:
        if isinstance(news, Settled):
            command = news.command
            assert not is_deadline(command)
            assert not isinstance(command, AskPerson) or command.purpose not in (GUARD, DOUBT)
        again = True
        while again:
            whims = step.state.definition.whims
            whim = whims[step.state.index % len(whims)]
            step.record(Whim(index=step.state.index + 1))
            again = whim == "again" and step.number < 500 and step.state.index % len(whims) != 0
            if whim in COMMANDS:
                step.ask(COMMANDS[whim])
                again = step.state.index % 3 == 0
            else:
                self._do(step, whim)

    def _do(self, step: Step[Mood], whim: str) -> None:
        mine = [
            number
            for number, opened in step.run.open.items()
            if not is_deadline(opened.command) and getattr(opened.command, "purpose", "") not in (GUARD, DOUBT)
        ]
        match whim:
            case "withdraw" | "withdraw last" if mine:
                step.withdraw(mine[0 if whim == "withdraw" else -1], "not needed")
            case "no tea":
                step.cancel_timer("tea")
            case "warn":
                step.warn("odd")
            case "end":
                step.end("completed", "done", result={"index": step.state.index})
            case "restart":
                step.restart_turn(1)
            case "turn":
                step.record(Turn(agent="ada", digest="same"))
            case "unworkable":
                raise Unworkable("no way")
            case "fault":
                raise ZeroDivisionError("of all things")


CODEC = Codec((Whim, Turn, Poked))
STYLE = Restless()

SPENT = Usage(10, 5, 0.01)
ANSWERS: tuple[Answer, ...] = (
    AgentReplied(text="well", usage=SPENT, model="m"),
    ToolReturned(value=[1, {"type": "x"}]),
    *(PersonAnswered(choice=choice) for choice in (CONTINUE, "stop", HAPPENED, AGAIN, GIVE_UP)),
    PersonAnswered(choice=CONTINUE, text="many"),
    TimerFired(),
    Said(),
    RunFinished(run="story.3", outcome="completed", usage=SPENT, calls=2),
    Failed(reason="no", usage=SPENT),
)
FITTING = {
    command: [answer for answer in ANSWERS if type(answer) in (kind, Failed)] for command, kind in ANSWER_TO.items()
}
FACTS: tuple[Fact, ...] = (
    *(Heard(text="hello", id=name) for name in ("", "1", "2")),
    *(CancelRequested(), ResumeRequested(), ResumeRequested(raises={"calls": 2, "seconds": 5, "tokens": 900})),
    *(SettingsChanged(settings=RunSettings(model=model)) for model in ("", "big")),
    *(Redefined(definition="definition"), Redefined(definition="other"), Poked()),
    Started(style="restless", definition="definition", format=FORMAT),
)  # fmt: skip
picks = st.integers(0, 10**6)
told = st.one_of(
    st.tuples(st.just("answer"), picks, picks),
    st.tuples(st.just("answer"), picks, picks),
    st.tuples(st.just("any answer"), picks, st.sampled_from(ANSWERS)),
    st.tuples(st.just("doubt"), picks, st.none()),
    st.tuples(st.just("spoke"), picks, picks),
    st.tuples(st.just("fact"), picks, st.sampled_from(FACTS)),
    st.tuples(st.just("fork"), picks, st.none()),
)
scripts = st.lists(st.sampled_from(WHIMS), min_size=1, max_size=8).map(tuple)


def fact_of(story: Followed, kind: str, which: int, what: Any) -> Fact:
    """What is told, about one of the commands that were ever asked, oftener an open one."""
    assert story.run is not None
    asked = [record.number for record in story.records if hasattr(record.event, "command")]
    numbers = [*story.run.open, *story.run.open, *story.run.late, *asked, 1]
    number = numbers[which % len(numbers)]
    if kind == "answer":
        opened = story.run.open.get(number)
        command = opened.command if opened else story.run.late.get(number, COMMANDS["agent"])
        answers = FITTING[type(command)]
        return Answered(to=number, answer=answers[what % len(answers)])
    if kind == "any answer":
        return Answered(to=number, answer=what, retries=(("busy", 1.5),), took=2.0)
    if kind == "doubt":  # about something that a worker could begin
        number = number if number in story.outbox.due else 1
        return Doubted(to=number, evidence="Its worker died.")
    if kind == "spoke":
        return ChildSpoke(command=number, run="story.3", number=what % 3, ask=AskPerson(question="?"))
    assert isinstance(what, Fact)
    return what


def check_step(events: list[Event], faulty: bool) -> None:
    first, *rest = events
    assert first.is_fact and not any(event.is_fact for event in rest)
    assert CODEC.load_step(CODEC.dump_step(events)) == events
    because = [event.because for event in rest if isinstance(event, Ended)]
    assert len(because) <= 1
    assert faulty or not any("bug in ripstop" in text for text in because), because


def check_run(story: Followed) -> None:
    run = story.run
    assert run is not None
    assert story.outbox.open.keys() == run.open.keys()
    asked = {record.number: record.event.command for record in story.records if isinstance(record.event, Asked)}
    allowed = {one.event.number: one.event.command for one in story.records if isinstance(one.event, Allowed)}
    for number, row in story.outbox.open.items():
        command = allowed.get(number, asked[number])  # one that waited for its part of the budget has that part
        assert run.open[number].command == command
        assert row.command in (asked[number], command), "a row says what is asked for, not with how much of the budget"
        assert (row.state == "held") == (number in run.doubts.values())
    for channel in ("mail", "chat", ""):
        messages = [n for n, o in run.open.items() if isinstance(o.command, Say) and o.command.channel == channel]
        due = [number for number in messages if story.outbox.rows[number].due is not None]
        assert due == messages[:1] or messages[0] in run.doubts.values()
    assert len([command for command in run.late.values() if not isinstance(command, StartRun)]) <= KNOWN_LATE
    if run.ended:
        assert all(isinstance(opened.command, Say) for opened in run.open.values())
    assert story.outbox.finished or not run.is_settled
    assert run.spent.calls >= 0 and run.spent.usage.tokens >= 0


def check_refold(story: Followed) -> None:
    read = [
        Record(record.number, record.at, event)
        for step in steps_of(story.records)
        for record, event in zip(step, CODEC.load_step(CODEC.dump_step([record.event for record in step])), strict=True)
    ]
    folded = replay(STYLE, story.contents, story.run_id, read)
    assert folded is not None and story.run is not None
    assert fingerprint(folded) == fingerprint(story.run)
    assert folded == story.run
    answers = [record.event.answer for record in read if isinstance(record.event, Answered)]
    assert story.run.spent.usage.tokens == sum(getattr(answer, "usage", Usage()).tokens for answer in answers)
    again = rebuilt(STYLE, story.contents, story.run_id, read)
    assert again.rows.keys() - story.outbox.rows.keys() == set(), "a worker held the others when they were superseded"
    assert again.open == story.outbox.open
    bare = rebuilt(BARE, NO_CONTENTS, story.run_id, read)
    assert bare.rows == again.rows, "no style is needed to know what is open"


def follow(
    whims: tuple[str, ...], limits: Limits, then: str, surface: tuple[str, int] | None, facts: list[Any]
) -> Followed:
    definitions = {"definition": Whims(whims), "other": Whims(whims[::-1])}
    story = Followed(STYLE, definitions)
    guards = {"then": then, "patience": 2}
    start = Started("restless", "definition", FORMAT, limits=limits, guards=guards, surface=surface)
    check_step(story.tell(start), "fault" in whims)
    for place, (kind, which, what) in enumerate(facts):
        if kind == "fork":
            at = steps_of(story.records)[which % len(steps_of(story.records))][-1].number
            fact: Fact = Forked(run=story.run_id, at=at)
            story = story.fork(at, f"fork{place}")
        else:
            fact = fact_of(story, kind, which, what)
            if which % 2:
                story.outbox.working |= story.run.open.keys() if story.run else set()
        outcome = story.when(fact, after=which % 7)
        assert outcome.error is None or isinstance(outcome.error, RipstopError)
        if outcome.events:
            check_step(outcome.events, "fault" in whims)
            check_run(story)
    return story


limit_sets = st.sampled_from(
    [Limits(), Limits(calls=4), Limits(seconds=9), Limits(tokens=400, calls=9, depth=1), Limits(turns=3)]
)
surfaces = st.sampled_from([None, ("above", 7)])
cases = for_all(scripts, limit_sets, st.sampled_from(["end", "ask"]), surfaces, st.lists(told, max_size=25))


@cases
@settings(max_examples=150)
def test_every_journal_follows_the_grammar_and_folds_to_the_same_run(
    whims: tuple[str, ...], limits: Limits, then: str, surface: tuple[str, int] | None, facts: list[Any]
) -> None:
    check_refold(follow(whims, limits, then, surface, facts))


@pytest.mark.long
@cases
@settings(max_examples=4000)
def test_thousands_of_journals_follow_the_grammar(
    whims: tuple[str, ...], limits: Limits, then: str, surface: tuple[str, int] | None, facts: list[Any]
) -> None:
    check_refold(follow(whims, limits, then, surface, facts))
