"""Memory that belongs to no process: bounded by how much can be open, and by a cgroup where there is one."""

import os
from pathlib import Path

import pytest

from ripstop.tools.commands import runner
from ripstop.tools.commands.command_groups import (
    Delegation,
    command_group,
    delegation_of,
    find_delegation,
    is_out_of_memory,
)
from ripstop.tools.commands.sandbox import Sandboxes
from tests.tools.test_run_command import call, project, python, sandboxes

__all__ = ["project", "sandboxes"]  # fixtures


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """The groups of a user's session, as systemd makes them."""
    top = tmp_path / "cgroup"
    (top / "user" / "apps" / "terminal").mkdir(parents=True)
    for group, controllers in ((top, "cpu memory"), (top / "user", "memory pids"), (top / "user/apps", "memory pids")):
        (group / "cgroup.subtree_control").write_text(controllers)
        (group / "cgroup.procs").touch()
    (top / "user/apps/terminal/cgroup.subtree_control").touch()
    (tmp_path / "own").write_text("1:name=systemd:/\n0::/user/apps/terminal\n")
    (tmp_path / "mounts").write_text(f"25 1 0:22 / /proc rw - proc proc rw\n30 1 0:26 / {top} rw - cgroup2 cgroup rw\n")
    return tmp_path


def found(groups: Path, is_root: bool = False) -> Delegation:
    return delegation_of(groups / "own", groups / "mounts", is_root)


def test_a_group_is_made_in_the_nearest_one_that_limits_memory(groups: Path) -> None:
    assert found(groups) == Delegation(groups / "cgroup/user/apps")


def test_root_makes_groups_only_where_systemd_says_so(groups: Path) -> None:
    assert found(groups, is_root=True) == Delegation(problem="no cgroup is delegated to this user")
    try:
        os.setxattr(groups / "cgroup/user", "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert found(groups, is_root=True) == Delegation(groups / "cgroup/user")


@pytest.mark.parametrize(
    ("own", "mounts", "problem"),
    [
        ("4:memory:/x\n", None, "no cgroups of version 2"),
        (None, "25 1 0:22 / /proc rw - proc proc rw\n", "no cgroups of version 2"),
        ("0::/../elsewhere\n", None, "no cgroups of version 2"),
        ("", "", "no cgroups of version 2"),
    ],
)
def test_where_there_is_none_the_reason_is_said(
    groups: Path, own: str | None, mounts: str | None, problem: str
) -> None:
    for name, text in (("own", own), ("mounts", mounts)):
        if text is not None:
            (groups / name).write_text(text)
    assert found(groups).folder is None and problem in found(groups).problem


def test_groups_without_limits_of_memory_are_not_used(groups: Path) -> None:
    for one in (groups / "cgroup").rglob("cgroup.subtree_control"):
        one.write_text("cpu")
    (groups / "cgroup/cgroup.subtree_control").write_text("cpu")
    assert "limits memory" in found(groups).problem


def test_a_command_enters_its_group_before_it_begins(
    groups: Path, project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = groups / "cgroup/user/apps"
    monkeypatch.setattr(runner, "find_delegation", lambda: Delegation(made))
    monkeypatch.setattr("ripstop.tools.commands.command_groups.REMOVAL_SECONDS", 0.0)  # files here do not go with it
    assert call(project, sandboxes, ["true"])["exit_code"] == 0
    (group,) = made.glob("ripstop-command-*")
    assert (group / "cgroup.procs").read_text() == "0" and (group / "memory.max").read_text() == str(runner.MEMORY)
    (group / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    assert is_out_of_memory(group)


def test_a_group_is_removed_with_its_command(groups: Path) -> None:
    with command_group(Delegation(groups / "cgroup/user/apps"), 1 << 30, 100) as group:
        assert group is not None
        for file in group.iterdir():
            file.unlink()  # as the kernel does
    assert not group.exists()


def test_the_kernel_ends_a_command_that_fills_sockets(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_delegation().folder is None:
        pytest.skip(f"a command has no cgroup here: {find_delegation().problem}")
    monkeypatch.setattr(runner, "MEMORY", 64 << 20)
    code = python(
        "import socket",
        "kept = [socket.socketpair() for _ in range(400)]",
        "for one, _ in kept:",
        "    one.setblocking(False)",
        "    try:",
        "        while True: one.send(b'x' * 65536)",
        "    except BlockingIOError: pass",
    )
    assert "of memory" in call(project, sandboxes, code)["stopped"]


OPENS_SOCKETS = (
    "import os, socket, time",
    "for _ in range(60):",
    "    if os.fork() == 0: break",
    "kept = []",
    "while len(kept) < 500:",
    "    kept.append(socket.socketpair())",
    "time.sleep(600)",
)


def test_a_command_cannot_have_any_number_of_sockets(project: Path, sandboxes: Sandboxes) -> None:
    result = call(project, sandboxes, python(*OPENS_SOCKETS), seconds=60)
    assert "8,192 files, pipes and sockets" in result["stopped"]


def test_the_buffers_of_sockets_keep_their_size(project: Path, sandboxes: Sandboxes) -> None:
    code = python(
        "import socket",
        "one, _ = socket.socketpair()",
        "before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)",
        "one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)",
        "print(one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before)",
    )
    assert call(project, sandboxes, code)["output"] == "True\n"
