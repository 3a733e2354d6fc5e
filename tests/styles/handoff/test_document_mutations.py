"""Spoilt documents and messages: read, rewritten, offered as edits and handled, with nothing lost."""

import asyncio
from pathlib import Path

import pytest

from tests.harness.mutate_documents import Tally, handle_all, try_all


@pytest.mark.req("S0-66")
def test_spoilt_documents_lose_no_line() -> None:
    tally = try_all(200, seed=3, with_costly=False)
    assert tally.documents > 40 and tally.taken > 10 and tally.refused > 10 and tally.messages > 20


@pytest.mark.long
def test_many_spoilt_and_costly_documents_lose_no_line() -> None:
    assert try_all(2_000, seed=4).documents > 400


@pytest.mark.long
def test_spoilt_messages_are_all_put_away(tmp_path: Path) -> None:
    tally = Tally()
    asyncio.run(handle_all(100, 5, tmp_path, tally))
    assert tally.handled == 100
