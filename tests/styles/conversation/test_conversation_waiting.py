"""What a session waits for: timers, flows, people at the desk, effects in doubt."""

import pytest

from ripstop.kernel.effects import (
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    Said,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, ChildSpoke, Doubted, Heard, Record, ResumeRequested, Withdrawn
from ripstop.kernel.questions import read_answer
from ripstop.kernel.run import status
from ripstop.kernel.style import arguments_for
from ripstop.styles.conversation.definition import APOLOGY, CHECKING, HANDOVER, BotTool, Endpoint
from ripstop.styles.conversation.events import SessionClosed, SessionTaken
from ripstop.styles.conversation.style import ConversationStyle
from ripstop.testing import given
from tests.styles.conversation.chat_story import TOOLS, Story, action, bot, decision

IDLE = [
    {"delay": 300, "message": "Still there?"},
    {"delay": 600, "message": "I close.", "action": action("SYSTEM", "close_conversation")},
]


def timers(story: Story) -> dict[str, int]:
    run = story.given.run
    assert run is not None
    opened = [(number, o.command) for number, o in run.open.items() if isinstance(o.command, SetTimer)]
    return {command.name.partition(":")[0]: number for number, command in opened}


def fire(story: Story, name: str) -> Story:
    return story.tell(Answered(to=timers(story)[name], answer=TimerFired()))


# Timers


@pytest.mark.req("S2-14", "S2-56", "S2-66", "S2-68")
def test_timers_are_set_at_the_end_of_a_pass() -> None:
    story = Story(timers=IDLE).ready()
    assert story.asked == [SetTimer("timer-0: Still there?", 300.0), SetTimer("timer-1: I close.", 600.0)]
    assert story.statuses[-1] == "ready"


@pytest.mark.req("S2-65", "S2-69")
def test_a_message_cancels_them_and_they_are_set_again_after_it() -> None:
    story = Story(timers=IDLE).ready()
    before = set(timers(story).values())
    story.hear("Yes")
    assert {one.number for one in story.events if isinstance(one, Withdrawn)} == before
    assert timers(story) == {}
    story.decides("ready")
    assert set(timers(story)) == {"timer-0", "timer-1"}


@pytest.mark.req("S2-15", "S2-67")
def test_the_two_step_idle_rule_asks_and_then_closes() -> None:
    story = Story(timers=IDLE).ready()
    fire(story, "timer-0")
    assert (story.said, story.statuses) == (["Still there?"], ["processing", "ready"])
    assert set(timers(story)) == {"timer-1"} and story.calls == 0
    fire(story, "timer-1")
    assert story.said == ["I close."] and SessionClosed() in story.events
    assert story.state.closed and timers(story) == {}


def test_a_timer_is_told_by_its_words_unless_it_is_silent() -> None:
    silent = {"delay": 9, "action": action("SYSTEM", "close_conversation")}
    story = Story(timers=[*IDLE, silent, {"delay": 9, "message": "x" * 900}]).ready()
    records = [Record(1, 0, one) for one in story.events]
    names = [
        str(n.data["name"])
        for one in records
        for n in story.given.style.audience.public_events(one)
        if n.kind == "timer"
    ]
    assert names[:3] == ["Still there?", "I close.", "timer-2"] and len(names[3]) == 200


@pytest.mark.req("S2-67")
def test_a_timer_fires_as_often_as_it_may() -> None:
    story = Story(timers=[{"delay": 5, "message": "Hm?", "max_triggers": 2}]).ready()
    assert timers(fire(story, "timer-0")) and not timers(fire(story, "timer-0"))
    quick = fire(Story(timers=[{"delay": 0.001, "message": "Hm?", "max_triggers": 0}]).ready(), "timer-0")
    assert quick.asked == [SetTimer("timer-0: Hm?", 1.0)]  # a plan must not flood the user
    endless = Story(timers=[{"delay": 5, "message": "Hm?", "max_triggers": 0}]).ready()
    for _ in range(5):
        assert timers(fire(endless, "timer-0"))


def test_quick_timers_slow_down_and_take_turns() -> None:
    quick = Story(timers=[{"delay": 0.01, "message": f"Hm {n}?", "max_triggers": 0} for n in range(3)]).ready()
    pauses = []
    for _ in range(9):
        fire(quick, "timer-0")
        pauses += [command.after for command in quick.asked if isinstance(command, SetTimer)]
    assert pauses == [3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 180.0, 180.0, 180.0]


def test_a_timer_of_minutes_keeps_its_pace_however_often_it_fires() -> None:
    slow = Story(timers=[{"delay": 300, "message": "Still there?", "max_triggers": 0}]).ready()
    for _ in range(12):
        assert fire(slow, "timer-0").asked == [SetTimer("timer-0: Still there?", 300.0)]


@pytest.mark.req("S2-67")
def test_the_tool_of_a_timer_is_called_and_no_model_is_asked_after_it() -> None:
    story = Story(timers=[{"delay": 5, "action": action("TOOL", "order_status", id="A1")}]).ready()
    fire(story, "timer-0")
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]
    story.answer(ToolReturned(value="shipped"))
    assert (story.said, story.statuses, story.asked) == ([], ["ready"], [])


