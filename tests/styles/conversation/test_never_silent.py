"""A message ends with an answer, an apology or a hand-over, unless the model decides that nothing is to be said."""

import json

import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, RunFinished, ToolReturned
from ripstop.kernel.events import Asked, Record, Warned
from ripstop.styles.conversation.definition import APOLOGY
from ripstop.styles.conversation.events import ActionFailed, IterationDecided, ProfileUpdated, StatusChanged
from ripstop.styles.turn import GO_ON, MAX_PARTS
from tests.styles.conversation.chat_story import Story, action, bot, decision

PROFILE = action("SYSTEM", "update_profile", number="1")
UNKNOWN = action("SYSTEM", "free_slots")


def told(story: Story, kind: str) -> list[dict[str, object]]:
    """The data of this step's notices of one kind."""
    records = [Record(number, 0, event) for number, event in enumerate(story.events, 1)]
    return [
        one.data for record in records for one in story.given.style.audience.public_events(record) if one.kind == kind
    ]


def test_an_unknown_system_action_is_told_to_the_model_however_often_it_is_decided_on() -> None:
    story = Story(bot(max_iterations=3)).ready().hear("When are you free?")
    for _ in range(2):
        story.decides("processing", None, UNKNOWN)
        assert "There is no system action 'free_slots'" in story.prompt()
        assert ActionFailed("SYSTEM", "free_slots", visible=False) in story.events
    story.decides("processing", None, UNKNOWN)
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])


@pytest.mark.parametrize("kind", ["SYSTEM", "TOOL", "SKILL", "FLOW"])
def test_an_unknown_action_that_was_to_end_the_pass_goes_back_to_the_model(kind: str) -> None:
    story = Story().ready().hear("Do it").decides("ready", None, action(kind, "free_slots"))
    assert "free_slots" in story.prompt() and story.statuses == []
    assert story.decides("typing", "I cannot.").said == ["I cannot."]


def test_a_tool_that_was_to_end_the_pass_and_fails_goes_back_to_the_model() -> None:
    story = Story().ready().hear("Note it").decides("ready", None, action("TOOL", "order_status"))
    story.answer(Failed(reason="The service is down."))
    assert "The service is down." in story.prompt()
    done = Story().ready().hear("Note it").decides("ready", None, action("TOOL", "order_status"))
    assert (done.answer(ToolReturned(value=1)).said, done.statuses) == ([], ["ready"])


def test_a_silent_action_that_is_decided_on_twice_is_asked_about_once_and_then_apologised_for() -> None:
    story = Story().ready().hear("New number").decides("processing", None, PROFILE)
    story.decides("processing", None, PROFILE)
    assert isinstance(story.asked[0], AskAgent) and "This system action is done" in story.prompt()
    story.decides("processing", None, PROFILE)
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert sum(isinstance(one.event, ProfileUpdated) for one in story.given.records) == 1


def test_an_answer_is_said_though_it_repeats_a_silent_action() -> None:
    story = Story().ready().hear("New number").decides("processing", None, PROFILE)
    story.decides("typing", "I have noted it.", PROFILE)
    assert (story.said, story.statuses) == (["I have noted it."], ["typing", "ready"])
    assert sum(isinstance(one.event, ProfileUpdated) for one in story.given.records) == 1


def test_a_hand_over_is_made_though_it_repeats_a_silent_action() -> None:
    story = Story().ready().hear("New number").decides("processing", None, PROFILE)
    story.decides("transferred", "A colleague will help.", PROFILE)
    assert (story.said, story.statuses) == (["A colleague will help."], ["transferred"])


def test_a_flow_that_says_nothing_is_on_record() -> None:
    story = Story().hear("hours?").answer(ToolReturned(value=None))
    assert Warned("the flow has said nothing to the user") in story.events


def test_the_words_of_a_flow_are_found_wherever_they_are() -> None:
    for value in ({"code": 0, "data": {"reply": "At nine."}}, {"data": [{"text": "At nine."}]}, {"output": "At nine."}):
        assert Story().hear("hours?").answer(ToolReturned(value=value)).said == ["At nine."]


def test_a_flow_that_returns_something_without_words_ends_in_an_apology() -> None:
    story = Story().hear("hours?").answer(ToolReturned(value={"status": 200, "body": {"code": 0}}))
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert ActionFailed("FLOW", "hours") in story.events


NO_WORDS: list[object] = [None, {"content": ""}, {"content": "", "files": ["a.md"]}, {"content": " ", "result": "Raw."}]


@pytest.mark.parametrize("result", NO_WORDS)
def test_a_workflow_that_ends_without_a_word_ends_in_an_apology_and_not_in_its_data(result: object) -> None:
    story = Story().hear("which size")
    story.given.contents.results["r"] = result
    story.tell(RunFinished(run="s.1", outcome="completed", because="done", result="r"))
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert ActionFailed("FLOW", "sizes") in story.events


# Decisions that reach the model's limit of length


