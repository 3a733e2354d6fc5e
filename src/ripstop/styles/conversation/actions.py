"""What an action calls: a tool, an endpoint, a flow, or one of the three built-in system actions.

The model names targets, so nothing here trusts them: only what the configuration names can be called.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.style import EndpointUse
from ripstop.text.visible_text import without_hidden

from .configuration import as_prose
from .decision import purpose_of, tool_of_skill
from .definition import FLOW_EXECUTOR, SYSTEM_ACTIONS, UPDATE_PROFILE, Bot, BotAction, BotFlow, BotTool, Endpoint
from .events import purpose_named
from .state import SessionState

HTTP = "http_request"
ASSISTANT, PLANNER = "assistant", "planner"
LONGEST_MATCHED = 300
"""Characters of a message that patterns of flows are compared with."""
MOST_LISTED = 30
SESSION_IDS = ("conversationId", "dialogId", "sessionId")
IDENTIFYING = "id"
"""How the names of variables end that say who somebody is: `customer_id`, `userId`. `paid` is kept, too, to be safe."""
_PROTECTED = frozenset(name.casefold() for name in SESSION_IDS)


class UnknownTarget(Exception):
    """There is nothing of that name, or nothing to do; says what there is."""


class Target(Struct, frozen=True):
    """What carries an action out."""

    name: str = ""
    """The tool, skill or flow, as the configuration calls it."""
    tool: str = ""
    """The tool to call; `http_request` for an endpoint."""
    endpoint: Endpoint | None = None
    workflow: str = ""
    text: str = ""
    """The result, where nothing has to be called: the instruction of a skill."""
    params: dict[str, Any] = {}


def target_of(action: BotAction, bot: Bot) -> Target:
    """What carries an action out; for a SYSTEM action nothing at all if its name is enough. Raises `UnknownTarget`."""
    if action.type == "SKILL":
        return _skill(action, bot)
    if action.type == "TOOL":
        tool = bot.matching_tool(action.target)
        if tool is None:
            raise UnknownTarget(
                f"There is no tool {action.target!r}; there are: {_names(one.name for one in bot.tools)}."
            )
        return _of_tool(tool, action.target, action.params)
    if action.type == "FLOW":
        flow = bot.flow(action.target)
        if flow is None:
            raise UnknownTarget(
                f"There is no flow {action.target!r}; there are: {_names(one.id for one in bot.flows)}."
            )
        return _flow(flow, action.params, bot)
    return _system(action, bot)


def call_key(action: BotAction, bot: Bot) -> str:
    """What an action calls, and with what: equal for two that do the same; empty for a workflow, and for nothing."""
    try:
        target = target_of(action, bot)
    except UnknownTarget:
        return ""
    if target.workflow:
        return ""
    params = _compared(target.params if target.tool else action.params)
    return f"{target.name or action.target} {msgspec.json.encode(params, order='sorted').decode()}"


def _compared(value: Any) -> Any:
    """A JSON value in which what is the same to people is written alike: 100.0 is 100, and ` 7` is `7`."""
    if isinstance(value, dict):
        return {key: _compared(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_compared(one) for one in value]
    if isinstance(value, str):
        return without_hidden(value).strip()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _skill(action: BotAction, bot: Bot) -> Target:
    skill, params = bot.skill(action.target), action.params
    if skill is None:
        tool = bot.matching_tool(action.target)
        if tool is None:
            known = _names([*(one.id for one in bot.skills), *(one.name for one in bot.tools)])
            raise UnknownTarget(f"There is no skill {action.target!r}; there are: {known}.")
        return _of_tool(tool, action.target, params)
    if skill.endpoint:
        return Target(skill.id, HTTP, skill.endpoint, params=params)
    if not skill.tools:
        return Target(skill.id, text=skill.action)
    wanted, given = tool_of_skill(skill, params, bot)
    tool = bot.matching_tool(wanted)
    if tool:
        return _of_tool(tool, wanted, given)
    known_tools = [name for name in skill.tools if bot.matching_tool(name) or purpose_named(name)]
    if not known_tools:
        raise UnknownTarget(f"The skill {skill.id!r} names tools that do not exist: {_names(skill.tools)}.")
    raise UnknownTarget(f"Say which tool of the skill {skill.id!r} to call, as params.tool: {_names(known_tools)}.")


def _of_tool(tool: BotTool, name: str, params: dict[str, Any]) -> Target:
    return Target(name, HTTP if tool.endpoint else name, tool.endpoint, params=params)


def _flow(flow: BotFlow, params: dict[str, Any], bot: Bot) -> Target:
    if flow.workflow:
        return Target(flow.id, workflow=flow.workflow, params=params)
    if flow.endpoint:
        return Target(flow.id, HTTP, flow.endpoint, params=params)
    executor = bot.tool(flow.tool or FLOW_EXECUTOR)
    if executor:
        return _of_tool(executor, executor.name, params if flow.tool else {**params, "flow_id": flow.id})
    if flow.tool:
        return Target(flow.id, flow.tool, params=params)
    raise UnknownTarget(f"Nothing carries out the flow {flow.id!r}: it has no workflow, tool or endpoint.")


def _system(action: BotAction, bot: Bot) -> Target:
    """Its own tool, or one that means the same; nothing to call for a built-in one without a tool."""
    purpose = purpose_of(action, bot)
    tool = bot.tool(action.target) or next((one for one in bot.tools if purpose and one.purpose == purpose), None)
    if tool is not None and (tool.endpoint or (tool.system and not purpose)):
        return _of_tool(tool, tool.name, action.params)  # a built-in one needs nothing but its name
    if purpose == UPDATE_PROFILE and not action.params:
        raise UnknownTarget(f"{action.target!r} has no params, so nothing was noted; say what is known, by name.")
    if purpose:
        return Target(purpose, params=action.params)
    known = (*SYSTEM_ACTIONS, *(one.name for one in bot.tools if one.system))
    raise UnknownTarget(f"There is no system action {action.target!r}; there are: {_names(dict.fromkeys(known))}.")


def arguments_of(state: SessionState, target: Target) -> dict[str, Any]:
    """What a tool is called with."""
    if target.endpoint is None:
        return target.params
    endpoint = target.endpoint
    return {
        "tool": target.name,
        "url": endpoint.url,
        "method": endpoint.method,
        "headers": endpoint.headers,
        "body": endpoint.body,
        "params": target.params,
        "variables": variables_of(_with_news(state)),
        "timeout": endpoint.timeout,
    }


def _with_news(state: SessionState) -> SessionState:
    """With what an endpoint is told that the user says of himself; for others it counts once that call succeeded."""
    action = state.action
    if action is None or purpose_of(action, state.definition) != UPDATE_PROFILE:
        return state
    return replace(state, profile={**state.profile, **action.params})


def endpoints_of(bot: Bot) -> tuple[EndpointUse, ...]:
    """The addresses that a bot's actions call."""
    named = [
        *((one.name, one.endpoint) for one in bot.tools),
        *((one.id, one.endpoint) for one in bot.skills),
        *((one.id, one.endpoint) for one in bot.flows),
    ]
    return tuple(EndpointUse(name, one.url, one.headers) for name, one in named if one)


