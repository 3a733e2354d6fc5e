"""Boards, and the answers that stories about them are made of."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, CallTool, ToolReturned
from ripstop.kernel.events import Asked, Ended, Event
from ripstop.kernel.style import arguments_for
from ripstop.kernel.text_limits import plain
from ripstop.styles.blackboard.calls import ChangedFile, CheckedBoard, ClaimResult, OpenedBoard, WrittenBoard
from ripstop.styles.blackboard.definition import Board, ReportRules, Specialist, VerificationPolicy
from ripstop.styles.blackboard.kit import KIT
from ripstop.testing import Given, given

RULES = ReportRules(
    apply_to=("CHECKER",),
    require_verdict=True,
    verdict_prefix="结论：",
    verdict_allowed=("PASS", "FAIL"),
    blocker_prefix="阻塞：",
    blocker_clear_value="无",
)
PLAN = "# Plan\n\n### M1-T1: Write it\n- status: TODO\n- note: test_required\n\n### M1-T2: Mend it\n- status: TODO\n"

GOOD = "iteration: {}\n结论：PASS\n阻塞：无\n"


def board(policy: VerificationPolicy | None = None, **changes: Any) -> Board:
    agents = (Specialist("MAKER", "You make.", "maker"), Specialist("CHECKER", "You check.", "checker"))
    made = Board("b", "/b", Specialist("MAIN", "You decide.", "main"), agents, policy or VerificationPolicy(RULES))
    return replace(made, **changes)


def decided(next_agent: Any = "MAKER", reason: Any = "because", **more: Any) -> AgentReplied:
    return AgentReplied(text=msgspec.json.encode({"next_agent": next_agent, "reason": reason, **more}).decode())


def said(text: str) -> AgentReplied:
    return AgentReplied(text=text)


def opened(
    iteration: int = 0, plan: str = PLAN, history: str = "", left_out: int = 0, blocking: Mapping[str, str] = {}
) -> ToolReturned:
    return _returned(OpenedBoard("d0", plan, history, left_out, iteration, dict(blocking)))


def written(digest: str = "d") -> ToolReturned:
    return _returned(WrittenBoard(digest=digest))


def checked(*evidence: ClaimResult, report: str | None = None) -> ToolReturned:
    return _returned(CheckedBoard(report=report, digest="d", evidence=evidence))


def meddled(path: str, diff: str) -> ToolReturned:
    """A check that finds a file which somebody has changed."""
    return _returned(CheckedBoard(changed=(ChangedFile(path, "changed", diff),)))


def edited(path: str, plan: str | None = None) -> ToolReturned:
    return _returned(WrittenBoard((ChangedFile(path, "changed", f"--- {path}"),), "d", plan))


def _returned(answer: OpenedBoard | CheckedBoard | WrittenBoard) -> ToolReturned:
    """As a tool returns it (`typed_tool`)."""
    return ToolReturned(value=plain(answer))


def begun(definition: Board | None = None, **opening: Any) -> Given:
    """A run whose board is open: MAIN is asked."""
    story = given(KIT.style, definition or board(), input="A good line.")
    story.tell(opened(**opening))
    return story


def tell(story: Given, *answers: Answer) -> list[Event]:
    """Tell all of them; returns what came of the last."""
    events: list[Event] = []
    for answer in answers:
        events = story.tell(answer)
    return events


def iteration(story: Given, report: str, agent: str = "MAKER", **decision: Any) -> list[Event]:
    """A whole iteration: MAIN calls an agent, which reports."""
    return tell(story, decided(agent, **decision), written(), said(report), checked(), written())


def asked(events: list[Any]) -> Any:
    """The last command."""
    return [event.command for event in events if isinstance(event, Asked)][-1]


def ended(story: Given) -> Ended:
    assert story.run is not None and story.run.ended is not None
    return story.run.ended


def arguments(story: Given) -> dict[str, Any]:
    """The arguments of the board tool that is open."""
    assert story.run is not None
    command = story.run.open[story.opened(CallTool)]
    return arguments_for(KIT.style, command.state, command.command)  # type: ignore[arg-type]


def prompt(story: Given) -> str:
    assert story.run is not None
    command = story.run.open[story.opened(AskAgent)]
    asking = command.command
    assert isinstance(asking, AskAgent)
    return "\n".join(message.text for message in KIT.style.render(command.state, asking).messages)
