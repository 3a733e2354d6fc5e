"""A short version of `make soak-chats`: a server is killed under load, and every user is answered once."""

from pathlib import Path

import pytest

from tests.harness.conversation_crash import AT_RANDOM, crash, table

pytestmark = pytest.mark.long


@pytest.mark.req("S2-92")
def test_a_server_that_is_killed_under_load_answers_every_user_once(tmp_path: Path) -> None:
    tally = crash(4, 3, tmp_path, points=("worker.after_perform",), users=9, each=1, say=lambda _: None)
    assert not tally.trouble, table(tally)
    assert tally.kills[AT_RANDOM] >= 4 and tally.kills["worker.after_perform"], table(tally)
    assert tally.chains and tally.answers and tally.timers, table(tally)
