"""Nothing is read or written outside the roots. The long campaign is `python -m tests.harness.path_race`."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripstop.tools import files, shared_folder
from ripstop.tools import workspace as roots
from tests.harness.path_race import Attack, changes, make_tree, snapshot, try_paths, try_swaps


@pytest.mark.long
def test_hostile_paths_lead_nowhere(tmp_path: Path) -> None:
    figures, escapes = try_paths(tmp_path / "paths", 20_000, seed=7)
    assert escapes == []
    assert figures.total() == 20_000
    assert figures["carried_out"] > 0
    assert figures["refused_as_a_link"] > 0


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text() | st.lists(st.sampled_from(["..", ".", "out", "deep", "collab", "gone"]) | st.text()).map("/".join)
)
def test_no_path_at_all_leads_out(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "any"
    workspace = folder / "workspace"
    if not folder.exists():
        make_tree(folder)
    before = snapshot(folder, workspace)
    attack = Attack(workspace)
    for number in range(7):
        attack.call(path, number)
    assert attack.escapes + changes(before, snapshot(folder, workspace)) == []


def test_swapping_folders_and_files_with_links_leads_nowhere(tmp_path: Path) -> None:
    figures, escapes = try_swaps(tmp_path / "swaps", 500)
    assert escapes == []
    assert figures.total() > 0


@pytest.mark.long
def test_the_attack_would_notice_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_FOLDER", roots._FOLDER & ~os.O_NOFOLLOW)
    _, escapes = try_paths(tmp_path / "folders", 5_000, seed=7)
    assert any("sings" in escape for escape in escapes)
    assert any("written by the agent" in escape for escape in escapes)
    monkeypatch.undo()
    monkeypatch.setattr(files, "READING", shared_folder.READING & ~os.O_NOFOLLOW)
    _, escapes = try_paths(tmp_path / "files", 5_000, seed=7)
    assert any("sings" in escape for escape in escapes)
