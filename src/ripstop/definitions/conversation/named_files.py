"""Texts that are in a file of their own beside the configuration: `instruction: ./procedure.md`.

The file's text takes the place of its path, so that the configuration is whole: what is hashed is what the planner
sees. Only files in the folder of the configuration, because their text becomes part of prompts.
"""

import re
from pathlib import Path

from ripstop.definitions.folders import read_inside
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.yaml_tree import Value, YamlEntry

from .bot_fields import BotFields, snake
from .schema import DESCRIBED

MOST_FILES = 50
LARGEST_FILE = 200_000
"""Bytes."""
_PATH = re.compile(r"[^\s:*?\"<>|]{1,200}\.(?:md|markdown|txt)", re.IGNORECASE)
BELOW = ("basic_settings",)


def with_files(tree: Value, reader: BotFields, folder: Path) -> Value:
    """The configuration with the texts of the files that it names: at the top, and in the basic settings."""
    return _Files(reader, folder).inside(tree) if isinstance(tree.value, dict) else tree


class _Files:
    def __init__(self, reader: BotFields, folder: Path) -> None:
        self._reader = reader
        self._folder = folder
        self._count = 0

    def inside(self, tree: Value, is_top: bool = True) -> Value:
        entries: dict[str, YamlEntry] = {}
        for key, entry in tree.value.items():
            value = entry.value
            if is_top and snake(key) in BELOW and isinstance(value.value, dict):
                entries[key] = YamlEntry(entry.key, self.inside(value, is_top=False))
            elif isinstance(value.value, str) and _is_path(snake(key), value.value.strip()):
                entries[key] = YamlEntry(entry.key, self._text(value))
            else:
                entries[key] = entry
        return Value(entries, tree.place)

    def _text(self, value: Value) -> Value:
        path = value.value.strip()
        self._count += 1
        if self._count > MOST_FILES:
            self._reader.problem(value.place, f"more than {MOST_FILES} files are named", "put the texts together")
            return value
        try:
            text = read_inside(self._folder, path.removeprefix("./"), LARGEST_FILE)
        except WrongDefinition as error:
            found = error.problems[0]
            self._reader.problem(value.place, f"{path!r} cannot be read: {found.text}", found.hint)
            return value
        if not text.strip():
            self._reader.warn(value.place, f"{path!r} is empty")
        return Value(text, value.place)


def _is_path(key: str, text: str) -> bool:
    """Whether a text is the path of a file: where prose belongs by its suffix, elsewhere only with `./` before it."""
    return (key in DESCRIBED or text.startswith("./")) and _PATH.fullmatch(text) is not None
