"""The roles that agents of ours play: `roles/<name>.md` says how each is told to work."""

from pathlib import Path

from msgspec import Struct

from ripstop.kernel.errors import UsageError

FOLDER = "roles"


class Role(Struct, frozen=True):
    name: str
    prompt: str
    model: str


def read_roles(root: Path, models: dict[str, str], default: str) -> dict[str, Role]:
    """Every role of a folder, with its own model or the default. Raises `UsageError`."""
    roles = {}
    for path in sorted((root / FOLDER).glob("*.md")):
        try:
            prompt = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: {error}") from error
        roles[path.stem] = Role(path.stem, prompt, models.get(path.stem, default))
    unknown = sorted(set(models) - set(roles))
    if unknown and roles:
        raise UsageError(f"[docs.models] names {unknown[0]!r}, but there is no {FOLDER}/{unknown[0]}.md.")
    return roles
