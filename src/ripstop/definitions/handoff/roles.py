"""The roles of a folder of documents: `roles/<name>.md` says how each agent is told to work."""

from collections.abc import Mapping
from pathlib import Path

from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.yaml_tree import read_text
from ripstop.styles.handoff.policy import Role

__all__ = ["FOLDER", "MAX_ROLES", "Role", "read_roles", "role_files"]

FOLDER = "roles"
MAX_ROLES = 100


def role_files(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.md"))


def read_roles(root: Path, models: Mapping[str, str], named_in: str, default: str = "") -> dict[str, Role]:
    """Every role of a folder, with its own model or the default. Raises `WrongDefinition`.

    `named_in`: where `models` come from, for the message about one without a role.
    """
    files, problems, roles = role_files(root), list[Problem](), dict[str, Role]()
    if len(files) > MAX_ROLES:
        place = Position(str(root / FOLDER))
        raise WrongDefinition([Problem(place, f"there are {len(files)} roles; at most {MAX_ROLES} can be")])
    for path in files:
        try:
            roles[path.stem] = Role(path.stem, read_text(path, str(path)), models.get(path.stem, default))
        except WrongDefinition as error:
            problems += error.problems
    if problems:
        raise WrongDefinition(problems)
    unknown = sorted(set(models) - set(roles))
    if unknown and roles:
        text = f"{named_in} names {unknown[0]!r}, but there is no {FOLDER}/{unknown[0]}.md"
        raise WrongDefinition([Problem(Position(str(root / FOLDER)), text, did_you_mean(unknown[0], roles))])
    return roles
