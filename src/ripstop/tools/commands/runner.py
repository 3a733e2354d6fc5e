"""Runs one command in its sandbox, and says what came of it.

The launcher (`launcher.py`) is a process of its own that starts and watches the command. We read what is printed, and
close its standard input when the command is to end: because it prints too much, or because our call was cancelled. If
we die, that closes as well. The launcher then kills everything, so nothing that a command started outlives it.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.performers import InDoubt, Refused, TryAgain
from ripstop.kernel.advice import Advice, NextStep
from ripstop.security.redaction import redacted, secrets_in

from ..shared_folder import in_words
from .allow_list import CommandRules, program, search_path
from .command_groups import command_group, find_delegation, is_out_of_memory
from .landlock import SIGNALS_ABI, landlock_rules
from .mounts import CommandFolders, CommandPlace, command_place, rename_repositories
from .protection import Contents, contents_of, put_back, watching
from .sandbox import HOME, Sandboxes, SandboxKind, bubblewrap_arguments, find_sandboxes
from .syscall_filter import EVERYWHERE, OWN_NETWORK, SIGNALS, WITHOUT_NAMESPACES, filter_program, machine
from .turns import CommandTurn, command_turn

# The environment of a command, made from nothing: no variable of the user's, so no key, reaches it.
#
# `LANG` and `TZ` are the exceptions. What is set here keeps programs from the network, from questions, from colours,
# and git from code that a repository brings (its hooks; the sandbox holds the rest).


PASSED_ON = ("LANG", "TZ")
_PLAIN = re.compile(r"[A-Za-z0-9_.@/+-]{1,64}")
_GIT = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "credential.helper": "",
    "gc.auto": "0",
    "protocol.ext.allow": "never",
    "safe.directory": "*",
}


def command_environment(path: list[str], home: str, users: Mapping[str, str]) -> dict[str, str]:
    """Args:
    path: The folders in which programs are looked for.
    home: A folder that only this command has.
    users: The user's own variables.
    """
    passed = {name: users[name] for name in PASSED_ON if _PLAIN.fullmatch(users.get(name, ""))}
    git = {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_GIT)}
    git |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT.values())}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": ":".join(path),
        "HOME": home,
        "TMPDIR": home,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "CI": "1",
        "PAGER": "cat",
        "EDITOR": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PIP_NO_INDEX": "1",
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "CARGO_NET_OFFLINE": "true",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_COUNT": str(len(_GIT)),
        **git,
    }


# What a command prints, as far as an agent is told: its beginning and its end, and how much is missing between.


HEAD, TAIL = 12_000, 12_000
"""Bytes that are kept of the beginning and of the end."""
MAX_OUTPUT = 64 * 1024 * 1024
"""Bytes; a command that prints more is stopped."""

_CREDENTIALS = re.compile(r"(://)[^\s/@:]*:[^\s/@]+@")


class BoundedOutput:
    """Takes any number of bytes, and keeps a bounded number of them."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * TAIL:  # cut now and then, not with every piece
            del self._tail[:-TAIL]

    @property
    def is_too_much(self) -> bool:
        return self.total > MAX_OUTPUT

    def text(self) -> str:
        """What is kept; passwords in addresses (`https://user:password@…`) are left out."""
        tail = bytes(self._tail[-TAIL:])
        missing = self.total - len(self._head) - len(tail)
        cut = f"\n[… {missing} bytes left out …]\n" if missing else ""
        parts = bytes(self._head).decode(errors="replace") + cut + tail.decode(errors="replace")
        if not missing:
            parts = (bytes(self._head) + tail).decode(errors="replace")
        return _CREDENTIALS.sub(r"\1…@", parts)


LAUNCHER = Path(__file__).with_name("launcher.py")
PROCESSES = 256
"""Processes of one command, with all that it starts."""
THREADS = 4096
"""Threads of all of them."""
MEMORY = min(4 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
"""Bytes, of all of them together."""
DESCRIPTORS = 8192
"""Open files, pipes and sockets of all of them together."""
GRACE = 30.0
"""Seconds after its time limit in which the launcher must have ended everything."""
RLIMITS = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 1024, "RLIMIT_FSIZE": 1 << 30, "RLIMIT_DATA": MEMORY}
_CHUNK = 1 << 16

Result = TypeVar("Result")

