"""A project in a folder, agents and a run that work on it, and a person with an editor."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from ripstop.engine.performers import Performer
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.styles.pipeline.calls import (
    BEGIN,
    CHECK,
    CLOSE,
    FINISH,
    OPEN,
    SHOW,
    WRITE,
    BeginStageCall,
    CheckStageCall,
    CloseProjectCall,
    FinishStageCall,
    OpenProjectCall,
    ReportCall,
    ReviewFeedback,
    ShowCodeCall,
    WriteFilesCall,
)
from tests.tools.tool_requests import request_for

REQUIREMENTS, FEATURES = "data/requirements.json", "data/feature_list.json"
DESIGN, PLAN, CODE = "data/design_spec.json", "data/implementation_plan.json", "data/code_metadata.json"
META, FEEDBACK = "session/meta.json", "session/feedback_history.json"
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def valid_data() -> dict[str, Any]:
    """Data files that fit together: one requirement, two features, two components, two tasks."""
    return {
        REQUIREMENTS: {"requirements": [{"id": "REQ-001", "title": "Notes", "description": "Keep notes."}]},
        FEATURES: {
            "features": [
                {"id": "FEAT-001", "name": "Add", "requirement_ids": ["REQ-001"]},
                {"id": "FEAT-002", "name": "List", "requirement_ids": ["REQ-001"]},
            ]
        },
        DESIGN: {
            "architecture": {
                "components": [
                    {"id": "COMP-001", "name": "Page", "related_features": ["FEAT-001", "FEAT-002"]},
                    {"id": "COMP-002", "name": "Store", "related_features": ["FEAT-001"]},
                ]
            }
        },
        PLAN: {
            "tasks": [
                {"id": "TASK-001", "title": "Page", "feature_id": "FEAT-001", "files_to_create": ["index.html"]},
                {"id": "TASK-002", "title": "List", "feature_id": "FEAT-002", "dependencies": ["TASK-001"]},
            ]
        },
    }


CALLS: dict[str, Struct] = {
    OPEN: OpenProjectCall(stages=(), restartable=(), mode="new", stage="", idea="", flow="", change=None),
    BEGIN: BeginStageCall(stage="", inputs=(), may_miss=False, also=(), writes_code=False, known={}),
    WRITE: WriteFilesCall(stage="", files={}, expected={}, reset=(), feedback=None),
    CHECK: CheckStageCall(
        outputs=(), kind="work", writes_code=False, code_before={}, code_at_start=None, code_reviewed=None
    ),
    SHOW: ShowCodeCall(stage="", code_before={}),
    FINISH: FinishStageCall(stage="", products=(), writes_code=False, report=None, is_finished=True, ends_change=False),
    CLOSE: CloseProjectCall(outcome="completed"),
}
"""What is in a call that a test says nothing about."""
NO_FEEDBACK = ReviewFeedback(record=0, feedback_type="suggestion", severity="minor", details="", by="", source="person")
NO_REPORT = ReportCall(path="", title="", prose="", decisions=(), cost=None, shown=())


def whole_call(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """A call of the style as its tool gets it, from what a test says of it."""
    feedback, report = given.get("feedback"), given.get("report")
    inner = {
        **({"feedback": {**asdict(NO_FEEDBACK), **feedback}} if feedback else {}),
        **({"report": {**asdict(NO_REPORT), **report}} if report else {}),
    }
    call: dict[str, Any] = to_builtins({**asdict(CALLS[tool]), **given, **inner})
    return call


class ProjectDesk:
    """What a person and the parts of the engine do with one project."""

    def __init__(self, project: Path, run_id: str = "r", tools: dict[str, Performer] | None = None) -> None:
        self.project = project
        self.run_id = run_id
        self.tools = tools or {}
        self.number = 0

    @property
    def cowork(self) -> Path:
        return self.project / ".cowork"

    def put(self, path: str, content: Any) -> Path:
        """As a person does it; what is not text is written as JSON."""
        file = self.cowork / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return file

    def put_valid(self, *paths: str) -> None:
        data = valid_data()
        for path in paths or data:
            self.put(path, data[path])

    def code(self, path: str, text: str = "<p>hello</p>\n") -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def json(self, path: str) -> Any:
        return json.loads((self.cowork / path).read_text(encoding="utf-8"))

    def text(self, path: str) -> str:
        return (self.cowork / path).read_text(encoding="utf-8")

    def files(self) -> dict[str, str]:
        """Every file below `.cowork` but the log, with its times masked."""
        found = (path for path in self.cowork.rglob("*") if path.is_file())
        texts = {str(path.relative_to(self.cowork)): TIME.sub("TIME", path.read_text()) for path in found}
        return {path: text for path, text in sorted(texts.items()) if not path.startswith("logs/")}

    def request(
        self, tool: str, agent: str, arguments: dict[str, Any], number: int, attempt: int = 1, **of: Any
    ) -> Any:
        settings = RunSettings(workspace=str(self.project))
        command = CallTool(tool=tool, agent=agent)
        return request_for(command, self.run_id, number, attempt=attempt, settings=settings, arguments=arguments, **of)

    def own(self, tool: str, again: bool = False, of: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """Perform a command of the style; with `again`, one more attempt at the last one."""
        self.number += not again
        request = self.request(tool, "", whole_call(tool, arguments), self.number, **(of or {}))

        async def perform() -> Any:
            return await self.tools[tool].perform(request)

        answer = asyncio.run(perform())
        assert isinstance(answer, ToolReturned)
        return dict(answer.value)
