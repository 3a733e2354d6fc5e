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

from .definition import CLOSE, HANDOFF, SYSTEM_ACTIONS, UPDATE_PROFILE, Bot
from .plan import CachedPlan, skills_of, tools_of
from .state import ChatLine, SessionState

MOST_HISTORY = 40_000
"""Characters of the conversation in a prompt, counted from its end."""
MOST_KNOWN = 16
"""Bots whose prompts share what they begin with; of others it is put together for every prompt."""
_TAG = re.compile(r"<(/?(?:config|tools|skills|flows|system_actions|user_message|conversation|knowledge|plan)\b)", re.I)
_VARIABLE = re.compile(r"\{\{\s*\$([\w.]{1,80})\s*\}\}")
_encode = msgspec.json.Encoder(order="deterministic").encode

STATUS_RULES = """\
next_status is one of:
- processing: one action has to be carried out before you can answer. Name it in "action"; "response" may be a short \
note for the user, or null.
- typing: you can answer now. "response" is the answer.
- ready: nothing needs to be said or done. "response" is null.
- transferred: a person has to take over. "response" tells the user so; it is sent first."""

ACTION_RULES = """\
An action is {"type": ..., "target": ..., "params": {...}}, one at a time:
- TOOL: target is the name of a tool.
- SKILL: target is the id of a skill whose condition holds.
- FLOW: target is the id of a flow; it takes the conversation over.
- SYSTEM: target is a system action. The user does not see it and you are not told of it, so never mention it."""

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


def planning_prompt(bot: Bot, message: str, passages: Iterable[tuple[str, str]]) -> Prompt:
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
        _tagged("user_message", message),
    ]
    schema = {
        "type": "object",
        "properties": {"plan": {"type": "object"}, "decision": DECISION},
        "required": ["plan", "decision"],
    }
    return Prompt((Message("system", system), Message("user", "\n\n".join(parts))), schema=schema)


def decision_prompt(state: SessionState) -> Prompt:
    system, actions = _standing(state)
    earlier = [line for line in state.said if not (line.speaker == "user" and line.number in state.heard)]
    before, since = _around(earlier, state.heard)
    parts = [
        actions,
        *_knowledge(state.passages),
        _tagged("conversation", _history(before) or "(this is its beginning)"),
        _tagged("user_message", state.message()),
    ]
    if since:
        parts.append(_tagged("conversation", f"Since that message:\n{_history(since)}"))
    return Prompt((system, Message("user", "\n\n".join(parts))), schema=DECISION)


class StandingParts(Struct, frozen=True):
    plan: CachedPlan
    bot: Bot
    system: Message
    actions: str


_known: list[StandingParts] = []
"""The newest last. Thousands of sessions share a plan, and with it most of their prompts."""


def _standing(state: SessionState) -> tuple[Message, str]:
    """What every prompt of a bot begins with, and what it says that can be called."""
    plan, bot = state.plan, state.definition
    assert plan is not None
    for one in _known:
        if one.plan is plan and one.bot is bot:
            return one.system, one.actions
    actions = "\n\n".join(
        [_tagged("tools", _listed(plan.tools)), _tagged("skills", _listed(plan.skills)), *_flows_and_actions(bot)]
    )
    system = Message("system", _rules(plan, state.chat.variables))
    if not (_VARIABLE.search(plan.sop) or _VARIABLE.search(plan.constraints)):  # else it differs between sessions
        _known[:] = [*_known[1 - MOST_KNOWN :], StandingParts(plan, bot, system, actions)]
    return system, actions


def _rules(plan: CachedPlan, variables: Mapping[str, str]) -> str:
    return f"""\
You are {_one_line(plan.name)}, who answers customers. Your tone: {_one_line(plan.tone) or "friendly"}.

{_tagged("plan", filled(plan.sop, variables))}

Rules of this bot:
{filled(plan.constraints, variables) or "none besides those below"}

{STATUS_RULES}

{ACTION_RULES}

{MANNERS}

Reply with one JSON object and nothing else:
{{"reasoning": "a few words", "next_status": ..., "action": {{...}} or null, "response": ... or null}}"""


def filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with `{{$contact.name}}` replaced by what is known; what is not known stays as it is."""
    return _VARIABLE.sub(lambda found: variables.get(found[1], found[0])[:500], text)


def _around(lines: list[ChatLine], heard: tuple[int, ...]) -> tuple[list[ChatLine], list[ChatLine]]:
    first = heard[0] if heard else 0
    return [line for line in lines if line.number < first], [line for line in lines if line.number >= first]


def _history(lines: list[ChatLine]) -> str:
    told = {"user": "User", "assistant": "You", "desk": "Colleague", "flow": "Flow", "result": "Result"}
    kept: list[str] = []
    left = MOST_HISTORY
    for line in reversed(lines):
        words = f"{told[line.speaker]}: {_INDENTED.join(line.text.splitlines())}"
        left -= len(words)
        if left < 0:
            break
        kept.append(words)
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
