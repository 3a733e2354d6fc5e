"""Passes of a session: every arrow of the design's diagram, and every row of the readings."""

import json

import pytest

from ripstop.kernel.effects import (
    AskAgent,
    CallTool,
    Failed,
    Limits,
    RunFinished,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.events import Asked, Warned, Withdrawn
from ripstop.kernel.style import arguments_for
from ripstop.styles.conversation.definition import APOLOGY, CHECKING
from ripstop.styles.conversation.events import PassSuperseded, PlanMissing, ProfileUpdated, SessionClosed
from ripstop.styles.conversation.prompts import MOST_HISTORY
from tests.styles.conversation.chat_story import CONFIG, Story, action, bot, decision


@pytest.mark.req("S2-1", "S2-2", "S2-38", "S2-39", "S2-40", "S2-42", "S2-43", "S2-71")
def test_the_first_message_of_a_new_configuration_plans_and_is_acknowledged() -> None:
    story = Story()
    assert story.state.hash == "" and story.state.need_greeting and story.state.status == "ready"
    story.hear("Hello")
    assert story.asked == [
        StartRun(workflow=":plan", name=f"plan:shop:{story.bot.hash}", limits=Limits(calls=3)),
        SetTimer(name="plan", after=60.0),
    ]
    story.planned(decision("typing", "Hi."))
    assert story.statuses == ["acknowledged", "processing", "typing", "ready"]
    assert story.state.hash == story.bot.hash


@pytest.mark.req("S2-4", "S2-5", "S2-46", "S2-47", "S2-48", "S2-72", "S2-25")
def test_the_decision_that_comes_with_the_plan_is_the_first_one() -> None:
    story = Story().hear("Hello").planned(decision("typing", "Hi."))
    assert story.calls == 0  # besides the planning call
    assert story.said == ["Welcome!", "Hi."]
    assert story.state.need_greeting is False


@pytest.mark.req("S2-3", "S2-16", "S2-44", "S2-73")
def test_a_later_message_uses_the_cached_plan_and_one_call() -> None:
    story = Story().ready().hear("And now?")
    assert story.asked == [AskAgent(agent="assistant", context=story.asked[0].context, longest=MOST_HISTORY)]
    assert story.statuses == ["processing"]
    story.decides("typing", "Now this.")
    assert (story.said, story.statuses) == (["Now this."], ["typing", "ready"])


@pytest.mark.req("S2-41", "S2-91")
def test_a_session_that_did_not_ask_for_the_plan_decides_for_itself() -> None:
    story = Story().hear("Hello").planned(decision("typing", "Hi."), asker="another/2")
    assert story.said == ["Welcome!"]
    assert story.calls == 1
    assert story.decides("typing", "Hi, too.").said == ["Hi, too."]


@pytest.mark.req("S2-46")
def test_without_a_greeting_nothing_is_said_before_the_answer() -> None:
    plain = {key: value for key, value in CONFIG.items() if key != "greeting"}
    story = Story(bot(config=plain)).hear("Hello").planned(decision("typing", "Hi."))
    assert story.said == ["Hi."]
    assert story.state.need_greeting is True


@pytest.mark.req("S2-42")
def test_a_changed_configuration_plans_and_greets_again() -> None:
    story = Story().ready()
    story.redefine(bot(config={**CONFIG, "sop": "Help more."})).hear("Hello again")
    assert isinstance(story.asked[0], StartRun)
    story.planned(decision("typing", "Hi."))
    assert story.said == ["Welcome!", "Hi."]
    assert story.statuses[0] == "acknowledged"


def test_a_bot_that_greets_once_does_not_greet_again_after_a_change() -> None:
    story = Story(bot(greet_once=True)).ready()
    story.redefine(bot(config={**CONFIG, "sop": "Help more."}, greet_once=True)).hear("Hello again")
    assert story.planned(decision("typing", "Hi.")).said == ["Hi."]


@pytest.mark.req("S2-45")
def test_a_new_plan_for_the_same_configuration_keeps_greeting_and_status() -> None:
    story = Story().ready()
    story.redefine(bot(generation=2)).hear("Hello again")
    assert story.asked[0].name == f"plan:shop:{story.bot.hash}:2"
    assert story.planned(decision("typing", "Hi.")).said == ["Hi."]


FAILED_PLAN = RunFinished(run="plan", outcome="failed", because="no JSON object")
CHANGED = {**CONFIG, "sop": "Help more."}


def test_without_a_plan_the_procedure_as_it_is_written_serves() -> None:
    story = Story().hear("Hello").tell(FAILED_PLAN)
    assert story.said == ["Welcome!"] and isinstance(story.asked[0], AskAgent)
    assert "<plan>\nHelp.\n</plan>" in story.prompt()
    assert story.decides("typing", "Hi.").said == ["Hi."]
    story.hear("Hello?")
    assert isinstance(story.asked[0], StartRun), "the next message asks for the plan again"
    assert story.planned(decision("typing", "Yes?")).said == ["Yes?"], "the user was greeted already"


def test_without_a_new_plan_the_old_one_serves() -> None:
    story = Story().ready().redefine(bot(config=CHANGED)).hear("Hello").tell(FAILED_PLAN)
    assert "<plan>\n1. Help.\n</plan>" in story.prompt()
    assert PlanMissing("the configuration could not be planned: no JSON object") in story.events
    assert story.said == ["Welcome!"], "a changed configuration greets again"


def test_without_plan_and_procedure_there_is_an_apology_and_the_plan_is_asked_for_again() -> None:
    bare = {key: value for key, value in CONFIG.items() if key != "sop"}
    story = Story(bot(config=bare)).hear("Hello").tell(FAILED_PLAN)
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert isinstance(story.hear("Hello?").asked[0], StartRun)


def test_who_waits_too_long_for_a_plan_is_told_and_answered_without_it() -> None:
    story = Story().hear("Hello").tell(TimerFired(), after=60)
    assert story.said[0] == CHECKING and isinstance(story.asked[-1], AskAgent)
    assert story.decides("typing", "Hi.").said == ["Hi."]
    story.hear("And now?").planned()
    assert story.statuses == ["acknowledged", "processing"] and "<plan>\n1. Help.\n</plan>" in story.prompt()


def test_a_message_while_a_plan_is_made_cancels_nothing() -> None:
    story = Story().hear("Hello").hear("Anyone?")
    assert story.statuses == []
    story.planned(decision("typing", "Hi."))
    assert story.statuses == ["acknowledged", "processing"]
    message = story.prompt().split("<user_message>")[1]
    assert "Hello" in message and "Anyone?" in message


# Actions


@pytest.mark.req("S2-6", "S2-7", "S2-11", "S2-28", "S2-34", "S2-49", "S2-54", "S2-58", "S2-60")
def test_a_tool_is_called_and_its_result_is_in_the_next_prompt() -> None:
    story = Story().ready().hear("Where is my order?")
    story.decides("processing", None, action("TOOL", "order_status", id="A1"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]
    story.answer(ToolReturned(value={"state": "shipped"}))
    assert isinstance(story.asked[0], AskAgent)
    assert 'order_status returned: {"state":"shipped"}' in story.prompt()
    assert story.decides("typing", "It was shipped.").said == ["It was shipped."]


@pytest.mark.req("S2-12", "S2-52", "S2-21")
def test_typing_is_announced_before_the_answer_and_ready_after_it() -> None:
    story = Story().ready().hear("Hm?").decides("typing", "Yes.")
    kinds = [
        type(one.command).__name__ if isinstance(one, Asked) else getattr(one, "status", "") for one in story.events
    ]
    assert [one for one in kinds if one][:3] == ["typing", "Say", "ready"]


@pytest.mark.req("S2-27", "S2-62")
def test_a_skill_calls_its_tool() -> None:
    story = Story().ready().hear("My order").decides("processing", None, action("SKILL", "order", id="A1"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]


def test_a_skill_without_tools_gives_the_model_its_instruction() -> None:
    story = Story().ready().hear("Which one?").decides("processing", None, action("SKILL", "advice"))
    assert "Recommend the blue one." in story.prompt()


def test_a_skill_with_several_tools_is_told_which_with_its_params() -> None:
    story = Story().ready().hear("Both").decides("processing", None, action("SKILL", "both", tool="order_status"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]
    story = Story().ready().hear("Both").decides("processing", None, action("SKILL", "both"))
    assert "order_status, refund" in story.prompt()


def test_an_endpoint_is_called_with_what_the_configuration_says_and_the_model_gave() -> None:
    story = Story().ready().hear("Refund!").decides("processing", None, action("TOOL", "refund", id="A1"))
    assert story.asked == [CallTool(tool="http_request", effect="unsafe")]
    opened = story.given.run.open[story.given.opened(CallTool)]  # type: ignore[union-attr]
    arguments = arguments_for(story.given.style, opened.state, opened.command)  # type: ignore[arg-type]
    assert arguments["url"] == "https://api.shop.example/refund"
    assert arguments["params"] == {"id": "A1"} and arguments["variables"]["conversationId"] == "s1"


def test_an_endpoint_that_only_reads_is_pure() -> None:
    story = Story().ready().hear("Look!").decides("processing", None, action("TOOL", "lookup", id="1"))
    assert story.asked == [CallTool(tool="http_request", effect="pure")]


@pytest.mark.parametrize("kind", ["TOOL", "SKILL", "FLOW"])
def test_an_unknown_target_is_told_to_the_model_as_a_result(kind: str) -> None:
    story = Story().ready().hear("Do it").decides("processing", None, action(kind, "fly_to_the_moon"))
    assert "fly_to_the_moon" in story.prompt() and "there are:" in story.prompt()


def test_a_failing_tool_is_told_to_the_model_and_bounded() -> None:
    story = Story(bot(max_iterations=3)).ready().hear("Order?")
    for number in range(3):
        story.decides("processing", None, action("TOOL", "order_status", id=number))
        story.answer(Failed(reason="The service is down."))
        assert story.statuses or "The service is down." in story.prompt()
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    assert any(isinstance(one, Warned) and "limit of 3 decisions" in one.text for one in story.events)


def test_only_tools_that_the_configuration_names_can_be_called() -> None:
    story = Story().ready().hear("Write").decides("processing", None, action("TOOL", "write_file", path="x"))
    assert not any(isinstance(one, CallTool) for one in story.asked)


@pytest.mark.req("S2-84")
def test_processing_may_say_something_on_the_way() -> None:
    story = Story().ready().hear("Order?")
    story.decides("processing", "One moment.", action("TOOL", "order_status"))
    assert story.said == ["One moment."]


REFUND = action("TOOL", "refund", id="1")


@pytest.mark.req("S2-52")
def test_an_action_beside_an_answer_is_done_once_and_then_the_answer_is_said() -> None:
    story = Story().ready().hear("Refund me").decides("typing", "It is paid back.", REFUND)
    assert (story.said, story.asked, story.statuses) == ([], [CallTool(tool="http_request", effect="unsafe")], [])
    story.answer(ToolReturned(value="paid"))
    assert (story.said, story.statuses) == (["It is paid back."], ["typing", "ready"])
    assert story.asked == [] and story.calls == 1


def test_an_answer_is_not_said_if_the_action_beside_it_fails() -> None:
    story = Story().ready().hear("Refund me").decides("typing", "It is paid back.", REFUND)
    story.answer(Failed(reason="no such order"))
    assert story.said == [] and isinstance(story.asked[0], AskAgent) and "no such order" in story.prompt()
    assert story.decides("typing", "I cannot find it.").said == ["I cannot find it."]


def test_the_decision_with_the_plan_can_have_an_action_beside_its_answer() -> None:
    story = Story().hear("Refund me").planned(decision("typing", "It is paid back.", REFUND))
    assert story.said == ["Welcome!"]
    assert story.answer(ToolReturned(value="paid")).said == ["It is paid back."]


def test_the_same_call_is_made_once_in_a_pass() -> None:
    story = Story().ready().hear("Refund me").decides("processing", None, REFUND)
    story.answer(ToolReturned(value="paid"))
    story.decides("processing", "One moment.", REFUND)
    assert not any(isinstance(one, CallTool) for one in story.asked) and story.said == []
    assert "refund was not called again" in story.prompt() and story.prompt().count("refund returned: paid") == 2
    story.decides("processing", None, REFUND)
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])
    calls = [one.event for one in story.given.records if isinstance(one.event, Asked)]
    assert sum(isinstance(one.command, CallTool) for one in calls) == 1


def test_the_same_call_as_a_skill_and_with_other_params() -> None:
    story = Story().ready().hear("Order?").decides("processing", None, action("TOOL", "order_status", id="1"))
    story.answer(ToolReturned(value="sent")).decides("processing", None, action("SKILL", "order", id="1"))
    assert not any(isinstance(one, CallTool) for one in story.asked)
    story.decides("processing", None, action("SKILL", "order", id="2"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]
    story.answer(ToolReturned(value="lost")).decides("typing", "Sent, and lost.")
    story.hear("Again?").decides("processing", None, action("TOOL", "order_status", id="1"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")], "in another pass it can be made again"


def test_a_call_with_the_same_numbers_in_other_words_is_the_same_call() -> None:
    first = action("TOOL", "refund", id=1, amounts={"net": 100, "tax": [7]})
    again = action("TOOL", "refund", amounts={"tax": [7.0], "net": 1e2}, id=1.0)
    story = Story().ready().hear("Refund me").decides("processing", None, first).answer(ToolReturned(value="paid"))
    assert not any(isinstance(one, CallTool) for one in story.decides("processing", None, again).asked)
    for number in (True, "1", 1.5):
        other = action("TOOL", "refund", id=number, amounts={"net": 100, "tax": [7]})
        paid = Story().ready().hear("Refund me").decides("processing", None, first).answer(ToolReturned(value="paid"))
        assert any(isinstance(one, CallTool) for one in paid.decides("processing", None, other).asked)


def test_a_call_without_params_is_the_same_as_a_skill_and_by_its_name() -> None:
    story = Story().ready().hear("Order?").decides("processing", None, action("SKILL", "order", tool="order_status"))
    story.answer(ToolReturned(value="sent")).decides("processing", None, action("TOOL", "order_status"))
    assert not any(isinstance(one, CallTool) for one in story.asked)


def test_an_answer_that_repeats_a_call_is_said_unless_the_call_has_failed() -> None:
    story = Story().ready().hear("Refund me").decides("processing", None, REFUND).answer(ToolReturned(value="paid"))
    assert story.decides("typing", "It is paid back.", REFUND).said == ["It is paid back."]
    story = Story().ready().hear("Refund me").decides("processing", None, REFUND).answer(Failed(reason="no"))
    assert story.decides("typing", "It is paid back.", REFUND).said == []


# Bounds and contract


@pytest.mark.req("S2-61")
def test_two_decisions_in_a_row_to_go_on_without_an_action_end_the_pass() -> None:
    story = Story().ready().hear("Hm").decides("processing")
    assert isinstance(story.asked[0], AskAgent)
    story.decides("processing")
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])


@pytest.mark.req("S2-61")
def test_a_pass_is_bounded_by_its_number_of_decisions() -> None:
    story = Story(bot(max_iterations=4)).ready().hear("Loop")
    for number in range(4):
        story.decides("processing", None, action("SKILL", "advice", n=number))
    assert story.statuses == ["cancelled"]
    assert story.calls == 4


@pytest.mark.req("S2-87", "S2-88", "S2-23")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (decision("typing"), "needs a 'response'"),
        (decision("ready", "Bye"), "must be null"),
        (decision("sleeping"), "must be one of"),
        ({"action": None}, "no JSON object"),
        ("not a word of JSON", "no JSON object"),
        (decision("processing", None, action("MAGIC", "x")), "must be one of SKILL"),
        (decision("processing", None, {"type": "TOOL", "target": 7}), "must be a text"),
        (decision("processing", None, {"type": "TOOL", "target": "order_status", "params": [1]}), "must be an object"),
    ],
)
def test_a_decision_that_breaks_the_contract_is_asked_for_once_more(reply: object, problem: str) -> None:
    wrong = reply if isinstance(reply, str) else json.dumps(reply)
    story = Story().ready().hear("Hello").says(wrong)
    assert isinstance(story.asked[0], AskAgent) and problem in story.prompt()
    assert story.decides("typing", "Better.").said == ["Better."]
    story.hear("Again").says(wrong).says(wrong)
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])