STOPPED = {
    "time": "it took longer than its time limit",
    "output": "it printed too much",
    "processes": f"it started more than {PROCESSES} processes, or {THREADS} threads",
    "replaced": "something that commands are kept from was replaced while it ran, such as by an editor; run it again",
    "memory": f"it used more than {MEMORY >> 20:,} MiB of memory",
    "descriptors": f"it had more than {DESCRIPTORS:,} files, pipes and sockets open",
}


class CommandResult(Struct, frozen=True, kw_only=True):
    exit_code: int | None
    """As a shell would say it: 128 and more for a signal. `None`: it was stopped."""
    output: str
    """What it printed, to both outputs in order; its middle is left out if it is long."""
    seconds: float
    stopped: str = ""
    """Why it was stopped before its end."""
    notes: tuple[str, ...] = ()


class SandboxedPrograms:
    """What runs commands, by the user's rules and with the sandbox that there is."""

    def __init__(self, rules: CommandRules = CommandRules(), sandboxes: Sandboxes | None = None) -> None:
        self.rules = rules
        self._sandboxes = sandboxes

    @property
    def kind(self) -> SandboxKind:
        return self._found().kind

    def check_sandbox(self) -> None:
        """Raise `Refused` if commands would have no sandbox, and the user has not said that they need none."""
        if self.kind == "none" and not self.rules.unconfined:
            said = "Commands cannot be run here: there is no sandbox for them (bubblewrap, or Landlock with seccomp). "
            raise Refused(Advice(said, NextStep("doctor", "Install one of them.", "`{}` says what is missing.")))

    def time_limit(self, seconds: float | None) -> float:
        """Raises `Refused` for a time that is none."""
        if seconds is None:
            return self.rules.seconds
        if not 0 < seconds < float("inf"):
            raise Refused(f"`seconds` must be above 0 (at most {self.rules.seconds:g}), not {seconds!r}.", "agent")
        return min(seconds, self.rules.seconds)

    async def run(self, command: list[str], folders: CommandFolders, seconds: float | None = None) -> CommandResult:
        """Run a command. Raises `Refused` if it was not started."""
        self.check_sandbox()
        limit = self.time_limit(seconds)
        file = program(command, self.rules, folders.folder, folders.root)
        async with command_turn(folders) as turn, AsyncExitStack() as stack:
            try:
                place = await _entered(stack, command_place(folders, turn.workspace))
                home = Path(tempfile.mkdtemp(prefix="ripstop-command-"))
                stack.callback(shutil.rmtree, home, ignore_errors=True)
                spec = self._spec(command, file, place, home, limit)
                if self.kind == "landlock":
                    rules = landlock_rules(place, home, self._readable, self._found().landlock)
                    spec["ruleset"] = await _entered(stack, rules)
                elif self.kind == "bubblewrap":
                    spec["watch"] = await _entered(stack, watching(place))
            except OSError as error:
                raise in_words(folders.workspace, error) from error
            group = stack.enter_context(command_group(find_delegation(), MEMORY, THREADS))
            spec["group"] = str(group or "")
            result = await self._run(spec, place, turn)
            if group and is_out_of_memory(group):
                return replace(result, exit_code=None, stopped=STOPPED["memory"])
            return result

    def _found(self) -> Sandboxes:
        if self._sandboxes is None:
            self._sandboxes = find_sandboxes()
        return self._sandboxes

    @property
    def _readable(self) -> tuple[Path, ...]:
        return tuple(Path(folder).expanduser() for folder in self.rules.read)

    def _spec(self, command: list[str], file: str, place: CommandPlace, home: Path, limit: float) -> dict[str, Any]:
        found, kind = self._found(), self.kind
        bwrapped = kind == "bubblewrap"
        spec: dict[str, Any] = {
            "kind": kind,
            "parent": os.getpid(),
            "program": file,
            "argv": command,
            "folder": place.folder.descriptor,
            "environment": command_environment(search_path(self.rules), HOME if bwrapped else str(home), os.environ),
            "seconds": limit,
            "processes": PROCESSES,
            "threads": THREADS,
            "memory": MEMORY,
            "descriptors": DESCRIPTORS,
            "group": "",
            "rlimits": {**RLIMITS, "RLIMIT_CPU": int(limit * 4) + 1},
        }
        if bwrapped:
            spec["argv"] = [*bubblewrap_arguments(found.bwrap, place, self._readable), file, *command[1:]]
            spec["program"] = found.bwrap
            spec["seccomp"] = filter_program((*EVERYWHERE, *OWN_NETWORK), machine()).hex()
        elif kind == "landlock":
            denied = (*EVERYWHERE, *WITHOUT_NAMESPACES, *(SIGNALS if found.landlock < SIGNALS_ABI else ()))
            spec["seccomp"] = filter_program(denied, machine()).hex()
        return spec

    async def _run(self, spec: dict[str, Any], place: CommandPlace, turn: CommandTurn) -> CommandResult:
        reading, writing = os.pipe()
        kept, before = [writing, turn.lock], contents_of(place) if spec["kind"] == "bubblewrap" else {}
        passed: tuple[int, ...] = ()
        if spec["kind"] == "bubblewrap":
            passed = tuple(one.descriptor for one in (*place.writable, *place.read_only))
            kept += [spec["watch"]["descriptor"]] if spec["watch"] else []
        else:
            kept += [spec["folder"], *([spec["ruleset"]] if "ruleset" in spec else [])]
        try:
            launcher = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(LAUNCHER)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                start_new_session=True,
                pass_fds=(*kept, *passed),
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        output = BoundedOutput()
        try:
            async with asyncio.timeout(spec["seconds"] + GRACE):
                await _watch(launcher, {**spec, "status": writing, "kept": kept}, output)
        finally:
            await _end(launcher)
            told = os.read(reading, _CHUNK)
            os.close(reading)
            notes = await _finished(asyncio.to_thread(_tidied, place, spec["kind"], told, before))
        return _result(told, output, spec, notes)


