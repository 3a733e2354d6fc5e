"""Commands of agents: what runs, what is refused, and what ends them."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.app.settings.settings_file import Commands, Settings
from ripstop.app.start import environment
from ripstop.app.toolbox import command_rules
from ripstop.engine.performers import Refused
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.tools.commands import mounts, runner
from ripstop.tools.commands.allow_list import CommandRules, started_programs
from ripstop.tools.commands.runner import HEAD, TAIL, BoundedOutput, SandboxedPrograms
from ripstop.tools.commands.sandbox import Sandboxes, find_sandboxes
from ripstop.tools.shared_folder import LISTING, open_beneath
from ripstop.tools.snapshots import listing
from ripstop.tools.toolbox import Toolbox
from ripstop.tools.workspace_tools import FileTools
from tests.tools.tool_requests import tool_request

FOUND = find_sandboxes()
KINDS = {
    "bubblewrap": FOUND if FOUND.kind == "bubblewrap" else None,
    "landlock": replace(FOUND, bwrap="") if FOUND.has_landlock else None,
}


@pytest.fixture(params=KINDS)
def sandboxes(request: pytest.FixtureRequest) -> Sandboxes:
    found = KINDS[request.param]
    if found is None:
        pytest.skip(f"this machine has no {request.param}")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    return folder


def call(project: Path, sandboxes: Sandboxes, command: Any, shared: bool = True, **arguments: Any) -> Any:
    box = Toolbox(files=FileTools(SandboxedPrograms(CommandRules(), sandboxes)))
    settings = RunSettings(workspace=str(project), shared_workspace=shared)
    request = tool_request({"command": command, **arguments}, "soup-1", "run_command", settings, "coder", number=7)
    answer = asyncio.run(box.perform(request))
    assert isinstance(answer, ToolReturned)
    return answer.value


def python(*lines: str) -> list[str]:
    return ["python3", "-c", "\n".join(lines)]


# What runs


def test_tells_the_exit_code_and_both_outputs_in_order(project: Path, sandboxes: Sandboxes) -> None:
    code = python("import sys", "print(1)", "print(2, file=sys.stderr)", "print(3)", "sys.exit(4)")
    result = call(project, sandboxes, code)
    assert (result["exit_code"], result["output"]) == (4, "1\n2\n3\n")


def test_tells_which_files_are_others_after_it(project: Path, sandboxes: Sandboxes) -> None:
    (project / "old.js").write_text("1")
    (project / "same.js").write_text("1")
    (project / "src/gone.js").write_text("1")
    code = python("import os", "open('old.js', 'w').write('2')", "open('src/new.js', 'w')", "os.unlink('src/gone.js')")
    assert call(project, sandboxes, code)["changed_files"] == ["old.js", "src/gone.js", "src/new.js"]
    assert "changed_files" not in call(project, sandboxes, python("print(open('same.js').read())"))
    many = python("for n in range(30): open(f'src/{n}.js', 'w')")
    told = call(project, sandboxes, many)["changed_files"]
    assert (len(told), told[-1]) == (21, "… and 10 more")


def test_tells_that_the_files_it_has_changed_are_not_known(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_FILES", 1)
    for name in ("a", "b"):
        (project / name).write_text("1")
    assert call(project, sandboxes, python("print(1)"))["changed_files"] is None


def test_works_in_the_folder_that_is_named(project: Path, sandboxes: Sandboxes) -> None:
    result = call(
        project, sandboxes, python("open('x.txt', 'w').write('1')", "print(open('x.txt').read())"), folder="src"
    )
    assert result["exit_code"] == 0
    assert (project / "src" / "x.txt").read_text() == "1"


def test_agents_with_their_own_folders_write_those_and_collab(project: Path, sandboxes: Sandboxes) -> None:
    (project / "other").mkdir()
    code = python(
        "open('mine', 'w').write('1')",
        "open('../collab/ours', 'w').write('1')",
        "try: print(open('../other/x', 'w'))",
        "except OSError: print('kept out')",
    )
    assert call(project, sandboxes, code, shared=False)["output"] == "kept out\n"
    assert (project / "coder" / "mine").exists() and (project / "collab" / "ours").exists()
    assert list((project / "other").iterdir()) == []


def test_a_signal_is_told_as_a_shell_tells_it(project: Path, sandboxes: Sandboxes) -> None:
    assert call(project, sandboxes, python("import os", "os.abort()"))["exit_code"] == 128 + signal.SIGABRT


def test_passes_no_variable_of_the_user_on(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("TZ", "Europe/Paris")
    said = call(project, sandboxes, ["env"])["output"]
    assert "sk-0123" not in said and "LD_PRELOAD" not in said and "TZ=Europe/Paris" in said


def test_a_key_in_the_output_is_hidden(project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
    (project / "notes.txt").write_text("the key is sk-0123456789abcdef0123, from https://me:secret1@example.org/x")
    said = call(project, sandboxes, ["cat", "notes.txt"])["output"]
    assert "0123456789" not in said and "secret1" not in said


# What is refused


@pytest.mark.req("S3-89")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["rm", "-rf", "."], "'rm' is not allowed.*write_file.*Allowed: .*python3"),
        (["kill", "-9", "1"], "'kill' is not allowed"),
        (["bash", "-c", "ls"], "There is no shell"),
        (["sudo", "ls"], "'sudo' is not allowed"),
        (["curl", "http://x"], "no network"),
        (["shutdown", "now"], "'shutdown' is not allowed"),
        (["./x"], "given by a path"),
        (["/bin/ls"], "given by a path"),
        (["../.venv/bin/x"], "given by a path"),
        ([".venv/bin/nothing"], "no program"),
        ([".venv/bin/bash"], "There is no shell"),
        (["rm\n"], "not allowed"),
        (["env", "rm", "-rf", "src"], "'rm' is not allowed.*write_file"),
        (["env", "-i", "-u", "A", "B=1", "--", "rm", "-rf", "src"], "'rm' is not allowed"),
        (["env", "-S", "rm -rf src"], "'rm' is not allowed"),
        (["env", "-Srm -rf src"], "'rm' is not allowed"),
        (["env", "-iS", "rm -rf src"], "'rm' is not allowed"),
        (["env", "--split-string=rm -rf src"], "'rm' is not allowed"),
        (["find", ".", "-exec", "env", "rm", "{}", ";"], "'rm' is not allowed"),
        (["env", "nice", "-n", "5", "rm", "x"], "'nice' is not allowed"),
        (["env", "bash", "-c", "ls"], "There is no shell"),
        (["find", ".", "-name", "*.py", "-delete"], "'rm' is not allowed"),
        (["find", ".", "-exec", "/bin/rm", "{}", ";"], "'rm' is not allowed"),
        ([""], "empty"),
        ([], "empty"),
        (["ls", "a\0b"], "NUL"),
        (["ls", "x" * 200_000], "too long"),
        ("ls -l 'a b'", r"list of words.*\['ls', '-l', 'a b'\]"),
        ("ls 'a", "list of words"),
        (["ls", 1], r"\$\.command"),
    ],
)
def test_refuses_a_command_and_says_why(project: Path, command: Any, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        call(project, FOUND, command)
    assert refused.value.fault == "agent"


@pytest.mark.parametrize(
    ("command", "started"),
    [
        (["timeout", "-k", "5", "10", "rm", "x"], ["rm"]),
        (["nice", "-n", "5", "timeout", "10", "xargs", "-n", "1", "rm"], ["timeout", "xargs", "rm"]),
        (["sh", "-c", "rm -rf src && ls"], ["rm"]),
        (["env", "A=1", "python3", "-c", "x"], ["python3"]),
        (["env"], []),
        (["git", "log", "--grep", "rm"], []),
        (["find", ".", "-name", "rm"], []),
    ],
)
def test_looks_through_programs_that_only_start_others(command: list[str], started: list[str]) -> None:
    assert started_programs(command) == started


@pytest.mark.parametrize("folder", ["..", "/", "nothing", "../project", ".git", ".env"])
def test_refuses_a_folder_that_is_not_the_agents(project: Path, folder: str) -> None:
    with pytest.raises(Refused):
        call(project, FOUND, ["ls"], folder=folder)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_refuses_a_time_limit_that_is_none(project: Path, seconds: float) -> None:
    with pytest.raises(Refused, match="seconds"):
        call(project, FOUND, ["ls"], seconds=seconds)


def test_refuses_every_command_where_there_is_no_sandbox(project: Path) -> None:
    with pytest.raises(Refused, match="no sandbox"):
        call(project, Sandboxes(), ["ls"])


def test_runs_unconfined_only_if_the_user_says_so(project: Path) -> None:
    box = Toolbox(files=FileTools(SandboxedPrograms(CommandRules(unconfined=True), Sandboxes())))
    settings = RunSettings(workspace=str(project), shared_workspace=True)
    answer = asyncio.run(
        box.perform(tool_request({"command": ["echo", "1"]}, "soup-1", "run_command", settings, "coder", number=7))
    )
    assert isinstance(answer, ToolReturned) and answer.value["output"] == "1\n"


def test_refuses_a_protected_name_that_is_a_link(project: Path, tmp_path: Path) -> None:
    (project / ".git").rmdir()
    os.symlink(tmp_path, project / ".git")
    with pytest.raises(Refused, match="symbolic link"):
        call(project, FOUND, ["ls"])
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


def test_settings_replace_and_extend_the_list() -> None:
    assert "terraform" in command_rules(Settings(commands=Commands(also=("terraform",)))).allowed
    assert "python3" in command_rules(Settings(commands=Commands(also=("terraform",)))).allowed
    assert command_rules(Settings(commands=Commands(allow=("git",)))).allowed == ("git",)


def test_definitions_can_name_the_tool() -> None:
    assert "run_command" in (environment().tools or ())


# What ends a command


def test_a_command_that_takes_too_long_is_stopped(project: Path, sandboxes: Sandboxes) -> None:
    code = python("import time", "print('begun')", "time.sleep(600)")
    for seconds in (0.7, 5, 60):  # on a busy machine it may not have printed anything yet
        result = call(project, sandboxes, code, seconds=seconds)
        assert result["exit_code"] is None and "time limit" in result["stopped"]
        if result["output"]:
            break
    assert result["output"] == "begun\n"


def test_a_command_that_prints_without_end_is_stopped(project: Path, sandboxes: Sandboxes) -> None:
    result = call(project, sandboxes, python("while True: print('x' * 100000)"), seconds=60)
    assert "printed too much" in result["stopped"]
    assert len(result["output"]) < HEAD + TAIL + 100 and "bytes left out" in result["output"]


def test_output_keeps_its_beginning_and_its_end() -> None:
    output = BoundedOutput()
    for number in range(100_000):
        output.add(f"{number}\n".encode())
    text = output.text()
    assert text.startswith("0\n1\n") and text.endswith("99998\n99999\n")
    head, _, tail = text.partition("\n[… ")
    assert f"{output.total - HEAD - TAIL} bytes left out" in tail and len(head) == HEAD


def test_what_a_command_started_ends_with_it(project: Path, sandboxes: Sandboxes) -> None:
    code = python(
        "import os, time",
        "for _ in range(3):",
        "    if os.fork() == 0:",
        "        os.setsid()",
        "        if os.fork() == 0:",
        "            open('src/%d' % os.getpid(), 'w')",
        "            time.sleep(60)",
        "        os._exit(0)",
        "while len(os.listdir('src')) < 3: time.sleep(0.01)",
    )
    assert call(project, sandboxes, code)["exit_code"] == 0
    assert len(list((project / "src").iterdir())) == 3
    assert _with_cwd(project) == []


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.tools.test_run_command import KINDS, call
print(call(Path(sys.argv[1]), KINDS[sys.argv[2]], ["python3", "-c", sys.argv[3]])["output"])
"""


