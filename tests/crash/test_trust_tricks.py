"""The short form of `make soak-trust`: a cloned folder makes nothing happen."""

from pathlib import Path

import pytest

from tests.harness.trust_tricks import Trick, enemys_folder, table, try_out

SHORT = 3
"""Every third trick."""


def test_the_table_has_at_least_forty_tricks_with_names_of_their_own() -> None:
    names = [trick.name for trick in table()]
    assert len(names) == len(set(names)) >= 40


@pytest.fixture(scope="module")
def enemys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return enemys_folder(tmp_path_factory.mktemp("enemy").resolve())


@pytest.mark.long
@pytest.mark.parametrize("trick", table()[::SHORT], ids=lambda trick: trick.name)
def test_a_trick_of_a_cloned_folder_makes_nothing_happen(
    tmp_path: Path, enemys: tuple[Path, str], trick: Trick
) -> None:
    seen = try_out(trick, tmp_path.resolve(), *enemys)
    assert seen.problems == [], seen.said
