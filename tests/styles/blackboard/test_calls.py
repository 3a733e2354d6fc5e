"""What the style asks of the board's tools is what they take, and what they answer is what the style reads.

The tools are the real ones, in a real folder; the agents' replies are made up.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import AskAgent, CallTool, PersonAnswered, ToolReturned
from ripstop.kernel.events import Ended, Event, ResumeRequested, RunSettings
from ripstop.kernel.style import arguments_for
from ripstop.styles.blackboard import calls
from ripstop.styles.blackboard.calls import CHECK, OPEN, WRITE, CheckedBoard, OpenedBoard, WrittenBoard
from ripstop.styles.blackboard.definition import Evidence, EvidenceKind, VerificationPolicy
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.schema import EVIDENCE
from ripstop.styles.blackboard.state import BoardEdited, ReportVerified
from ripstop.styles.blackboard.tools import own_tools
from ripstop.testing import Given, given
from tests.styles.blackboard.boards import PLAN, RULES, begun, board, decided, said, written
from tests.tools.tool_requests import request_for

REPORT = "iteration: 1\n结论：PASS\n阻塞：无\ndish: dish.txt\ndish: `none.txt`\nquote: “so it is”\n"
EVERY_KIND = (
    Evidence(EvidenceKind.FILE, line="dish:"),
    Evidence(EvidenceKind.NUMBER, path="{agent}/scale.txt", prefix="grams:", at_least=1.0),
    Evidence(EvidenceKind.QUOTE, path="notes.md", line="quote:"),
    Evidence(EvidenceKind.COMMAND, command=("python3", "-c", "raise SystemExit(2)"), exit_code=2),
)
ANSWERS = {OPEN: OpenedBoard, CHECK: CheckedBoard, WRITE: WrittenBoard}


class RealBoard:
    """A run whose board is a folder: each call of the style is performed there, and its answer told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = own_tools()
        self.performed: list[str] = []
        self.write("memory/dev_plan.md", PLAN)
        policy = VerificationPolicy(RULES, evidence=EVERY_KIND)
        self.story: Given = given(KIT.style, board(policy, folder=str(folder)), input="A good line.")

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def text(self, path: str) -> str:
        return (self.folder / path).read_text()

    def tell(self, *facts: Any) -> list[Event]:
        """Tell them, and after each let the board's tools do what comes of it. Returns all that came of the last."""
        events: list[Event] = []
        for fact in facts:
            events = self.story.tell(fact) + self.perform()
        return events

    def perform(self) -> list[Event]:
        """Until the run waits for an agent or a person."""
        events: list[Event] = []
        while command := self._open_call():
            events += self.story.tell(self._answer(*command))
        return events

    def _open_call(self) -> tuple[int, CallTool] | None:
        assert self.story.run is not None
        opened = ((number, one.command) for number, one in self.story.run.open.items())
        return next(((number, command) for number, command in opened if isinstance(command, CallTool)), None)

    def _answer(self, number: int, command: CallTool) -> ToolReturned:
        assert self.story.run is not None
        arguments = arguments_for(KIT.style, self.story.run.open[number].state, command)
        settings = RunSettings(folder=str(self.folder), workspace=str(self.folder / "workspace"))
        request = request_for(command, "story", number, settings=settings, arguments=arguments)
        answer = asyncio.run(self.tools[command.tool].perform(request))
        assert isinstance(answer, ToolReturned)
        typed = msgspec.convert(answer.value, ANSWERS[command.tool], strict=True)
        assert answer.value == json.loads(msgspec.json.encode(typed)), "it is recorded whole"
        self.performed.append(command.tool)
        return answer

    def prompt(self) -> str:
        assert self.story.run is not None
        opened = self.story.run.open[self.story.opened(AskAgent)]
        assert isinstance(opened.command, AskAgent)
        return "\n".join(one.text for one in KIT.style.render(opened.state, opened.command).messages)


@pytest.fixture
def real(tmp_path: Path) -> RealBoard:
    real = RealBoard(tmp_path)
    real.perform()
    return real


@pytest.mark.req("S4-2", "S4-17")
def test_every_call_of_an_iteration_is_performed_by_the_real_tools(real: RealBoard) -> None:
    real.write("workspace/dish.txt", "soup")
    real.write("workspace/CHECKER/scale.txt", "grams: 7\n")
    real.write("workspace/notes.md", "it is so\nso it\nis\n")
    events = real.tell(decided("CHECKER", dev_plan="update M1-T1 status to DONE"), said(REPORT))
    assert real.performed == [OPEN, WRITE, CHECK, WRITE]
    assert any(isinstance(event, ReportVerified) for event in events)
    shown = real.prompt()
    assert "PASS: dish.txt exists; shown: 4 bytes" in shown
    assert "PASS: none.txt exists; shown: there is no file 'none.txt' (DOES NOT HOLD)" in shown
    assert "PASS: grams: in CHECKER/scale.txt; shown: 7 (line 1) (holds)" in shown
    assert "PASS: 'so it is' in notes.md; shown: line 2 (holds)" in shown
    assert "ends with 2; shown: exit code 2 (holds)" in shown
    assert real.text("memory/dev_plan.md") == PLAN.replace("TODO", "DONE", 1)
    assert real.text("reports/report_checker.md") == REPORT
    real.tell(decided("FINISH", "it is good"))
    assert real.story.run is not None and real.story.run.ended is not None
    assert real.story.run.ended.outcome == "completed"
    assert real.text("memory/project_history.md").count("\n## ") == 3