def test_a_killed_process_leaves_no_command_behind(project: Path, sandboxes: Sandboxes) -> None:
    code = "import os, time\nif os.fork() == 0: os.setsid()\nopen('src/begun', 'w')\ntime.sleep(60)"
    ours = subprocess.Popen([sys.executable, "-c", PROGRAM, str(project), sandboxes.kind, code])
    _until((project / "src" / "begun").exists)
    assert _with_cwd(project)
    ours.kill()
    ours.wait()
    _until(lambda: not _with_cwd(project))


def test_a_cancelled_call_ends_its_command(project: Path, sandboxes: Sandboxes) -> None:
    box = Toolbox(files=FileTools(SandboxedPrograms(CommandRules(), sandboxes)))
    settings = RunSettings(workspace=str(project), shared_workspace=True)
    code = python("import time", "open('src/begun', 'w')", "time.sleep(60)")

    async def cancel() -> None:
        working = asyncio.ensure_future(
            box.perform(tool_request({"command": code}, "soup-1", "run_command", settings, "coder", number=7))
        )
        while not (project / "src" / "begun").exists():
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(cancel())
    assert _with_cwd(project) == []
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


def test_a_repository_that_a_command_made_is_renamed(project: Path, sandboxes: Sandboxes) -> None:
    result = call(project, sandboxes, python("import os", "os.makedirs('src/sub/.git/hooks')"))
    assert "src/sub/.git" in result["notes"][0]
    assert [path.name for path in (project / "src" / "sub").iterdir()] == ["git-made-by-a-command-1"]


