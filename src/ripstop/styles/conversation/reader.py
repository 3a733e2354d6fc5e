"""Reading a bot's configuration, whichever form it has: all problems at once, each with its position.

The configuration itself is kept whole. An error is what would be dangerous, or what its author cannot have meant; all
else that is odd is a warning.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.definitions.example_files import scenario_files, scenarios_in, write_files
from ripstop.definitions.json_tree import parse_json, plain
from ripstop.definitions.loading import files_where, read_inside
from ripstop.definitions.problems import ERROR, WARNING, Position, Problem, WrongDefinition, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import Reference, check_references
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse, read_text, set_fields, tree_of

from .bot_fields import BotFields, Fields, read_options
from .configuration import PROCEDURE, fields_of, snake
from .default_texts import default_texts
from .definition import FLOW_EXECUTOR, Bot, BotFlow, BotTool, Endpoint, config_hash
from .flows_reader import read_flows
from .schema import BOT, DESCRIBED, LONGEST_MESSAGE, MOST_TEXT, OPTIONS
from .skills_reader import read_skills
from .timers_reader import read_timers
from .tools_reader import read_tools

# What the author of a bot would want to know, although nothing is wrong.


def lint(bot: Bot, reader: BotFields, tree: Value) -> Iterator[Problem]:
    yield from _procedure(bot, tree.place)
    yield from _skills(bot, reader.places)
    yield from _flows(bot, reader.places)
    yield from _timers(bot, reader.places)


def _warning(place: Position, text: str, hint: str = "") -> Problem:
    return Problem(place, text, hint, WARNING)


def _procedure(bot: Bot, place: Position) -> Iterator[Problem]:
    keys = {key for key, value in fields_of(bot.config).items() if value}
    if not keys & set(PROCEDURE) and not bot.skills:
        text = "the bot has neither a procedure nor skills, so the model has nothing to go by"
        yield _warning(place, text, "add `sop`")


def _skills(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    for skill in bot.skills:
        place = places["skill", skill.id]
        if not skill.condition:
            text = f"the skill {skill.id!r} has no condition, so the model has to guess when it applies"
            yield _warning(place, text, "add `condition`")
        if not skill.action and not skill.tools and skill.endpoint is None:
            yield _warning(place, f"the skill {skill.id!r} does not say what to do", "add `action` or `tools`")


def _flows(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for flow in bot.flows:
        place = places["flow", flow.id]
        runners = [name for name in ("workflow", "tool", "endpoint") if getattr(flow, name)]
        if not runners and bot.tool(FLOW_EXECUTOR) is None:
            text = f"nothing can run the flow {flow.id!r}"
            yield _warning(place, text, f"add `workflow`, `tool` or `endpoint`, or a tool {FLOW_EXECUTOR!r}")
        if len(runners) > 1:
            text = f"the flow {flow.id!r} has {' and '.join(runners)}; only its {runners[0]} is used"
            yield _warning(place, text, "keep one of them")
        if not flow.patterns and (flow.match != "intent" or not flow.description):
            text = f"the flow {flow.id!r} does not say when it starts"
            yield _warning(place, text, "add `trigger_patterns`")
        for pattern in flow.patterns if flow.match != "intent" else ():
            other = owner.setdefault(pattern.casefold(), flow.id)
            if other != flow.id:
                yield _warning(place, f"{pattern[:60]!r} starts the flow {other!r}, never {flow.id!r}")


def _timers(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    seen: set[float] = set()
    for number, timer in enumerate(bot.timers):
        place = places["timer", str(number)]
        if not timer.message and timer.action is None:
            yield _warning(place, "the timer says nothing and does nothing", "add `message` or `action`")
        if timer.delay in seen:
            text = f"two timers fire after {timer.delay:g} seconds, both counted from the last message of the bot"
            yield _warning(place, text, "give the second step a longer delay")
        seen.add(timer.delay)
        if timer.max_triggers == 0:
            yield _warning(place, "the timer fires again and again until the user says something")


# Texts that are in a file of their own beside the configuration: `instruction: ./procedure.md`.
#
# The file's text takes the place of its path, so that the configuration is whole: what is hashed is what the planner
# sees. Only files in the folder of the configuration, because their text becomes part of prompts.


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
        **read_options(reader, top, folder, default_texts(config)),
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


# Checking a bot that comes from a journal, which somebody else may have made.
#
# What the engine reads of it is written out as its author would have written it, and read again by the same reader. The
# configuration itself only has to be what its hash says: later versions may read more out of it.


MOST_GENERATIONS = 1_000_000
PINNED_OPTIONS = tuple(name for name in OPTIONS if name != "knowledge")
"""Those that are pinned as they are written; a knowledge base is pinned as an absolute path."""


def check_pinned(bot: Bot) -> None:
    """Raise `WrongDefinition` unless a bot could have been read from a file."""
    wrong = []
    if not re.fullmatch(rf"[\w-]{{1,{LONGEST_ID}}}", bot.name):
        wrong.append(f"{bot.name[:LONGEST_ID]!r} cannot be the name of a workflow")
    if bot.hash != config_hash(bot.config):
        wrong.append("its hash is not that of its configuration")
    if bot.knowledge and (not os.path.isabs(bot.knowledge) or not bot.knowledge.isprintable()):
        wrong.append("its knowledge base is not an absolute path")
    if not 1 <= bot.generation <= MOST_GENERATIONS:
        wrong.append(f"its generation is not from 1 to {MOST_GENERATIONS:,}")
    if wrong:
        raise WrongDefinition([Problem(Position(FILES[0]), text) for text in wrong])
    read_tree(tree_of(_written(bot), Position(FILES[0])), bot.name, None, BotFields([]))


def _written(bot: Bot) -> dict[str, Any]:
    return {
        "greeting": bot.greeting,
        "sop": "as it is configured",
        "tools": [_tool(tool) for tool in bot.tools],
        "skills": [{**set_fields(skill), "endpoint": _endpoint(skill.endpoint)} for skill in bot.skills],
        "flows": [_flow(flow) for flow in bot.flows],
        "timers": [msgspec.to_builtins(timer) for timer in bot.timers],
        "options": {name: getattr(bot, name) for name in PINNED_OPTIONS},
    }


def _tool(tool: BotTool) -> dict[str, Any]:
    return {**set_fields(tool, ("purpose",)), "endpoint": _endpoint(tool.endpoint)}


def _flow(flow: BotFlow) -> dict[str, Any]:
    written = set_fields(flow)
    written.pop("match", None)
    kind = {"type": "intent"} if flow.match == "intent" else {"type": "keyword", "match_type": flow.match}
    return {**written, **kind, "endpoint": _endpoint(flow.endpoint)}


def _endpoint(endpoint: Endpoint | None) -> dict[str, Any] | None:
    return None if endpoint is None else set_fields(endpoint, ("url",))


# Whether a file is a bot's configuration, where its name does not say so.
#
# The text is looked at with patterns, because a file that is not right has to be recognised too. Keys that only bots
# have are enough; `sop`, `skills`, `tools` and `flows` are words that others use, so something of a bot has to be with
# them.


_OWN = ("basic_settings", "basicSettings", "action_books", "actionBooks", "system_tools", "systemTools",
        "system_actions", "systemActions", "agent_actions", "agentActions")  # fmt: skip
_SHARED = {
    "sop": ("name", "tone", "greeting", "tools", "skills", "timers", "constraints", "flows"),
    "skills": ("condition",),
    "tools": ("endpoint", "greeting", "tone"),
    "flows": ("flow_id", "flowId", "trigger_patterns", "triggerPatterns", "match_type"),
}
_OF_OTHERS = ("states", "stages", "agents", "stage_id", "stage_type")


def looks_like_bot(path: Path) -> bool:
    """False for a file that cannot be read: then the reader that gets it says why."""
    try:
        text = read_text(path, str(path))
    except WrongDefinition:
        return False
    top, below = _keys(text)
    if top & set(_OF_OTHERS):
        return False
    if top & set(_OWN):
        return True
    return any(key in top and below & set(with_it) for key, with_it in _SHARED.items())


_YAML_KEY = re.compile(r"""^([ \t]*(?:-[ \t]+)*)(?:[{][ \t]*)?(["']?)([A-Za-z_][\w-]{0,60})\2[ \t]*:(?=\s|\Z)""", re.M)
_JSON_KEY = re.compile(r'"([A-Za-z_][\w-]{0,60})"\s*:|"(?:[^"\\\n]|\\.)*"|([{\[])|([}\]])')


def _keys(text: str) -> tuple[set[str], set[str]]:
    """The keys at the top, and all keys."""
    top: set[str] = set()
    found: set[str] = set()
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        depth = 0
        for one in _JSON_KEY.finditer(text):
            depth += bool(one[2]) - bool(one[3])
            if one[1]:
                found.add(one[1])
                if depth == 1:
                    top.add(one[1])
        return top, found
    for one in _YAML_KEY.finditer(text):
        found.add(one[3])
        if not one[1]:
            top.add(one[3])
    return top, found


# Bots as files: what ripstop asks of them, as of the definitions of any style.
#
# - `bot.yaml`, `bot.yml` or `bot.json`, or the folder that it is in, unless that is a graph or a pipeline.
# - Any other YAML or JSON file that has the fields of a bot.


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

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        from .schema import BOT

        return BOT

    @property
    def scenarios(self) -> tuple[str, ...]:

        return scenarios()

    def example(self, folder: Path, scenario: str = "") -> list[Path]:

        return write_scenario(folder, scenario)


def _may_be_bot(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(SUFFIXES) and any(word in name for word in NAMED)


READER = BotFiles()


# Bots that are ready to talk: a shop assistant, in English and in Chinese.


def scenarios() -> tuple[str, ...]:
    """Their names; first the one that is written if none is named."""
    return scenarios_in(_shipped())


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write the files of a scenario into a folder. Raises `UsageError` if one of them is there already."""
    return write_files(folder, scenario_files(_shipped(), scenario))


def _shipped() -> Traversable:
    return resources(__package__) / "scenarios"
