"""The plan of a configuration: what all sessions of a bot share, and what every prompt is made of.

A model writes it, so everything in it is converted and bounded here. Tools and skills are never the model's word: they
come from the configuration.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.text_limits import shown

from .definition import SYSTEM_ACTIONS, Bot, BotAction, TimerRule

LONGEST_TEXT = 100_000
MOST_TIMERS = 20
LONGEST_DELAY = 366 * 86_400.0
_DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d_]*)\.?\s*")
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
    config = bot.config
    basic = config.get("basic_settings")
    known: Mapping[str, Any] = {**basic, **config} if isinstance(basic, dict) else config
    greeting = _text(said.get("greeting")) or bot.greeting
    return CachedPlan(
        name=_text(said.get("name")) or _text(known.get("name")) or bot.name,
        tone=_text(said.get("tone")) or _text(known.get("tone")),
        greeting=greeting or None,
        sop=_text(said.get("sop")),
        tools=tools_of(bot),
        skills=skills_of(bot),
        timers=read_timers(said.get("timers")) or bot.timers or None,
        constraints=_text(said.get("constraints")),
    )


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
    message, action = _text(said.get("message")), _action(said.get("action"), number)
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
    """A length of time in seconds: a number, or a text such as `5m`, `5 minutes` or `5 分钟`."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        return float(said) if said < LONGEST_DELAY * 2 else None
    found = _DELAY.fullmatch(said[:100]) if isinstance(said, str) else None
    unit = _SECONDS.get(found[2].lower()) if found else None
    return float(found[1]) * unit if found and unit else None


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


def _text(said: Any) -> str:
    """What a model wrote where a text belongs: lists become lines, objects JSON."""
    if said is None or said in ({}, []):
        return ""
    if isinstance(said, list):
        said = "\n".join(_text(one) for one in said[:1000])
    if not isinstance(said, str):
        said = msgspec.json.encode(said).decode()
    return str(said).strip()[:LONGEST_TEXT]
