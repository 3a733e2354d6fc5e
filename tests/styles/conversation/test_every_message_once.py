"""Every message is answered once: by a pass, by a flow or by a person; and no call is made twice for it."""

from typing import Any

from ripstop.kernel.effects import (
    AskAgent,
    AskPerson,
    CallTool,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Doubted
from ripstop.styles.conversation.definition import APOLOGY, CHECKING
from ripstop.styles.conversation.events import PassBegan, SessionTaken
from tests.styles.conversation.chat_story import Story, action, bot, decision

REFUND = action("TOOL", "refund", id="1042")


def refunds(story: Story) -> int:
    return sum(
        getattr(record.event, "command", None) == CallTool(tool="http_request", effect="unsafe")
        for record in story.given.records
    )


def in_doubt(*before: str) -> Story:
    story = Story().ready()
    for words in (*before, "Refund 1042"):
        story.hear(words)
    story.decides("processing", None, REFUND)
    return story.tell(Doubted(to=story.given.opened(CallTool), evidence="It timed out."))


def question(story: Story, purpose: str) -> int:
    run = story.given.run
    assert run is not None
    return next(
        number
        for number, one in run.open.items()
        if isinstance(one.command, AskPerson) and one.command.purpose == purpose
    )


def resolve(story: Story, choice: str = "happened") -> Story:
    said = PersonAnswered(choice=choice, text="seen in the bank", by="ann")
    return story.tell(Answered(to=question(story, "ripstop:doubt"), answer=said))


def release(story: Story, text: str = "") -> Story:
    said = PersonAnswered(choice="release", text=text, by="ann")
    return story.tell(Answered(to=question(story, "handoff"), answer=said))


def reply(story: Story, text: str) -> Story:
    said = PersonAnswered(choice="reply", text=text, by="ann")
    return story.tell(Answered(to=question(story, "handoff"), answer=said))


def message(story: Story) -> str:
    return story.prompt().split("<user_message>")[1].split("</user_message>")[0]


def heard(story: Story) -> list[list[str]]:
    """What each pass has taken up, in its words."""
    texts = {one.number: getattr(one.event, "text", "") for one in story.given.records}
    passes = [one.event.heard for one in story.given.records if isinstance(one.event, PassBegan)]
    return [[texts[number] for number in one] for one in passes]


def flows(story: Story) -> list[str]:
    """The input of each flow that was started."""
    return [
        story.given.style.start_child(one.state, one.command).input
        for one in story.given.run.open.values()  # type: ignore[union-attr]
        if isinstance(one.command, StartRun) and one.command.workflow == "size-adviser"
    ]


def ended(story: Story, text: str = "") -> Story:
    if not text:
        return story.tell(RunFinished(run="s.1", outcome="failed", because="broken"))
    story.given.contents.results["r"] = {"content": text, "decisions": {}}
    return story.tell(RunFinished(run="s.1", outcome="completed", because="done", result="r"))


# Calls


def test_a_call_that_a_person_has_answered_for_is_not_made_again_for_its_message() -> None:
    story = resolve(in_doubt())
    story.decides("processing", None, REFUND)
    assert refunds(story) == 1 and "not called again" in story.prompt() and "seen in the bank" in story.prompt()
    assert story.decides("typing", "It is paid.").said == ["It is paid."]
    story.hear("Refund 1042 once more").decides("processing", None, REFUND)
    assert refunds(story) == 2, "another message can ask for it again"


def test_a_call_that_a_person_has_given_up_is_not_made_again_either() -> None:
    story = resolve(in_doubt(), "give up").decides("processing", None, REFUND)
    assert refunds(story) == 1 and "a person gave it up" in story.prompt()


def test_the_model_is_told_beside_the_message_what_was_called_with_what_and_what_came_of_it() -> None:
    story = in_doubt().hear("Where are you?").decides("typing", "In Rome.")
    assert "It is not known" in story.hear("Hm").prompt()
    story = resolve(story.decides("typing", "Yes?"))
    after = story.prompt().split("</user_message>")[1]
    assert after.index('refund {"id":"1042"}: refund returned: seen in the bank') < after.index("Where are you?")
    assert "It is not known" not in story.prompt()


def test_a_call_of_a_pass_that_was_superseded_is_not_made_again() -> None:
    story = Story().ready().hear("Refund 1042").decides("processing", None, REFUND).hear("Hurry!")
    story.answer(ToolReturned(value="paid")).decides("processing", None, REFUND)
    assert refunds(story) == 1 and '{"id":"1042"}: refund returned: paid' in story.prompt()


def test_what_a_silent_action_did_for_a_message_is_not_told_in_its_next_pass() -> None:
    tag = action("TOOL", "add_tag", tag="vip")
    story = Story().ready().hear("Tag me").decides("processing", None, tag).hear("Hurry!").answer(ToolReturned(value=1))
    assert "add_tag" not in story.prompt().split("<conversation>")[1]


def test_a_call_that_is_made_again_and_is_in_doubt_again_does_not_disturb_the_conversation() -> None:
    story = in_doubt()
    to = min(number for number, one in story.given.run.open.items() if isinstance(one.command, CallTool))  # type: ignore[union-attr]
    story = resolve(story, "again").hear("Where are you?")
    story.tell(Doubted(to=to, evidence="It timed out."))
    assert (story.said, story.statuses) == ([], [])
    assert story.decides("typing", "In Rome.").said == ["In Rome."]


# Flows


def test_a_message_that_a_flow_has_answered_is_not_given_to_another() -> None:
    story = Story().hear("Which size is it?").hear("and which size for her?")
    assert flows(story) == ["Which size is it?"]
    assert ended(story, "Size M.").said == ["Size M."]
    assert flows(story) == ["and which size for her?"]
    assert ended(story, "Size S.").said == ["Size S."] and story.statuses == ["ready"]


def test_a_message_that_a_flow_has_answered_is_history_for_the_next_pass() -> None:
    story = Story().ready().hear("Which size is it?").hear("And the price?")
    ended(story, "Size M.")
    assert message(story).strip() == "And the price?"
    before = story.prompt().split("<user_message>")[0]
    assert "User: Which size is it?" in before and heard(story)[1:] == [["Which size is it?"], ["And the price?"]]


def test_a_flow_that_fails_is_apologised_for_though_the_user_has_written_since() -> None:
    story = ended(Story().ready().hear("Which size is it?").hear("And the price?"))
    assert story.said == [APOLOGY] and message(story).strip() == "And the price?"


def test_a_message_that_starts_a_flow_leaves_the_one_before_it_to_the_model() -> None:
    story = Story().ready().hear("Where is my order?").hear("Which size is it?")
    assert flows(story) == [] and message(story).strip() == "Where is my order?"
    assert story.decides("typing", "In Rome.").said == ["In Rome."]
    assert flows(story) == ["Which size is it?"]


def test_a_flow_whose_call_was_given_up_or_is_in_doubt_is_not_started_again() -> None:
    story = Story().ready().hear("hours?")
    story.tell(Doubted(to=story.given.opened(CallTool), evidence="It answered 502."))
    story.hear("hours?").decides("processing", None, action("FLOW", "hours"))
    assert "not called again" in story.prompt()
    resolve(story.decides("typing", "Wait."), "give up")
    assert isinstance(story.asked[0], AskAgent) and "hours failed" in story.prompt()


# A person has the conversation


def transferred(story: Story | None = None) -> Story:
    return (story or Story().ready()).hear("A person").decides("transferred", "Yes.", action("SYSTEM", "handoff"))


def test_a_person_who_has_the_conversation_is_told_what_came_of_a_call_and_the_user_hears_of_it_from_the_bot() -> None:
    story = in_doubt("Where is 1041?")
    assert story.said == [CHECKING]
    resolve(transferred(story))
    (asked,) = story.asked
    assert isinstance(asked, AskPerson) and "refund returned: seen in the bank" in asked.question
    assert release(story).statuses == ["ready", "processing"]
    assert "Refund 1042" in message(story) and "Where is 1041?" in message(story)
    assert story.decides("typing", "It is paid.").said == ["It is paid."]


def test_what_came_of_a_call_is_not_told_again_by_the_bot_if_the_person_has_spoken_since() -> None:
    story = reply(resolve(transferred(in_doubt())), "Your money is on its way.")
    assert release(story).statuses == ["ready"] and not any(isinstance(one, AskAgent) for one in story.asked)


def test_what_waited_in_a_queue_before_the_hand_over_is_answered_after_it() -> None:
    story = Story(bot(on_new_message="queue")).ready().hear("A person").hear("My order?").hear("Which size?")
    story.decides("transferred", "Yes.", action("SYSTEM", "handoff"))
    reply(story.hear("Are you there?"), "I am Ann.")
    release(story.hear("And which size is hers?"))
    assert message(story).strip() == "My order?"
    story.decides("typing", "In Rome.")
    assert flows(story) == ["Which size?"]
    ended(story, "Size M.")
    assert message(story).strip() == "And which size is hers?", "it is the person's, so no flow gets it"
    story.decides("typing", "Size S.")
    assert [words for one in heard(story) for words in one] == [
        *("Hello", "A person", "My order?", "Which size?", "And which size is hers?")
    ]


def test_no_message_is_lost_however_many_wait() -> None:
    story = Story(bot(on_new_message="queue")).ready()
    for number in range(250):
        story.hear(f"Question {number}: " + "x" * 500)
    for number in range(250):
        assert message(story).strip().startswith(f"Question {number}:")
        story.decides("typing", f"Answer {number}.")
    assert story.state.unanswered == () and len(heard(story)) == 251


def test_a_message_of_many_that_a_person_had_is_not_given_to_a_flow_with_the_others() -> None:
    story = transferred()
    for number in range(93):
        story.hear("And which size?" if number == 92 else f"Question {number}")
    release(story)
    assert flows(story) == [] and len(message(story).strip().splitlines()) == 93


def test_the_message_of_a_pass_that_a_person_has_broken_off_is_answered_by_him_or_after_him() -> None:
    taken = Story().ready().hear("Where is my order?").tell(SessionTaken(by="ann"))
    assert release(taken).statuses == ["ready", "processing"] and "Where is my order?" in message(taken)
    taken = Story().ready().hear("Where is my order?").tell(SessionTaken(by="ann"))
    assert release(reply(taken, "In Rome.")).statuses == ["ready"]


def test_a_plan_that_is_made_while_a_person_has_the_conversation_says_nothing() -> None:
    story = Story().hear("Hello").tell(SessionTaken(by="ann")).planned(decision("typing", "Hi."))
    assert (story.said, story.statuses, story.state.status) == ([], [], "transferred")
    assert release(story).said == ["Welcome!"] and "Hello" in message(story)


def test_what_a_flow_comes_to_while_a_person_has_the_conversation_is_told_to_him_and_after_him_to_the_user() -> None:
    story = ended(Story().ready().hear("Which size is it?").tell(SessionTaken(by="ann")), "Size M.")
    assert story.said == [] and "Size M." in story.asked[0].question
    release(story)
    assert flows(story) == [] and "sizes: Size M." in story.prompt() and "Which size is it?" in message(story)


def test_a_flow_that_ends_after_the_conversation_was_given_back_answers_its_message_once() -> None:
    story = release(Story().ready().hear("Which size is it?").tell(SessionTaken(by="ann")))
    assert ended(story, "Size M.").said == ["Size M."] and story.asked == []
    told: Any = story.state.unanswered
    assert told == () and story.state.status == "ready"
