"""Reading a bot's configuration, whichever form it has: all problems at once, each with its position.

The configuration itself is kept whole. An error is what would be dangerous, or what its author cannot have meant; all
else that is odd is a warning.
"""

import re
import unicodedata
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.definitions.json_tree import parse_json, plain
from ripstop.definitions.problems import Problem, WrongDefinition, in_order
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value, parse, read_text
from ripstop.styles.conversation.definition import Bot, config_hash

from .bot_fields import BotFields, Fields
from .bot_options import read_options
from .flows import read_flows
from .lint import lint
from .named_files import with_files
from .schema import BOT, DESCRIBED, LONGEST_MESSAGE, MOST_TEXT
from .skills import read_skills
from .timers import read_timers
from .tools import read_tools

FILES = ("bot.yaml", "bot.yml", "bot.json")
JSON = ".json"
FIELDS = tuple(BOT["properties"])
LONGEST_ID = 64


class BotRead(Struct, frozen=True):
    bot: Bot
    references: tuple[Reference, ...]
    warnings: tuple[Problem, ...]


def read_bot(path: Path) -> BotRead:
    """The bot in a file. Raises `WrongDefinition` with everything that is wrong, warnings included."""
    text = read_text(path, str(path))
    is_json = path.suffix.lower() == JSON
    tree, problems = parse_json(text, str(path)) if is_json else parse(text, str(path))
    return read_tree(tree, workflow_id(path), path.parent, BotFields(problems, is_json))


def read_tree(tree: Value, name: str, folder: Path | None, reader: BotFields) -> BotRead:
    """The bot that a tree is. Without a folder no files are read. Raises `WrongDefinition`."""
    if not isinstance(tree.value, dict) or not tree.value:
        is_empty = tree.value is None or tree.value == {}
        text = "the file is empty" if is_empty else f"a bot must be {reader.mapping_word}, but this is {tree.kind}"
        reader.problem(tree.place, text, "with fields such as name, tone, greeting, sop and tools")
        raise WrongDefinition(in_order(reader.problems))
    _check_amounts(tree, reader)
    if reader.problems:
        raise WrongDefinition(in_order(reader.problems))
    whole = with_files(tree, reader, folder) if folder is not None else tree
    bot = _bot(whole, name, folder, reader)
    if reader.problems:
        raise WrongDefinition(in_order([*reader.problems, *reader.warnings]))
    warnings = [*reader.warnings, *lint(bot, reader, tree)]
    return BotRead(bot, tuple(reader.references), tuple(in_order(warnings)))


def workflow_id(path: Path) -> str:
    """The name of the workflow: that of the file, or of the folder for a file that is called `bot`."""
    named = path.resolve().parent.name if path.name in FILES else path.stem
    words = re.sub(r"[^\w-]+", "-", unicodedata.normalize("NFC", named)).strip("-_")
    return words[:LONGEST_ID].strip("-_") or "bot"


def _bot(tree: Value, name: str, folder: Path | None, reader: BotFields) -> Bot:
    config: dict[str, Any] = plain(tree)
    top = reader.fields(tree, "", FIELDS)
    tools = read_tools(reader, top)
    skills = read_skills(reader, top, tools)
    flows = read_flows(reader, top, tools)
    return Bot(
        name=name,
        hash=config_hash(config),
        config=config,
        greeting=_greeting(reader, top),
        tools=tools,
        skills=skills,
        flows=flows,
        timers=read_timers(reader, top, tools, skills, flows),
        **read_options(reader, top, folder),
        unknown=tuple(reader.unknown),
    )


def _greeting(reader: BotFields, top: Fields) -> str:
    settings: Fields = {}
    if "basic_settings" in top:
        settings = reader.fields(top["basic_settings"].value, "basic_settings", tuple(DESCRIBED))
    text = reader.text(top, "greeting", path="") or reader.text(settings, "greeting", path="basic_settings")
    if len(text) > LONGEST_MESSAGE:
        place = (top if "greeting" in top else settings)["greeting"].value.place
        reader.problem(place, f"the greeting has {len(text)} characters; at most {LONGEST_MESSAGE} can be")
    return text


def _check_amounts(tree: Value, reader: BotFields) -> None:
    """Aliases can unfold to far more text than a file has; and JSON has no infinite numbers."""
    characters = 0
    todo = [tree]
    while todo:
        value = todo.pop()
        if isinstance(value.value, dict):
            characters += sum(len(key) for key in value.value)
            todo += [entry.value for entry in value.value.values()]
        elif isinstance(value.value, list):
            todo += value.value
        elif isinstance(value.value, str):
            characters += len(value.value)
        elif isinstance(value.value, float) and not isfinite(value.value):
            reader.problem(value.place, "the number is too large")
    if characters > MOST_TEXT:
        reader.problem(tree.place, f"the texts have {characters:,} characters; at most {MOST_TEXT:,} can be")
