"""Who asks for a person gets one, and a built-in action is done, whatever the model or the configuration calls it."""

from pathlib import Path

import pytest

from ripstop.kernel.effects import AskPerson, CallTool, TimerFired, ToolReturned
from ripstop.styles.conversation.bots import KnownBot
from ripstop.styles.conversation.definition import HANDOVER, BotAction, BotFlow, BotTool, Endpoint, Skill, TimerRule
from ripstop.styles.conversation.events import SessionClosed
from tests.styles.conversation.bots import problems, read, said, write
from tests.styles.conversation.chat_story import FLOWS, SKILLS, TOOLS, Story, action, bot

HUMAN = BotTool("transfer_to_human", "Get a person.", system=True, purpose="handoff")
CLOSE = BotTool("close_chat", "Close.", purpose="close_conversation")
NOTE = BotTool("update_profile", "Note.", purpose="update_profile")
DESK_API = BotTool("hand_off", endpoint=Endpoint("https://api.shop.example/handoff", "POST"), purpose="handoff")


def with_skill(*tools: str) -> Story:
    skill = Skill("person", "wants a person", "Get one.", tools)
    return Story(bot(tools=(*TOOLS, HUMAN, CLOSE, NOTE), skills=(*SKILLS, skill))).ready().hear("A person!")


def with_flow(tool: str, *patterns: str, **flow: str) -> Story:
    one = BotFlow("person", "Gets a person.", "contains" if patterns else "intent", patterns, tool=tool)
    return Story(bot(tools=(*TOOLS, HUMAN, CLOSE, NOTE, DESK_API), flows=(*FLOWS, one))).ready()


@pytest.mark.req("S2-10")
@pytest.mark.parametrize("status", ["processing", "typing", "ready", "transferred"])
@pytest.mark.parametrize("kind", ["SYSTEM", "TOOL"])
@pytest.mark.parametrize("words", ["I am connecting you.", None])
def test_a_hand_over_transfers_under_every_status(status: str, kind: str, words: str | None) -> None:
    story = Story().ready().hear("A person!").decides(status, words, action(kind, "handoff"))
    assert (story.said, story.statuses) == ([words or HANDOVER], ["transferred"])
    assert isinstance(story.asked[-1], AskPerson) and story.state.desk


@pytest.mark.parametrize("status", ["processing", "typing", "ready"])
@pytest.mark.parametrize("tool", ["transfer_to_human", "handoff_to"])  # the second is not declared, and is there
def test_a_skill_whose_tool_is_a_hand_over_transfers(status: str, tool: str) -> None:
    words = "One moment." if status == "typing" else None
    story = with_skill(tool).decides(status, words, action("SKILL", "person", reason="angry"))
    assert (story.said, story.statuses) == ([words or HANDOVER], ["transferred"])
    assert isinstance(story.asked[-1], AskPerson)
    assert [(one.action, one.target, one.visible) for one in story.decided] == [("SYSTEM", tool, False)]
    assert story.state.action.params == {"reason": "angry"}


def test_a_skill_with_several_tools_transfers_if_it_is_to_call_that_one() -> None:
    story = with_skill("order_status", "transfer_to_human")
    story.decides("processing", None, action("SKILL", "person", tool="transfer_to_human"))
    assert story.statuses == ["transferred"] and story.state.action.params == {}
    other = with_skill("order_status", "transfer_to_human")
    other.decides("processing", None, action("SKILL", "person", tool="order_status"))
    assert other.asked == [CallTool(tool="order_status", agent="assistant")]
    unclear = with_skill("order_status", "transfer_to_human").decides("processing", None, action("SKILL", "person"))
    assert "as params.tool: order_status, transfer_to_human" in unclear.prompt()


def test_a_built_in_action_that_is_not_declared_does_not_replace_the_tool_of_a_skill() -> None:
    story = with_skill("order_status", "handoff_to").decides("processing", None, action("SKILL", "person"))
    assert story.asked == [CallTool(tool="order_status", agent="assistant")]