def test_a_timer_can_hand_over_to_a_person() -> None:
    story = Story(timers=[{"delay": 5, "message": "I get a colleague.", "action": action("SYSTEM", "handoff")}]).ready()
    fire(story, "timer-0")
    assert story.said == ["I get a colleague."]
    assert story.statuses == ["processing", "transferred"] and isinstance(story.asked[-1], AskPerson)


def test_two_timers_that_are_due_at_once_have_their_passes_one_after_the_other() -> None:
    both = [{"delay": 5, "action": action("TOOL", "order_status")}, {"delay": 5, "message": "Second."}]
    story = Story(timers=both).ready()
    fire(story, "timer-0")
    assert fire(story, "timer-1").said == []
    story.answer(ToolReturned(value=1))
    assert (story.said, story.statuses) == (["Second."], ["ready", "processing", "ready"])


def test_a_message_during_a_timers_pass_is_answered_after_it() -> None:
    story = Story(timers=[{"delay": 5, "action": action("TOOL", "order_status")}]).ready()
    fire(story, "timer-0").hear("Hello?")
    assert story.asked == []
    story.answer(ToolReturned(value=1))
    assert isinstance(story.asked[0], AskAgent) and "Hello?" in story.prompt()


# Flows


def ended(story: Story, text: str) -> Story:
    """The workflow of a flow comes to a text."""
    story.given.contents.results["r"] = {"content": text, "decisions": {}}
    return story.tell(RunFinished(run="s.1", outcome="completed", because="done", result="r"))


@pytest.mark.req("S2-8", "S2-29", "S2-59", "S2-63", "S2-82")
def test_a_flow_that_the_model_decides_on_takes_over_without_another_call() -> None:
    story = Story().ready().hear("I want to return it").decides("processing", None, action("FLOW", "returns"))
    assert story.asked[0] == StartRun(workflow="returns", limits=Limits(runs=500), surface=True)
    calls = story.calls
    ended(story, "Sent back.")
    assert (story.said, story.statuses, story.asked, story.calls) == (["Sent back."], ["ready"], [], calls)


@pytest.mark.parametrize("words", ["Which SIZE do I need?", "tell me which size"])
def test_a_flow_with_a_keyword_starts_before_any_model_is_asked(words: str) -> None:
    story = Story().hear(words)
    assert story.asked[0] == StartRun(workflow="size-adviser", limits=Limits(runs=500), surface=True)
    assert (story.statuses, story.calls) == (["processing"], 0)


def test_a_flow_that_matches_exactly_needs_the_whole_message() -> None:
    assert Story().hear("hours?").asked == [CallTool(tool="opening_hours", agent="assistant")]
    assert isinstance(Story().hear("hours? please").asked[0], StartRun)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("9 to 5", ["9 to 5"]),
        ({"messages": ["9 to 5", {"text": "every day"}]}, ["9 to 5", "every day"]),
        ({"status": 200, "body": {"message": "9 to 5"}}, ["9 to 5"]),
        (None, []),
    ],
)
def test_a_flow_that_is_a_function_says_what_it_returns(value: object, said: list[str]) -> None:
    story = Story().hear("hours?").answer(ToolReturned(value=value))
    assert (story.said, story.statuses) == (said, ["ready"])


