"""Which run is that of a document. The run's id follows from the folder's id and the document's.

Nothing is changed here, and nothing is taken in: a reader needs only the name.
"""

import hashlib
import re
from pathlib import Path

from ripstop.performers.handoff.folder import LETTERS, OURS, WORKFLOWS, Folder
from ripstop.styles.handoff.document import Malformed, read
from ripstop.styles.handoff.markdown import as_id

_UNSAFE = re.compile(r"[^\w-]+")
NAMED_AFTER_FOLDER = re.compile(rf"docs-([{LETTERS}]{{5}})\.")
"""How the id of a run begins that is named after a folder and a document. The group is the folder's id."""


def prefix_of(folder: Folder) -> str:
    """What the ids of all runs of a folder begin with."""
    return prefix_for(folder.id)


def prefix_for(folder_id: str) -> str:
    return f"docs-{folder_id}"


def is_named_after_folder(run_id: str) -> bool:
    return NAMED_AFTER_FOLDER.match(run_id) is not None


def run_of(prefix: str, document: str) -> str:
    safe = _UNSAFE.sub("_", document)[:80]
    if safe != document:
        safe += "-" + hashlib.sha256(document.encode()).hexdigest()[:6]
    return f"{prefix}.{safe}"


def run_named(named: str, here: Path) -> str:
    """The run that the document with an id, or in a file, would have; empty if there are no documents here."""
    file = next((path for path in (here / named, here / WORKFLOWS / named) if path.is_file()), None)
    root = file.resolve().parent.parent if file else here.resolve()
    if not (root / WORKFLOWS / OURS).is_dir():
        return ""
    document = _id_in(file) if file else as_id(named)
    return run_of(prefix_of(Folder(root)), document) if document else ""


def _id_in(file: Path) -> str:
    try:
        return read(file.read_text(encoding="utf-8")).id
    except (Malformed, OSError, UnicodeDecodeError):
        return ""  # it has no id that could be known
