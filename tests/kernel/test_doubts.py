"""Effects in doubt: a person says what became of them."""

import pytest

from ripstop.kernel.doubts import AGAIN, DOUBT_CHOICES, GIVE_UP, HAPPENED
from ripstop.kernel.effects import (
    ANSWER_TO,
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Limits,
    PersonAnswered,
    Say,
    SetTimer,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Doubted,
    DoubtResolved,
    Heard,
    Repeated,
    ResumeRequested,
    Started,
)
from ripstop.kernel.run import DOUBT
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Settled
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import RoundBegan, StubState

STYLE = ErrandStyle()
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")


def errands(*rounds: tuple[Command, ...]) -> Errands:
    return Errands(rounds=rounds)


def doubted() -> Given:
    return given(STYLE, errands((TOOL,), (AGENT,)), Doubted(to=3, evidence="It was begun."))


def test_an_effect_in_doubt_becomes_a_question_with_its_evidence() -> None:
    story = given(STYLE, errands((TOOL,), (AGENT,)))
    told = story.when(Doubted(to=3, evidence="It was begun."))
    (ask,) = told.commands
    assert isinstance(ask, AskPerson)
    assert "It was begun." in ask.question
    assert ask.choices == DOUBT_CHOICES and ask.purpose == DOUBT
    assert ask.about == (3,)
    assert told.status == "waiting"


def test_it_happened_settles_the_command_with_the_persons_words() -> None:
    told = doubted().when(PersonAnswered(choice=HAPPENED, text="I saw it"))
    told.then(DoubtResolved(to=3, answer=ToolReturned(value="I saw it")), RoundBegan, Asked(command=AGENT))
    assert told.run.state.answers[-1] == "I saw it"


@pytest.mark.parametrize(
    "command",
    [AGENT, TOOL, Say(text="hello", channel="mail"), StartRun(workflow="w"), AnswerChild(asked=1)],
)
def test_it_happened_gives_the_command_an_answer_of_its_own_kind(command: Command) -> None:
    story = given(STYLE, errands((command,)), Doubted(to=3, evidence="?"))
    question = max(story.run.open) if story.run else 0
    first = story.when(Answered(to=question, answer=PersonAnswered(choice=HAPPENED, text="I saw it"))).decided[0]
    assert isinstance(first, DoubtResolved)
    assert isinstance(first.answer, ANSWER_TO[type(command)])


@pytest.mark.parametrize("command", [PERSON, SetTimer(name="tea", after=5)])
def test_what_has_no_effect_cannot_be_in_doubt(command: Command) -> None:
    given(STYLE, errands((command,))).when(Doubted(to=3, evidence="?")).then_nothing()


def test_a_message_in_doubt_is_given_up_with_the_run() -> None:
    mail = Say(text="hello", channel="mail")
    told = given(STYLE, errands((mail, mail, PERSON)), Doubted(to=3, evidence="?")).when(CancelRequested())
    assert list(told.run.open) == [4], "nobody can be asked about the first any more, and the second was never begun"


@pytest.mark.parametrize("command", [Say(text="hello", channel="mail"), TOOL])
def test_a_guard_leaves_the_question_about_what_must_be_done_all_the_same(command: Command) -> None:
    started = Started("errands", "definition", FORMAT, limits=Limits(calls=1), guards={"then": "ask"})
    errands = Errands(rounds=((command, AGENT), (PERSON,)))
    story = given(Insistent(), errands, started, Doubted(to=3, evidence="?"), AgentReplied(text="more"))
    assert story.run is not None and story.run.verdict is not None
    assert story.run.doubts == {story.opened(AskPerson): 3}
    told = story.when(PersonAnswered(choice=HAPPENED))
    assert isinstance(told.decided[0], DoubtResolved)


def test_a_resume_leaves_the_question_about_a_message_in_doubt() -> None:
    started = Started("errands", "definition", FORMAT, limits=Limits(calls=1), guards={"then": "ask"})
    errands = Errands(rounds=((Say(text="hello", channel="mail"), AGENT), (PERSON,)))
    story = given(Insistent(), errands, started, Doubted(to=3, evidence="?"), AgentReplied(text="more"))
    told = story.when(ResumeRequested(raises={"calls": 5}))
    assert list(told.run.doubts.values()) == [3]
    assert set(told.run.doubts) <= set(told.run.open)


class Insistent(ErrandStyle):
    """Asks an agent again as soon as one has answered."""

    def decide(self, step: Step[StubState], news: News) -> None:
        super().decide(step, news)
        if isinstance(news, Settled) and isinstance(news.command, AskAgent):
            step.ask(AGENT)


def test_again_keeps_the_command_open_to_be_carried_out_again() -> None:
    told = doubted().when(PersonAnswered(choice=AGAIN)).then(Repeated)
    assert list(told.run.open) == [3]
    assert told.run.doubts == {}
    assert told.status == "working"
    told.story.when(ToolReturned(value="at last")).then_asks(AGENT)


def test_giving_up_settles_it_as_our_failure() -> None:
    told = doubted().when(PersonAnswered(choice=GIVE_UP))
    first = told.decided[0]
    assert isinstance(first, DoubtResolved) and isinstance(first.answer, Failed)
    assert (first.to, first.answer.fault) == (3, "ours")
    assert told.run.state.failures == 1


def test_a_question_about_a_doubt_that_fails_gives_it_up() -> None:
    story = doubted()
    told = story.when(Answered(to=story.opened(AskPerson), answer=Failed(reason="nobody is there")))
    first = told.decided[0]
    assert isinstance(first, DoubtResolved) and isinstance(first.answer, Failed)
    assert told.run.state.answers[-1] == first.answer.reason, "the style sees what became of its command, no more"


def test_a_command_may_be_doubted_again_after_it_was_repeated() -> None:
    story = doubted()
    story.tell(PersonAnswered(choice=AGAIN))
    story.when(Doubted(to=3, evidence="Again.")).then_asks(AskPerson)
    story.when(PersonAnswered(choice=HAPPENED)).then_asks(AGENT)


class Changeable(ErrandStyle):
    """Withdraws its first command when it hears anything."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Heard):
            step.withdraw(3, "changed my mind")
        else:
            super().decide(step, news)


@pytest.mark.parametrize("choice", [HAPPENED, AGAIN, GIVE_UP])
def test_an_answer_about_a_doubt_that_was_withdrawn_does_no_harm(choice: str) -> None:
    story = given(Changeable(), errands((TOOL, PERSON)), Doubted(to=3, evidence="?"), Heard(text="stop"))
    told = story.when(Answered(to=6, answer=PersonAnswered(choice=choice)))
    assert told.error is None
    assert 3 not in told.run.open
    assert not any(isinstance(event, DoubtResolved | Repeated) for event in told.decided)