def test_a_skill_closes_and_notes() -> None:
    closed = with_skill("close_chat").decides("typing", "Bye!", action("SKILL", "person"))
    assert SessionClosed() in closed.events and (closed.said, closed.statuses) == (["Bye!"], ["typing", "ready"])
    noted = with_skill("update_profile").decides("typing", "Noted.", action("SKILL", "person", phone="7"))
    assert noted.state.profile == {"phone": "7"} and noted.said == ["Noted."]


def test_a_skill_whose_tool_is_silent_is_silent() -> None:
    story = with_skill("add_tag").decides("processing", None, action("SKILL", "person", tag="vip"))
    assert story.asked == [CallTool(tool="http_request", effect="unsafe")] and not story.state.visible
    assert "add_tag returned" not in story.answer(ToolReturned(value="secret")).prompt()
    assert "secret" not in story.prompt()


@pytest.mark.parametrize("tool", ["transfer_to_human", "handoff"])
def test_a_flow_that_is_a_hand_over_transfers(tool: str) -> None:
    story = with_flow(tool).hear("A person!").decides("processing", None, action("FLOW", "person"))
    assert (story.said, story.statuses) == ([HANDOVER], ["transferred"])
    keyword = with_flow(tool, "a person").hear("A person!")
    assert (keyword.said, keyword.statuses) == ([HANDOVER], ["processing", "transferred"]) and keyword.state.desk


def test_a_flow_that_is_a_hand_over_with_an_address_calls_it_first() -> None:
    story = with_flow("hand_off", "a person").hear("A person!")
    assert story.said == [HANDOVER] and story.asked == [CallTool(tool="http_request", effect="unsafe")]
    assert isinstance(story.answer(ToolReturned(value=1)).asked[0], AskPerson)


def test_a_flow_closes_and_notes() -> None:
    assert SessionClosed() in with_flow("close_chat", "bye").hear("Bye!").events
    noted = (
        with_flow("update_profile").hear("I am Ann").decides("processing", None, action("FLOW", "person", name="Ann"))
    )
    assert noted.state.profile == {"name": "Ann"} and noted.decides("typing", "Hello Ann.").said == ["Hello Ann."]


def test_what_a_flow_says_is_said_though_its_tool_is_silent_otherwise() -> None:
    executor = BotTool("flow_executor", endpoint=Endpoint("https://api.shop.example/flow", "POST"), system=True)
    one = BotFlow("hours", "Opening hours.")
    story = Story(bot(tools=(executor,), flows=(one,))).ready().hear("When?")
    story.decides("processing", None, action("FLOW", "hours"))
    assert story.answer(ToolReturned(value="At nine.")).said == ["At nine."]


def test_a_timer_with_a_skill_that_is_a_hand_over_transfers() -> None:
    skill = Skill("person", "wants a person", "Get one.", ("transfer_to_human",))
    rule = TimerRule(60, "A colleague will look.", BotAction("SKILL", "person", {"reason": "idle"}))
    story = Story(bot(tools=(*TOOLS, HUMAN), skills=(skill,), timers=(rule,))).ready()
    story.tell(TimerFired(), after=60)
    assert (story.said, story.statuses) == (["A colleague will look."], ["processing", "transferred"])
    assert story.state.action == BotAction("SYSTEM", "transfer_to_human", {"reason": "idle"})


def test_a_built_in_action_that_a_skill_or_a_flow_names_needs_no_declaration(tmp_path: Path) -> None:
    config = {
        "name": "Shop",
        "sop": "Help.",
        "skills": [{"id": "person", "action": "Get one.", "tools": ["handoff_to"]}],
        "flows": [{"id": "bye", "type": "keyword", "keywords": ["bye"], "tool": "end_chat"}],
    }
    file = write(tmp_path, config)
    assert "not declared" not in said(problems(tmp_path, config))
    known = KnownBot(None, read(file), None, "")  # type: ignore[arg-type]  # only its bot is looked at
    assert known.own_tools == []
