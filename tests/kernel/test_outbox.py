"""Which commands a worker, a person, the clock or a child has to act on, derived from a step alone."""

import pytest

from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    CancelRequested,
    Doubted,
    Forked,
    Heard,
    RunSettings,
    SettingsChanged,
    Started,
)
from ripstop.kernel.outbox import NEVER, Closed, Finished, Held, Opened, Released, Superseded, inherited, plan
from ripstop.kernel.step import Step
from ripstop.kernel.style import News
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState
from tests.kernel.followed import Followed, followed

STYLE = ErrandStyle()
SECOND = 1_000_000
START = Started(style="errands", definition="definition", format=FORMAT)
SURFACED = Started(style="errands", definition="definition", format=FORMAT, surface=("above", 7))
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
CHILD, SHARED = StartRun(workflow="w"), StartRun(workflow="w", name="plan:1")


def mail(text: str = "hello", channel: str = "mail") -> Say:
    return Say(text=text, channel=channel)


def told(*commands: Command, started: Started = START) -> Followed:
    """A run that asked for these, from record 3 on, at second 1, and then for a person's word."""
    return followed(STYLE, Errands(rounds=(commands, (PERSON,))), started)


def opened(command: Command) -> Opened:
    story = Given(STYLE, {"definition": Errands(rounds=((command,),))})
    story.tell(START)
    assert story.run is not None
    (change,) = plan(None, story.run, story.records)
    assert isinstance(change, Opened)
    return change


@pytest.mark.parametrize(
    ("command", "waits", "needs", "awaits"),
    [
        (AGENT, "worker", "", ""),
        (TOOL, "worker", "tool:hammer", ""),
        (mail(), "worker", "channel:mail", ""),
        (SHARED, "run", "", "plan:1"),
    ],
)
def test_a_command_is_due_at_once_for_workers_that_offer_what_it_needs(
    command: Command, waits: str, needs: str, awaits: str
) -> None:
    assert opened(command) == Opened(3, command, SECOND, waits, needs, awaits)


def test_a_child_is_awaited_under_the_runs_name_and_the_commands_number() -> None:
    assert (opened(CHILD).waits, opened(CHILD).awaits, opened(CHILD).due) == ("run", "story.3", SECOND)


def test_a_question_is_never_due_unless_it_surfaces() -> None:
    assert opened(PERSON) == Opened(3, PERSON, None, "person")
    assert told(PERSON, started=SURFACED).outbox.due == [3]
    for_somebody = AskPerson(question="?", to="editor")
    assert told(for_somebody, started=SURFACED).outbox.due == []


def test_the_kernels_own_questions_do_not_surface() -> None:
    story = told(TOOL, started=SURFACED)
    story.tell(Doubted(to=3, evidence="?"))
    assert story.outbox.due == []
    assert [row.state for row in story.outbox.rows.values()] == ["held", "open"]


@pytest.mark.parametrize(
    ("after", "due"), [(0.0000015, 2), (0, 0), (86400 * 365.0, 86400 * 365 * SECOND), (1e18, NEVER - SECOND)]
)
def test_a_timer_is_due_when_its_time_has_passed_and_not_before(after: float, due: int) -> None:
    timer = SetTimer(name="t", after=after)
    assert opened(timer) == Opened(3, timer, SECOND + due, "clock")


def changes(story: Followed, fact: object) -> list[object]:
    before, length = story.run, len(story.records)
    story.tell(fact)  # type: ignore[arg-type]  # a fact or an answer
    assert story.run is not None
    return list(plan(before, story.run, story.records[length:]))


def test_an_answer_closes_its_command() -> None:
    story = told(AGENT, TOOL)
    assert changes(story, AgentReplied()) == [Closed(3, plain=True)]
    assert Closed(4) in changes(story, ToolReturned()), "its row says which worker it needs"


def test_a_doubt_holds_and_a_repetition_releases() -> None:
    story = told(TOOL)
    held, question = changes(story, Doubted(to=3, evidence="x"))
    assert held == Held(3) and isinstance(question, Opened)
    assert changes(story, PersonAnswered(choice=AGAIN)) == [Closed(5), Released(3, 3 * SECOND, unless_begun=True)]


def test_the_end_supersedes_what_is_open_and_has_a_worker_cancel_children() -> None:
    story = told(AGENT, CHILD, PERSON, mail(), SetTimer(name="t", after=1))
    assert changes(story, CancelRequested()) == [
        Superseded(3, 2 * SECOND),
        Superseded(4, 2 * SECOND, undo=True),
        Closed(5),
        Closed(7),
    ], "the message is still sent, and the run is not finished before its child is"


def test_a_run_is_finished_with_its_children_and_only_then() -> None:
    story = told(CHILD, AGENT)
    story.tell(CancelRequested())
    assert story.outbox.finished == []
    late = Answered(to=4, answer=AgentReplied())
    assert Finished("story", 3 * SECOND) not in changes(story, late)
    finished = Answered(to=3, answer=RunFinished(run="story.3", outcome="stopped"))
    assert changes(story, finished) == [Closed(3), Finished("story", 4 * SECOND)]


