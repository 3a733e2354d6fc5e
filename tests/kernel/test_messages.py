"""Messages to a run, from it, and from its descendants."""

import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Content, Failed, Said, Say, StartRun
from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.events import FORMAT, Answered, CancelRequested, ChildSpoke, Fact, Heard, Started
from ripstop.kernel.folding import KNOWN_MESSAGES
from ripstop.kernel.step import Step
from ripstop.kernel.style import News
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState

AGENT, PERSON = AskAgent(agent="ada"), AskPerson(question="Well?")
START = Started(style="errands", definition="definition", format=FORMAT)
SURFACED = Started(style="errands", definition="definition", format=FORMAT, surface=("above", 7))


class Listener(ErrandStyle):
    """Warns of every message."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Heard | ChildSpoke):
            step.warn(news.text)
        else:
            super().decide(step, news)


def listening() -> Given:
    return given(Listener(), Errands(rounds=((StartRun(workflow="w", surface=True), PERSON),)))


def heard(story: Given, fact: Fact) -> bool:
    return bool(story.when(fact).events)


# To the run


def test_a_message_is_heard_once_for_its_id() -> None:
    story = listening()
    assert heard(story, Heard(text="hello", id="m1"))
    story.when(Heard(text="hello", id="m1")).then_nothing()
    story.when(Heard(text="anything else", by="bob", channel="mail", id="m1")).then_nothing()
    assert heard(story, Heard(text="hello", id="m2", attachments=(Content(hash="0" * 64),)))


def test_a_message_without_an_id_is_heard_each_time() -> None:
    story = listening()
    assert heard(story, Heard(text="hello")) and heard(story, Heard(text="hello"))


def test_a_run_remembers_the_last_hundred_ids() -> None:
    story = listening()
    for number in range(KNOWN_MESSAGES + 1):
        assert heard(story, Heard(text="x", id=str(number)))
    assert story.run is not None and len(story.run.known_messages) == KNOWN_MESSAGES
    story.when(Heard(text="x", id="1")).then_nothing()
    assert heard(story, Heard(text="x", id="0")), "it is forgotten"


def test_a_repeated_message_after_the_end_is_not_an_error() -> None:
    story = listening()
    story.tell(Heard(text="x", id="1"))
    story.tell(CancelRequested())
    story.when(Heard(text="x", id="1")).then_nothing()
    story.when(Heard(text="x", id="2")).then_refused(RunHasEnded)


# From descendants


def test_a_message_of_a_descendant_is_heard_once() -> None:
    story = listening()
    spoke = ChildSpoke(command=3, run="story.3.5", number=9, text="Which one?", ask=PERSON)
    assert heard(story, spoke)
    story.when(spoke).then_nothing()
    assert heard(story, ChildSpoke(command=3, run="story.3.5", number=10, text="Which one?"))
    assert heard(story, ChildSpoke(command=3, run="story.3.6", number=9, text="Which one?"))


@pytest.mark.parametrize("forged", ["story.3/9", "spoken story.3/9", "heard 1"])
def test_no_sender_can_keep_a_descendants_message_from_being_heard(forged: str) -> None:
    story = listening()
    assert heard(story, Heard(text="x", id=forged))
    assert heard(story, ChildSpoke(command=3, run="story.3", number=9, text="Which one?"))


def test_a_descendant_of_a_child_that_is_not_open_is_not_heard() -> None:
    story = listening()
    story.when(ChildSpoke(command=99, run="x", number=9)).then_nothing()
    story.tell(CancelRequested())
    story.when(ChildSpoke(command=3, run="story.3", number=9)).then_nothing()


# From the run


def test_a_message_without_a_channel_is_sent_as_it_is_recorded() -> None:
    story = Given(ErrandStyle(), {"definition": Errands(rounds=((Say(text="hello"), AGENT),))})
    told = story.when(START)
    told.then_asks(Say(text="hello"), AGENT)
    assert list(told.run.open) == [4]


def test_a_round_of_nothing_but_such_messages_needs_no_answer() -> None:
    given(ErrandStyle(), Errands(rounds=((Say(text="hello"),), (AGENT,)))).when(AgentReplied()).then_ends("completed")


def test_a_message_on_a_channel_is_open_until_it_is_delivered_even_after_the_end() -> None:
    story = given(ErrandStyle(), Errands(rounds=((Say(text="bye", channel="mail"), AGENT),)), CancelRequested())
    assert story.run is not None and list(story.run.open) == [3]
    told = story.when(Answered(to=3, answer=Said())).then()
    assert told.run.open == {} and told.status == "stopped"
    story.when(Answered(to=3, answer=Said())).then_nothing()


def test_a_message_that_is_refused_after_the_end_decides_nothing() -> None:
    story = given(ErrandStyle(), Errands(rounds=((Say(text="bye", channel="mail"), AGENT),)), CancelRequested())
    assert story.when(Answered(to=3, answer=Failed(reason="no such address"))).then().run.open == {}


def test_a_message_of_a_surfaced_run_is_open_until_its_ancestor_has_it() -> None:
    story = Given(ErrandStyle(), {"definition": Errands(rounds=((Say(text="hello"),),))})
    assert list(story.when(SURFACED).run.open) == [3]
    story.when(Said()).then_ends("completed")
