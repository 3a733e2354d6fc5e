"""What the author of a graph writes, as the style needs it: checked, with the places it came from.

What follows from a definition alone is worked out once, when it is first needed (`cached_property`, for which these
structs have a `__dict__`). It is not part of the definition: it is neither written nor compared.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import AskAgent, Limits, StartRun
from ripstop.kernel.prompt import Message

from ..reply_operations import EDIT, LOOKING, WRITE
from . import condition, template
from .condition import Expression, Literal, Name
from .prompts import ENGINE_NAMES, TURNS_OF, reply_schema
from .template import Piece

# What makes the types of agents different: what they may do, and how they are told to work.
#
# - `coder` writes: it has all file tools, and files in the text of its reply are written.
# - `architect` thinks first: it is given the stronger model (the role `strong`), and is told to reason
#   before it edits; it has all file tools.
# - `ask` asks: it can look at everything and change nothing, even if its definition lists a tool that writes.


WRITING = (*LOOKING, WRITE, EDIT)

TOOLS: dict[str, tuple[str, ...]] = {"coder": WRITING, "architect": WRITING, "ask": LOOKING}

NEVER_WRITES = "ask"
"""The type that may not write files, whichever tools its definition lists."""


def allowed_tools(kind: str, listed: tuple[str, ...] | None) -> tuple[str, ...]:
    """The tools that an agent may call: those that its definition lists, or those of its type."""
    tools = TOOLS[kind] if listed is None else listed
    return tuple(tool for tool in tools if tool not in (WRITE, EDIT)) if kind == NEVER_WRITES else tools


MODELS = {"architect": "strong"}
"""The role whose model a type gets, unless the definition names another; the others get the run's."""

_FILES_EN = (
    "To deliver a file without a tool, write its path on a line of its own "
    "and the whole file in a fenced block below it. To change a part of a file, "
    "put <<<<<<< SEARCH, the old lines, =======, the new lines and >>>>>>> REPLACE "
    "into the fenced block. Shared files stand under collab/."
)
_FILES_ZH = (
    "不用工具也能交付文件：单独一行写路径，下面用代码块写出完整内容。只改一部分时，在代码块里依次写 "
    "<<<<<<< SEARCH、旧内容、=======、新内容、>>>>>>> REPLACE。共享文件放在 collab/ 下。"
)
INSTRUCTIONS: dict[tuple[str, str], str] = {
    ("coder", "en"): f"You implement: work quickly and deliver finished files. {_FILES_EN}",
    ("coder", "zh"): f"你负责实现：动作要快，交付完整的文件。{_FILES_ZH}",
    ("architect", "en"): "You decide how things are built. Reason first: weigh the options and name the risks. "
    f"Only then edit files. {_FILES_EN}",
    ("architect", "zh"): f"你负责设计决策。先推理：比较方案、指出风险，然后才修改文件。{_FILES_ZH}",
    ("ask", "en"): "You clarify: ask, check and judge. You can read every file, and you change none.",
    ("ask", "zh"): "你负责澄清：提问、核对、判断。你可以读所有文件，但不修改任何文件。",
}
SHORT_INSTRUCTIONS: dict[tuple[str, str], str] = {
    ("coder", "en"): "You write short texts.",
    ("coder", "zh"): "你写简短的文字。",
    ("architect", "en"): "You think first, then you write short texts.",
    ("architect", "zh"): "你先思考，再写简短的文字。",
    ("ask", "en"): "You give your opinion on texts.",
    ("ask", "zh"): "你对文字发表意见。",
}
"""For small models, which repeat long instructions; files are not mentioned, because a local model writes none."""
_TOLD = {
    is_short: {kind_and_language: Message("system", text) for kind_and_language, text in texts.items()}
    for is_short, texts in ((False, INSTRUCTIONS), (True, SHORT_INSTRUCTIONS))
}


def instructions_for(kind: str, language: str, short: bool = False) -> Message:
    return _TOLD[short][kind, language]


END = "END"
SAVE = "save_and_end"
OUTCOME = "outcome"
"""What conditions call the way in which a workflow of a state ended."""

VARIABLES = frozenset(
    {
        "initial_message",
        "last_agent_name",
        "last_agent_content",
        "last_agent_decisions",
        "COLLABORATION_GUIDE",
        "turn_count",
    }
)
"""What a prompt may use, beside the values that its graph declares."""


class Definition(Struct, frozen=True, omit_defaults=True):
    """Base: immutable, and defaults are not written, so that the pinned content stays small."""


class Agent(Definition, frozen=True, dict=True):
    name: str
    type: str = "coder"
    model: str = ""
    """A model's SPEC or the name of a role; empty for the run's model."""
    tools: tuple[str, ...] | None = None
    """The tools it may call; `None`: those of its type. What its type never may, it may not here either."""

    @cached_property
    def may_call(self) -> tuple[str, ...]:
        return allowed_tools(self.type, self.tools)

    @cached_property
    def question(self) -> AskAgent:
        """How it is given its turn; only the context is another every time."""
        return AskAgent(agent=self.name, kind=self.type, model=self.model or MODELS.get(self.type, ""))


