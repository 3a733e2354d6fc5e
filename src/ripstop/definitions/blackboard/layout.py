"""Where the parts of a board are in its folder. History and reports have their places in the style."""

import os
from pathlib import Path

MEMORY = "memory"
POLICY_FILE = "verification_policy.json"
POLICY = f"{MEMORY}/{POLICY_FILE}"
PROMPTS = f"{MEMORY}/prompts"
PROMPT = "subagent_prompt_{}.md"
"""An agent's file in `PROMPTS`."""


def prompt_of(agent: str) -> str:
    """The prompt file that an agent of this name would have."""
    return f"{PROMPTS}/{PROMPT.format(agent.lower())}"


def in_folder(path: Path, folder: Path) -> str:
    """A file as it is called from a folder; empty if it is elsewhere. Links are not followed."""
    found = os.path.relpath(path, folder)
    return "" if found.split(os.sep)[0] == os.pardir else Path(found).as_posix()


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file is outside of a folder once all links are followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
