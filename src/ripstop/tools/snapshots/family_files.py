"""What a run and those that it started did to files that were there before them, as one.

- A file is the user's unless an earlier member has made it. What it was is what the first member that changed it found.
- Where a member found something else than others had left, somebody else has changed the file in between: it is listed,
  and brought back only by name.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ripstop.engine.performers import Refused

from .listing import FileState
from .run_files import FileChange, FileChanges, NotedFiles, RunFiles, is_same


class Member(NamedTuple):
    files: RunFiles
    below: str
    """The folder of its workspace below that of the first member, with a slash; empty for the same one."""


class _Change(NamedTuple):
    """What one member did to a file."""

    member: Member
    path: str
    """Below the member's workspace."""
    before: FileState
    left: FileState | None
    now: FileState | None


class FamilyFiles:
    def __init__(self, members: Sequence[Member]) -> None:
        """`members`: the run that is asked about first."""
        self._members = members

    def changes(self) -> FileChanges:
        """What they did, by what is there now."""
        noted = self._noted()
        found = self._found(noted)
        changes = sorted((change for change, _ in found.values()), key=lambda one: one.path)
        is_on_record = any(one.is_on_record for _, one in noted)
        undone = sorted(path for path, done in self._done(noted).items() if path not in found and not _is_same(done))
        workspace = str(self._members[0].files.workspace)
        return FileChanges(workspace, _problem(noted), tuple(changes), is_on_record, tuple(undone))

    def undo(self, paths: Iterable[str]) -> dict[str, str]:
        """Bring files back as they were before the family changed them, as `RunFiles.undo` does."""
        found = self._found(self._noted())
        kept: dict[str, str] = {}
        for path in paths:
            if path not in found:
                raise Refused(f"{path!r} was not there before the run, so it cannot be brought back.")
            member, inside = found[path][1]
            for other in member.files.undo([inside]).values():
                kept[path] = other
        return kept

    def _noted(self) -> list[tuple[Member, NotedFiles]]:
        """What is noted of each member, the first snapshot first."""
        return sorted(((member, member.files.noted()) for member in self._members), key=lambda one: one[1].at)

    def _done(self, noted: list[tuple[Member, NotedFiles]]) -> dict[str, list[_Change]]:
        """What the members did to each file that was the user's, the first change first."""
        made = _first_made(noted)
        by_path: dict[str, list[_Change]] = {}
        for member, one in noted:
            for path, (before, left, now) in one.files.items():
                if made.get(member.below + path, one.at) >= one.at:
                    by_path.setdefault(member.below + path, []).append(_Change(member, path, before, left, now))
        return by_path

    def _found(self, noted: list[tuple[Member, NotedFiles]]) -> dict[str, tuple[FileChange, tuple[Member, str]]]:
        """The changes, each with the member that knows what was there and its own path for it."""
        made = _first_made(noted)
        found: dict[str, tuple[FileChange, tuple[Member, str]]] = {}
        for path, changed in self._done(noted).items():
            first = changed[0]
            if not first.before.is_like(first.now) and not _is_same(changed):
                change = first.member.files.change(path, first.before, first.now, _is_theirs(changed))
                found[path] = change, (first.member, first.path)
        for member, one in noted:
            for change in one.unnoted:
                path = member.below + change.path
                if made.get(path, one.at) >= one.at:
                    listed = FileChange(path, change.what, change.can_be_undone, change.since)
                    found.setdefault(path, (listed, (member, change.path)))
        return found


def _first_made(noted: list[tuple[Member, NotedFiles]]) -> dict[str, int]:
    """When files that were not there before were made first, by the snapshot of the member that made them."""
    made: dict[str, int] = {}
    for member, one in noted:
        for path in one.made:
            made.setdefault(member.below + path, one.at)
    return made


def _is_same(changed: Sequence[_Change]) -> bool:
    """Whether each of them left what it found."""
    return all(one.before.is_like(one.left) for one in changed)


def _is_theirs(changed: Sequence[_Change]) -> bool:
    """Whether all that happened to a file since the first of these was done by them."""
    for place, one in enumerate(changed[1:], 1):
        known = [state for other in changed[:place] for state in (other.before, other.left)]
        if not any(is_same(state, one.before) for state in known):
            return False
    return any(is_same(one.left, one.now) for one in changed)


def _problem(noted: Iterable[tuple[Member, NotedFiles]]) -> str:
    return next((one.problem for _, one in noted if one.problem), "")
