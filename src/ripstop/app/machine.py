"""Check this machine for what ripstop needs, and say how to get what is missing. Nothing is changed."""

import os
import platform
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing

from msgspec import Struct

from ripstop.app.settings.settings_file import Settings, store_path
from ripstop.kernel.advice import Advice, NextStep
from ripstop.models.model_files import missing_parts
from ripstop.tools.commands.command_groups import find_delegation
from ripstop.tools.commands.landlock import LOWEST_ABI
from ripstop.tools.commands.sandbox import Sandboxes, find_sandboxes

PYTHON = (3, 11)
SQLITE = (3, 38)
"""From this version on SQLite always has what journals need; an older one can have it."""
EDITORS = ("VISUAL", "EDITOR")
FOUND_EDITORS = ("nano", "vim", "vi")
"""What is used where neither variable is set."""


class Finding(Struct, frozen=True, kw_only=True):
    name: str
    found: str
    """What there is, or why there is none."""
    ok: bool = True
    necessary: bool = False
    """Whether ripstop cannot work without it."""
    advice: str = ""
    """What to do, if it is missing."""


def look_at_machine(
    settings: Settings, environment: Mapping[str, str] | None = None, sandboxes: Sandboxes | None = None
) -> list[Finding]:
    """Everything, in the order in which it is shown. `sandboxes`: what was found of them, if it was looked for."""
    variables = os.environ if environment is None else environment
    return [
        _python(),
        _sqlite(_has_json()),
        _journal(settings),
        _local_model(),
        *_sandboxes(sandboxes or find_sandboxes(), settings.commands.unconfined),
        _editor(variables),
    ]


def _python() -> Finding:
    return Finding(
        name="Python",
        found=f"{platform.python_version()} ({sys.executable})",
        ok=sys.version_info >= PYTHON,
        necessary=True,
        advice=f"Install Python {'.'.join(map(str, PYTHON))} or newer.",
    )


def _sqlite(has_json: bool) -> Finding:
    needed = ".".join(map(str, SQLITE))
    return Finding(
        name="SQLite",
        found=sqlite3.sqlite_version if has_json else f"{sqlite3.sqlite_version}, without its functions for JSON",
        ok=has_json,
        necessary=True,
        advice=f"Install a Python that is built with SQLite {needed} or newer.",
    )


def _has_json() -> bool:
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("SELECT value FROM json_each('[1]')")
        except sqlite3.OperationalError:
            return False
    return True


def _journal(settings: Settings) -> Finding:
    path = store_path(settings.store).absolute()
    above = next(folder for folder in (path, *path.parents) if os.path.exists(folder))
    can_write = os.access(above, os.W_OK)
    state = "is there" if os.path.exists(path) else f"will be made in {above}"
    return Finding(
        name="journal",
        found=f"{path} {state}" if can_write else f"{path}: {above} cannot be written",
        ok=can_write,
        necessary=True,
        advice="Change the permissions, or name another journal: --store sqlite:PATH.",
    )


def _local_model() -> Finding:
    missing = missing_parts()
    return Finding(
        name="local model",
        found=f"not installed: {', '.join(missing)}" if missing else "installed",
        ok=not missing,
        advice=Advice(NextStep("install_model", "Install it", "Run `{}`"), ", or use a server: --model openai:NAME."),
    )


def _sandboxes(found: Sandboxes, unconfined: bool) -> list[Finding]:
    kind, group = found.kind, find_delegation()
    does = {
        "bubblewrap": "runs commands under bubblewrap, with namespaces of their own and seccomp",
        "landlock": "runs commands under Landlock and seccomp; nothing new can be made beside what is protected",
        "none": "runs commands WITHOUT a sandbox, as your settings allow" if unconfined else "refuses every command",
    }[kind]
    return [
        Finding(
            name="bubblewrap",
            found=f"{found.bwrap_version} ({found.bwrap})" if found.bwrap else found.bwrap_problem,
            ok=bool(found.bwrap),
            advice="Install the package `bubblewrap` of your system; in a container, allow user namespaces.",
        ),
        Finding(
            name="Landlock",
            found=f"ABI {found.landlock}" if found.landlock else "not in this kernel",
            ok=found.landlock >= LOWEST_ABI,
            advice=f"A kernel of 6.2 or newer has ABI {LOWEST_ABI}; without it, install bubblewrap.",
        ),
        Finding(
            name="seccomp",
            found="yes" if found.seccomp else "not in this kernel, or not for this processor",
            ok=found.seccomp,
            advice="Both sandboxes need it: use Linux on x86-64 or 64-bit ARM.",
        ),
        Finding(
            name="user namespaces",
            found="yes" if found.user_namespaces else "not allowed",
            ok=found.user_namespaces,
            advice="Bubblewrap needs them; Landlock does not.",
        ),
        Finding(
            name="cgroup",
            found=f"one for each command, in {group.folder}" if group.folder else f"none for commands: {group.problem}",
        ),
        Finding(
            name="run_command",
            found=does,
            ok=kind != "none",
            advice="Install bubblewrap. Without it, agents cannot run commands; all else works.",
        ),
    ]


def _editor(environment: Mapping[str, str]) -> Finding:
    name = next((name for name in EDITORS if environment.get(name, "").strip()), "")
    command = environment.get(name, "")
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    file = shutil.which(words[0]) if words else None
    there = f"{command} (from {name})"
    if not name:
        file = next(filter(None, map(shutil.which, FOUND_EDITORS)), None)
        there = f"{file}; neither VISUAL nor EDITOR is set" if file else "neither VISUAL nor EDITOR is set"
    return Finding(
        name="editor",
        found=there if file or not name else f"{there}: there is no such program",
        ok=bool(file),
        advice="Set VISUAL or EDITOR, for example: export EDITOR=nano.",
    )


def is_enough(findings: list[Finding]) -> bool:
    """Whether nothing necessary is missing."""
    return all(one.ok for one in findings if one.necessary)
