"""Copies of workspaces: whole or not at all, and nothing from outside."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.tools.workspace import copy_workspace


def a_workspace(folder: Path) -> Path:
    (folder / "secret").mkdir()
    (folder / "secret" / "key.txt").write_text("secret")
    old = folder / "old"
    (old / "ada" / "deep" / "empty").mkdir(parents=True)
    (old / "ada" / "deep" / "tool.sh").write_text("true")
    (old / "ada" / "deep" / "tool.sh").chmod(0o755)
    return old


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_copies_folders_and_files_with_their_modes(tmp_path: Path) -> None:
    old, new = a_workspace(tmp_path), tmp_path / "made" / "for" / "new"
    copy_workspace(old, new)
    assert names_in(new) == ["ada", "ada/deep", "ada/deep/empty", "ada/deep/tool.sh"]
    assert (new / "ada" / "deep" / "tool.sh").stat().st_mode & 0o777 == 0o755
    (new / "ada" / "deep" / "tool.sh").write_text("false")
    assert (old / "ada" / "deep" / "tool.sh").read_text() == "true"
    assert [path.name for path in new.parent.iterdir()] == ["new"]


def test_links_are_copied_as_links_and_never_followed(tmp_path: Path) -> None:
    old, new = a_workspace(tmp_path), tmp_path / "new"
    (old / "ada" / "folder").symlink_to(tmp_path / "secret")
    (old / "ada" / "file").symlink_to(tmp_path / "secret" / "key.txt")
    (old / "ada" / "nowhere").symlink_to("nothing")
    copy_workspace(old, new)
    assert all((new / "ada" / name).is_symlink() for name in ("folder", "file", "nowhere"))
    assert not any(path.name == "key.txt" for path in new.rglob("*") if not path.parent.is_symlink())


def test_leaves_out_pipes_temporary_files_and_our_own_folder(tmp_path: Path) -> None:
    old = a_workspace(tmp_path)
    os.mkfifo(old / "ada" / "pipe")
    (old / "ada" / ".ripstop-0123").write_text("half a file")
    new = old / ".ripstop" / "workspaces" / "new"  # as it is for a run with `--workspace .`
    copy_workspace(old, new)
    assert names_in(new) == ["ada", "ada/deep", "ada/deep/empty", "ada/deep/tool.sh"]


def test_a_copy_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(old: object, new: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        copy_workspace(a_workspace(tmp_path), tmp_path / "new" / "copy")
    assert list((tmp_path / "new").iterdir()) == []


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from ripstop.tools.workspace import copy_workspace
shutil.copyfileobj = lambda old, new: os.kill(os.getpid(), signal.SIGKILL)
copy_workspace(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_half_a_copy_of_a_killed_process_has_another_name_and_is_copied_no_further(tmp_path: Path) -> None:
    old, new = a_workspace(tmp_path), tmp_path / "all" / "new"
    done = subprocess.run([sys.executable, "-c", KILLED, str(old), str(new)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert len(list(new.parent.iterdir())) == 1
    assert not new.exists()
    copy_workspace(new.parent, tmp_path / "again")
    assert names_in(tmp_path / "again") == []


def test_an_empty_folder_is_taken_and_a_full_one_never_overwritten(tmp_path: Path) -> None:
    old, new = a_workspace(tmp_path), tmp_path / "new"
    new.mkdir()
    copy_workspace(old, new)
    (new / "mine.txt").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        copy_workspace(old, new)
    assert (new / "mine.txt").read_text() == "mine"
