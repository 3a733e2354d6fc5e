"""The short form of `make soak-restore`: nothing is paid twice after a backup is restored."""

from pathlib import Path

import pytest

from tests.harness.restore_soak import LOSSES, one_round


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
def test_what_may_have_happened_after_a_backup_is_asked_and_not_repeated(tmp_path: Path, loss: str) -> None:
    said = one_round(tmp_path.resolve(), 10, loss)
    assert "none paid twice" in said