def variables_of(state: SessionState) -> dict[str, str]:
    """What is known of the session and its user, by the names that configurations use for it."""
    session, known = state.chat.session, known_of(state)
    return {**dict.fromkeys(SESSION_IDS, session), **known, **_ids_in(state.chat.variables)}


def known_of(state: SessionState) -> dict[str, str]:
    """What is known of the user: the variables of the session, and the profile as it is now.

    What the user has said of himself counts before what the session began with, but never for who he is: then tools
    would read and change what is another user's.
    """
    given, fixed = state.chat.variables, _fixed_in(state)
    profile = {name: as_prose(value) for name, value in state.profile.items() if name.casefold() not in fixed}
    found = {**given, **profile}
    return {name: value for name, value in found.items() if name.casefold() not in _PROTECTED}


def _fixed_in(state: SessionState) -> set[str]:
    """The variables of the session that say who the user is: their names in lower case."""
    listed = {name.casefold() for name in state.definition.fixed_variables}
    given = {name.casefold() for name in state.chat.variables}
    return {name for name in given if name.endswith(IDENTIFYING) or name in listed}


def _ids_in(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.casefold() in _PROTECTED}


def flow_for(message: str, bot: Bot) -> BotFlow | None:
    """The first flow whose own pattern a message matches, before the model is asked."""
    words = message.strip()[:LONGEST_MATCHED]
    for flow in bot.flows:
        if flow.match != "intent" and any(_matches(words, pattern, flow.match) for pattern in flow.patterns):
            return flow
    return None


def _matches(words: str, pattern: str, match: str) -> bool:
    if match == "regex":
        return re.search(pattern, words, re.IGNORECASE) is not None
    if match == "exact":
        return words.casefold() == pattern.strip().casefold()
    return bool(pattern.strip()) and pattern.strip().casefold() in words.casefold()


SAYS = ("messages", "message", "text", "content", "response", "reply", "answer", "output", "result")
"""Fields of a flow's result that hold what it says, the first that is there."""
MOST_WORDS = 20
DEEPEST_WORDS = 5


def words_in(value: Any) -> list[str]:
    """What a flow says: a text, several, or an object with one of the usual fields, which can be inside another."""
    if isinstance(value, dict) and "body" in value and "status" in value:
        value = value["body"]
    return _words(value, DEEPEST_WORDS)


def _words(value: Any, depth: int) -> list[str]:
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, list):
        return [text for one in value[:MOST_WORDS] for text in _words(one, depth - 1)][:MOST_WORDS] if depth else []
    if not isinstance(value, dict) or not depth:
        return []
    named = next((value[key] for key in SAYS if value.get(key) not in (None, "", [], {})), None)
    if named is not None:
        return _words(named, depth - 1)
    inside = (_words(one, depth - 1) for one in value.values() if isinstance(one, dict | list))
    return next((found for found in inside if found), [])


def is_without_words(value: Any) -> bool:
    """Whether a flow has returned nothing at all: it says nothing, and means it."""
    if isinstance(value, dict) and "body" in value and "status" in value:
        value = value["body"]
    return value in (None, "", [], {})


def _names(names: Any) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return (", ".join(listed[:MOST_LISTED]) or "none") + more
