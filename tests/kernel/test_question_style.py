"""The built-in style `question`: it asks a person one thing and ends with the answer."""

import msgspec
import pytest

from ripstop.kernel.effects import AskPerson, Failed, PersonAnswered
from ripstop.kernel.events import Answered, Asked, CancelRequested, Ended
from ripstop.kernel.registry import QUESTION
from ripstop.kernel.run import DOUBT, GUARD
from ripstop.testing import Given, given

ASK = AskPerson(question="May it write?", title="notes.md", purpose="permission", choices={"yes": "", "no": ""})


def asked(ask: AskPerson = ASK) -> Given:
    return given(QUESTION.style, ask)


def test_it_asks_and_ends_with_the_answer_as_its_result() -> None:
    story = asked()
    assert [record.event for record in story.records[1:]] == [Asked(command=ASK)]
    answer = PersonAnswered(choice="yes", text="but only once", fields={"count": 1}, by="ann")
    told = story.when(answer).then(Ended).then_ends("completed", "ann answered")
    assert told.run.ended is not None
    assert msgspec.convert(story.contents.results[told.run.ended.result], PersonAnswered) == answer


def test_it_is_cancelled_without_a_result() -> None:
    told = asked().when(CancelRequested()).then_ends("stopped")
    assert told.run.ended is not None and told.run.ended.result == ""


def test_it_ends_as_failed_if_nobody_can_be_asked() -> None:
    asked().when(Failed(reason="nobody is there")).then_ends("failed", "nobody is there")


@pytest.mark.parametrize("purpose", [GUARD, DOUBT])
def test_it_does_not_ask_in_the_kernels_name(purpose: str) -> None:
    story = asked(AskPerson(question="Continue?", purpose=purpose, choices={"continue": ""}))
    story.when(Answered(to=2, answer=PersonAnswered(choice="continue"))).then_ends("completed")


def test_it_is_named_by_its_title() -> None:
    run = asked().run
    assert run is not None and QUESTION.style.view.gist(run) == "notes.md"