def test_edits_that_a_real_write_finds_count_before_it_is_done(real: RealBoard) -> None:
    real.write("memory/dev_plan.md", f"{PLAN}\n### M1-T3: More\n- status: TODO\n")
    real.write("memory/project_history.md", "# Project History\n\n## Iteration 41\nby hand\n")
    events = real.tell(decided("MAKER", dev_plan="update M1-T1 status to DONE"))
    assert BoardEdited(paths=("memory/dev_plan.md", "memory/project_history.md")) in events
    assert real.performed == [OPEN, WRITE, WRITE]
    assert "M1-T3" in real.text("memory/dev_plan.md") and "status: DONE" in real.text("memory/dev_plan.md")
    real.tell(said("iteration: 1\nMade."))
    assert "by hand" in real.prompt() and "Made." in real.prompt()


def test_what_a_real_check_finds_changed_stops_the_run_until_it_is_accepted(real: RealBoard) -> None:
    real.tell(decided("MAKER"))
    real.write("memory/dev_plan.md", "# Theirs\n")
    (stop,) = [event for event in real.tell(said("iteration: 1\nMade.")) if isinstance(event, Ended)]
    assert "memory/dev_plan.md (changed)" in stop.because and "+# Theirs" in stop.because
    assert real.story.run is not None and KIT.style.ending(real.story.run.state).has_foreign_edits
    real.tell(ResumeRequested(accept_edits=True))
    assert not KIT.style.ending(real.story.run.state).has_foreign_edits
    assert real.performed[-4:] == [WRITE, WRITE, CHECK, WRITE]
    assert "# Theirs" in real.prompt() and "Made." in real.prompt()


def test_a_refused_report_is_really_on_the_board_and_can_be_mended_there(real: RealBoard) -> None:
    real.tell(decided("CHECKER"))
    (stop,) = [event for event in real.tell(said("no fields")) if isinstance(event, Ended)]
    assert "is refused" in stop.because
    assert real.text("reports/report_checker.md") == "no fields\n"
    real.write("reports/report_checker.md", REPORT)
    assert any(isinstance(event, ReportVerified) for event in real.tell(ResumeRequested()))


def test_what_a_person_decides_is_really_in_the_history(real: RealBoard) -> None:
    real.tell(decided("USER", "two ways", question="Which?"), PersonAnswered(text="straight on", by="ann"))
    assert "question: Which?\ncomment: straight on\nby: ann\n" in real.text("memory/project_history.md")


# What is recorded and shown


def test_a_call_is_shown_as_it_always_was() -> None:
    """The log and the pages show the calls of old journals, too, so neither names nor order may change: what came
    later stands behind it."""
    story = given(KIT.style, board(VerificationPolicy(RULES, evidence=EVERY_KIND), files=("memory/p.json",)))
    which = {"folder": "/b", "copy": False, "plan": "memory/dev_plan.md", "history": "memory/project_history.md"}
    pattern = r"(?i)^\ufeff?#{2,4} (?:[^\n(]{0,60}\()?Iteration (\d{1,6})\b"
    blocking = {"reports": ["reports/report_maker.md", "reports/report_checker.md"], "blocker_prefix": "阻塞："}
    assert _shown(story) == _text({**which, "iteration_pattern": pattern, "tail": 200_000, **blocking})
    story = begun(board(VerificationPolicy(RULES, evidence=EVERY_KIND), files=("memory/p.json",)))
    story.tell(decided("CHECKER"))
    writing: dict[str, Any] = {
        "digest": "d0",
        "plan_text": None,
        "append": "\n## Iteration 1\nat: 1970-01-01T00:00:03Z\nnext_agent: CHECKER\nreason: because\n",
        "reports": {},
        "definition_files": ["memory/p.json", "memory/prompts/"],
        "iteration_pattern": pattern,
        "tail": 200_000,
        "close": False,
    }
    assert _shown(story) == _text({**which, **writing})
    story.tell(written("d1"))
    story.tell(said(REPORT))
    nothing = {"sha256": "", "prefix": "", "at_least": None, "at_most": None, "text": ""}
    evidence = [
        {"evidence": "file", "path": "dish.txt", **nothing},
        {"evidence": "file", "path": "none.txt", **nothing},
        {"evidence": "number", "path": "CHECKER/scale.txt", **nothing, "prefix": "grams:", "at_least": 1.0},
        {"evidence": "quote", "path": "notes.md", **nothing, "text": "so it is"},
        {"evidence": "command", "command": ["python3", "-c", "raise SystemExit(2)"], "exit_code": 2},
    ]
    checking = {"digest": "d1", "own": "reports/report_checker.md", "evidence": evidence}
    assert _shown(story) == _text({**which, **checking})


def _shown(story: Given) -> str:
    assert story.run is not None
    opened = story.run.open[story.opened(CallTool)]
    assert isinstance(opened.command, CallTool)
    return _text(arguments_for(KIT.style, opened.state, opened.command))


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def test_no_field_of_a_call_has_a_default() -> None:
    for call in (calls.OpenBoard, calls.CheckBoard, calls.WriteBoard, *calls.EvidenceClaim.__args__):
        assert not [field.name for field in msgspec.structs.fields(call) if not field.required]


def test_every_kind_of_evidence_can_be_demanded_and_looked_for() -> None:
    assert list(EVIDENCE) == [kind.value for kind in EvidenceKind]
    assert {one.__struct_config__.tag for one in calls.EvidenceClaim.__args__} == set(EVIDENCE)


@pytest.mark.parametrize("answer", [OpenedBoard, CheckedBoard, WrittenBoard])
def test_an_answer_that_was_recorded_with_fewer_fields_is_still_read(answer: type) -> None:
    assert msgspec.convert({}, answer) == answer()
