import os

import pytest


@pytest.fixture(autouse=True)
def _no_power_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing takes most of the time of these tests, and nothing here could tell whether it was done."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