def test_the_result_of_a_flow_is_said_if_the_flow_itself_said_nothing() -> None:
    story = Story().hear("which size")
    assert ended(story, "Size M.").said == ["Size M."]


def test_a_flow_that_fails_ends_in_an_apology() -> None:
    story = Story().hear("which size").tell(RunFinished(run="s.1", outcome="failed", because="broken"))
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert Story().hear("hours?").answer(Failed(reason="down")).said == [APOLOGY]


def spoke(story: Story, ask: AskPerson | None = None, text: str = "") -> Story:
    number = len(story.given.records)
    return story.tell(ChildSpoke(command=story.given.opened(StartRun), run="child", number=number, text=text, ask=ask))


def test_what_a_flow_says_and_asks_appears_in_the_chat_and_the_reply_answers_it() -> None:
    story = Story().hear("which size")
    assert spoke(story, text="Let us see.").said == [f"#{len(story.given.records) - 1}"]
    spoke(story, AskPerson(question="Wide or narrow?", choices={"wide": "Wide", "narrow": ""}))
    asked_at = story.state.asking
    assert story.said[1] == "- wide: Wide\n- narrow"
    assert story.hear("huge").said[0].startswith("'huge' is not an answer")
    story.hear("WIDE")
    (heard,) = (one.number for one in story.given.records if one.event == Heard(text="WIDE"))
    assert story.asked[0] == AnswerChild(asked=asked_at, choice="wide", about=heard)
    assert story.answer(Said()).asked == []
    assert (ended(story, "Wide it is.").statuses, story.asked) == (["ready"], [])


def test_who_waits_for_a_flow_that_works_or_is_paused_is_told_so_once_and_again_after_the_next_message() -> None:
    story = Story().hear("which size")
    assert story.tell(TimerFired(), after=60).said == [CHECKING]
    assert story.hear("Are you there?").said == []
    assert story.tell(TimerFired(), after=60).said == [CHECKING]
    assert ended(story, "Size M.").said == ["Size M."]
    assert all(getattr(one.command, "name", "") != "flow" for one in story.given.run.open.values())  # type: ignore[union-attr]


def test_a_flow_that_waits_for_the_user_is_not_late() -> None:
    story = spoke(Story().hear("which size"), AskPerson(question="Wide?"))
    assert story.tell(TimerFired(), after=60).said == []
    assert story.hear("yes").tell(TimerFired(), after=60).said == [CHECKING]


def test_a_chat_does_not_offer_to_edit_the_document_of_a_flow() -> None:
    story = Story().hear("which size")
    choices = {"pass": "Accept it", "edit": "Change it", "feedback": ""}
    spoke(story, AskPerson(question="Is it good?", choices=choices, edit="edit"), "# Draft\n\nIs it good?")
    assert story.said[1] == "- pass: Accept it\n- feedback"
    assert story.hear("edit").said == ["'edit' needs the edited document."]


def test_a_superseded_flow_that_asks_is_at_work_again() -> None:
    story = Story().hear("which size")
    assert story.hear("and another thing").statuses == ["cancelled"]
    assert spoke(story, AskPerson(question="Wide?")).statuses == ["processing"]
    story.hear("yes")
    ended(story.answer(Said()), "Wide it is.")
    assert story.statuses[0] == "ready" and story.state.heard, "the other message is answered next"


def test_a_reply_to_a_question_that_was_answered_elsewhere_is_an_ordinary_message() -> None:
    story = Story().ready().hear("which size")
    spoke(story, AskPerson(question="Wide?"))
    story.hear("yes")
    story.tell(Answered(to=story.given.opened(AnswerChild), answer=Failed(reason="answered elsewhere", fault="person")))
    story.tell(RunFinished(run="s.1", outcome="completed", because="done"))
    assert isinstance(story.asked[0], AskAgent) and "yes" in story.prompt()


# The desk


@pytest.mark.req("S2-10", "S2-24", "S2-32", "S2-36", "S2-50", "S2-51")
def test_a_hand_over_answers_first_and_transfers_after() -> None:
    story = Story(timers=IDLE).ready().hear("A person, please")
    story.decides("transferred", "I get a colleague.", action("SYSTEM", "handoff"))
    assert (story.said, story.statuses) == (["I get a colleague."], ["transferred"])
    (question,) = story.asked
    assert isinstance(question, AskPerson) and (question.purpose, question.to) == ("handoff", "support")
    assert question.title == "shop: s1" and question.about
    assert timers(story) == {}
    assert status(story.given.run, True) == "waiting"  # type: ignore[arg-type]