def test_a_repository_that_was_there_keeps_its_name_where_it_is_moved(project: Path) -> None:
    (project / "sub" / ".git").mkdir(parents=True)
    call(project, FOUND, python("import os", "os.rename('sub', 'moved')"))
    [repository] = [*project.glob("sub/*"), *project.glob("moved/*")]
    assert repository.name == ".git"


def _with_cwd(folder: Path) -> list[int]:
    """The processes that work in a folder or below it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(folder)):
                found.append(int(pid))
        except OSError:
            continue
    return found


def _until(holds: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_no_repository_is_left_inside_of_another_or_without_a_name(project: Path, sandboxes: Sandboxes) -> None:
    make = "os.makedirs('{0}/objects'); os.makedirs('{0}/refs'); open('{0}/HEAD', 'w').write('ref: refs/heads/x')"
    nested, bare = make.format("src/.git/sub/.git"), make.format("docs")
    call(project, sandboxes, python("import os", nested, bare))
    left = [str(path.relative_to(project)) for path in project.rglob("*") if path.name in (".git", "HEAD")]
    assert left == [".git"], "only that of the project"


RUNS = '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {ran}; false"\n'
COMMON = RUNS + "\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n"
OWN = "[core]\n\tbare = false\n\tworktree = ../site\n"
REPOSITORIES = {
    "bare": {"site/HEAD": "", "site/objects/": "", "site/refs/": "", "site/config": RUNS + OWN},
    "commondir": {
        "site/HEAD": "",
        "site/commondir": "../img\n",
        "site/config.worktree": OWN,
        "img/objects/": "",
        "img/refs/": "",
        "img/config": COMMON,
    },
    "objects elsewhere": {"site/HEAD": "", "site/refs/": "", "site/config": RUNS + OWN},
    "a file .git": {
        "img/HEAD": "",
        "img/objects/": "",
        "img/refs/": "",
        "img/config": RUNS,
        "site/.git": "gitdir: ../img\n",
    },
}


def _make(top: str, files: dict[str, str], ran: Path) -> str:
    """A program that makes them."""
    lines = ["import os"]
    for name, text in files.items():
        path, content = f"{top}/{name}", text.format(ran=ran) or "ref: refs/heads/main\n"
        lines.append(f"os.makedirs({os.path.dirname(path)!r}, exist_ok=True)")
        if not path.endswith("/"):
            lines.append(f"open({path!r}, 'w').write({content!r})")
    return "\n".join(lines)


def _git_runs(folder: Path, ran: Path, **more: str) -> bool:
    """Whether a user's `git status` in a folder runs what its settings name."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **more}
    subprocess.run(["git", "status"], cwd=folder, env=environment, capture_output=True, check=False)
    return ran.exists()