async def _watch(launcher: asyncio.subprocess.Process, spec: dict[str, Any], output: BoundedOutput) -> None:
    assert launcher.stdin is not None and launcher.stdout is not None
    launcher.stdin.write(json.dumps(spec).encode() + b"\n")
    await launcher.stdin.drain()
    while data := await launcher.stdout.read(_CHUNK):
        output.add(data)
        if output.is_too_much:
            return
    await launcher.wait()


async def _end(launcher: asyncio.subprocess.Process) -> None:
    """Have the launcher end everything, and wait for it."""
    assert launcher.stdin is not None and launcher.stdout is not None
    launcher.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            while await launcher.stdout.read(_CHUNK):
                pass  # asyncio waits for the end of a pipe before it says that a process has ended
            await launcher.wait()
    if launcher.returncode is None:
        launcher.kill()


def _result(told: bytes, output: BoundedOutput, spec: dict[str, Any], notes: list[str]) -> CommandResult:
    if not told:
        raise InDoubt("The process that watched the command was killed; what the command did is not known.")
    said = json.loads(told)
    if said["problem"]:
        raise Refused(f"The command could not be started: {said['problem']}")
    stopped = "output" if output.is_too_much else said["stopped"]
    if said["left"]:
        notes.append(f"{said['left']} processes could not be ended.")
    if spec["kind"] == "landlock" and said["code"]:
        notes.append("In this sandbox nothing new can be made in the top folder of a project, only in folders below.")
    code = said["code"]
    return CommandResult(
        exit_code=None if stopped else 128 - code if code < 0 else code,
        output=redacted(output.text(), *secrets_in(os.environ)),
        seconds=round(said["seconds"], 2),
        stopped=STOPPED.get(stopped, stopped),
        notes=tuple(notes),
    )


def _tidied(place: CommandPlace, kind: SandboxKind, told: bytes, before: Contents) -> list[str]:
    """Undo what a command must not do in its folders; returns what there is to tell of it.

    `told`: what the launcher said; nothing if it was killed.
    """
    notes = []
    try:
        if kind == "bubblewrap":
            notes += put_back(place, json.loads(told)["seen"] if told else None, before)
        renamed = rename_repositories(place)
    except (Refused, TryAgain, OSError) as error:
        return [*notes, f"Not all that the command made could be looked at. {error}"]
    return [*notes, *(f"Renamed, because it is not for commands to make: {name}" for name in renamed[:20])]


async def _finished(working: Awaitable[Result]) -> Result:
    """Wait for something to its end, also if we are cancelled meanwhile."""
    task = asyncio.ensure_future(working)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _entered(stack: AsyncExitStack, making: AbstractContextManager[Result]) -> Result:
    """Enter a context in a thread, because it looks at many files; it is left if we are cancelled meanwhile."""
    entering = asyncio.ensure_future(asyncio.to_thread(making.__enter__))
    try:
        entered = await asyncio.shield(entering)
    except asyncio.CancelledError:
        await asyncio.wait([entering])  # before what it uses is closed
        if entering.exception() is None:
            making.__exit__(None, None, None)
        raise
    stack.push(making)
    return entered