HAND_OFF = BotTool("hand_off", endpoint=Endpoint("https://api.shop.example/handoff", "POST"), purpose="handoff")


def test_a_hand_over_without_words_has_those_of_the_bot() -> None:
    story = Story(bot(handover="请稍候。")).ready().hear("转人工").decides("transferred")
    assert (story.said, story.statuses) == (["请稍候。"], ["transferred"]) and isinstance(story.asked[-1], AskPerson)
    story = Story().ready().hear("A person").decides("processing", None, action("SYSTEM", "handoff"))
    assert (story.said, story.statuses) == ([HANDOVER], ["transferred"])


def test_a_hand_over_without_an_action_calls_what_the_configuration_has() -> None:
    story = Story(bot(tools=(*TOOLS, HAND_OFF))).ready().hear("A person").decides("transferred", "Yes.")
    assert story.said == ["Yes."] and story.asked == [CallTool(tool="http_request", effect="unsafe")]
    assert isinstance(story.answer(ToolReturned(value=1)).asked[0], AskPerson)


@pytest.mark.parametrize("other", [action("TOOL", "refund", id="1"), action("SYSTEM", "update_profile", age="7")])
def test_a_hand_over_with_another_action_does_both(other: dict[str, object]) -> None:
    story = Story(bot(tools=(*TOOLS, HAND_OFF))).ready().hear("A person").decides("transferred", "Yes.", other)
    if other["type"] == "TOOL":
        story.answer(ToolReturned(value="paid"))
    assert story.state.action.target == "handoff" and story.state.desk == 0
    assert isinstance(story.answer(ToolReturned(value=1)).asked[0], AskPerson)
    assert story.state.profile == ({} if other["type"] == "TOOL" else {"age": "7"})


def test_a_hand_over_under_processing_is_a_transfer() -> None:
    story = Story().ready().hear("A person").decides("processing", "One moment.", action("SYSTEM", "handoff"))
    assert story.statuses == ["transferred"]


def test_a_hand_over_calls_the_endpoint_of_the_configuration_before_the_desk() -> None:
    tool = BotTool("hand_off", endpoint=Endpoint("https://api.shop.example/handoff", "POST"), purpose="handoff")
    story = Story(bot(tools=(*TOOLS, tool))).ready().hear("A person")
    story.decides("processing", "One moment.", action("TOOL", "hand_off", type="team"))
    assert story.said == ["One moment."] and story.statuses == ["transferred"]
    assert story.asked == [CallTool(tool="http_request", effect="unsafe")]
    assert isinstance(story.answer(Failed(reason="down")).asked[0], AskPerson)


def transferred() -> Story:
    return Story(timers=IDLE).ready().hear("A person").decides("transferred", "Yes.", action("SYSTEM", "handoff"))


def test_while_a_person_has_it_the_bot_is_silent() -> None:
    story = transferred().hear("Are you there?")
    assert (story.said, story.asked, story.statuses) == ([], [], [])


def test_what_a_person_says_reaches_the_user_and_the_question_stays_on_the_desk() -> None:
    story = transferred().hear("Are you there?")
    story.answer(PersonAnswered(choice="reply", text="I am Ann.", by="ann"))
    assert story.said == [f"#{story.given.records[-3].number}"] and isinstance(story.asked[0], AskPerson)
    assert story.state.taken_by == "ann"
    assert story.hear("More.", channel="desk", by="ann").said == [f"#{story.given.records[-2].number}"]


def test_given_back_the_bot_answers_what_nobody_has_answered() -> None:
    story = transferred().answer(PersonAnswered(choice="release", by="ann"))
    assert story.statuses == ["ready"] and set(timers(story)) == {"timer-0", "timer-1"}
    story = transferred().hear("And my order?").answer(PersonAnswered(choice="release", by="ann"))
    assert story.statuses == ["ready", "processing"] and "And my order?" in story.prompt()
    answered = transferred().hear("And?").answer(PersonAnswered(choice="reply", text="Fine.", by="ann"))
    answered.answer(PersonAnswered(choice="release", by="ann"))
    assert answered.statuses == ["ready"] and "Fine." in [line.text for line in answered.state.lines]


