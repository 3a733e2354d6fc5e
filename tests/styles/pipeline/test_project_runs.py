"""Runs of a real engine and worker that use a project's tools: those of the style, and those of agents."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.kernel.effects import CallTool
from ripstop.kernel.events import RunSettings
from ripstop.testing import Errands
from tests.styles.pipeline.cowork_kills import STORY
from tests.styles.pipeline.projects import META, ProjectDesk

PLUGIN = Plugin(name="errands", kits=("ripstop.testing:ERRANDS",))


async def run_story(folder: Path, commands: list[CallTool]) -> Any:
    async with App(plugins=Plugins([*BUILT_IN, PLUGIN])) as app:
        app.folders.remember(folder)
        errands = Errands(rounds=tuple((command,) for command in commands))
        settings = RunSettings(workspace=str(folder))
        run = await app.engine.start("story-1", "errands", errands.content(), settings=settings)
        return (await app.wait(run)).run


@pytest.mark.req("S3-70")
def test_a_run_takes_a_project_from_the_idea_to_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    desk = ProjectDesk(tmp_path / "project")
    desk.code("index.html")
    commands = [
        CallTool(tool=tool, arguments=arguments, agent="" if kind == "own" else "pm")
        for kind, tool, arguments in STORY
        if kind != "undo" and arguments.get("mode") != "modify"
    ]
    run = asyncio.run(run_story(desk.project, commands))
    assert run.ended.outcome == "completed"
    assert run.state.failures == 0, run.state.answers
    assert list(desk.json(META)["completed"]) == ["idea", "prd", "design", "coding", "delivery"]
    assert "| REQ-001 Notes | FEAT-001 Add |" in desk.text("artifacts/delivery_report.md")


def test_what_a_tool_refuses_is_an_answer_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = CallTool(tool="update_task_status", agent="pm", arguments={"task_id": "TASK-9", "new_status": "completed"})
    run = asyncio.run(run_story(tmp_path / "project", [wrong, CallTool(tool="get_plan", agent="pm", arguments={})]))
    assert run.ended.outcome == "completed" and run.state.failures == 1
    assert "There is no task 'TASK-9'" in run.state.answers[0]
