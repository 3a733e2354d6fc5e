"""Runs every attack of the table as an agent would, and looks for effects outside of the project and processes left.

python -m tests.harness.command_attacks --sandbox bubblewrap --sandbox landlock
"""

import argparse
import asyncio
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from msgspec.structs import replace

from ripstop.engine.performers import Refused
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.tools.commands.allow_list import CommandRules
from ripstop.tools.commands.runner import SandboxedPrograms
from ripstop.tools.commands.sandbox import Sandboxes, find_sandboxes
from ripstop.tools.toolbox import Toolbox
from ripstop.tools.workspace_tools import FileTools
from tests.harness.command_attack import Attack
from tests.harness.command_attack_table import PROTECTED, attacks
from tests.tools.tool_requests import tool_request

SECRET = "canary-7f3a9c51"
TOLD = "ESCAPED"
MARK = "ripstop-attack"
MOST_SEARCHED = 10_000_000
"""Bytes of a file in which a secret is looked for."""
WATCHED = ("/", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/usr/local/bin", "/run")
OF_SYSTEM = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/usr/bin/env")


class Found(NamedTuple):
    attacks: int
    refused: int
    effects: list[str]
    left: list[str]
    harmless: int
    broken: list[str]
    """Harmless commands that did not work."""
    seconds: float


class World:
    """A project, what is outside of it, and a machine to hurt."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        self.base = base
        self.project = base / "project"
        self.template = base / "template"
        self.effects: list[str] = []
        for path in ("outside/secret.txt", "outside/deep/x.txt", "home/.ssh/id_rsa"):
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_text(SECRET)
        self._make_template()
        self.port = _free_port()
        stack.enter_context(_listening(self, socket.AF_INET, ("127.0.0.1", self.port)))
        stack.enter_context(_listening(self, socket.AF_INET, ("127.0.0.1", self.port), socket.SOCK_DGRAM))
        stack.enter_context(_listening(self, socket.AF_UNIX, str(base / "outside" / "s")))
        stack.enter_context(_listening(self, socket.AF_UNIX, str(base / "run.sock")))
        stack.enter_context(_listening(self, socket.AF_UNIX, f"\0{base.name}"))
        # SIGURG does nothing to other programs, so it can be sent to all processes at once
        code = (
            "import signal, sys, time; signal.signal(signal.SIGURG, lambda *_: sys.exit()); "
            "print(flush=True); time.sleep(100000)"
        )
        self.victim = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env={"SECRET_KEY": SECRET},
                start_new_session=True,
                stdout=subprocess.PIPE,
            )
        )
        stack.callback(self.victim.kill)
        assert self.victim.stdout
        self.victim.stdout.readline()  # before that, it would change by itself
        self._before = self._outside()

    def _make_template(self) -> None:
        subprocess.run(["git", "init", "-q", "--bare", self.template / "vendor/repo.git"], check=True)
        for path in PROTECTED:
            if not path.startswith((".git/", "vendor/")):
                (self.template / path).parent.mkdir(parents=True, exist_ok=True)
                (self.template / path).write_text(SECRET if path.startswith((".env", ".ripstop")) else "an idea")
        for path, text in {"src/a.txt": "text\n", "src/b.txt": "other\n", "conf/.env.local": SECRET}.items():
            (self.template / path).parent.mkdir(parents=True, exist_ok=True)
            (self.template / path).write_text(text)
        hello = self.template / "node_modules/.bin/hello"
        hello.parent.mkdir(parents=True)
        hello.write_text("#!/usr/bin/env node\nconsole.log('hello')\n")
        hello.chmod(0o755)
        (self.template / ".gitignore").write_text(".env*\n.ripstop\n")
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        for words in (["init", "-q"], ["add", "src"], [*identity, "commit", "-q", "-m", "first"]):
            subprocess.run(["git", *words], cwd=self.template, check=True, env={"PATH": os.environ["PATH"]})
        (self.template / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")

    def reset(self, attack: Attack) -> None:
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self.template, self.project, symlinks=True)
        os.link(self.base / "run.sock", self.project / "run.sock")
        os.link(self.project / "conf/.env.local", self.project / "conf" / "hard-link")
        os.symlink("/", self.project / "link")
        os.symlink(self.base / "outside", self.project / "src" / "link")
        os.symlink(self.base / "outside" / "s", self.project / "src" / "link.sock")
        for path, text in attack.files.items():
            (self.project / path).write_text(self.fill(text))

    def fill(self, text: Any) -> Any:
        if isinstance(text, list):
            return [self.fill(one) for one in text]
        values = {
            "outside": self.base / "outside/secret.txt",
            "home": self.base / "home/.ssh/id_rsa",
            "base": self.base,
            "victim": self.victim.pid,
            "harness": os.getpid(),
            "port": self.port,
            "socket": self.base / "outside/s",
            "abstract": self.base.name,
        }
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text.replace("{{", "{").replace("}}", "}")

    def look(self, shown: str) -> list[str]:
        """What an attack has done that it must not; everything is then as if it had not been."""
        found, self.effects = self.effects, []
        if SECRET in shown:
            found.append("a secret was read")
        if TOLD in shown:
            found.append("it got what it must not get")
        after = self._outside()
        found += [f"{name} changed" for name in self._before if self._before[name] != after.get(name)]
        found += [f"{name} is new" for name in after if name not in self._before]
        self._before = after
        found += self._changed_protected()
        found += self._copied_secrets()
        if self.victim.poll() is not None:
            found.append("a process outside was killed")
        return found

    def _outside(self) -> dict[str, str]:
        found = {}
        for folder in (self.base / "outside", self.base / "home"):
            for path in (folder, *sorted(folder.rglob("*"))):
                if os.path.lexists(path):  # an attack can get through
                    found[str(path)] = _seen(path)
        for path in map(Path, OF_SYSTEM):
            found[str(path)] = _seen(path)
        for folder in map(Path, WATCHED):
            found |= {f"{folder}/{name}": "" for name in os.listdir(folder) if MARK in name}
        victim = f"/proc/{self.victim.pid}"
        if os.path.exists(f"{victim}/limits"):
            nice = os.getpriority(os.PRIO_PROCESS, self.victim.pid)
            state = (Path(f"{victim}/limits").read_text(), Path(f"{victim}/oom_score_adj").read_text(), nice)
            found["the victim"] = repr((*state, os.sched_getaffinity(self.victim.pid), _can_go_on(self.victim.pid)))
        return found

    def _changed_protected(self) -> Iterator[str]:
        for name in dict.fromkeys(path.split("/")[0] for path in PROTECTED):
            if _tree(self.template / name) != _tree(self.project / name):
                yield f"{name} changed"
        for name in (".workflows",):
            if os.path.lexists(self.project / name):
                yield f"{name} is new"
        for folder, names, files in os.walk(self.project):
            if ".git" in (*names, *files) and Path(folder) != self.project:
                yield f"{folder}/.git is new"
            if "HEAD" in (*names, *files) and not (self.template / Path(folder).relative_to(self.project)).exists():
                command = ["git", "-C", folder, "rev-parse", "--git-dir"]
                if subprocess.run(command, capture_output=True, check=False).stdout == b".\n":
                    yield f"{folder} is a repository"

    def _copied_secrets(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.project):
            names[:] = [name for name in names if name != ".ripstop"]
            for path in (Path(folder, name) for name in files if not name.startswith((".env", "hard-link"))):
                if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_SEARCHED:
                    continue
                if SECRET.encode() in path.read_bytes():
                    yield f"a secret was copied to {path}"


def _seen(path: Path) -> str:
    found = path.lstat()
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    return repr((found.st_mode, found.st_uid, found.st_nlink, found.st_mtime_ns, hashlib.sha256(data).hexdigest()))


def _can_go_on(pid: int) -> bool:
    """Whether a process runs or sleeps: nobody has stopped, traced or killed it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "RSDI"


def _tree(path: Path) -> dict[str, Any]:
    """Everything below a path: permissions, and of files content and time."""
    if path.is_symlink() or not path.exists():  # an attack can get through
        return {}
    every = [path, *path.rglob("*")]
    return {
        str(one.relative_to(path)): (
            one.lstat().st_mode,
            (one.read_bytes(), one.lstat().st_mtime_ns) if one.is_file() else None,
        )
        for one in every
        if os.path.lexists(one)
    }


def _free_port() -> int:
    """A port of loopback that is free for both TCP and UDP."""
    while True:
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            stream.bind(("127.0.0.1", 0))
            try:
                datagrams.bind(stream.getsockname())
            except OSError:
                continue
            return int(stream.getsockname()[1])


@contextmanager
def _listening(world: World, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Iterator[None]:
    """A listener that tells of everyone who gets through."""
    with socket.socket(family, kind) as listener:
        listener.bind(address)
        listener.settimeout(0.1)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    if kind == socket.SOCK_STREAM:
                        listener.accept()[0].close()
                    else:
                        listener.recv(100)
                except TimeoutError:
                    continue
                world.effects.append(f"{address!r} was reached")

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield
        over.set()
        accepting.join()


def processes_left(base: Path) -> list[str]:
    """Processes that a command started: by their environment, their folder or their words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ, words = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if f"TZ={base.name}".encode() in environ or where.startswith(str(base / "project")):
            found.append(f"{pid}: {words[:100]!r}")
    return found


async def attack_all(
    sandboxes: Sandboxes, chosen: Iterable[Attack], verbose: bool = False, unconfined: bool = False
) -> Found:
    """`unconfined`: if the sandboxes are none; only for attacks whose whole effect is on canaries."""
    began, refused, count, harmless = time.monotonic(), 0, 0, 0
    effects: list[str] = []
    left: list[str] = []
    broken: list[str] = []
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ripstop-world-"))).resolve()
        world = World(base, stack)
        # passed on to commands, so it is in the environment of everything that they start
        stack.enter_context(mock.patch.dict(os.environ, {"TZ": base.name}))
        box = Toolbox(files=FileTools(SandboxedPrograms(CommandRules(unconfined=unconfined), sandboxes)))
        settings = RunSettings(workspace=str(world.project), shared_workspace=True)
        for one in chosen:
            world.reset(one)
            arguments = {"command": world.fill(one.command), "folder": world.fill(one.folder), "seconds": one.seconds}
            request = tool_request(arguments, "soup-1", "run_command", settings, "coder", number=7)
            result: dict[str, Any] = {}
            shown = ""
            try:
                answer = await box.perform(request)
                assert isinstance(answer, ToolReturned)
                result = answer.value
                shown = result["output"]
            except Refused as error:
                refused += not one.works
                shown = str(error).replace(str(arguments["command"]), "")
            name = f"{one.kind}: {str(one.command)[:200]}"
            effects += [f"{name}: {effect}" for effect in world.look(shown)]
            left += [f"{name}: {process}" for process in processes_left(base)]
            if one.works:
                harmless += 1
                if result.get("exit_code") != 0 or one.works.strip() not in shown:
                    broken.append(f"{name}: {result or shown}")
            else:
                count += 1
            if one.refused and result:
                effects.append(f"{name}: was not refused")
            if one.stopped and not result.get("stopped"):
                effects.append(f"{name}: was not stopped: {str(result or shown)[:300]}")
            if verbose:
                print(f"{name[:100]}: {str(result or shown)[:150]}", flush=True)
    return Found(count, refused, effects, left, harmless, broken, time.monotonic() - began)


def sandboxes_of(kind: str) -> Sandboxes | None:
    """A sandbox of this kind, if the machine has it."""
    found = find_sandboxes()
    if kind == "bubblewrap":
        return found if found.kind == "bubblewrap" else None
    return replace(found, bwrap="") if found.has_landlock else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", action="append", choices=("bubblewrap", "landlock"))
    parser.add_argument("--kind", help="only attacks of this kind")
    parser.add_argument("--verbose", action="store_true")
    chosen = parser.parse_args(arguments)
    os.environ["HARNESS_API_KEY"] = SECRET
    table = [one for one in attacks() if chosen.kind in (None, one.kind)]
    failed = False
    for kind in chosen.sandbox or ("bubblewrap", "landlock"):
        sandboxes = sandboxes_of(kind)
        if sandboxes is None:
            print(f"{kind}: this machine has none")
            failed = True
            continue
        found = asyncio.run(attack_all(sandboxes, table, chosen.verbose))
        print(
            f"{kind}: {found.attacks} attacks ({found.refused} refused, {found.attacks - found.refused} contained), "
            f"{len(found.effects)} effects outside, {len(found.left)} processes left; "
            f"{found.harmless - len(found.broken)} of {found.harmless} harmless commands work; {found.seconds:.0f} s"
        )
        for line in (*found.effects, *found.left, *found.broken):
            print(f"  {line}")
        failed = failed or bool(found.effects or found.left or found.broken)
    for name, number in sorted(Counter(one.kind for one in table).items()):
        print(f"  {number:4} {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
