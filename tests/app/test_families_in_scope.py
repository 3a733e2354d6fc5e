"""A worker works on a run with its family, whatever its scope is; a run that waits says for what."""

import asyncio
from pathlib import Path

import pytest

import ripstop
from ripstop import NOTHING, App
from ripstop.testing.commands import command
from tests.walks.test_family_lines import CHILD, PARENT, SCRIPT

GRANDPARENT = """\
name: grandparent
initial_message: Go.
max_turns: 3
states:
  - name: delegate
    workflow: ../parent
    start: true
    transitions: [{to: END, condition: always}]
"""
MODEL = "script:s.jsonl"


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("grandparent", GRANDPARENT), ("parent", PARENT), ("child", CHILD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.yaml").write_text(text)
    (tmp_path / "s.jsonl").write_text(SCRIPT.replace("false", "true"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("family")
def test_run_sync_completes_workflows_that_start_others() -> None:
    done = ripstop.run_sync("grandparent", model=MODEL)
    assert (done.status, done.result["content"]) == ("completed", "Good enough.")


@pytest.mark.usefixtures("family")
def test_an_app_that_works_on_nothing_else_works_on_the_family_of_what_it_starts_or_resumes() -> None:
    async def go() -> list[str]:
        async with App(scope=None) as starter:
            left = await starter.start("grandparent", model=MODEL)
            alone = await starter.start("parent", model=MODEL)
        async with App(scope=NOTHING) as app:
            run = await app.start("grandparent", model=MODEL)
            await app.resume(left)
            seen = [(await app.wait(run)).status, (await app.wait(left)).status]
            return [*seen, (await app.look(alone)).status]

    assert asyncio.run(go()) == ["completed", "completed", "working"]


def test_a_run_that_waits_says_for_what(family: Path) -> None:
    again = CHILD.replace("[{to: END", '[{to: write, condition: "NOT done"}, {to: END')
    (family / "child" / "workflow.yaml").write_text(f"{again}guards: {{then: ask}}\n")
    (family / "parent" / "workflow.yaml").write_text(PARENT.replace("../child", "../child\n    limits: {calls: 1}"))
    (family / "s.jsonl").write_text(SCRIPT)  # the child is not done after its one call
    done = ripstop.run_sync("grandparent", model=MODEL)
    assert done.status == "waiting"
    (question,) = done.questions
    assert done.waits_for == (f"an answer to {question.run_id}/{question.number}",)


@pytest.mark.usefixtures("family")
def test_show_names_the_child_that_nobody_has_started() -> None:
    async def start() -> str:
        async with App(scope=None) as app:
            return (await app.start("grandparent", model=MODEL)).id

    run = asyncio.run(start())
    shown = command("show", run, "--json")
    assert "is to be started" in shown.out
