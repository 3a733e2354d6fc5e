"""What a run does to the user's own files: a snapshot before, a list after, and the way back."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused
from ripstop.kernel.events import RunSettings
from ripstop.security.files import state_folder
from ripstop.tools.commands.runner import SandboxedPrograms
from ripstop.tools.commands.sandbox import find_sandboxes
from ripstop.tools.snapshots import listing, run_files
from ripstop.tools.snapshots.family_files import FamilyFiles, Member
from ripstop.tools.snapshots.run_files import FileChange, FileChanges, RunFiles
from ripstop.tools.toolbox import Toolbox
from ripstop.tools.workspace_tools import FileTools
from tests.tools.tool_requests import tool_request

RUN = "soup-1"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    for name in ("a.py", "b.py", "src/c.py"):
        (folder / name).write_text(f"the user's {name}\n")
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / "link").symlink_to("a.py")
    return folder


def call(project: Path, tool: str, run_id: str = RUN, shared: bool = True, **arguments: Any) -> None:
    if tool == "run_command" and find_sandboxes().kind == "none":
        pytest.skip("this machine has no sandbox")
    box = Toolbox(files=FileTools(SandboxedPrograms()))
    settings = RunSettings(workspace=str(project), shared_workspace=shared)
    asyncio.run(box.perform(tool_request(arguments, run_id, tool, settings, "coder", number=7)))


def python(code: str) -> list[str]:
    return ["python3", "-c", f"import os, shutil\n{code}"]


def changes(project: Path, run_id: str = RUN) -> dict[str, str]:
    return {one.path: one.what for one in RunFiles(project, run_id, 0).changes().changes}


def test_says_what_a_command_removed_and_changed(project: Path) -> None:
    code = "shutil.rmtree('src'); open('b.py', 'a').write('x'); open('new.py', 'w'); os.unlink('link')"
    call(project, "run_command", command=python(code))
    assert changes(project) == {"b.py": "changed", "link": "removed", "src/c.py": "removed"}


def test_says_what_file_tools_changed(project: Path) -> None:
    call(project, "write_file", path="a.py", content="the agent's")
    call(project, "edit_file", path="src/c.py", search="user", replace="agent")
    call(project, "write_file", path="new.py", content="the agent's")
    assert changes(project) == {"a.py": "changed", "src/c.py": "changed"}


def test_brings_everything_back_and_keeps_what_is_there(project: Path) -> None:
    call(project, "write_file", path="a.py", content="the agent's")
    call(project, "run_command", command=python("shutil.rmtree('src'); os.unlink('link'); os.chmod('tool.sh', 0o600)"))
    files = RunFiles(project, RUN, 0)
    kept = files.undo([one.path for one in files.changes().changes])
    assert (project / "a.py").read_text() == "the user's a.py\n"
    assert (project / "src" / "c.py").read_text() == "the user's src/c.py\n"
    assert os.readlink(project / "link") == "a.py"
    assert os.stat(project / "tool.sh").st_mode & 0o777 == 0o755
    assert (project / kept["a.py"]).read_text() == "the agent's"
    assert changes(project) == {}


def test_a_snapshot_is_what_was_there_before_the_first_change(project: Path) -> None:
    for text in ("once", "twice"):
        call(project, "write_file", path="a.py", content=text)
    RunFiles(project, RUN, 0).undo(["a.py"])
    assert (project / "a.py").read_text() == "the user's a.py\n"


def test_what_a_person_changed_is_not_taken_for_the_runs_work(project: Path) -> None:
    call(project, "write_file", path="a.py", content="the agent's")
    call(project, "write_file", path="b.py", content="the agent's")
    (project / "b.py").write_text("a person's")
    (project / "src" / "c.py").write_text("a person's")
    assert RunFiles(project, RUN, 0).changes().changes == (
        FileChange("a.py", "changed", True, False),
        FileChange("b.py", "changed", True, True),
    )


def test_lists_all_differences_if_a_process_died_during_a_change(project: Path) -> None:
    files = RunFiles(project, RUN, 0)
    begun = files.begin(("",))
    (project / "a.py").unlink()
    assert begun is not None and files.changes().changes == (), "it is under way"
    os.close(begun.lock)  # as when its process dies
    assert files.changes().changes == (FileChange("a.py", "removed", True, True),)


def test_agents_with_folders_of_their_own_have_snapshots_of_those(project: Path) -> None:
    (project / "coder").mkdir()
    (project / "coder" / "mine.txt").write_text("the user's")
    call(project, "write_file", shared=False, path="mine.txt", content="the agent's")
    assert changes(project) == {"coder/mine.txt": "changed"}


def test_another_run_has_a_snapshot_of_its_own(project: Path) -> None:
    call(project, "write_file", path="a.py", content="first")
    call(project, "write_file", path="a.py", content="second", run_id="soup-2")
    RunFiles(project, "soup-2", 0).undo(["a.py"])
    assert (project / "a.py").read_text() == "first"


def test_secrets_and_what_is_made_again_are_not_copied(project: Path) -> None:
    (project / ".env").write_text("secret")
    (project / "node_modules").mkdir()
    (project / "node_modules" / "x.js").write_text("x")
    call(project, "write_file", path="a.py", content="the agent's")
    with pytest.raises(Refused, match="not there before"):
        RunFiles(project, RUN, 0).undo([".env"])


def test_says_that_a_folder_is_too_large(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_FILES", 3)
    call(project, "write_file", path="a.py", content="the agent's")
    assert "more than 3 files" in RunFiles(project, RUN, 0).changes().problem


def test_says_which_files_were_too_much_to_keep(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "MOST_BYTES", 0)
    call(project, "write_file", path="a.py", content="the agent's")
    assert RunFiles(project, RUN, 0).changes().changes == (FileChange("a.py", "changed", False, False),)


def test_old_snapshots_and_their_contents_are_removed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "MOST_SNAPSHOTS", 2)
    for number in range(4):
        (project / "a.py").write_text(f"version {number}")
        RunFiles(project, f"run-{number}", 0, tmp_path).begin(("",))
    kept = {path.read_text() for path in tmp_path.glob("snapshots/*/contents/*/*")}
    assert {text for text in kept if text.startswith("version")} == {"version 2", "version 3"}


def test_what_a_run_changed_is_listed_after_its_snapshot_was_removed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "MOST_SNAPSHOTS", 2)
    for number in range(4):
        call(project, "write_file", run_id=f"run-{number}", path="a.py", content=f"version {number}")
    files = RunFiles(project, "run-0", 0)
    assert files.changes().changes == (FileChange("a.py", "changed", False, True),)
    assert "no longer kept" in files.changes().problem
    with pytest.raises(Refused, match="no longer kept"):
        files.undo(["a.py"])
    call(project, "write_file", run_id="run-0", path="b.py", content="the agent's")
    assert "no longer kept" in files.changes().problem, "a snapshot of now would be none of what was there before"


def test_files_that_cannot_be_listed_are_named(project: Path) -> None:
    odd = os.fsencode(project) + b"/caf\xe9.txt"
    with open(odd, "wb") as file:
        file.write(b"the user's")
    call(project, "run_command", command=python("os.unlink(b'caf\\xe9.txt')"))
    assert "'caf\\udce9.txt'" in RunFiles(project, RUN, 0).changes().problem


def test_says_that_the_workspace_is_gone(project: Path) -> None:
    call(project, "write_file", path="a.py", content="the agent's")
    project.rename(project.with_name("moved"))
    assert "is not there" in RunFiles(project, RUN, 0).changes().problem
    project.with_name("moved").rename(project)
    assert changes(project) == {"a.py": "changed"}


def test_a_damaged_record_is_not_taken_for_no_change(project: Path) -> None:
    call(project, "write_file", path="a.py", content="the agent's")
    folder = state_folder()
    assert folder is not None
    for path in (folder / "snapshots").glob("*/*.json"):
        path.write_text("{")
    files = RunFiles(project, RUN, 0)
    assert "damaged" in files.changes().problem
    with pytest.raises(Refused, match="damaged"):
        files.undo(["a.py"])


def test_a_run_of_which_nothing_is_on_record_is_not_said_to_have_changed_nothing(project: Path) -> None:
    assert not RunFiles(project, RUN, 0).changes().is_on_record
    call(project, "write_file", path="new.py", content="the agent's")
    assert RunFiles(project, RUN, 0).changes() == FileChanges(str(project), "", (), True)


@pytest.mark.parametrize("name", ["a.py", "link"])
def test_a_disk_that_is_full_takes_nothing_away(project: Path, name: str) -> None:
    call(project, "run_command", command=python("os.unlink('link'); os.symlink('b.py', 'link')"))
    call(project, "write_file", path="a.py", content="the agent's")
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ripstop.tools.snapshots.run_files import RunFiles\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "RunFiles(Path(sys.argv[1]), sys.argv[2], 0).undo([sys.argv[3]])"
    )
    done = subprocess.run([sys.executable, "-c", code, project, RUN, name], capture_output=True)
    if name == "link":  # it has no content
        assert done.returncode == 0 and os.readlink(project / "link") == "a.py"
    else:
        assert done.returncode != 0 and (project / "a.py").read_text() == "the agent's"
    assert not list(project.glob(".ripstop*"))


@pytest.mark.parametrize("workspace", ["/a\0b", "/dev/null", "/nothing/there", "/" + "x" * 5000])
def test_a_workspace_that_cannot_be_has_no_changes(workspace: str) -> None:
    assert RunFiles(Path(workspace), "a\ud800b", 0).changes().changes == ()


# Files of runs that have started others


PARENT, CHILD = "soup-1", "soup-1.3"


def family(project: Path, below: str = "") -> FamilyFiles:
    child = RunFiles(project / below, CHILD, 0)
    return FamilyFiles([Member(RunFiles(project, PARENT, 0), ""), Member(child, below)])


def test_what_the_children_of_a_run_changed_comes_back_with_it(project: Path) -> None:
    call(project, "write_file", PARENT, path="a.py", content="the parent's")
    call(project, "write_file", PARENT, path="made.py", content="the parent's")
    call(project, "write_file", CHILD, path="a.py", content="the child's")
    call(project, "write_file", CHILD, path="made.py", content="the child's")
    call(project, "run_command", CHILD, command=python("os.unlink('b.py')"))
    found = family(project).changes().changes
    assert found == (FileChange("a.py", "changed", True, False), FileChange("b.py", "removed", True, False))
    kept = family(project).undo(["a.py", "b.py"])
    assert (project / "a.py").read_text() == "the user's a.py\n", "not what the parent left"
    assert (project / "b.py").read_text() == "the user's b.py\n"
    assert (project / kept["a.py"]).read_text() == "the child's"
    assert (project / "made.py").read_text() == "the child's", "it was not there before"
    assert family(project).changes().changes == ()


def test_a_file_that_a_parent_removed_and_a_child_made_again_was_the_users(project: Path) -> None:
    call(project, "run_command", PARENT, command=python("os.unlink('a.py')"))
    call(project, "write_file", CHILD, path="a.py", content="the child's")
    assert family(project).changes().changes == (FileChange("a.py", "changed", True, True),)


def test_what_a_person_changed_between_two_runs_of_a_family_is_brought_back_only_by_name(project: Path) -> None:
    call(project, "write_file", PARENT, path="a.py", content="the parent's")
    (project / "a.py").write_text("a person's")
    call(project, "write_file", CHILD, path="a.py", content="the child's")
    assert family(project).changes().changes == (FileChange("a.py", "changed", True, True),)


def test_a_child_in_a_folder_of_the_workspace_is_part_of_the_family(project: Path) -> None:
    call(project / "src", "write_file", CHILD, path="c.py", content="the child's")
    assert family(project, "src/").changes().changes == (FileChange("src/c.py", "changed", True, False),)
    family(project, "src/").undo(["src/c.py"])
    assert (project / "src" / "c.py").read_text() == "the user's src/c.py\n"


def test_snapshots_of_one_family_count_as_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "MOST_SNAPSHOTS", 2)
    for run_id in ("old-1", PARENT, *(f"{PARENT}.{number}" for number in range(3, 7))):
        call(project, "write_file", run_id, path="a.py", content=run_id)
    assert changes(project, "old-1") and changes(project, PARENT)
    call(project, "write_file", "new-1", path="a.py", content="new")
    problems = [RunFiles(project, run_id, 0).changes().problem for run_id in ("old-1", PARENT)]
    assert ["no longer kept" in one for one in problems] == [True, False]


@pytest.mark.parametrize("instead", ["os.symlink('/etc', 'src')", "open('src', 'w').write('a file now')"])
def test_what_is_where_a_folder_was_is_moved_away(project: Path, instead: str) -> None:
    call(project, "run_command", command=python(f"os.rename('src', 'gone'); {instead}"))
    RunFiles(project, RUN, 0).undo(["src/c.py"])
    assert (project / "src" / "c.py").read_text() == "the user's src/c.py\n"
    assert os.path.lexists(project / "src.before-undo-1")