def test_a_broken_decision_of_the_planner_cancels_the_pass_and_keeps_the_plan() -> None:
    story = Story().hear("Hello").planned(problem="'typing' needs a 'response'")
    assert story.said == ["Welcome!", APOLOGY]
    assert story.statuses == ["acknowledged", "processing", "cancelled"]
    assert story.hear("Hello?").calls == 1


def test_a_model_that_fails_leads_to_an_apology() -> None:
    story = Story().ready().hear("Hello").answer(Failed(reason="out of reach"))
    assert (story.said, story.statuses) == ([APOLOGY], ["cancelled"])


# Silence


@pytest.mark.req("S2-13", "S2-53", "S2-22")
def test_ready_ends_the_pass_without_a_word() -> None:
    story = Story().ready().hear("ok").decides("ready")
    assert (story.said, story.statuses) == ([], ["ready"])


@pytest.mark.req("S2-30", "S2-33", "S2-35", "S2-64", "S2-9")
def test_a_silent_action_is_in_the_journal_and_its_effect_is_known_at_once() -> None:
    story = Story().ready().hear("My new number is 555 and where is my order?")
    story.decides("processing", None, action("SYSTEM", "update_profile", number="0555"))
    assert ProfileUpdated(values={"number": "0555"}) in story.events
    assert story.decided[0].visible is False
    known, conversation = story.prompt().split("<conversation>", 1)
    assert "update_profile" not in conversation and "0555" not in conversation
    assert "<known>\nWhat is known of this user:\nnumber: 0555\n</known>" in known
    assert story.decides("typing", "Done.").said == ["Done."]


