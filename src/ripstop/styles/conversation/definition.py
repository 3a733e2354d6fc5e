"""A bot as it is pinned: the whole configuration as its author wrote it, and what the engine reads out of it.

`config` is what is hashed, planned and shown. Everything else is read from it, so that a field that nobody knows is
still part of the bot: the planner sees it.
"""

import hashlib
from typing import Any, Literal

import msgspec
from msgspec import Struct

Match = Literal["intent", "exact", "contains", "regex"]
Purpose = Literal["", "handoff", "close_conversation", "update_profile"]

HANDOFF, CLOSE, UPDATE_PROFILE = "handoff", "close_conversation", "update_profile"
SYSTEM_ACTIONS = (CLOSE, HANDOFF, UPDATE_PROFILE)
"""What every bot can do silently, whether its configuration names it or not."""
APOLOGY = "Sorry, something went wrong on our side. Please try again."
CHECKING = "We are checking this and will get back to you."
HANDOVER = "I am handing you over to a colleague. Please wait a moment."
HANDOFF_ROLE = "support"
FLOW_EXECUTOR = "flow_executor"
"""The tool that runs flows by their id, in configurations that have one."""

_encode = msgspec.json.Encoder(order="sorted").encode


def config_hash(config: Any) -> str:
    """MD5 of the configuration as canonical JSON: the order of keys does not matter."""
    return hashlib.md5(_encode(config), usedforsecurity=False).hexdigest()


class Endpoint(Struct, frozen=True):
    """An HTTP address that a tool or a flow calls. URL, headers and body are templates (`http_request`)."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: Any = None
    timeout: float = 30.0
    effect: Literal["", "pure", "keyed", "unsafe"] = ""
    """Empty: `pure` for GET and HEAD, `unsafe` for everything else."""

    @property
    def kind(self) -> Literal["pure", "keyed", "unsafe"]:
        if self.effect:
            return self.effect
        return "pure" if self.method.upper() in ("GET", "HEAD") else "unsafe"


class BotTool(Struct, frozen=True):
    """Something that the bot can call: an endpoint, or a tool of this process or of an MCP server with that name."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments, as the configuration has it."""
    endpoint: Endpoint | None = None
    system: bool = False
    """It is a SYSTEM action: it runs silently."""
    purpose: Purpose = ""
    """The built-in action that it stands for, whatever it is called."""


class Skill(Struct, frozen=True):
    """An entry of an action book: when it applies, what to do, and with which tools."""

    id: str
    condition: str = ""
    action: str = ""
    tools: tuple[str, ...] = ()
    endpoint: Endpoint | None = None


class BotFlow(Struct, frozen=True):
    """A fixed procedure that takes over: a workflow, a tool, or an endpoint."""

    id: str
    description: str = ""
    match: Match = "intent"
    """`intent`: the model decides; otherwise one of the patterns starts it before the model is asked."""
    patterns: tuple[str, ...] = ()
    workflow: str = ""
    tool: str = ""
    endpoint: Endpoint | None = None


class BotAction(Struct, frozen=True):
    type: Literal["SKILL", "TOOL", "FLOW", "SYSTEM"]
    target: str
    params: dict[str, Any] = {}


class TimerRule(Struct, frozen=True):
    """What happens when the user says nothing for `delay` seconds."""

    delay: float
    message: str = ""
    action: BotAction | None = None
    max_triggers: int = 1
    """How often it fires before the user says something; 0: without end."""


class Bot(Struct, frozen=True):
    name: str
    """The id of the workflow: sessions and plans are kept under it."""
    hash: str
    """`config_hash(config)`."""
    config: dict[str, Any]
    """The configuration as it was read, with the text of files that it names in their place."""
    greeting: str = ""
    tools: tuple[BotTool, ...] = ()
    skills: tuple[Skill, ...] = ()
    flows: tuple[BotFlow, ...] = ()
    timers: tuple[TimerRule, ...] = ()
    """They count before those that the planner finds in prose."""
    unknown: tuple[str, ...] = ()
    """Paths of fields that only models read, such as `basic_settings.mood`."""
    knowledge: str = ""
    """The folder of the knowledge base, as an absolute path; empty: there is none."""
    passages: int = 4
    """Passages of the knowledge base that a prompt holds at most."""
    on_new_message: Literal["supersede", "queue"] = "supersede"
    max_iterations: int = 10
    max_failed_plans: int = 3
    """Plans in a row that cannot be used, after which a person is asked."""
    apology: str = APOLOGY
    checking: str = CHECKING
    handover: str = HANDOVER
    """What the user is told if a person takes over and the model has no words for it."""
    greet_once: bool = False
    fixed_variables: tuple[str, ...] = ()
    """Variables of a session that its user cannot change, besides those whose names end in `id`."""
    handoff_to: str = HANDOFF_ROLE
    model: str = ""
    generation: int = 1
    """Which plan for this hash counts; raised by a request for a new one."""

    @property
    def plan_name(self) -> str:
        """The id of the run that makes the plan, shared by all sessions."""
        name = f"plan:{self.name}:{self.hash}"
        return name if self.generation == 1 else f"{name}:{self.generation}"

    def tool(self, name: str) -> BotTool | None:
        return next((one for one in self.tools if one.name == name), None)

    def matching_tool(self, name: str) -> BotTool | None:
        """The tool of this name, also by a pattern such as `git__*`."""
        patterns = (one for one in self.tools if one.name.endswith("*") and not one.endpoint)
        found = (one for one in patterns if name.startswith(one.name[:-1]) and len(name) >= len(one.name))
        return self.tool(name) or next(found, None)

    def skill(self, id: str) -> Skill | None:
        return next((one for one in self.skills if one.id == id), None)

    def flow(self, id: str) -> BotFlow | None:
        return next((one for one in self.flows if one.id == id), None)
