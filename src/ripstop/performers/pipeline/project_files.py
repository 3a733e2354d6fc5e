"""The project that a tool's call is about, held for the time of the call so that two changes do not undo each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .checks import ProjectData
from .data_files import DESIGN, FEATURES, PLAN, REQUIREMENTS, entries_of
from .store import CoworkFolder, project_locks

_LOCKS = project_locks()


@contextmanager
def changing(project: Path) -> Iterator[CoworkFolder]:
    """The project's files, for a call that changes them."""
    folder = CoworkFolder(project)
    folder.prepare_locks()
    with _LOCKS.alone(project):
        yield folder


def project_data(folder: CoworkFolder) -> ProjectData:
    """All four data files as they are now. Raises `Refused` for one that is not valid."""
    return ProjectData(*entries_of(folder, REQUIREMENTS, FEATURES, DESIGN, PLAN))