WHOLE = json.dumps(decision("processing", "One moment.", action("TOOL", "order_status", order="7")))


def cut_at(place: int) -> Story:
    """A decision of which the model has written only the beginning."""
    return Story().ready().hear("Order?").tell(AgentReplied(text=WHOLE[:place], cut=True))


@pytest.mark.parametrize("place", [1, 20, 50, len(WHOLE) - 20, len(WHOLE)])
def test_a_decision_that_is_cut_off_is_continued_and_carried_out_once(place: int) -> None:
    story = cut_at(place)
    assert isinstance(story.asked[0], AskAgent) and (story.said, story.decided) == ([], [])
    assert GO_ON in story.prompt() and WHOLE[:place] in story.prompt()
    story.says(WHOLE[place:])
    assert story.said == ["One moment."] and story.asked == [CallTool(tool="order_status", agent="assistant")]
    assert story.state.action.params == {"order": "7"}


def test_a_decision_that_is_begun_again_after_it_was_cut_off_is_the_one_that_counts() -> None:
    story = cut_at(50).says(json.dumps(decision("typing", "It is on its way.")))
    assert (story.said, story.statuses) == (["It is on its way."], ["typing", "ready"])


def test_a_decision_whose_rest_breaks_the_contract_is_asked_for_once_more() -> None:
    story = cut_at(50).says("and so on.")
    assert isinstance(story.asked[0], AskAgent) and "cannot be used" in story.prompt()
    assert story.says(json.dumps(decision("typing", "Yes."))).said == ["Yes."]


def test_a_decision_that_never_comes_to_its_end_ends_in_an_apology() -> None:
    story = Story().ready().hear("Order?")
    for _ in range(MAX_PARTS):
        assert story.said == []
        story.tell(AgentReplied(text="and so on ", cut=True))
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])


# What others are told


def test_a_failed_action_is_on_record_and_told() -> None:
    story = Story().ready().hear("Order?").decides("processing", None, action("TOOL", "order_status"))
    assert told(story, "action_failed") == []
    story.answer(Failed(reason="down"))
    assert told(story, "action_failed") == [{"type": "TOOL", "target": "order_status", "visible": True}]
    flow = Story().hear("which size").tell(RunFinished(run="s.1", outcome="failed", because="broken"))
    assert ActionFailed("FLOW", "sizes") in flow.events


def test_a_silent_action_that_failed_is_told_to_operators_alone() -> None:
    story = Story().ready().hear("Hello").decides("processing", None, action("TOOL", "add_tag", tag="vip"))
    story.answer(Failed(reason="down"))
    failed = next(Record(1, 0, one) for one in story.events if isinstance(one, ActionFailed))
    assert story.given.style.audience.public_events(failed) == ()
    assert [one.kind for one in story.given.style.audience.operator_events(failed)] == ["action_failed"]


def test_a_status_tells_a_new_message_from_a_break_off_but_not_what_was_wrong() -> None:
    story = Story().ready().hear("First").hear("Second")
    assert told(story, "status")[0] == {"status": "cancelled", "because": "superseded"}
    story.answer(Failed(reason="401 for key sk-123"))
    assert told(story, "status") == [{"status": "cancelled", "because": "broken_off"}]
    assert StatusChanged("cancelled", "the model failed: 401 for key sk-123") in story.events


def test_a_note_is_said_before_the_action_that_it_announces() -> None:
    story = Story().ready().hear("Order?").decides("processing", "One moment.", action("TOOL", "order_status"))
    kinds = [type(one) for one in story.events if isinstance(one, Asked | IterationDecided)]
    assert kinds == [Asked, IterationDecided, Asked]


def test_closing_is_told() -> None:
    story = Story().ready().hear("Bye").decides("typing", "Bye!", action("SYSTEM", "close_conversation"))
    assert told(story, "closed") == [{}]


@pytest.mark.parametrize("response", ["\u200b", " \u2060\n", "\u00ad"])
def test_an_answer_that_nobody_can_see_is_none(response: str) -> None:
    story = Story().ready().hear("Hello").decides("typing", response)
    assert story.said == [] and "'typing' needs a 'response' for the user" in story.prompt()
    assert story.decides("typing", "Hello!").said == ["Hello!"]


def test_a_profile_that_is_updated_with_nothing_is_not_updated() -> None:
    story = Story().ready().hear("New number").decides("typing", "I have noted it.", action("SYSTEM", "update_profile"))
    assert story.said == [] and "nothing was noted" in story.prompt()
    assert not any(isinstance(one.event, ProfileUpdated) for one in story.given.records)


def test_the_same_call_with_other_blanks_is_the_same_call() -> None:
    story = Story().ready().hear("Refund it").decides("processing", None, action("TOOL", "refund", order="1"))
    story.answer(ToolReturned(value="paid"))
    story.decides("processing", None, action("TOOL", "refund", order=" 1\u200b"))
    assert isinstance(story.asked[0], AskAgent) and "refund was not called again" in story.prompt()
