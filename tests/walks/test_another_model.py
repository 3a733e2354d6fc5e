"""`resume --model`: a run goes on with another model, in the call that was open, too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.app.plugins import find
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.kernel.events import RunSettings
from tests.walks.commands import log_of, ripstop, succeed
from tests.walks.test_command_line import HAIKU, SCRIPT, hurry, slow

__all__ = ["slow"]
BRIEF = """\
name: brief
initial_message: a word
max_turns: 4
agents:
  - {name: first, type: ask}
  - {name: second, type: ask, model: "script:refusing.jsonl"}
states:
  - name: one
    agent: first
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Decide: done."
    transitions: [{to: two}]
  - name: two
    agent: second
    prompt: "{{COLLABORATION_GUIDE}} Decide: done."
    transitions: [{to: END}]
"""
DONE = '{"content": "ok", "decisions": {"done": true}}'


def models_that_answered(log: list[dict[str, Any]]) -> list[str]:
    return [record["answer"]["model"] for record in log if record.get("answer", {}).get("type") == "agent_replied"]


def test_a_call_that_was_under_way_is_answered_by_the_model_given_now(slow: Any, tmp_path: Path) -> None:
    slow.kill()
    slow.communicate()
    (run,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    resumed = ripstop("resume", run["run"], "--model", SCRIPT, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "● judge critic" in resumed.stderr, "whoever looks on later sees where it stands, too"
    log = log_of(run["run"], tmp_path)
    first, *others = models_that_answered(log)
    assert first.endswith("slow.jsonl")
    assert set(others) == {SCRIPT}
    (changed,) = [r["settings"] for r in log if r["type"] == "settings_changed"]
    assert changed == {**log[0]["settings"], "model_for_all": SCRIPT}


@pytest.mark.long
def test_the_model_that_it_has_already_is_nothing_to_record(slow: Any, tmp_path: Path) -> None:
    slow.kill()
    slow.communicate()
    (run,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    started = log_of(run["run"], tmp_path)[0]
    hurry(tmp_path)
    succeed("resume", run["run"], "--model", started["settings"]["model"], cwd=tmp_path)
    assert "settings_changed" not in {record["type"] for record in log_of(run["run"], tmp_path)}


@pytest.mark.long
def test_the_model_given_now_is_for_agents_that_the_definition_gives_another(tmp_path: Path) -> None:
    (tmp_path / "brief.yaml").write_text(BRIEF)
    (tmp_path / "ripstop.toml").write_text('[models]\ndefault = "script:one.jsonl"\n')
    (tmp_path / "one.jsonl").write_text(json.dumps({"agent": "first", "reply": DONE}))
    (tmp_path / "refusing.jsonl").write_text('{"error": "refused"}')
    (tmp_path / "two.jsonl").write_text(f"{json.dumps({'reply': DONE})}\n" * 2)
    done = ripstop("run", "brief.yaml", "--any-name", "--json", cwd=tmp_path)
    failed = json.loads(done.stdout)
    assert failed["outcome"] == "failed"
    assert failed["ways_on"] == [f"ripstop fork {failed['run']}"]
    assert f"next      ripstop fork {failed['run']}" in succeed("why", failed["run"], cwd=tmp_path)
    again = ripstop("run", "brief.yaml", "--any-name", cwd=tmp_path)
    assert "\nnext    ripstop fork brief-" in again.stdout
    forked = json.loads(succeed("fork", failed["run"], "--json", cwd=tmp_path))["run"]
    result = json.loads(succeed("resume", forked, "--model", "script:two.jsonl", "--json", cwd=tmp_path))
    assert result["outcome"] == "completed"
    assert models_that_answered(log_of(forked, tmp_path))[-1].endswith("two.jsonl")


def test_the_model_of_the_command_line_is_for_all_agents_of_a_new_run(tmp_path: Path) -> None:
    (tmp_path / "brief.yaml").write_text(BRIEF)
    (tmp_path / "two.jsonl").write_text(f"{json.dumps({'reply': DONE})}\n" * 2)
    run = json.loads(succeed("run", "brief.yaml", "--any-name", "--model", "script:two.jsonl", "--json", cwd=tmp_path))
    answered = models_that_answered(log_of(run["run"], tmp_path))
    assert len(answered) == 2 and all(model.endswith("two.jsonl") for model in answered)


def test_a_script_that_is_not_there_is_refused_before_anything_is_recorded(slow: Any, tmp_path: Path) -> None:
    slow.kill()
    slow.communicate()
    (run,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    done = ripstop("resume", run["run"], "--model", "script:nowhere.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no script 'nowhere.jsonl'" in done.stderr
    assert not [r for r in log_of(run["run"], tmp_path) if r["type"] == "settings_changed"]


@pytest.mark.parametrize("ended", [False, True])
def test_children_that_are_under_way_use_it_too(tmp_path: Path, ended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    workflow = find(str(HAIKU))

    async def story() -> tuple[RunSettings, RunSettings]:
        async with App(Settings(store="sqlite:j.db", models=Models(default=SCRIPT))) as app:
            app.engine.dispatcher = None  # nobody works on it
            for name, starter in (("run", None), ("run.3", ("run", 3))):
                old = RunSettings(model="old")
                await app.engine.start(name, workflow.style, workflow.content, settings=old, parent=starter)
            if ended:
                await app.engine.cancel("run.3")
            await app.use_model("run", SCRIPT, "")
            parent, child = [(await app.engine.look(name)).run for name in ("run", "run.3")]
            return parent.settings, child.settings

    parent, child = asyncio.run(story())
    assert parent == RunSettings(model="old", model_for_all=SCRIPT)
    assert child == (RunSettings(model="old") if ended else parent)