def test_a_silent_endpoint_leaves_no_trace_unless_it_fails() -> None:
    story = Story().ready().hear("Hello").decides("processing", None, action("TOOL", "add_tag", tag="vip"))
    assert story.decided[0].action == "SYSTEM" and not story.decided[0].visible
    story.answer(ToolReturned(value={"tags": ["vip"]}))
    assert "vip" not in story.prompt()
    story = Story().ready().hear("Hello").decides("typing", "Updated.", action("TOOL", "add_tag", tag="vip"))
    story.answer(Failed(reason="the tag service is down"))
    assert story.said == [] and "the tag service is down" in story.prompt()
    assert story.decides("typing", "I could not do that.").said == ["I could not do that."]


@pytest.mark.req("S2-31")
@pytest.mark.parametrize(("status", "words"), [("ready", None), ("processing", None), ("typing", "Bye!")])
def test_closing_cancels_the_timers_and_the_next_message_opens_again(status: str, words: str | None) -> None:
    story = Story(timers=[{"delay": 60, "message": "Still there?"}]).ready()
    story.hear("Bye").decides(status, words, action("SYSTEM", "close_conversation"))
    assert SessionClosed() in story.events and story.statuses[-1] == "ready"
    assert story.state.closed and not any(isinstance(o.command, SetTimer) for o in story.given.run.open.values())  # type: ignore[union-attr]
    story.hear("Hello again")
    assert not story.state.closed and isinstance(story.asked[0], AskAgent)


