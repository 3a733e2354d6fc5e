"""The plan of a configuration: what all sessions of a bot share, and what every prompt is made of.

A model writes it, so everything in it is converted and bounded here. Tools and skills are never the model's word: they
come from the configuration.
"""

import re
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.text_limits import shown

from .configuration import as_prose, fields_of, procedure_of
from .definition import SYSTEM_ACTIONS, Bot, BotAction, TimerRule

MOST_TIMERS = 20
LONGEST_DELAY = 366 * 86_400.0
LONGEST_WRITTEN = 100
"""Characters of a delay that is written as text."""
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d_]*)\.?\s*(?:,|and\b|又|零)?\s*")
_UNITS = {
    1.0: ("", "s", "sec", "secs", "second", "seconds", "秒", "秒钟"),
    60.0: ("m", "min", "mins", "minute", "minutes", "分", "分钟"),
    3600.0: ("h", "hour", "hours", "小时", "时"),
    86_400.0: ("d", "day", "days", "天", "日"),
}
_SECONDS = {unit: seconds for seconds, units in _UNITS.items() for unit in units}


class WrongPlan(Exception):
    """What the planner said is not a plan; says why."""


class CachedPlan(Struct, frozen=True):
    """What the planner made of a configuration; or the configuration as it is, until there is a plan."""

    name: str
    tone: str
    greeting: str | None
    sop: str
    tools: tuple[dict[str, Any], ...]
    skills: tuple[dict[str, Any], ...]
    timers: tuple[TimerRule, ...] | None
    constraints: str


def read_plan(said: Any, bot: Bot) -> CachedPlan:
    """The plan in a planner's reply, with tools and skills of the configuration. Raises `WrongPlan`."""
    if not isinstance(said, dict):
        raise WrongPlan(f'"plan" must be an object, not {shown(said)}')
    written = written_plan(bot)
    return CachedPlan(
        name=as_prose(said.get("name")) or written.name,
        tone=as_prose(said.get("tone")) or written.tone,
        greeting=as_prose(said.get("greeting")) or written.greeting,
        sop=as_prose(said.get("sop")),
        tools=written.tools,
        skills=written.skills,
        timers=_timers(said.get("timers"), bot) or None,
        constraints=as_prose(said.get("constraints")) or written.constraints,
    )


def missing_in(plan: CachedPlan, bot: Bot) -> str:
    """What a plan lacks, so that it cannot be used; empty: nothing."""
    if not plan.sop and procedure_of(bot.config):
        return '"sop" of the plan is empty, but the configuration has a procedure'
    return ""


def written_plan(bot: Bot) -> CachedPlan:
    """The configuration as its author wrote it, in the place of a plan."""
    fields = fields_of(bot.config)
    return CachedPlan(
        name=as_prose(fields.get("name")) or bot.name,
        tone=as_prose(fields.get("tone")),
        greeting=bot.greeting or None,
        sop=procedure_of(bot.config),
        tools=tools_of(bot),
        skills=skills_of(bot),
        timers=bot.timers or None,
        constraints=as_prose(fields.get("constraints")),
    )


def _timers(said: Any, bot: Bot) -> tuple[TimerRule, ...]:
    """The timers of the file. Only what it has in prose is the planner's to read."""
    if not bot.timers:
        return read_timers(said)
    if not any(path.startswith("timers") for path in bot.unknown):
        return bot.timers
    known = {rule.delay for rule in bot.timers}
    return (*bot.timers, *(rule for rule in read_timers(said) if rule.delay not in known))[:MOST_TIMERS]


def tools_of(bot: Bot) -> tuple[dict[str, Any], ...]:
    """The tools as a model is told of them: no addresses, no headers."""
    return tuple(
        {"name": one.name, "description": one.description, "parameters": one.parameters}
        for one in bot.tools
        if not (one.system or one.purpose)
    )


def skills_of(bot: Bot) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"id": one.id, "condition": one.condition, "action": one.action, "tools": list(one.tools)} for one in bot.skills
    )


def read_timers(said: Any) -> tuple[TimerRule, ...]:
    """The timers in a plan. Raises `WrongPlan`."""
    if said is None or said in ({}, ""):
        return ()
    listed = said if isinstance(said, list) else [said]
    if len(listed) > MOST_TIMERS:
        raise WrongPlan(f"a plan has at most {MOST_TIMERS} timers, not {len(listed)}")
    return tuple(_timer(one, number) for number, one in enumerate(listed, 1))


def _timer(said: Any, number: int) -> TimerRule:
    if not isinstance(said, dict):
        raise WrongPlan(f"timer {number} must be an object with delay, message and action, not {shown(said)}")
    message, action = as_prose(said.get("message")), _action(said.get("action"), number)
    if not message and action is None:
        raise WrongPlan(f"timer {number} has neither a message nor an action")
    most = said.get("max_triggers", 1)
    if type(most) is not int or not 0 <= most <= 1000:
        raise WrongPlan(f"max_triggers of timer {number} must be a whole number from 0 to 1000, not {shown(most)}")
    return TimerRule(delay=_delay(said.get("delay"), number), message=message, action=action, max_triggers=most)


def _delay(said: Any, number: int) -> float:
    seconds = seconds_of(said)
    if seconds is None or not 0 < seconds <= LONGEST_DELAY:
        raise WrongPlan(
            f"the delay of timer {number} must be seconds above 0, or a text such as '5 minutes', not {shown(said)}"
        )
    return seconds


def seconds_of(said: Any) -> float | None:
    """A length of time in seconds: a number, or a text such as `5m`, `1h30m`, `5 minutes` or `1 小时 30 分钟`."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        return float(said) if said < LONGEST_DELAY * 2 else None
    if not isinstance(said, str) or not said.strip() or len(said) > LONGEST_WRITTEN:
        return None
    seconds, at, last = 0.0, 0, float("inf")
    while at < len(said):
        part = _PART.match(said, at)
        unit = _SECONDS.get(part[2].lower()) if part else None
        # `1h30m`, not `30m1h`, `1h2h` or `5m10`: what cannot have been meant is not guessed
        if part is None or unit is None or unit >= last or (at and not part[2]):
            return None
        seconds, at, last = seconds + float(part[1]) * unit, part.end(), unit
    return seconds


def _action(said: Any, number: int) -> BotAction | None:
    """An action of a timer: an object, the name of a built-in one, or words that are only its description."""
    if isinstance(said, str):
        return BotAction("SYSTEM", said) if said in SYSTEM_ACTIONS else None
    if not isinstance(said, dict) or not said.get("type") or not said.get("target"):
        return None
    try:
        return msgspec.convert({**said, "type": str(said["type"]).upper()}, BotAction)
    except msgspec.ValidationError as error:
        raise WrongPlan(f"the action of timer {number} is wrong: {error}") from error
