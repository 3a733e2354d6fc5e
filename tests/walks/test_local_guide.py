"""Which guide a run records for its agents: a short one if all its models are local."""

import asyncio
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings

HAIKU = Path(__file__).parents[2] / "examples" / "haiku"


@pytest.mark.parametrize(("model", "is_small"), [("local", True), (f"script:{HAIKU}/script.jsonl", False)])
def test_a_run_with_a_local_model_records_that_it_needs_a_short_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, is_small: bool
) -> None:
    async def started() -> bool:
        async with App(Settings(store="sqlite:j.db", models=Models(default=model)), scope=None) as app:
            return (await app.start(HAIKU)).settings.small_model

    monkeypatch.chdir(tmp_path)
    assert asyncio.run(started()) is is_small