class Transition(Definition, frozen=True):
    to: str
    condition: str = ""
    line: int = 0
    column: int = 0


class Brief(Struct, frozen=True):
    """What every prompt in a state has in common."""

    template: tuple[Piece, ...]
    reply_schema: dict[str, Any]


class State(Definition, frozen=True, dict=True):
    """A turn of an agent, or another workflow that is run to its end."""

    name: str
    agent: str = ""
    prompt: str = ""
    transitions: tuple[Transition, ...] = ()
    line: int = 0
    workflow: str = ""
    """The workflow to run; empty: it is the agent's turn."""
    input: str = ""
    """What the workflow gets, as a template; empty: what was said last, or the goal."""
    limits: Limits | None = None
    """What the workflow may spend at most, of what the run has left."""

    @property
    def worker(self) -> str:
        """The agent, or the workflow."""
        return self.agent or self.workflow

    @cached_property
    def ways(self) -> tuple[tuple[int, Transition, Expression], ...]:
        """The transitions in order: index, transition, and its condition, read."""
        return tuple((index, way, condition.parse(way.condition)) for index, way in enumerate(self.transitions))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in the conditions of its transitions."""
        return frozenset(name.name for _, _, node in self.ways for name in condition.names(node))

    @cached_property
    def flags(self) -> frozenset[str]:
        """Those that a condition needs as true or false."""
        return frozenset(name.name for _, _, node in self.ways for name in condition.uncompared(node))

    @cached_property
    def compared(self) -> dict[str, tuple[Any, ...]]:
        """The texts, numbers and booleans that each name in those conditions is compared with."""
        found: dict[str, tuple[Any, ...]] = {}
        for compare in (one for _, _, node in self.ways for one in condition.comparisons(node)):
            for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
                if isinstance(side, Name) and isinstance(other, Literal):
                    found[side.name] = (*found.get(side.name, ()), other.value)
        return found

    @cached_property
    def handles_failure(self) -> bool:
        """Whether its transitions say what comes after a workflow that did not complete."""
        return OUTCOME in self.names

    @cached_property
    def input_template(self) -> tuple[Piece, ...]:
        return template.parse(self.input)

    @cached_property
    def start_run(self) -> StartRun:
        """How its workflow is started; only the context is another every time."""
        return StartRun(workflow=self.workflow, limits=self.limits)

    @cached_property
    def brief(self) -> Brief:
        schema = reply_schema(self.prompt, [node for _, _, node in self.ways])
        return Brief(template.parse(self.prompt), schema)


class ExitCondition(Definition, frozen=True):
    condition: str
    action: str
    line: int = 0


class Graph(Definition, frozen=True, dict=True):
    name: str
    start: str
    agents: tuple[Agent, ...]
    states: tuple[State, ...]
    description: str = ""
    initial_message: str = ""
    max_turns: int = 10
    exit_conditions: tuple[ExitCondition, ...] = ()
    guide: str = ""
    language: str = "en"
    strict_decisions: bool = False
    """A missing decision that a condition needs is an error, not false."""
    reasks: int = 1
    """How often an agent is asked again when its reply cannot be read."""
    source: str = ""
    """Name of the file, for messages."""
    guards: dict[str, Any] = {}
    """Guards that are set otherwise than by default (`kernel.effects.Guards`)."""
    values: dict[str, str | None] = {}
    """Texts that prompts use as `{{name}}` and that a run can set, with their defaults; `None`: a run must set it."""

    @cached_property
    def exit_flags(self) -> frozenset[str]:
        """The names that an exit condition needs as true or false."""
        nodes = (condition.parse(one.condition) for one in self.exit_conditions)
        return frozenset(name.name for node in nodes for name in condition.uncompared(node))

    @cached_property
    def places(self) -> dict[str, tuple[State, Agent | None]]:
        """Every state with the agent whose turn it is there; a workflow has none."""
        agents = {agent.name: agent for agent in self.agents}
        return {state.name: (state, agents[state.agent] if state.agent else None) for state in self.states}

    @cached_property
    def engine_names(self) -> frozenset[str]:
        """The names in conditions that have the engine's own value, whatever an agent decides."""
        return frozenset((*ENGINE_NAMES, *(f"{TURNS_OF}{state.name}" for state in self.states)))

    @cached_property
    def workflows(self) -> dict[str, str]:
        """The workflows that its states run, for `Style.children`: each has to be looked up."""
        return {state.workflow: "" for state in self.states if state.workflow}

    def unset(self, given: Collection[str]) -> list[str]:
        """The values that a run must set and that are not `given`."""
        return [name for name, default in self.values.items() if default is None and name not in given]

    def state(self, name: str) -> State | None:
        for state in self.states:
            if state.name == name:
                return state
        return None

    def agent(self, name: str) -> Agent | None:
        for agent in self.agents:
            if agent.name == name:
                return agent
        return None
