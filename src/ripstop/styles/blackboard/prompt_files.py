"""The agents of a board: `memory/prompts/subagent_prompt_<agent>.md`, a file for each.

- The middle of the file's name is the agent's, in capitals; `subagent_prompt_main.md` is MAIN's.
- `subagent_prompt_main_<scenario>.md` is a prompt that is kept aside, to be copied over MAIN's. It is not an agent.
- A file can begin with YAML between two lines `---`: `model`, `tools`, and `workflow`, which works in its place.
"""

import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.definitions.fields import Reader
from ripstop.definitions.front_matter import split_front_matter
from ripstop.definitions.loading import read_inside
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse

from .definition import FINISH, MAIN, PROMPTS, USER, Specialist
from .policy_reader import prompt_of

MAX_AGENTS = 100
MAX_TOOLS = 200
FIELDS = ("model", "tools", "workflow")
_MIDDLE = re.compile(r"subagent_prompt_(.+)\.md", re.DOTALL)
_NAME = re.compile(r"\w[\w-]{0,79}")
_ASIDE = f"{MAIN.lower()}_"


class PromptFile(Struct, frozen=True):
    """An agent, and where what it names is."""

    agent: Specialist
    path: Path
    model: Value | None = None
    workflow: Value | None = None
    tools: tuple[Value, ...] = ()


class Prompts(Struct, frozen=True):
    main: PromptFile | None
    agents: tuple[PromptFile, ...]
    problems: list[Problem]
    warnings: list[Problem]


def read_prompts(root: Path) -> Prompts:
    """Every prompt of a board, in the order of the agents' names."""
    folder = root / PROMPTS
    problems: list[Problem] = []
    reader = _FrontMatter(problems)
    found: dict[str, PromptFile] = {}
    files = sorted(path for path in folder.glob("*.md") if _MIDDLE.fullmatch(path.name))
    kept = [path for path in files if not _middle(path).casefold().startswith(_ASIDE)]
    if len(kept) > MAX_AGENTS:
        text = f"there are {len(kept)} prompts; at most {MAX_AGENTS} agents can be"
        raise WrongDefinition([Problem(Position(str(folder)), text)])
    for path in kept:
        name = _middle(path).upper()
        wrong = wrong_name(name)
        if name in found:
            wrong = f"{found[name].path.name} is the prompt of {name} as well: case does not matter"
        if wrong:
            problems.append(Problem(Position(str(path)), wrong, "rename the file"))
            continue
        try:
            found[name] = reader.prompt(path, name)
        except WrongDefinition as error:
            problems += error.problems
    main = found.pop(MAIN, None)
    if main is None and not any(_middle(path).upper() == MAIN for path in kept):
        place = Position(str(root / prompt_of(MAIN)))
        problems.append(Problem(place, "there is no such file", f"it is {MAIN}'s prompt: how {MAIN} decides"))
    return Prompts(main, tuple(found.values()), problems, reader.warnings)


def _middle(path: Path) -> str:
    found = _MIDDLE.fullmatch(path.name)
    assert found is not None, path
    return found[1]


def wrong_name(name: str) -> str:
    """Why an agent cannot have a name; empty if it can."""
    if not _NAME.fullmatch(name):
        return "the name of an agent has letters, digits, - and _, and at most 80 of them"
    if name in (FINISH, USER):
        return f"an agent cannot be called {name}, which {'ends the run' if name == FINISH else 'is a person'}"
    return ""


class _FrontMatter(Reader):
    def unknown_key(self, place: Position, what: str, key: str, known: Any) -> None:
        self.warn(place, f"{what} has no field {key!r}, so it is ignored", did_you_mean(key, known))

    def prompt(self, path: Path, name: str) -> PromptFile:
        front, text = split_front_matter(read_inside(path.parent, path.name), str(path))
        fields = self._fields(front, path)
        workflow = self.field(fields, "workflow", str, "").strip()
        if name == MAIN and workflow:
            self.problem(fields["workflow"].key, f"a workflow cannot be {MAIN}", f"{MAIN}'s reply is a decision")
        if not text.strip() and not workflow:
            self.problem(Position(str(path)), f"the prompt of {name} is empty", "say how it works")
        if workflow and ("model" in fields or "tools" in fields):
            key = fields.get("model") or fields["tools"]
            self.warn(key.key, "a workflow has its own models and tools", "leave it out")
        tools = self._tools(fields)
        agent = Specialist(
            name=name,
            prompt=text.strip("\r\n"),
            file=_middle(path),
            model=self.field(fields, "model", str, "").strip(),
            tools=None if tools is None else tuple(str(one.value) for one in tools),
            workflow=workflow,
        )
        return PromptFile(agent, path, _value(fields, "model"), _value(fields, "workflow"), tuple(tools or ()))

    def _fields(self, text: str, path: Path) -> dict[str, YamlEntry]:
        if not text[3:].strip():
            return {}
        tree, problems = parse(text, str(path))
        self.problems += problems
        return {} if tree.value is None else self.mapping(tree, "the beginning of a prompt", FIELDS)

    def _tools(self, fields: dict[str, YamlEntry]) -> list[Value] | None:
        if _value(fields, "tools") is None:
            return None
        tools = self.items(fields["tools"], "'tools'")
        if len(tools) > MAX_TOOLS:
            self.problem(fields["tools"].value.place, f"there are {len(tools)} tools; at most {MAX_TOOLS} can be")
        for one in tools:
            if not isinstance(one.value, str) or not one.value.strip():
                self.problem(one.place, f"a tool must be a name, but this is {one.kind}")
        return [one for one in tools[:MAX_TOOLS] if isinstance(one.value, str)]


def _value(fields: dict[str, YamlEntry], key: str) -> Value | None:
    entry = fields.get(key)
    return None if entry is None or entry.value.value in (None, "") else entry.value