@pytest.mark.parametrize("name", REPOSITORIES)
def test_git_runs_nothing_in_a_folder_that_a_command_made(
    project: Path, sandboxes: Sandboxes, tmp_path: Path, name: str
) -> None:
    ran, objects = tmp_path / "ran", tmp_path / "objects"
    objects.mkdir()
    more = {"GIT_OBJECT_DIRECTORY": str(objects)} if name == "objects elsewhere" else {}
    program = _make("src", REPOSITORIES[name], ran)
    subprocess.run([sys.executable, "-c", program.replace("src/", "unconfined/")], cwd=project, check=True)
    assert _git_runs(project / "unconfined" / "site", ran, **more), "the attack is one"
    ran.unlink()
    call(project, sandboxes, python(program))
    assert not _git_runs(project / "src" / "site", ran, **more)


@pytest.mark.parametrize("repository", ["vendor/repo.git", "gitstore"])
def test_a_repository_that_was_there_is_read_only_as_a_whole(
    project: Path, sandboxes: Sandboxes, repository: str
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(project / repository)], check=True)
    before = {path: path.stat().st_mtime_ns for path in (project / repository).rglob("*")}
    writes = (
        "open(r + '/config', 'a').write('[core]')",
        "open(r + '/hooks/pre-commit', 'w').write('x')",
        "os.unlink(r + '/HEAD')",
        "os.rename(r, 'src/away')",
        "os.rename(r + '/hooks', 'src/hooks')",
    )
    tries = [line for write in writes for line in ("try:", f" {write}", " print('written')", "except OSError: pass")]
    code = python("import os", f"r = {repository!r}", "print(open(r + '/HEAD').read())", *tries)
    result = call(project, sandboxes, code)
    assert "ref: refs" in result["output"] and "written" not in result["output"]
    assert {path: path.stat().st_mtime_ns for path in (project / repository).rglob("*")} == before
    assert "Renamed" not in str(result)


