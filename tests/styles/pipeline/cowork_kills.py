"""Kills processes at every fail-point that the tools of a project get to, and lets the next process complete the work.

    python -m tests.styles.pipeline.cowork_kills FOLDER [EVERY]

One process imports everything and forks: each child runs the story until the fail-point of its number, where it is
killed (SIGKILL); another child continues it, as a worker does after a crash. The files and answers must be those of a
story that was never killed. `EVERY`: only every so many fail-points.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripstop.engine.performers import Kind
from ripstop.kernel.effects import ToolReturned
from ripstop.styles.pipeline import store
from ripstop.styles.pipeline.agent_tools import agent_tools
from ripstop.styles.pipeline.backups import all_backups, undo
from ripstop.styles.pipeline.data_files import Session
from ripstop.styles.pipeline.stages import own_tools
from ripstop.tools.toolbox import Toolbox
from tests.styles.pipeline.projects import ProjectDesk, whole_call

PRODUCTS = {
    "idea": ["artifacts/idea.md"],
    "prd": ["artifacts/prd_draft.md", "data/requirements.json", "data/feature_list.json"],
    "design": ["artifacts/design_draft.md", "data/design_spec.json"],
    "plan": ["artifacts/plan_draft.md", "data/implementation_plan.json"],
    "coding": ["artifacts/coding_draft.md"],
    "delivery": ["artifacts/delivery_report.md"],
}
STAGES: list[dict[str, Any]] = [
    {"name": name, "products": products, "writes_code": name == "coding"} for name, products in PRODUCTS.items()
]
OPEN = {"stages": STAGES, "restartable": ["prd", "design", "plan", "coding"]}
COMPONENT = {"component_type": "x", "responsibilities": ["y"], "technology": "z"}
REPORT = {"path": "artifacts/delivery_report.md", "prose": "All of it.", "title": "Notes"}
FEEDBACK = {"details": "shorter", "by": "ann", "record": 7}
_STORY: list[tuple[str, str, dict[str, Any]]] = [
    ("own", "cowork_open", {**OPEN, "mode": "new", "stage": "idea", "idea": "notes"}),
    ("own", "cowork_begin", {"stage": "idea"}),
    ("own", "cowork_write", {"stage": "idea", "files": {"artifacts/idea.md": "notes"}, "feedback": FEEDBACK}),
    ("own", "cowork_finish", {"stage": "idea", "products": ["artifacts/idea.md"]}),
    ("agent", "create_requirement", {"title": "Notes", "description": "x"}),
    ("agent", "create_feature", {"name": "Add", "description": "x", "requirement_ids": ["REQ-001"]}),
    (
        "own",
        "cowork_write",
        {"stage": "prd", "files": {"artifacts/prd_draft.md": "a"}, "reset": ["data/design_spec.json"]},
    ),
    ("own", "cowork_check", {"stage": "prd", "outputs": ["data/requirements.json", "data/feature_list.json"]}),
    ("own", "cowork_finish", {"stage": "prd", "products": PRODUCTS["prd"]}),
    ("agent", "create_component", {"name": "Page", "related_features": ["FEAT-001"], **COMPONENT}),
    ("agent", "create_component", {"name": "Store", **COMPONENT}),
    ("own", "cowork_finish", {"stage": "design", "products": PRODUCTS["design"]}),
    (
        "agent",
        "create_task",
        {"title": "Page", "description": "x", "feature_id": "FEAT-001", "component_id": "COMP-001"},
    ),
    (
        "agent",
        "create_task",
        {
            "title": "Too many",
            "description": "x",
            "feature_id": "FEAT-001",
            "component_id": "COMP-001",
            "dependencies": ["TASK-001"],
        },
    ),
    ("agent", "delete_task", {"id": "TASK-002"}),
    (
        "own",
        "cowork_begin",
        {"stage": "coding", "inputs": ["data/implementation_plan.json"], "also": ["data/requirements.json"]},
    ),
    ("agent", "update_task_status", {"task_id": "TASK-001", "new_status": "completed"}),
    ("own", "cowork_show", {"stage": "coding", "code_before": {}}),
    ("agent", "provide_feedback", {"feedback_type": "suggestion", "severity": "minor", "details": "colours"}),
    ("own", "cowork_finish", {"stage": "coding", "products": PRODUCTS["coding"], "writes_code": True}),
    ("agent", "goto_stage", {"stage": "design", "reason": "one more"}),
    ("own", "cowork_open", {**OPEN, "mode": "modify", "stage": "design"}),
    ("own", "cowork_write", {"stage": "design", "files": {"artifacts/design_draft.md": "second"}}),
    ("own", "cowork_open", {**OPEN, "mode": "modify", "stage": "prd"}),
    ("undo", "", {"time": 1}),
    ("undo", "", {"time": 2}),
    ("own", "cowork_finish", {"stage": "delivery", "products": PRODUCTS["delivery"], "report": REPORT}),
    ("own", "cowork_close", {"outcome": "completed"}),
]
STORY = [(kind, tool, whole_call(tool, given) if kind == "own" else given) for kind, tool, given in _STORY]


def masked(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+( UTC|Z)", "TIME", text)
    return re.sub(r"\b[0-9a-f]{64}\b", "SHA", text)


def perform(desk: ProjectDesk, kind: str, tool: str, arguments: dict[str, Any], number: int, attempt: int) -> Any:
    """One command, as a worker performs it; a call that can be probed is probed first, after a crash."""
    if kind == "undo":
        folder = store.CoworkFolder(desk.project)
        undone = [one.name for one in all_backups(folder) if one.state == "undone"]
        done = len(undone) == arguments["time"]  # a person would see that it was done
        return undone[-1] if done else undo(folder, Session(folder)).backup
    performer: Any = desk.tools[tool] if kind == "own" else Toolbox(agent_tools())
    request = desk.request(tool, "" if kind == "own" else "worker", arguments, number, attempt)

    async def answer() -> Any:
        if attempt > 1 and performer.kind(request.command) is Kind.PROBEABLE:
            found = await performer.probe(request)
            if found is not None:
                return found
        return await performer.perform(request)

    found = asyncio.run(answer())
    assert isinstance(found, ToolReturned)
    return found.value


def tell_story(place: Path) -> None:
    """Perform the commands that are not answered yet."""
    answers = place / "answers"
    known = answers.read_text().splitlines() if answers.exists() else []
    desk = ProjectDesk(place / "project", "run", own_tools())
    desk.code("index.html")
    begun = place / "begun"
    for number, (kind, tool, arguments) in enumerate(STORY, 1):
        if number <= len(known):
            continue
        attempt = 2 if begun.exists() and begun.read_text() == str(number) else 1
        begun.write_text(str(number))
        value = perform(desk, kind, tool, arguments, number, attempt)
        with answers.open("a") as file:
            file.write(masked(json.dumps(value, sort_keys=True)) + "\n")


def in_child(work: Callable[[], None]) -> int:
    """The status of a process that has done some work."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)
    os._exit(0)


