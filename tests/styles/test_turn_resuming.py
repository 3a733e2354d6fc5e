"""A turn that was stopped in its middle: what was recorded stays, and only what was cut off is asked for again."""

import msgspec
import pytest

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    CallTool,
    Failed,
    Limits,
    PersonAnswered,
    TimerFired,
    ToolCall,
    ToolReturned,
)
from ripstop.kernel.events import Answered, ResumeRequested, TurnRestarted
from ripstop.kernel.resuming import CONTINUE
from ripstop.styles.graph.definition import Agent, ExitCondition, Graph
from ripstop.styles.turn import Corrected
from ripstop.testing import given
from ripstop.testing.scenarios import Given
from tests.styles.graph.test_graph import STYLE, graph, says, state

SAVES = ExitCondition(condition="error_occurred", action="save_and_end")


def clerk(**more: object) -> Graph:
    made = graph(state("a"), **more)
    tools = ("pay", "mail", "read_file", "list_files")
    return msgspec.structs.replace(made, agents=(Agent(name="agent_a", type="ask", tools=tools),))


def calls(*tools: str) -> AgentReplied:
    return AgentReplied(calls=tuple(ToolCall(id=tool, tool=tool, arguments={"n": 1}) for tool in tools))


def tools_called(story: Given) -> list[str]:
    asked = (getattr(record.event, "command", None) for record in story.records)
    return [command.tool for command in asked if isinstance(command, CallTool)]


def heard_by_the_agent(story: Given) -> list[str]:
    """The tool results in the prompt of the open model call."""
    assert story.run is not None
    opened = story.run.open[story.opened(AskAgent)]
    assert isinstance(opened.command, AskAgent)
    return [message.text for message in STYLE.render(opened.state, opened.command).messages if message.role == "tool"]


@pytest.mark.parametrize("then", ["ask", "end"])
def test_after_the_seconds_limit_a_turn_continues_behind_its_tool_calls(then: str) -> None:
    story = given(STYLE, clerk(guards={"then": then}), limits=Limits(seconds=9.0))
    for answer in (calls("pay", "mail"), ToolReturned(value="paid"), ToolReturned(value="sent")):
        story.tell(answer, after=0.1)
    story.tell(TimerFired(), after=9.0)
    told = story.when(ResumeRequested(raises={"seconds": 60.0}))
    assert not [event for event in told.decided if isinstance(event, TurnRestarted)]
    (asked,) = [command for command in told.commands if isinstance(command, AskAgent)]
    assert asked.continues == 2
    assert heard_by_the_agent(story) == ["paid", "sent"]
    assert (told.run.spent.turns, told.run.state.turns, told.run.state.counts) == (1, 1, {"a": 1})
    story.when(says()).then_ends("completed")
    assert tools_called(story) == ["pay", "mail"]


def test_a_call_that_was_cut_off_is_made_again_once_a_person_agrees_and_the_others_are_not() -> None:
    story = given(STYLE, clerk(), limits=Limits(seconds=9.0))
    for answer in (calls("pay", "mail"), ToolReturned(value="paid")):
        story.tell(answer, after=0.1)
    cut_off = story.opened(CallTool)
    story.tell(TimerFired(), after=9.0)
    story.tell(Answered(to=cut_off, answer=Failed(reason="It was cut off.", fault="ours", uncertain=True)))
    told = story.when(ResumeRequested(raises={"seconds": 60.0}))
    assert not [command for command in told.commands if isinstance(command, (AskAgent, CallTool))], "a person first"
    told = story.when(PersonAnswered(choice=CONTINUE))
    assert [command.tool for command in told.commands if isinstance(command, CallTool)] == ["mail"]
    story.when(ToolReturned(value="sent"))
    assert heard_by_the_agent(story) == ["paid", "sent"]
    assert tools_called(story) == ["pay", "mail", "mail"]


def test_calls_that_were_not_yet_made_are_made_after_the_one_that_was_cut_off() -> None:
    story = given(STYLE, clerk(), limits=Limits(seconds=9.0))
    story.tell(calls("read_file", "list_files", "mail"), after=0.1)
    story.tell(Answered(to=story.opened(CallTool) + 1, answer=ToolReturned(value="a list")), after=0.1)
    story.tell(TimerFired(), after=9.0)
    story.tell(ResumeRequested(raises={"seconds": 60.0}))
    story.tell(ToolReturned(value="a file"), after=0.1)
    story.tell(ToolReturned(value="sent"), after=0.1)
    assert tools_called(story) == ["read_file", "list_files", "read_file", "mail"]
    assert heard_by_the_agent(story) == ["a file", "a list", "sent"]


def test_a_saved_turn_whose_model_call_failed_continues_behind_its_tool_calls() -> None:
    story = given(STYLE, clerk(exit_conditions=(SAVES,)), calls("pay"), ToolReturned(value="paid"))
    story.when(Failed(reason="no key")).then_ends("failed", "Saved")
    (asked,) = story.when(ResumeRequested()).commands
    assert isinstance(asked, AskAgent) and asked.continues == 2
    assert heard_by_the_agent(story) == ["paid"]
    story.when(says()).then_ends("completed")


def test_an_agent_whose_reply_was_an_error_is_told_so_and_keeps_its_tool_calls() -> None:
    story = given(STYLE, clerk(exit_conditions=(SAVES,), reasks=0), calls("pay"), ToolReturned(value="paid"))
    story.when(AgentReplied(text="Done.")).then_ends("failed", "Saved")
    told = story.when(ResumeRequested())
    assert [event for event in told.decided if isinstance(event, Corrected)]
    assert heard_by_the_agent(story) == ["paid"]
    story.when(says()).then_ends("completed")
    assert tools_called(story) == ["pay"]


def test_a_turn_without_a_tool_call_begins_again() -> None:
    story = given(STYLE, clerk(), limits=Limits(seconds=9.0))
    story.tell(TimerFired(), after=9.0)
    told = story.when(ResumeRequested(raises={"seconds": 60.0}))
    assert [event for event in told.decided if isinstance(event, TurnRestarted)]
    (asked,) = [command for command in told.commands if isinstance(command, AskAgent)]
    assert asked.continues is None
