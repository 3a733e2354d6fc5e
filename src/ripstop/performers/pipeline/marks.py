"""Which stages of a project are finished, as `session/meta.json` says, and whether their products are still there."""

from msgspec import Struct

from ripstop.runtime.performers import Refused

from .data_files import BY_PATH, problems_in
from .models import CompletionMark
from .store import COWORK, CoworkFolder, now, sha_of


class MarkState(Struct, frozen=True):
    missing: list[str] = []
    """Products that are not there, or not valid any more."""
    changed: list[str] = []
    """Products that were changed since, but not by an agent's tools."""


def mark_state(folder: CoworkFolder, mark: CompletionMark, logged: dict[str, set[str]]) -> MarkState:
    """Args:
    logged: The hashes that the engine has written, by path: tasks get another status long after the plan is finished.
    """
    missing, changed = [], []
    for path, sha in mark.products.items():
        state = _state(folder, path, sha, logged.get(path, set()))
        if state == "changed":
            changed.append(f"{COWORK}/{path}")
        elif state:
            missing.append(state)
    return MarkState(missing, changed)


def _state(folder: CoworkFolder, path: str, sha: str, logged: set[str]) -> str:
    """Empty, `changed`, or why the product does not count."""
    try:
        data = folder.read(path)
    except Refused as refusal:
        return str(refusal)
    if data is None:
        return f"There is no {COWORK}/{path}."
    now_sha = sha_of(data)
    if now_sha == sha:
        return ""
    if path in BY_PATH and (problems := problems_in(BY_PATH[path], data)):
        return problems[0]
    return "" if now_sha in logged else "changed"


def new_mark(folder: CoworkFolder, products: tuple[str, ...]) -> CompletionMark:
    """A mark for those products that are there."""
    found = {path: folder.sha(path) for path in products}
    return CompletionMark(products={path: sha for path, sha in found.items() if sha}, at=now())
