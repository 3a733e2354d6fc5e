"""The files of a project outside `.cowork`: what there is, and what of it is code.

Only regular files that are reached without a link are listed, and nothing hidden: names that begin with a dot, packages
that a tool has installed, caches. Code is a file of the plan, or one with the suffix of a programming language, unless
it is configuration or documentation.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.tools.shared_folder import opened, opened_file, parts_of
from ripstop.tools.workspace import MAX_PARTS, enter, is_name

from .calls import ListedFile
from .models import CodeFile, DevelopmentTask
from .store import is_blank, is_of_records

MAX_LISTED = 5_000
"""Files."""
MAX_HASHED = 20_000_000
"""Bytes of a file whose hash is taken."""
MAX_BYTES = 200_000_000
"""Bytes of all of them."""
MAX_BLANK = 4_096
"""Bytes of a file that is looked into for something to be seen."""
SKIPPED = frozenset({"node_modules", "bower_components", "__pycache__", "venv", "site-packages"})
CACHE = "CACHEDIR.TAG"
"""A folder with this file in it is a cache, by convention."""
CODE_SUFFIXES = frozenset(
    [
        "asm",
        "astro",
        "bash",
        "bat",
        "c",
        "cc",
        "cjs",
        "clj",
        "cpp",
        "cs",
        "css",
        "cxx",
        "dart",
        "erl",
        "ex",
        "exs",
        "f90",
        "fs",
        "go",
        "gradle",
        "groovy",
        "h",
        "hh",
        "hpp",
        "hs",
        "htm",
        "html",
        "ino",
        "ipynb",
        "java",
        "jl",
        "js",
        "jsx",
        "kt",
        "kts",
        "less",
        "lua",
        "m",
        "mjs",
        "ml",
        "mm",
        "nim",
        "pas",
        "php",
        "pl",
        "pm",
        "ps1",
        "py",
        "pyw",
        "r",
        "rb",
        "rs",
        "sass",
        "scala",
        "scss",
        "sh",
        "sol",
        "sql",
        "svelte",
        "swift",
        "ts",
        "tsx",
        "v",
        "vb",
        "vhdl",
        "vue",
        "wat",
        "xhtml",
        "zig",
        "zsh",
    ]
)
_CONFIG_SUFFIXES = frozenset(
    [
        "cfg",
        "conf",
        "csv",
        "env",
        "ini",
        "json",
        "json5",
        "lock",
        "log",
        "md",
        "mdx",
        "properties",
        "rst",
        "toml",
        "txt",
        "xml",
        "yaml",
        "yml",
    ]
)
_CONFIG_NAMES = frozenset({"license", "licence", "copying", "notice", "readme", "changelog", "authors"})
_CONFIG = re.compile(r"\.(config|conf)\.[cm]?[jt]s$|^\.|^conftest\.py$")
_CHUNK = 1 << 20


class Listing(Struct, frozen=True):
    files: list[ListedFile]
    unchecked: list[str]
    """What could not be looked at, and why."""


class CodeListing(Struct, frozen=True):
    files: list[CodeFile]
    missing: list[str]
    """Files of the plan that are not there …"""
    unchecked: list[str]
    empty: list[str] = []
    """… those that have nothing in them, or nothing but blank lines …"""
    planned: list[str] = []
    """… and all of them."""
    blank: frozenset[str] = frozenset()
    """Code that has nothing in it, or nothing but blank lines."""

    @property
    def count(self) -> int:
        """Files that have something in them."""
        return sum(one.path not in self.blank for one in self.files)


def list_files(project: Path) -> Listing:
    """The files of a project, by path. Raises `Refused` if its folder cannot be opened."""
    files: list[ListedFile] = []
    unchecked: list[str] = []
    with opened(project, ()) as root:
        for one in _below(root, (), unchecked):
            if len(files) == MAX_LISTED:
                unchecked.append(f"The project has more than {MAX_LISTED:,} files; the others were not looked at.")
                break
            files.append(one)
    return Listing(files, unchecked)


def list_code(project: Path, tasks: Sequence[DevelopmentTask]) -> CodeListing:
    """The code files of a project, with their hashes and the tasks that plan them."""
    listing = list_files(project)
    unchecked = list(listing.unchecked)
    planned = _planned(tasks, unchecked)
    files: list[CodeFile] = []
    for one, sha in _hashed(project, (one for one in listing.files if is_code(one.path, planned))):
        if not sha:
            unchecked.append(f"{one.path} ({one.size:,} bytes) was not read.")
        files.append(CodeFile(path=one.path, size=one.size, sha256=sha, task_id=planned.get(one.path)))
    sizes = _planned_sizes(project, planned, {one.path: one.size for one in listing.files})
    missing = [path for path, size in sizes.items() if size is None]
    empty = [path for path, size in sizes.items() if size is not None and _is_blank(project, path, size)]
    blank = frozenset(one.path for one in files if _is_blank(project, one.path, one.size))
    return CodeListing(files, missing, unchecked, empty, list(sizes), blank)


def _is_blank(project: Path, path: str, size: int) -> bool:
    """Whether a person would see nothing in a file. A long one, and what cannot be read, counts as more."""
    if not 0 < size <= MAX_BLANK:
        return size == 0
    try:
        *folders, name = parts_of(path)
        with opened(project, tuple(folders)) as above, opened_file(above, name) as (descriptor, _):
            return is_blank(os.read(descriptor, MAX_BLANK + 1))
    except (Refused, OSError):  # a folder, say
        return False


def _planned_sizes(project: Path, planned: Iterable[str], listed: Mapping[str, int]) -> dict[str, int | None]:
    """The size of each file of the plan; none for one that is not there. A folder has the size of what is in it,
    unless its name is that of code: a folder app.js is not the file app.js.
    """
    found: dict[str, int | None] = {}
    for path in planned:
        if path in listed:
            found[path] = listed[path]
        elif not is_code(path) and (inside := [size for name, size in listed.items() if name.startswith(f"{path}/")]):
            found[path] = sum(inside)
        else:
            found[path] = _size_of(project, path) if planned_path(path) else None
    return found


def possible_code(project: Path) -> dict[str, str]:
    """The hashes by path of all files that are code, or would be if a plan named them; empty for one not read."""
    possible = (one for one in list_files(project).files if is_code(one.path, frozenset({one.path})))
    return {one.path: sha for one, sha in _hashed(project, possible)}


def changed_code(project: Path, now: CodeListing, before: Mapping[str, str]) -> list[str]:
    """The paths of code that is new, different or gone since `possible_code` returned `before`.

    A file that was not read at one of the two times cannot be compared, and is left out.
    """
    known = {one.path: one.sha256 for one in now.files}
    found = [path for path, sha in known.items() if path not in before or (sha and before[path] not in ("", sha))]
    gone = [
        path
        for path in before
        if path not in known and (path in now.missing or (is_code(path) and not _is_there(project, path)))
    ]
    return sorted(found + gone)


def is_code(path: str, planned: "dict[str, str] | frozenset[str]" = frozenset()) -> bool:
    name = path.rpartition("/")[2].casefold()
    stem, _, suffix = name.rpartition(".")
    if (stem or name) in _CONFIG_NAMES or suffix in _CONFIG_SUFFIXES or _CONFIG.search(name):
        return False
    return suffix in CODE_SUFFIXES or path in planned


def _planned(tasks: Sequence[DevelopmentTask], unchecked: list[str]) -> dict[str, str]:
    """The task of each file of the plan, by the file's path; of two tasks, the first."""
    found: dict[str, str] = {}
    for task in tasks:
        for named in task.files_to_create:
            path = planned_path(named)
            if not path:
                unchecked.append(f"{task.id}: {named[:200]!r} cannot be the path of a file in the project.")
            found.setdefault(path or named, task.id)
    return found


