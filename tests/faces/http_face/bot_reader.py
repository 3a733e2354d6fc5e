"""Reads a bot that a test has written as it is pinned."""

from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.problems import Problem
from ripstop.definitions.reader import Environment
from ripstop.plugins import BUILT_IN, Plugins
from ripstop.styles.conversation.definition import Bot


class BotReader:
    style, looks_like, greedy = "conversation", "a file bot.json", False

    def find(self, path: Path) -> Path | None:
        return path if path.name == "bot.json" else None

    def find_all(self, folder: Path) -> list[Path]:
        return sorted(folder.rglob("bot.json"))

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        content = path.read_bytes()
        return msgspec.json.decode(content, type=Bot).name, content

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        return []

    def check_pinned(self, definition: Any) -> None:
        return None

    def schema(self) -> dict[str, Any]:
        return {}

    def example(self, folder: Path) -> list[Path]:
        return []


READER = BotReader()
PLUGINS = Plugins(
    [
        one._replace(reader="tests.faces.http_face.bot_reader:READER") if one.name == "conversation" else one
        for one in BUILT_IN
    ]
)