# A new message during a pass


def test_a_new_message_supersedes_the_pass_and_both_are_answered_in_one_context() -> None:
    story = Story().ready().hear("First")
    story.hear("Second")
    assert any(isinstance(one, Withdrawn) for one in story.events)
    assert story.statuses == ["cancelled", "processing"]
    message = story.prompt().split("<user_message>")[1]
    assert "First" in message and "Second" in message
    assert story.decides("typing", "Both.").said == ["Both."]


def test_a_tool_at_work_is_awaited_before_the_next_pass_begins() -> None:
    story = Story().ready().hear("Refund").decides("processing", None, action("TOOL", "refund", id="1"))
    story.hear("Faster!")
    assert story.asked == [] and PassSuperseded() in story.events and story.statuses == ["cancelled"]
    story.hear("Faster!!")
    assert story.asked == []
    story.answer(ToolReturned(value="paid back"))
    assert isinstance(story.asked[0], AskAgent)
    prompt = story.prompt()
    assert "paid back" in prompt and "Faster!" in prompt and "Faster!!" in prompt


def test_in_a_queue_messages_are_answered_one_pass_after_the_other() -> None:
    story = Story(bot(on_new_message="queue")).ready().hear("First").hear("Second")
    assert story.asked == [] and story.statuses == []
    story.decides("typing", "One.")
    assert story.said == ["One."] and isinstance(story.asked[0], AskAgent)
    assert story.decides("typing", "Two.").said == ["Two."]