def planned_path(named: str) -> str:
    """A path as files are listed; empty for one that cannot be in the project."""
    try:
        parts = parts_of(named)
    except Refused:
        return ""
    return "" if is_of_records(parts) else "/".join(parts)


def _below(folder: int, parts: tuple[str, ...], unchecked: list[str]) -> Iterator[ListedFile]:
    names = os.listdir(folder)
    if CACHE in names:
        return
    for name in sorted(names):
        if name.startswith(".") or name in SKIPPED:
            continue
        if not _is_text(name) or not is_name(name):
            unchecked.append(f"{'/'.join((*parts, name)).encode(errors='replace').decode()!r} has an unusual name.")
            continue
        path = "/".join((*parts, name))
        with suppress(FileNotFoundError):  # removed since the folder was listed
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                yield ListedFile(path, found.st_size)
            elif stat.S_ISDIR(found.st_mode) and len(parts) < MAX_PARTS:
                try:
                    deeper = enter(folder, name)
                except (PermissionError, Refused):
                    unchecked.append(f"The folder {path!r} cannot be opened.")
                    continue
                try:
                    yield from _below(deeper, (*parts, name), unchecked)
                finally:
                    os.close(deeper)
            else:
                unchecked.append(f"{path!r} is a link, or not a regular file; it was not looked at.")


def _hashed(project: Path, files: Iterable[ListedFile]) -> Iterator[tuple[ListedFile, str]]:
    """Each file with its hash; empty for one that is too large or cannot be read."""
    left = MAX_BYTES
    for one in files:
        sha = ""
        if one.size <= min(MAX_HASHED, left):
            left -= one.size
            with suppress(Refused):
                sha = _hash(project, one.path)
        yield one, sha


def _hash(project: Path, path: str) -> str:
    *folders, name = parts_of(path)
    whole, length = hashlib.sha256(), 0
    with opened(project, tuple(folders)) as above, opened_file(above, name) as (descriptor, _):
        while length <= MAX_HASHED and (piece := os.read(descriptor, _CHUNK)):
            whole.update(piece)
            length += len(piece)
    return whole.hexdigest()


def _is_there(project: Path, path: str) -> bool:
    return _size_of(project, path) is not None


def _size_of(project: Path, path: str) -> int | None:
    """Of a file that is not listed, such as a hidden one; none if there is none."""
    try:
        *folders, name = parts_of(path)
        with opened(project, tuple(folders)) as above, opened_file(above, name) as (_, status):
            return status.st_size
    except Refused:
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
