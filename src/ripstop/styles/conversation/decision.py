"""A decision of the model: the next status, at most one action, and what the user is told.

What breaks the contract is said exactly, because the model is asked once more with it.
"""

from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.text_limits import is_plain, shown
from ripstop.text.visible_text import without_hidden

from .. import reply
from .definition import FLOW_EXECUTOR, HANDOFF, Bot, BotAction, Skill
from .events import purpose_named

NEXT = "next_status"
STATUSES = ("processing", "typing", "ready", "transferred")
TYPES = ("SKILL", "TOOL", "FLOW", "SYSTEM")
LONGEST_RESPONSE = 20_000
LARGEST_PARAMS = 100_000
"""Bytes of an action's params as JSON."""
NO_ACTION = ("", "none", "null", "no_action")


class BrokenContract(Exception):
    """The decision breaks the contract; says how."""


class IterationDecision(Struct, frozen=True):
    next_status: str
    action: BotAction | None = None
    response: str = ""
    reasoning: str = ""


_latest: list[tuple[str | None, IterationDecision | None]] = [(None, None)]
"""The reply that was read last: a step reads it twice, once to decide and once to fold."""


def decision_in(text: str, bot: Bot) -> IterationDecision:
    """The decision in a reply. Raises `BrokenContract`."""
    known, found = _latest[0]
    if found is not None and known is text:
        return found
    try:
        said, _ = reply.last(text, NEXT)
    except reply.NoReply as error:
        raise BrokenContract(f"the reply has no JSON object with {NEXT!r} ({error})") from error
    decision = read_decision(said, bot)
    _latest[0] = (text, decision)
    return decision


def read_decision(said: Any, bot: Bot) -> IterationDecision:
    """Raises `BrokenContract`."""
    if not isinstance(said, dict):
        raise BrokenContract(f"the decision must be an object, not {shown(said)}")
    status = said.get(NEXT)
    if status not in STATUSES:
        raise BrokenContract(f"{NEXT!r} is {shown(status)}; it must be one of {', '.join(STATUSES)}")
    response = said.get("response")
    if response is not None and not isinstance(response, str):
        raise BrokenContract(f"'response' must be a text or null, not {shown(response)}")
    words = (response or "").strip()
    if not without_hidden(words).strip():  # nobody would see it
        words = ""
    if len(words) > LONGEST_RESPONSE:
        raise BrokenContract(f"'response' has {len(words):,} characters; at most {LONGEST_RESPONSE:,} are sent")
    action = _action(said.get("action"))
    if action:
        action = as_system(action, bot)
    if action and purpose_of(action, bot) == HANDOFF:
        status = "transferred"  # whatever else the model writes: who asks for a person gets one
    if status == "transferred" and not words:
        words = bot.handover  # who is to talk to a person does so, whatever the model forgets
    if status == "typing" and not words:
        raise BrokenContract(f"{status!r} needs a 'response' for the user")
    if status == "ready" and words:
        raise BrokenContract("'ready' ends without a word, so 'response' must be null; use 'typing' to answer")
    reasoning = said.get("reasoning")
    return IterationDecision(status, action, words, reasoning[:2000] if isinstance(reasoning, str) else "")


def as_system(action: BotAction, bot: Bot) -> BotAction:
    """The action, as a SYSTEM action if what it calls is one, whatever the model calls it: it stays silent."""
    if action.type == "SYSTEM":
        return action
    name, params = _called(action, bot)
    tool = bot.tool(name)
    is_purpose = bool(tool.purpose if tool else purpose_named(name))
    # a tool of a flow is never silent: what it says is the answer
    is_system = is_purpose or bool(tool and tool.system and action.type != "FLOW")
    return BotAction("SYSTEM", name, params) if is_system else action


def _called(action: BotAction, bot: Bot) -> tuple[str, dict[str, Any]]:
    """The tool that an action calls, and with what; empty if it calls another thing, or that is not clear."""
    skill, flow = bot.skill(action.target), bot.flow(action.target)
    if action.type == "SKILL" and skill:
        return ("", {}) if skill.endpoint else tool_of_skill(skill, action.params, bot)
    if action.type == "FLOW" and flow:
        is_tool = not (flow.workflow or flow.endpoint)
        return (flow.tool or FLOW_EXECUTOR, action.params) if is_tool else ("", {})
    return ("", {}) if skill or flow else (action.target, action.params)


def tool_of_skill(skill: Skill, params: dict[str, Any], bot: Bot) -> tuple[str, dict[str, Any]]:
    """Which of its tools a skill calls, and with what: the one that `params.tool` names, or the only one that there is.

    A built-in action is there without being declared, but is not meant where a declared tool is named beside it.
    """
    declared = [name for name in skill.tools if bot.matching_tool(name)]
    built_in = [name for name in skill.tools if name not in declared and purpose_named(name)]
    default = (declared or built_in)[0] if len(declared or built_in) == 1 else ""
    wanted = params.get("tool", default)
    if wanted not in (*declared, *built_in):
        return "", params
    return wanted, {key: value for key, value in params.items() if key != "tool"}


def purpose_of(action: BotAction, bot: Bot) -> str:
    """The built-in action that a SYSTEM action is; empty: it is one of the configuration's own."""
    if action.type != "SYSTEM":
        return ""
    tool = bot.tool(action.target)
    if tool and tool.purpose:
        return tool.purpose
    return purpose_named(action.target, is_system=True)


def _action(said: Any) -> BotAction | None:
    if said is None or said in ({}, ""):
        return None
    if not isinstance(said, dict):
        raise BrokenContract(f"'action' must be an object with type, target and params, or null, not {shown(said)}")
    kind, target, params = said.get("type"), said.get("target"), said.get("params")
    if any(isinstance(one, str) and one.strip().lower() in NO_ACTION for one in (kind, target)) or kind is None:
        return None
    named = str(kind).strip().upper()
    if named not in TYPES:
        raise BrokenContract(f"the type of the action is {shown(kind)}; it must be one of {', '.join(TYPES)}")
    if not isinstance(target, str):
        raise BrokenContract(f"the target of the action must be a text, not {shown(target)}")
    if params is not None and not isinstance(params, dict):
        raise BrokenContract(f"the params of the action must be an object, not {shown(params)}")
    given = params or {}
    if not is_plain(given) or len(msgspec.json.encode(given)) > LARGEST_PARAMS:
        raise BrokenContract(f"the params of the action are too deep or longer than {LARGEST_PARAMS:,} bytes")
    return BotAction(named, target.strip()[:200], given)  # type: ignore[arg-type]  # one of TYPES
