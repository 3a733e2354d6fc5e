"""The two prompts: one that makes a plan of a configuration and decides once, and one that decides.

Everything that was written by others is in tags of its own, and a tag inside it is taken apart: what a customer or a
tool says can never look like another part of the prompt.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.prompt import Message, Prompt
from ripstop.text.plurals import count

from ..shortening import cut
from .actions import known_of, variables_of
from .configuration import as_prose, background_of, fields_of
from .definition import CLOSE, HANDOFF, SYSTEM_ACTIONS, UPDATE_PROFILE, Bot
from .plan import CachedPlan, skills_of, tools_of, written_plan
from .state import ChatLine, SessionState

MOST_HISTORY = 40_000
"""Characters of the conversation in a prompt, counted from its end."""
LEAST_HISTORY = 2_000
"""Of a conversation that is shortened because the model cannot take its prompt."""
MOST_KNOWN = 16
"""Bots whose prompts share what they begin with; of others it is put together for every prompt."""
MOST_SHORTENED = 2
"""A procedure that the planner has made shorter than this part of it goes along as it was written."""
_TAGS = "background|calls|config|conversation|flows|knowledge|known|plan|skills|system_actions|tools|user_message"
_TAG = re.compile(rf"<(/?(?:{_TAGS})\b)", re.I)
_VARIABLE = re.compile(r"\{\{\s*\$([\w.]{1,80})\s*\}\}")
_encode = msgspec.json.Encoder(order="deterministic").encode

STATUS_RULES = """\
next_status is one of:
- processing: one action has to be carried out before you can answer. Name it in "action"; "response" may be a short \
note for the user, or null.
- typing: you can answer now. "response" is the answer. An action beside it is carried out first; if it fails, the \
answer is not sent, and you decide again.
- ready: nothing needs to be said or done. "response" is null.
- transferred: a person has to take over. "response" tells the user so; it is sent first."""

ACTION_RULES = """\
An action is {"type": ..., "target": ..., "params": {...}}, one at a time:
- TOOL: target is the name of a tool.
- SKILL: target is the id of a skill whose condition holds.
- FLOW: target is the id of a flow; it takes the conversation over.
- SYSTEM: target is a system action. The user does not see it, so never mention it; you are told of it only if it fails.
The same call with the same params is made once. Its result is in the conversation."""

MANNERS = """\
Ask one question at a time. Use at most two sentences. State only what the texts above and the results of actions say. \
If the message is unclear, ask; if it stays unclear, hand over to a person."""

_INDENTED = "\n    "
"""Before every line of a message but its first, so that no user can write lines of others."""
DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "next_status": {"enum": ["processing", "typing", "ready", "transferred"]},
        "action": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {
                        "type": {"enum": ["SKILL", "TOOL", "FLOW", "SYSTEM"]},
                        "target": {"type": "string"},
                        "params": {"type": "object"},
                    },
                    "required": ["type", "target", "params"],
                },
            ]
        },
        "response": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    },
    "required": ["next_status", "action", "response"],
}


_TEXT = {"type": "string"}
_TEXT_OR_NONE = {"anyOf": [{"type": "null"}, _TEXT]}


def _plan_schema(bot: Bot) -> dict[str, Any]:
    """What a plan is. A server that obeys a schema then cannot leave the procedure out."""
    timer = {
        "type": "object",
        "properties": {
            "delay": {"type": "number"},
            "message": _TEXT,
            "action": DECISION["properties"]["action"],
            "max_triggers": {"type": "integer"},
        },
        "required": ["delay", "message"],
    }
    sop = {"type": "string", "minLength": 1} if written_plan(bot).sop else _TEXT
    return {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "tone": _TEXT,
            "greeting": _TEXT_OR_NONE,
            "sop": sop,
            "timers": {"type": "array", "items": timer},
            "constraints": _TEXT,
        },
        "required": ["name", "tone", "greeting", "sop", "timers", "constraints"],
    }


def planning_prompt(
    bot: Bot, message: str, passages: Iterable[tuple[str, str]], known: Mapping[str, str] | None = None
) -> Prompt:
    system = f"""\
You read the configuration of a customer-service bot, once, for all its conversations. You have two tasks:
1. Rewrite the configuration as a plan that can be followed step by step.
2. Decide what to do about the first message.