def test_words_with_which_a_conversation_is_given_back_are_said_first() -> None:
    story = transferred().hear("Thanks!").answer(PersonAnswered(choice="release", text="Bye!", by="ann"))
    (said,) = story.said
    assert story.given.records[int(said[1:]) - 1].event.answer.text == "Bye!"
    assert story.statuses == ["ready"] and "Bye!" in [line.text for line in story.state.lines]
    assert story.asked and not any(isinstance(one, AskAgent) for one in story.asked), "the person has answered"


def test_an_answer_to_the_user_needs_words() -> None:
    ask = transferred().asked[-1]
    for words in ("", " \n"):
        with pytest.raises(UsageError, match="needs the words that the user is sent"):
            read_answer(ask, words, choice="reply", by="ann")
    assert read_answer(ask, choice="release", by="ann").choice == "release"


def test_a_person_takes_a_conversation_from_the_bot_and_from_another_person() -> None:
    story = Story().ready().hear("Hello?").tell(SessionTaken(by="ann"))
    assert story.statuses == ["transferred"] and isinstance(story.asked[-1], AskPerson)
    assert any(isinstance(one, Withdrawn) for one in story.events)
    story.tell(SessionTaken(by="bob"))
    assert story.state.taken_by == "bob" and "bob has it." in story.asked[-1].question
    assert len([o for o in story.given.run.open.values() if isinstance(o.command, AskPerson)]) == 1  # type: ignore[union-attr]


def test_a_tool_that_ends_after_a_person_has_taken_over_changes_nothing_but_the_context() -> None:
    story = Story().ready().hear("Refund").decides("processing", None, action("TOOL", "refund", id="1"))
    story.tell(SessionTaken(by="ann")).answer(ToolReturned(value="paid"))
    assert (story.said, story.asked, story.statuses) == ([], [], [])
    story.answer(PersonAnswered(choice="release", by="ann")).hear("Well?")
    assert "paid" in story.prompt()


# Doubts, and one answer without a session


def refund_in_doubt() -> Story:
    story = Story().ready().hear("Refund").decides("processing", None, action("TOOL", "refund", id="1"))
    return story.tell(Doubted(to=story.given.opened(CallTool), evidence="The process died."))


def test_a_doubt_is_told_to_the_user_and_the_question_is_on_the_desk() -> None:
    story = refund_in_doubt()
    assert (story.said, story.statuses) == ([CHECKING], ["ready"]) and isinstance(story.asked[0], AskPerson)
    story.answer(PersonAnswered(choice="happened", text="paid", by="ann"))
    assert isinstance(story.asked[0], AskAgent) and "paid" in story.prompt()
    assert "Refund" in story.prompt().split("<user_message>")[1]


def test_who_writes_while_a_doubt_is_open_is_answered_and_hears_of_it_when_it_is_resolved() -> None:
    story = refund_in_doubt().hear("Where are you?")
    assert "It is not known whether refund took effect" in story.prompt()
    assert story.decides("typing", "In Rome.").said == ["In Rome."]
    story.answer(PersonAnswered(choice="happened", text="paid", by="ann"))
    assert "Refund" in story.prompt().split("<user_message>")[1] and "refund returned: paid" in story.prompt()
    assert story.decides("typing", "It is paid.").said == ["It is paid."]


def test_a_doubt_that_is_resolved_during_a_pass_is_answered_after_it() -> None:
    story = refund_in_doubt().hear("Where are you?")
    assert story.answer(PersonAnswered(choice="happened", text="paid", by="ann")).asked == []
    story.decides("typing", "In Rome.")
    assert story.said == ["In Rome."] and "refund returned: paid" in story.prompt()
    assert "Where" not in story.prompt().split("<user_message>")[1].split("</user_message>")[0]


def test_a_call_in_doubt_is_not_made_again() -> None:
    story = refund_in_doubt().hear("Refund!").decides("processing", None, action("TOOL", "refund", id="1"))
    assert not any(isinstance(one, CallTool) for one in story.asked) and isinstance(story.asked[0], AskAgent)
    story.decides("processing", None, action("TOOL", "refund", id="1"))
    assert story.statuses == ["cancelled"]


