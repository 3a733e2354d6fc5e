"""A worker that is stopped under load and followed by a new one; `make soak-deployments` does it 300 times."""

import asyncio
from pathlib import Path

import pytest

from tests.harness.deployments import Deployments, soak


@pytest.mark.long
def test_deployments_leave_no_call_in_doubt(tmp_path: Path) -> None:
    asyncio.run(soak(tmp_path, times=3, longest=1.0, seed=1))


@pytest.mark.long
def test_a_drain_that_is_too_short_leaves_calls_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the harness would notice."""
    monkeypatch.chdir(tmp_path)
    deployments = Deployments(tmp_path, shortest=3600.0, longest=3600.0, seed=1)

    async def story() -> list[str]:
        await deployments.deploy(1, drain=0.0)
        return await deployments.until_doubts()

    assert asyncio.run(story())