def test_a_run_without_children_is_finished_as_it_ends() -> None:
    story = told(AGENT)
    assert changes(story, CancelRequested())[-1] == Finished("story", 2 * SECOND)
    assert changes(story, Answered(to=3, answer=AgentReplied())) == [Closed(3)], "it is not finished twice"


def test_facts_that_ask_for_nothing_change_no_row() -> None:
    story = followed(STYLE, Errands(rounds=((AGENT,),), outcome="", listens=True), START, AgentReplied())
    assert changes(story, SettingsChanged(settings=RunSettings(model="x"))) == []


# Messages


class Wordy(ErrandStyle):
    """`+c` says something on channel c, `-n` withdraws n."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if not isinstance(news, Heard):
            return
        for word in news.text.split():
            if word[0] == "+":
                step.say("hello", channel=word[1:])
            else:
                step.withdraw(int(word[1:]), "unsaid")


def wordy(*orders: str) -> Followed:
    return followed(Wordy(), Errands(), START, *(Heard(text=order) for order in orders))


def test_messages_go_out_one_at_a_time_and_in_order_per_channel() -> None:
    story = wordy("+a +a +b", "+a +b")
    assert story.outbox.due == [3, 5]
    story.tell(Answered(to=3, answer=Said()))
    assert story.outbox.due == [4, 5]
    story.tell(Answered(to=5, answer=Said()))
    assert story.outbox.due == [4, 8]
    story.tell(Answered(to=4, answer=Said()))
    assert story.outbox.due == [7, 8]


@pytest.mark.parametrize(
    ("orders", "due"),
    [
        (("+a", "-3 +a"), [6]),
        (("+a", "+a -3"), [5]),
        (("+a +a", "-3"), [4]),
        (("+a +a +a", "-4"), [3]),
        (("+a +a +a", "-4 -3"), [5]),
        (("+a +a +a", "-3 -4"), [5]),
        (("+a -3 +a",), [5]),
        (("+a +a -3",), [4]),
    ],
    ids=str,
)
def test_a_withdrawn_message_holds_up_no_other(orders: tuple[str, ...], due: list[int]) -> None:
    assert wordy(*orders).outbox.due == due


def test_messages_keep_their_order_after_the_end() -> None:
    story = told(mail("1"), mail("2"), mail("3", "chat"))
    story.tell(CancelRequested())
    assert story.outbox.due == [3, 5]
    story.tell(Answered(to=3, answer=Said()))
    assert story.outbox.due == [4, 5]
    story.tell(Answered(to=4, answer=Said()))
    story.tell(Answered(to=5, answer=Said()))
    assert story.outbox.rows == {}


def test_a_message_in_doubt_lets_the_next_one_go_at_the_end() -> None:
    story = told(mail("1"), mail("2"), AGENT)
    story.tell(Doubted(to=3, evidence="?"))
    assert 4 not in story.outbox.due
    story.tell(CancelRequested())
    assert story.outbox.due == [4]


def test_a_message_without_a_channel_has_no_row_unless_the_run_surfaces() -> None:
    assert told(Say(text="x"), AGENT).outbox.rows.keys() == {4}
    surfaced = told(Say(text="x"), Say(text="y"), AGENT, started=SURFACED).outbox
    assert surfaced.due == [3, 5]
    assert surfaced.rows[3].needs == ""


# Forks


def test_a_fork_supersedes_no_row_and_cancels_no_child_of_the_run_it_left() -> None:
    story = told(AGENT, CHILD)
    fork = story.fork(4)
    before, length = fork.run, len(fork.records)
    fork.tell(Forked(run="story", at=4))
    assert fork.run is not None
    found = plan(before, fork.run, fork.records[length:])
    assert [change.number for change in found if isinstance(change, Opened)] == [9, 10]
    assert len(found) == 2
    assert fork.outbox.rows[10].awaits == "fork.10"


def test_messages_of_the_run_it_left_do_not_hold_up_those_of_a_fork() -> None:
    fork = told(mail(), AGENT).fork(4)
    fork.tell(Forked(run="story", at=4))
    assert [fork.outbox.rows[number].needs for number in fork.outbox.due] == ["channel:mail", ""]


def test_a_fork_right_after_a_fact_inherits_the_rows_of_what_is_open() -> None:
    tea = SetTimer(name="tea", after=60)
    story = given(STYLE, Errands(rounds=((AGENT, TOOL, CHILD, tea, mail()), (PERSON,))), Doubted(to=4, evidence="?"))
    assert story.run is not None
    rows = inherited(story.run, story.run.length)
    assert [row.number for row in rows if isinstance(row, Opened)] == [3, 4, 5, 6, 7, 9]
    assert rows[-1] == Held(4)
    assert rows[3] == Opened(6, tea, 61 * SECOND, "clock")
    assert inherited(story.run, 4) == [*rows[:2], Held(4)]
