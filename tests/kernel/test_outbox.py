"""Which commands somebody has to carry out, derived from records alone."""

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Command, Say, SetTimer, StartRun, ToolReturned
from ripstop.kernel.events import (
    Answered,
    Asked,
    Doubted,
    Ended,
    Event,
    Forked,
    GuardTripped,
    Heard,
    Ordered,
    Record,
    Repeated,
    Started,
    Warned,
    Withdrawn,
)
from ripstop.kernel.outbox import Closed, Held, Opened, Released, changes

AT = 5_000_000


def after(*events: Event) -> list[object]:
    return list(changes(Record(number, AT, event) for number, event in enumerate(events, 1)))


def test_a_command_opens_under_its_records_number_and_is_due_at_once() -> None:
    commands: tuple[Command, ...] = (AskAgent(agent="a"), CallTool(tool="t"), Say(text="x"))
    for command in commands:
        assert after(Asked(command=command)) == [Opened(1, command, AT, "worker")]
    child = StartRun(workflow="w")
    assert after(Asked(command=child)) == [Opened(1, child, AT, "run")]


def test_a_question_to_a_person_is_never_due() -> None:
    ask = AskPerson(question="?")
    assert after(Asked(command=ask)) == [Opened(1, ask, None, "person")]


def test_a_timer_is_due_when_its_time_has_passed_and_not_before() -> None:
    timer = SetTimer(name="t", after=0.0000015)
    assert after(Asked(command=timer)) == [Opened(1, timer, AT + 2, "clock")]
    timer = SetTimer(name="t", after=86400 * 365.0)
    assert after(Asked(command=timer)) == [Opened(1, timer, AT + 86400 * 365 * 1_000_000, "clock")]


def test_an_answer_and_a_withdrawal_close() -> None:
    assert after(Answered(to=7, answer=ToolReturned()), Withdrawn(number=8, because="x")) == [Closed(7), Closed(8)]


def test_a_doubt_holds_and_a_repetition_releases() -> None:
    assert after(Doubted(to=3, evidence="x"), Repeated(number=3, because="y")) == [Held(3), Released(3, AT)]


def test_the_end_closes_everything() -> None:
    assert after(Ended(outcome="stopped", because="x")) == [Closed(None)]


def test_everything_else_opens_and_closes_nothing() -> None:
    guarded = GuardTripped(guard="g", limit=1, value=2, text="t")
    started, forked = Started(style="s", definition="d"), Forked(run="r", at=1)
    assert after(started, forked, Heard(text="x"), Ordered(order="cancel"), guarded, Warned(text="w")) == []
