"""Folders that are exchanged for links while commands are prepared; `make soak-races` does it for longer."""

import pytest

from tests.harness.command_attacks import sandboxes_of
from tests.harness.command_race import race


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_a_folder_that_is_exchanged_for_a_link_leads_no_command_out(kind: str) -> None:
    if sandboxes_of(kind) is None:
        pytest.skip(f"this machine has no {kind}")
    figures, escapes = race(kind, minutes=0.3, seed=1)
    assert escapes == []
    assert figures["run"] > 0
