"""Boards, and the answers that stories about them are made of."""

from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, ToolReturned
from ripstop.kernel.events import Event
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


def board(policy: VerificationPolicy | None = None, **changes: Any) -> Board:
    agents = (Specialist("MAKER", "You make.", "maker"), Specialist("CHECKER", "You check.", "checker"))
    made = Board("b", "/b", Specialist("MAIN", "You decide.", "main"), agents, policy or VerificationPolicy(RULES))
    return replace(made, **changes)


def decided(next_agent: Any = "MAKER", reason: Any = "because", **more: Any) -> AgentReplied:
    return AgentReplied(text=msgspec.json.encode({"next_agent": next_agent, "reason": reason, **more}).decode())


def said(text: str) -> AgentReplied:
    return AgentReplied(text=text)


def opened(iteration: int = 0, plan: str = PLAN, history: str = "", left_out: int = 0) -> ToolReturned:
    value = {"digest": "d0", "plan": plan, "history": history, "left_out": left_out, "iteration": iteration}
    return ToolReturned(value=value)


def written(digest: str = "d", **more: Any) -> ToolReturned:
    return ToolReturned(value={"digest": digest, "edited": [], "plan": None, "history": None, **more})


def checked(digest: str = "d", **more: Any) -> ToolReturned:
    return ToolReturned(value={"changed": [], "report": None, "evidence": [], "digest": digest, **more})


def edited(path: str, **more: Any) -> ToolReturned:
    return written(edited=[{"path": path, "what": "changed", "diff": f"--- {path}"}], **more)


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
