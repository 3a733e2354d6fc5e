"""Where the parts of a board are in its folder. History and reports have their places in the style."""

import os
from pathlib import Path

from ripstop.definitions.problems import Position, Problem, WrongDefinition

MEMORY = "memory"
POLICY_FILE = "verification_policy.json"
POLICY = f"{MEMORY}/{POLICY_FILE}"
PROMPTS = f"{MEMORY}/prompts"
PROMPT = "subagent_prompt_{}.md"
"""An agent's file in `PROMPTS`."""


def prompt_of(agent: str) -> str:
    """The prompt file that an agent of this name would have."""
    return f"{PROMPTS}/{PROMPT.format(agent.lower())}"


def inside(path: str) -> bool:
    """Whether a path that is written in a policy stays in the folder it is relative to."""
    parts = path.split("/")
    return bool(path.strip()) and "\\" not in path and path.isprintable() and not {"", ".", ".."} & set(parts)


def in_folder(path: Path, folder: Path) -> str:
    """A file as it is called from a folder; empty if it is elsewhere. Links are not followed."""
    found = os.path.relpath(path, folder)
    return "" if found.split(os.sep)[0] == os.pardir else Path(found).as_posix()


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file is outside of a folder once all links are followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def refuse_link(path: Path) -> None:
    """Raise `WrongDefinition` for a symbolic link, which could put any file of the user into a prompt."""
    if os.path.islink(path):
        text = f"{path.name!r} is a symbolic link, and links on a board are not followed"
        raise WrongDefinition([Problem(Position(str(path)), text, "put there what it leads to")])
