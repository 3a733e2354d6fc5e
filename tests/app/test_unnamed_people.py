"""A person who gives no name acts as nobody: what only the owner may do is refused, and no other name is recorded."""

import asyncio
import shutil
from pathlib import Path

import pytest

from ripstop import App, UsageError
from ripstop.app.settings.settings_file import Models, Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFICE = "examples/handoff"
SETTINGS = Settings(models=Models(default="script:examples/haiku/script.jsonl"))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for example in ("haiku", "handoff"):
        shutil.copytree(EXAMPLES / example, tmp_path / "examples" / example)
    monkeypatch.chdir(tmp_path)


def test_what_only_the_owner_may_do_is_refused_without_a_name() -> None:
    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(OFFICE, "Write the menu card.")
            for action, fields in (("complete", {"result": "Nothing."}), ("pass", {"to": "eve"})):
                for act in (app.act(run, action, fields), app.engine.act(run.id, action, fields)):
                    with pytest.raises(UsageError, match=f"a person without a name may not {action} it, .*programmer"):
                        await act
            assert (await app.look(run)).run.length == run.length, "nothing is recorded"
            await app.act(run, "complete", {"result": "Four dishes."}, by="programmer")
            assert (await app.look(run)).picture.where == "completed"

    asyncio.run(story())


@pytest.mark.parametrize(("task", "name"), [("Write the menu card.", "unnamed"), ("写一份菜单。", "未署名")])
def test_what_anybody_may_do_is_not_recorded_in_the_owners_name(task: str, name: str) -> None:
    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(OFFICE, task)
            await app.act(run, "terminate", {"message": "No."})
            document = (await app.look(run)).run.state.document
            assert (document.status, document.history[-1].agent) == ("terminated", name)

    asyncio.run(story())