def test_a_silent_action_in_doubt_does_not_keep_the_user_waiting() -> None:
    story = Story().ready().hear("Tag me").decides("typing", "Done.", action("TOOL", "add_tag", tag="vip"))
    story.tell(Doubted(to=story.given.opened(CallTool), evidence="It answered 502."))
    assert story.said == [] and "It is not known whether add_tag took effect" in story.prompt()
    assert story.decides("typing", "I am on it.").statuses == ["typing", "ready"]
    story.answer(PersonAnswered(choice="happened", by="ann"))
    assert (story.said, story.asked) == ([], []), "what is silent stays so"


def test_a_flow_in_doubt_says_its_words_when_it_is_resolved() -> None:
    story = Story().hear("hours?")
    story.tell(Doubted(to=story.given.opened(CallTool), evidence="It answered 502."))
    assert (story.said, story.statuses) == ([CHECKING], ["ready"])
    assert story.answer(PersonAnswered(choice="happened", text="From 9 to 5.", by="ann")).said == ["From 9 to 5."]


def test_without_a_session_the_input_is_answered_and_the_run_ends() -> None:
    story = Story()
    story.given = given(ConversationStyle(), story.bot, input="Hello")
    story.planned(decision("typing", "Hi."), asker="/1")
    run = story.given.run
    assert run is not None and run.ended is not None and run.ended.outcome == "completed"
    assert story.given.contents.results[run.ended.result] == {"content": "Welcome!\nHi."}


def test_what_comes_of_a_single_message_is_the_answer_and_not_that_it_was_checked() -> None:
    story = single()
    story.planned(decision("processing", None, action("TOOL", "refund", id="7")), asker="/1")
    story.tell(Doubted(to=story.given.opened(CallTool), evidence="It was killed."))
    assert story.said == [story.bot.checking]
    story.answer(PersonAnswered(choice="happened", text="paid", by="ann")).decides("typing", "It is paid.")
    run = story.given.run
    assert run is not None and run.ended is not None
    assert story.given.contents.results[run.ended.result] == {"content": "Welcome!\nIt is paid."}


def test_a_single_message_is_resumed_until_it_is_answered() -> None:
    story = Story()
    story.given = given(ConversationStyle(), story.bot, input="Hello")
    story.tell(RunFinished(run="plan", outcome="failed", because="no model")).answer(Failed(reason="no model"))
    run = story.given.run
    assert run is not None and run.ended is not None and story.given.style.ending(run.state).is_resumable
    story.tell(ResumeRequested())
    story.planned(decision("typing", "Hi."), asker="/1")
    run = story.given.run
    assert run is not None and run.ended is not None and run.ended.outcome == "completed"
    assert story.said == ["Hi."] and not story.given.style.ending(run.state).is_resumable


def test_without_a_session_a_person_who_gives_it_back_ends_the_run() -> None:
    story = Story()
    story.given = given(ConversationStyle(), story.bot, input="A person!")
    story.planned(decision("transferred", "Yes.", action("SYSTEM", "handoff")), asker="/1")
    story.answer(PersonAnswered(choice="reply", text="Here I am.", by="ann"))
    story.answer(PersonAnswered(choice="release", by="ann"))
    run = story.given.run
    assert run is not None and run.ended is not None
    assert story.given.contents.results[run.ended.result] == {"content": "Welcome!\nYes.\nHere I am."}


def test_the_knowledge_base_is_searched_before_the_plan_and_before_every_answer() -> None:
    story = Story(bot(knowledge="/shop/knowledge")).hear("How do I return it?")
    assert story.asked == [CallTool(tool="search_knowledge")]
    opened = story.given.run.open[story.given.opened(CallTool)]  # type: ignore[union-attr]
    arguments = arguments_for(story.given.style, opened.state, opened.command)  # type: ignore[arg-type]
    assert arguments == {"folder": "/shop/knowledge", "query": "How do I return it?", "most": 4}
    passages = {"passages": [{"source": "returns.md#Returns", "text": "Within 30 days."}]}
    story.answer(ToolReturned(value=passages))
    child = story.given.style.start_child(story.state, story.asked[0])
    assert child.arguments["passages"] == [["returns.md#Returns", "Within 30 days."]]
    story.planned(decision("typing", "Within 30 days.")).hear("And exchange?").answer(ToolReturned(value=passages))
    assert "[returns.md#Returns]\nWithin 30 days." in story.prompt()


