"""Which guide a run records for its agents: a short one if all its models are local."""

import asyncio
from pathlib import Path

import pytest

from ripstop.app import open_app
from ripstop.definitions.loading import find
from ripstop.settings.settings_file import Models, Settings

HAIKU = Path(__file__).parents[2] / "examples" / "haiku"


@pytest.mark.parametrize(("model", "guide"), [("local", "short"), (f"script:{HAIKU}/script.jsonl", None)])
def test_a_run_with_a_local_model_records_that_it_needs_a_short_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, guide: str | None
) -> None:
    async def started() -> str | None:
        async with open_app(Settings(store="sqlite:j.db", models=Models(default=model))) as app:
            app.worker.only = ""  # nothing is performed
            found: str | None = (await app.start(find(str(HAIKU)))).settings.get("guide")
            return found

    monkeypatch.chdir(tmp_path)
    assert asyncio.run(started()) == guide