def test_a_workspace_that_git_takes_for_a_repository_itself_is_not_for_commands(
    project: Path, sandboxes: Sandboxes
) -> None:
    (project / "HEAD").write_text("ref: refs/heads/main\n")
    (project / "refs").mkdir()
    with pytest.raises(Refused, match="a HEAD, with refs"):
        call(project, sandboxes, ["ls"])


def test_a_file_with_secrets_in_a_folder_that_is_read_only_is_hidden(project: Path, sandboxes: Sandboxes) -> None:
    (project / "workflows" / "a").mkdir(parents=True)
    (project / "workflows" / "a" / ".env").write_text("secret")
    (project / "workflows" / "a" / "workflow.yaml").write_text("agents")
    result = call(project, sandboxes, python("print(open('workflows/a/workflow.yaml').read())"))
    assert "agents" in result["output"]
    assert "secret" not in call(project, sandboxes, python("print(open('workflows/a/.env').read())"))["output"]


def test_other_links_of_a_file_with_secrets_are_hidden_as_well(project: Path, sandboxes: Sandboxes) -> None:
    (project / "conf" / "deep").mkdir(parents=True)
    (project / "conf" / "deep" / ".env").write_text("secret")
    (project / "a.txt").hardlink_to(project / "conf" / "deep" / ".env")
    (project / "src" / "z.txt").hardlink_to(project / "conf" / "deep" / ".env")
    (project / "src" / "other.txt").write_text("other")
    for name, expected in (("a.txt", False), ("src/z.txt", False), ("src/other.txt", True)):
        result = call(project, sandboxes, ["cat", name])
        assert ("other" in result["output"], "secret" in result["output"]) == (expected, False), name
    assert (project / "a.txt").read_text() == "secret"


