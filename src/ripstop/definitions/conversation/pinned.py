"""Checking a bot that comes from a journal, which somebody else may have made.

What the engine reads of it is written out as its author would have written it, and read again by the same reader. The
configuration itself only has to be what its hash says: later versions may read more out of it.
"""

import os
import re
from typing import Any

import msgspec

from ripstop.definitions.plain_tree import set_fields, tree_of
from ripstop.definitions.problems import Position, Problem, WrongDefinition
from ripstop.styles.conversation.definition import Bot, BotFlow, BotTool, Endpoint, config_hash

from .bot_fields import BotFields
from .reader import FILES, LONGEST_ID, read_tree

MOST_GENERATIONS = 1_000_000
OPTIONS = ("on_new_message", "max_iterations", "apology", "checking", "greet_once", "handoff_to", "passages", "model")


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
        "options": {name: getattr(bot, name) for name in OPTIONS},
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
