"""A board's agent that called tools and was stopped: its turn continues, and no call is made again."""

from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolCall, ToolReturned
from ripstop.kernel.events import ResumeRequested, TurnRestarted
from ripstop.styles.blackboard.definition import Specialist
from ripstop.styles.blackboard.state import ReportVerified
from ripstop.testing import Given
from tests.styles.blackboard.boards import (
    GOOD,
    asked,
    begun,
    board,
    checked,
    decided,
    ended,
    prompt,
    said,
    tell,
    written,
)

PAYS = AgentReplied(calls=(ToolCall(id="1", tool="pay", arguments={"euros": 7}),))


def paid() -> Given:
    """CHECKER has paid and is asked for its next reply."""
    agents = (Specialist("CHECKER", "You check.", "checker", tools=("pay",)),)
    story = begun(replace(board(), agents=agents))
    tell(story, decided("CHECKER"), written(), PAYS, ToolReturned(value="paid"))
    return story


def payments(story: Given) -> int:
    asked_for = (getattr(record.event, "command", None) for record in story.records)
    return sum(isinstance(command, CallTool) and command.tool == "pay" for command in asked_for)


def is_accepted(story: Given) -> bool:
    return any(isinstance(record.event, ReportVerified) for record in story.records)


def test_a_turn_whose_model_call_failed_continues_behind_its_tool_calls() -> None:
    story = paid()
    story.tell(Failed(reason="no key"))
    assert ended(story).outcome == "failed"
    events = story.tell(ResumeRequested())
    assert not any(isinstance(event, TurnRestarted) for event in events)
    question = asked(events)
    assert isinstance(question, AskAgent) and question.continues and question.agent == "CHECKER"
    assert "paid" in prompt(story)
    tell(story, said(GOOD.format(1)), checked())
    assert is_accepted(story) and payments(story) == 1


def test_after_accepted_edits_the_turn_continues_behind_its_tool_calls() -> None:
    story = paid()
    story.tell(Failed(reason="no key"))
    assert asked(story.tell(ResumeRequested(accept_edits=True))) == CallTool(tool="board_write")
    question = asked(story.tell(written()))
    assert isinstance(question, AskAgent) and question.continues
    assert asked(story.tell(PAYS)).tool == "pay", "its tools are its own again"
    tell(story, ToolReturned(value="paid twice"), said(GOOD.format(1)), checked())
    assert is_accepted(story)


def test_an_agent_whose_report_was_refused_is_told_so_and_keeps_its_tool_calls() -> None:
    story = paid()
    tell(story, said("no fields"), checked(), written())
    assert "is refused" in ended(story).because
    assert asked(story.tell(ResumeRequested())) == CallTool(tool="board_check")
    question = asked(story.tell(checked()))
    assert isinstance(question, AskAgent) and question.continues
    assert "paid" in prompt(story) and "Your report could not be used" in prompt(story)
    tell(story, said(GOOD.format(1)), checked())
    assert is_accepted(story) and payments(story) == 1


def test_a_report_that_is_refused_again_stops_the_run_again() -> None:
    story = paid()
    tell(story, said("no fields"), checked(), written())
    story.tell(ResumeRequested())
    tell(story, checked(), said("still none"), checked(), written())
    assert "is refused" in ended(story).because


def test_a_report_mended_on_disk_is_taken_without_asking_an_agent_that_called_tools() -> None:
    story = paid()
    tell(story, said("no fields"), checked(), written())
    story.tell(ResumeRequested())
    story.tell(checked(report=GOOD.format(1)))
    assert is_accepted(story)