def test_other_links_of_a_file_that_is_read_only_are_read_only(project: Path, sandboxes: Sandboxes) -> None:
    (project / "ripstop.toml").write_text("# mine")
    (project / "src" / "link").hardlink_to(project / "ripstop.toml")
    call(project, sandboxes, python("open('src/link', 'w').write('x')"))
    assert (project / "ripstop.toml").read_text() == "# mine"


def test_memory_that_no_limit_of_a_process_counts_is_bounded(project: Path, sandboxes: Sandboxes) -> None:
    program = """
import os
try:
    open("/dev/shm/x", "w")
    size = os.statvfs("/dev/shm")
    print(size.f_blocks * size.f_frsize <= 1 << 30)
except OSError:
    print(True)
try:
    print(os.memfd_create("x"))
except OSError as error:
    print("no memfd", error.errno)
"""
    told = call(project, sandboxes, ["python3", "-c", program])
    assert "True\nno memfd 38" in told["output"], told


FILLS_SHARED_MEMORY = """
import ctypes, mmap, time
size, piece = {size} << 20, 16 << 20
shared = mmap.mmap(-1, size)
for start in range(0, size, piece):
    shared[start:start + piece] = bytes([1]) * piece
    shared.madvise(mmap.MADV_DONTNEED, start, piece)
first = ctypes.addressof(ctypes.c_char.from_buffer(shared))
ctypes.CDLL(None).munmap(ctypes.c_void_p(first + {kept}), ctypes.c_size_t(size - {kept}))
print("filled", flush=True)
time.sleep({seconds})
"""


ONE_AT_A_TIME = pytest.mark.xdist_group("shared memory")
"""It is counted for the whole system, so what another test gives back at that moment would be missing."""