def test_a_pass_of_a_queue_knows_only_its_own_message() -> None:
    story = Story(bot(on_new_message="queue")).ready().hear("First").hear("Second").hear("Third")
    story.decides("typing", "One.")
    assert "Second" in story.prompt().split("<user_message>")[1] and "Third" not in story.prompt()
    story.decides("typing", "Two.")
    assert "Third" in story.prompt().split("<user_message>")[1]
    assert story.decides("typing", "Three.").said == ["Three."] and story.state.unanswered == ()


def test_a_queue_has_the_whole_limit_of_decisions_for_each_message() -> None:
    story = Story(bot(on_new_message="queue", max_iterations=2)).ready().hear("First").hear("Second")
    for _ in range(2):
        story.decides("processing", None, action("SKILL", "advice"))
        assert story.decides("typing", "Done.").said == ["Done."]


def test_a_keyword_in_a_queue_starts_its_flow_and_leaves_the_others_to_the_model() -> None:
    story = Story(bot(on_new_message="queue")).ready().hear("First").hear("which size is it?").hear("Third")
    story.decides("typing", "One.")
    assert [one.workflow for one in story.asked if isinstance(one, StartRun)] == ["size-adviser"]
    story.tell(RunFinished(run="flow", outcome="completed", because="done"))
    assert "Third" in story.prompt().split("<user_message>")[1]


def test_a_message_during_planning_makes_the_decision_that_comes_with_the_plan_stale() -> None:
    story = Story().hear("Hello").hear("I mean: hi")
    story.planned(decision("typing", "Only to the first."), asker="s1/2")
    assert story.said == ["Welcome!"] and story.calls == 1
    assert "I mean: hi" in story.prompt()


def test_many_results_do_not_push_the_message_out_of_the_prompt() -> None:
    story = Story(bot(max_iterations=100)).ready().hear("The one question")
    for number in range(90):
        story.decides("processing", None, action("SKILL", "advice", n=number))
    assert "The one question" in story.prompt() and len(story.state.lines) <= 61