The plan:
- sop: the procedure as clear steps. Keep its meaning, remove what is ambiguous, state every condition, and say which \
step follows which.
- constraints: all rules about the style of replies, about limits, and about the handling of data, in one place.
- timers: everything that is to happen after a time without a message, as {{"delay": seconds, "message": text, \
"action": action or null}}. The delay counts from the bot's last message. If the second step comes after the first, \
its delay is the sum of both.
- name, tone, greeting: as the configuration has them; greeting is null if it has none.
- The plan serves all users. Leave placeholders such as {{{{$contact.name}}}} as they are, and write nothing into it \
that is known of this user only.

The decision:
{STATUS_RULES}

{ACTION_RULES}

{MANNERS}

Reply with one JSON object and nothing else:
{{"plan": {{"name": ..., "tone": ..., "greeting": ..., "sop": ..., "timers": [...], "constraints": ...}}, \
"decision": {{"next_status": ..., "action": {{...}} or null, "response": ... or null}}}}"""
    parts = [
        _tagged("config", _encode(bot.config).decode()),
        _tagged("tools", _listed(tools_of(bot))),
        _tagged("skills", _listed(skills_of(bot))),
        *_flows_and_actions(bot),
        *_knowledge(passages),
        *_known_of(known or {}),
        _tagged("user_message", message),
    ]
    schema = {
        "type": "object",
        "properties": {"plan": _plan_schema(bot), "decision": DECISION},
        "required": ["plan", "decision"],
    }
    return Prompt((Message("system", system), Message("user", "\n\n".join(parts))), schema=schema)


def decision_prompt(state: SessionState, longest: int) -> Prompt:
    """`longest`: of the call (`AskAgent.longest`), for the conversation."""
    system, actions = _standing(state)
    earlier = [line for line in state.said if not (line.speaker == "user" and line.number in state.heard)]
    before, since = _around(earlier, state.heard)
    parts = [
        actions,
        *_knowledge(state.passages),
        *_known_of(known_of(state)),
        _tagged("conversation", _history(before, longest) or "(this is its beginning)"),
        _tagged("user_message", state.message()),
        *_calls_before(state),
    ]
    if since:
        parts.append(_tagged("conversation", f"Since that message:\n{_history(since, longest)}"))
    return Prompt((system, Message("user", "\n\n".join(parts))), schema=DECISION)


def _calls_before(state: SessionState) -> list[str]:
    """What was called for these messages before this pass, with what, and what came of it."""
    heard = set(state.heard)
    made = [one for one in state.calls if one.is_earlier and one.visible and not heard.isdisjoint(one.heard)]
    lines = [f"{one.key}: {_INDENTED.join(one.result.splitlines())}" for one in made]
    told = "Called for this message already, and not to be called again:\n" + "\n".join(lines)
    return [_tagged("calls", told)] if made else []


class StandingParts(Struct, frozen=True):
    plan: CachedPlan | None
    bot: Bot
    system: Message
    actions: str


_known: list[StandingParts] = []
"""The newest last. Thousands of sessions share a plan, and with it most of their prompts."""


def _standing(state: SessionState) -> tuple[Message, str]:
    """What every prompt of a bot begins with, and what it says that can be called."""
    plan, bot = state.plan, state.definition
    for one in _known:
        if one.plan is plan and one.bot is bot:
            return one.system, one.actions
    actions = "\n\n".join(
        [_tagged("tools", _listed(tools_of(bot))), _tagged("skills", _listed(skills_of(bot))), *_flows_and_actions(bot)]
    )
    rules = _rules(plan or written_plan(bot), bot)
    if _VARIABLE.search(rules):  # then it differs between sessions
        return Message("system", filled(rules, variables_of(state))), actions
    system = Message("system", rules)
    _known[:] = [*_known[1 - MOST_KNOWN :], StandingParts(plan, bot, system, actions)]
    return system, actions


def _rules(plan: CachedPlan, bot: Bot) -> str:
    written, background = written_plan(bot), background_of(bot.config)
    more = f"\n\n{_tagged('background', background)}" if background else ""
    language = _one_line(as_prose(fields_of(bot.config).get("language")))
    return f"""\