@ONE_AT_A_TIME
@pytest.mark.parametrize("kept", [1 << 12, 1 << 28])
def test_shared_memory_that_no_process_has_mapped_is_counted(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(runner, "MEMORY", 400 << 20)
    program = FILLS_SHARED_MEMORY.format(size=608, kept=kept, seconds=600)
    assert "of memory" in call(project, sandboxes, python(program), seconds=60).get("stopped", "")


@ONE_AT_A_TIME
def test_shared_memory_within_the_limit_is_not_a_reason_to_stop(project: Path, sandboxes: Sandboxes) -> None:
    result = call(project, sandboxes, python(FILLS_SHARED_MEMORY.format(size=64, kept=4096, seconds=1)))
    assert (result["exit_code"], result["output"]) == (0, "filled\n")


def test_a_file_without_a_name_cannot_run_with_its_owners_rights(project: Path, sandboxes: Sandboxes) -> None:
    code = python(
        "import os",
        "def opens(mode):",
        "    try: return os.fstat(os.open('src', os.O_TMPFILE | os.O_RDWR, mode)).st_mode & 0o7777",
        "    except OSError as error: return error.errno",
        "print(*map(opens, (0o4755, 0o2755, 0o600)))",
    )
    assert call(project, sandboxes, code)["output"] == f"1 1 {0o600}\n"


# One command at a time


def test_a_command_has_no_descriptor_of_ours(project: Path, sandboxes: Sandboxes) -> None:
    (project / "sub" / ".git").mkdir(parents=True)
    code = "import os; print([os.readlink(f'/proc/self/fd/{one}') for one in range(3, 500) if _open(one)])"
    defined = "def _open(one):\n    try: os.fstat(one)\n    except OSError: return False\n    return True\nimport os\n"
    assert call(project, sandboxes, ["python3", "-c", defined + code])["output"] == "[]\n"


def test_commands_of_several_processes_run_one_after_the_other(project: Path, sandboxes: Sandboxes) -> None:
    code = "import os, time\nos.mkdir('src/running')\ntime.sleep(0.3)\nos.rmdir('src/running')\nprint('alone')"
    words = [sys.executable, "-c", PROGRAM]
    ours = [
        subprocess.Popen([*words, str(project), sandboxes.kind, code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [one.communicate()[0].strip() for one in ours] == ["alone"] * 3
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


def test_the_next_command_removes_what_a_killed_process_left(project: Path, sandboxes: Sandboxes) -> None:
    code = "import time\nopen('src/begun', 'w')\ntime.sleep(60)"
    ours = subprocess.Popen([sys.executable, "-c", PROGRAM, str(project), sandboxes.kind, code])
    _until((project / "src" / "begun").exists)
    ours.kill()
    ours.wait()
    assert (project / "workflows").exists(), "the placeholder of the killed process"
    call(project, sandboxes, ["true"])
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


# What commands are kept from, while others change it


KEEPS_WRITING = """
import os, sys, time
open('src/begun', 'w')
while True:
    for act in (lambda: open(sys.argv[1], 'a').write('agent'), lambda: os.mkdir(sys.argv[1])):
        try:
            act()
        except OSError:
            pass
"""


def _run_while(project: Path, sandboxes: Sandboxes, name: str, change: Callable[[], object]) -> Any:
    """Run a command that writes a name as often as it can, and change something when it has begun."""
    working: list[Any] = []
    command = ["python3", "-c", KEEPS_WRITING, name]
    thread = threading.Thread(target=lambda: working.append(call(project, sandboxes, command, seconds=3.0)))
    thread.start()
    _until((project / "src" / "begun").exists)
    change()
    thread.join()
    return working[0]


@pytest.mark.parametrize("name", ["ripstop.toml", ".env", "sub/.env"])
def test_a_file_that_an_editor_saves_is_not_written_by_a_command(
    project: Path, sandboxes: Sandboxes, name: str
) -> None:
    (project / "sub").mkdir()
    (project / name).write_text("old")

    def save() -> None:
        (project / "new").write_text("saved")
        os.replace(project / "new", project / name)

    result = _run_while(project, sandboxes, name, save)
    assert (project / name).read_text() in ("old", "saved")
    kept = [path.read_text() for path in (project / name).parent.glob(f"{Path(name).name}*")]
    assert any(text.startswith("saved") for text in kept), "what was saved is never lost"
    if sandboxes.kind == "bubblewrap":
        assert "run it again" in result["stopped"]


def test_an_editors_save_stays_if_the_command_does_not_touch_it(project: Path) -> None:
    (project / "ripstop.toml").write_text("old")

    def save() -> None:
        (project / "new").write_text("saved")
        os.replace(project / "new", project / "ripstop.toml")

    _run_while(project, FOUND, "src/other", save)
    assert (project / "ripstop.toml").read_text() == "saved"
    assert not list(project.glob("ripstop.toml.*"))


def test_a_folder_that_was_removed_is_not_made_by_a_command(project: Path, sandboxes: Sandboxes) -> None:
    _run_while(project, sandboxes, "workflows", (project / "workflows").rmdir)
    assert not (project / "workflows").exists()


def test_a_folder_with_too_many_files_is_not_for_commands(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "MOST_LOOKED_AT", 50)
    made = call(project, sandboxes, python("for name in range(60): open(f'src/{name}', 'w')"))
    assert "more than 50 files" in made["notes"][0]
    with pytest.raises(Refused, match=r"more than 50 files and folders.*Move away"):
        call(project, sandboxes, ["true"])
    assert sorted(path.name for path in project.iterdir()) == [".git", "src"]


def test_a_folder_that_cannot_be_looked_into_is_not_for_commands(
    project: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(folder: int, parts: tuple[str, ...], flags: int = 0) -> int:
        if parts == ("src",) and flags == LISTING:
            raise PermissionError(13, "Permission denied")
        return open_beneath(folder, parts, flags)

    monkeypatch.setattr(mounts, "open_beneath", closed)  # root reads every folder
    with pytest.raises(Refused, match=r"'src' cannot be read.*Make it readable"):
        call(project, sandboxes, ["true"])
