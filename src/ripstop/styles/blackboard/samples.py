"""Small boards with answers that lead a run of each to its end, for tests that go over all styles."""

from typing import Any

import msgspec

from ripstop.kernel.effects import AgentReplied, Answer, PersonAnswered, ToolReturned, Usage
from ripstop.kernel.style import Sample

from .definition import FINISH, MAIN, USER, Board, ReportRules, Specialist, VerificationPolicy

USAGE = Usage(input_tokens=20, output_tokens=8)
RULES = ReportRules(("CHECKER",), True, "Verdict:", ("GOOD", "BAD"), "Blockers:", "none")
PLAN = "# Plan\n\n### T1: Write a line\n- status: TODO\n"


def samples() -> tuple[Sample, ...]:
    return (_loop(), _question())


def _board() -> Board:
    agents = (Specialist("WRITER", "You write.", "writer"), Specialist("CHECKER", "You check.", "checker"))
    main = Specialist(MAIN, "You decide.", "main")
    return Board("line", "/boards/line", main, agents, VerificationPolicy(RULES))


def _decided(next_agent: str, reason: str, **more: Any) -> AgentReplied:
    text = msgspec.json.encode({"next_agent": next_agent, "reason": reason, **more}).decode()
    return AgentReplied(text=text, usage=USAGE)


def _said(text: str) -> AgentReplied:
    return AgentReplied(text=text, usage=USAGE)


def _opened() -> ToolReturned:
    return ToolReturned(value={"digest": "0", "plan": PLAN, "history": "", "left_out": 0, "iteration": 0})


def _written(digest: str) -> ToolReturned:
    return ToolReturned(value={"digest": digest, "edited": [], "plan": None, "history": None})


def _checked(digest: str) -> ToolReturned:
    return ToolReturned(value={"changed": [], "report": None, "evidence": [], "digest": digest})


def _turn(number: int, decision: Answer, report: str) -> tuple[Answer, ...]:
    digest = str(number)
    return decision, _written(digest), _said(report), _checked(digest), _written(f"{digest}r")


def _loop() -> Sample:
    """A line is written, found bad, written again, and found good."""
    answers = (
        _opened(),
        *_turn(1, _decided("WRITER", "nothing is written", task="Write T1."), "iteration: 1\nIt is written."),
        *_turn(2, _decided("CHECKER", "it is new", task="Check T1."), "iteration: 2\nVerdict: BAD\nBlockers: a typo"),
        *_turn(3, _decided("WRITER", "it is bad", task="Mend T1."), "iteration: 3\nMended."),
        *_turn(4, _decided("CHECKER", "look again", task="Check."), "iteration: 4\nVerdict: GOOD\nBlockers: none"),
        _decided(FINISH, "it is good", dev_plan="update T1 status to DONE"),
        _written("5"),
    )
    return Sample("loop", _board(), answers, input="One good line.")


def _question() -> Sample:
    """A person is asked which line it shall be."""
    answers = (
        _opened(),
        _decided(USER, "two ways are open", question="Rhyme or not?", options=["rhyme", "free"]),
        _written("1"),
        PersonAnswered(choice="rhyme", by="ann"),
        _written("1a"),
        _decided(FINISH, "the person has decided"),
        _written("2"),
    )
    return Sample("question", _board(), answers)