def killing_at(place: Path, count: int) -> None:
    left = count

    def reach(name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            (place / "killed").write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(store, "failpoint", reach)  # noqa: B010
    tell_story(place)


def outcome(place: Path) -> tuple[dict[str, str], list[str]]:
    desk = ProjectDesk(place / "project")
    files = {path: masked(text) for path, text in desk.files().items()}
    return files, (place / "answers").read_text().splitlines()


def main(root: Path, every: int) -> None:
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # no power is lost here
    whole = root / "whole"
    assert in_child(lambda: tell_story(whole)) == 0
    wanted = outcome(whole)
    kills: dict[str, int] = {}
    for count in range(1, 10_000, every):
        place = root / str(count)
        status = in_child(lambda place=place, count=count: killing_at(place, count))  # type: ignore[misc]
        if status == 0:
            break
        assert status == -signal.SIGKILL, f"kill {count}: {status}"
        name = (place / "killed").read_text()
        kills[name] = kills.get(name, 0) + 1
        assert in_child(lambda place=place: tell_story(place)) == 0, f"after kill {count} at {name}"  # type: ignore[misc]
        found = outcome(place)
        assert found[1] == wanted[1], f"kill {count} at {name}: {set(found[1]) ^ set(wanted[1])}"
        different = {path for path in {*found[0], *wanted[0]} if found[0].get(path) != wanted[0].get(path)}
        assert not different, f"kill {count} at {name}: {different}"
    print(json.dumps(kills))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