def test_a_knowledge_base_that_cannot_be_read_does_not_keep_the_bot_from_answering() -> None:
    story = Story(bot(knowledge="/gone")).hear("Hello").answer(Failed(reason="no such folder", fault="definition"))
    assert isinstance(story.asked[0], StartRun)


@pytest.mark.parametrize("kind", ["TOOL", "SYSTEM"])
def test_a_hand_over_by_another_name_is_a_hand_over(kind: str) -> None:
    story = Story().ready().hear("A person").decides("processing", "Yes.", action(kind, "handoff_to", type="team"))
    assert story.statuses == ["transferred"] and story.decided[0].visible is False


@pytest.mark.parametrize("target", ["handoff", "transfer_to_human"])
def test_a_hand_over_that_is_declared_without_an_endpoint_is_on_the_desk(target: str) -> None:
    tools = (*TOOLS, BotTool("transfer_to_human", "Hand over.", system=True, purpose="handoff"))
    story = Story(bot(tools=tools)).ready().hear("A person").decides("transferred", "Yes.", action("SYSTEM", target))
    assert story.statuses == ["transferred"] and isinstance(story.asked[0], AskPerson)


def test_closing_that_is_declared_without_an_endpoint_closes() -> None:
    tools = (*TOOLS, BotTool("close_chat", "Close.", system=True, purpose="close_conversation"))
    story = Story(bot(tools=tools)).ready().hear("Bye").decides("ready", None, action("SYSTEM", "close_chat"))
    assert SessionClosed() in story.events and story.asked == []


def test_a_hand_over_whose_call_is_in_doubt_is_on_the_desk_as_one() -> None:
    tool = BotTool("hand_off", endpoint=Endpoint("https://api.shop.example/handoff", "POST"), purpose="handoff")
    story = Story(bot(tools=(*TOOLS, tool))).ready().hear("A person")
    story.decides("transferred", "Yes.", action("SYSTEM", "handoff"))
    story.tell(Doubted(to=story.given.opened(CallTool), evidence="It answered 500."))
    assert [one.purpose for one in story.asked if isinstance(one, AskPerson)][-1] == "handoff"
    story.tell(Answered(to=story.given.opened(CallTool), answer=ToolReturned(value=1)))
    assert story.asked == []


def test_the_result_of_a_document_is_what_its_flow_says() -> None:
    story = Story().ready().hear("which size is it?")
    story.given.contents.results["done"] = {"status": "completed", "result": "Size 42.", "title": "size"}
    story.tell(RunFinished(run="flow", outcome="completed", because="completed", result="done"))
    assert story.said == ["Size 42."]


def test_only_the_person_who_has_a_conversation_can_answer_or_release_it() -> None:
    story = transferred().tell(SessionTaken(by="ann"))
    run = story.given.run
    assert run is not None
    assert story.given.style.people.objection(run, run.state.desk, "ann") == ""
    assert "ann has this conversation" in story.given.style.people.objection(run, run.state.desk, "bob")
    assert story.given.style.people.objection(run, 1, "bob") == ""


# An outage


def single() -> Story:
    story = Story(bot())
    story.given = given(ConversationStyle(), story.bot, input="Hello")
    return story


def test_an_outage_pauses_a_single_message_and_no_session() -> None:
    for story, pauses in ((Story().hear("Hello"), False), (single(), True)):
        assert story.given.run is not None
        assert story.given.style.pauses(story.given.run) is pauses


def test_a_single_message_whose_shared_plan_met_an_outage_asks_for_one_of_its_own_once() -> None:
    story = single().tell(RunFinished(run="plan", outcome="failed", refused=True))
    assert story.asked == [StartRun(workflow=":plan", limits=Limits(calls=3))]
    story.tell(RunFinished(run="s.1", outcome="failed", refused=True))
    assert isinstance(story.asked[0], AskAgent), "without a plan"


def test_a_single_message_does_not_ask_again_for_a_plan_that_cannot_be_used() -> None:
    story = single().tell(RunFinished(run="plan", outcome="failed", because="no JSON object"))
    assert isinstance(story.asked[0], AskAgent)