You are {_one_line(plan.name)}, who answers customers. Your tone: {_one_line(plan.tone) or "friendly"}.\
{f" Your language: {language}." if language else ""}

{_tagged("plan", _kept(plan.sop, written.sop))}{more}

Rules of this bot:
{_kept(plan.constraints, written.constraints) or "none besides those below"}

{STATUS_RULES}

{ACTION_RULES}

{MANNERS}

Reply with one JSON object and nothing else:
{{"reasoning": "a few words", "next_status": ..., "action": {{...}} or null, "response": ... or null}}"""


def _kept(planned: str, written: str) -> str:
    """What the plan has, and beside it what its author wrote if the planner has left much of that out."""
    if not planned or len(planned) * MOST_SHORTENED >= len(written):
        return planned or written
    return f"{planned}\n\nIn the words of its author, which count where they say more:\n{written}"


def filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with `{{$contact.name}}` replaced by what is known; what is not known stays as it is."""
    return _VARIABLE.sub(lambda found: _value(found[1], variables, found[0]), text)


def spoken(state: SessionState, text: str) -> str:
    """A text of the configuration as the user gets it: of what is not known nothing is shown."""
    variables = variables_of(state)
    return _VARIABLE.sub(lambda found: _value(found[1], variables, ""), text)


def _value(name: str, variables: Mapping[str, str], otherwise: str) -> str:
    """What `contact.name` is: a variable of that name, or of its last part."""
    return variables.get(name, variables.get(name.rpartition(".")[2], otherwise))[:500]


def _known_of(known: Mapping[str, str]) -> list[str]:
    """What is known of the user, a line for each."""
    lines = [f"{_one_line(name)}: {_one_line(value)}" for name, value in known.items() if value.strip()]
    return [_tagged("known", "What is known of this user:\n" + "\n".join(lines))] if lines else []


def _around(lines: list[ChatLine], heard: tuple[int, ...]) -> tuple[list[ChatLine], list[ChatLine]]:
    first = heard[0] if heard else 0
    return [line for line in lines if line.number < first], [line for line in lines if line.number >= first]


def _history(lines: list[ChatLine], longest: int) -> str:
    told = {"user": "User", "assistant": "You", "desk": "Colleague", "flow": "Flow", "result": "Result"}
    kept: list[str] = []
    left = longest or MOST_HISTORY
    for line in reversed(lines):
        text = cut(line.text, longest // 2)  # so the newest line is always there
        if longest and line.left_out:
            text += f" [{line.left_out:,} characters more are left out]"
        words = f"{told[line.speaker]}: {_INDENTED.join(text.splitlines())}"
        left -= len(words)
        if left < 0 and not (longest and not kept):
            break
        kept.append(words)
    if longest and len(kept) < len(lines):
        kept.append(f"({count(len(lines) - len(kept), 'earlier line')} left out)")
    return "\n".join(reversed(kept))


def _flows_and_actions(bot: Bot) -> list[str]:
    flows = [{"id": one.id, "description": one.description, "when": list(one.patterns)} for one in bot.flows]
    named = {one.name: one for one in bot.tools if one.system or one.purpose}
    actions = [
        {"name": CLOSE, "description": "Close the conversation when the user says goodbye."},
        {"name": HANDOFF, "description": "Hand the conversation over to a person."},
        {"name": UPDATE_PROFILE, "description": "Note what the user says about himself, as params."},
    ]
    own = [
        {"name": one.name, "description": one.description, "parameters": one.parameters}
        for one in named.values()
        if one.name not in SYSTEM_ACTIONS
    ]
    found = [_tagged("system_actions", _listed([*actions, *own]))]
    return [_tagged("flows", _listed(flows)), *found] if flows else found


def _knowledge(passages: Iterable[tuple[str, str]]) -> list[str]:
    found = [f"[{source}]\n{text}" for source, text in passages]
    return [_tagged("knowledge", "\n\n".join(found))] if found else []


def _listed(items: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(_encode(dict(one)).decode() for one in items) or "none"


def _tagged(tag: str, text: str) -> str:
    inside = _TAG.sub(r"‹\1", text)
    return f"<{tag}>\n{inside}\n</{tag}>"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
