"""Bots as files: what ripstop asks of them, as of the definitions of any style.

- `bot.yaml`, `bot.yml` or `bot.json`, or the folder that it is in, unless that is a graph or a pipeline.
- Any other YAML or JSON file that has the fields of a bot.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.folders import files_where
from ripstop.definitions.problems import ERROR, Problem, WrongDefinition, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import check_references
from ripstop.styles.conversation.definition import Bot

from .reader import FILES, read_bot
from .recognition import looks_like_bot

OTHERS = ("workflow.yaml", "pipeline.yaml")
"""Files that say what their folder is, before a bot's does."""
SUFFIXES = (".yaml", ".yml", ".json")
NAMED = ("bot", "sop")
"""What is in the name of a file that is looked at, if a whole folder is searched."""


class BotFiles:
    style = "conversation"
    looks_like = f"a folder with {FILES[0]}, or a YAML or JSON file with the fields of a bot"
    greedy = False
    starts_chats = True
    """A run of it is a session, which users write to."""

    def find(self, path: Path) -> Path | None:
        if os.path.isdir(path):
            if any(os.path.lexists(path / name) for name in OTHERS):
                return None
            return next((path / name for name in FILES if os.path.lexists(path / name)), None)
        if path.name in FILES:
            return path if os.path.lexists(path) else None
        if path.name in OTHERS or path.suffix.lower() not in SUFFIXES:
            return None
        return path if looks_like_bot(path) else None

    def find_all(self, folder: Path) -> list[Path]:
        """Those called `bot`, and others with `bot` or `sop` in their names."""
        return [path for path in files_where(_may_be_bot, folder) if path.name in FILES or looks_like_bot(path)]

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        bot = read_bot(path).bot
        return bot.name, msgspec.json.encode(bot, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        try:
            read = read_bot(path)
        except WrongDefinition as error:
            return error.problems
        named = list(check_references(read.references, environment))
        errors = [problem for problem in named if problem.severity == ERROR]
        return in_order(errors or [*read.warnings, *named])

    def check_pinned(self, definition: Bot) -> None:
        from .pinned import check_pinned

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        from .schema import BOT

        return BOT

    @property
    def scenarios(self) -> tuple[str, ...]:
        from .scenarios import scenarios

        return scenarios()

    def example(self, folder: Path, scenario: str = "") -> list[Path]:
        from .scenarios import write_scenario

        return write_scenario(folder, scenario)


def _may_be_bot(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(SUFFIXES) and any(word in name for word in NAMED)


READER = BotFiles()
