"""What a bot does when the user says nothing for a while. Timers in prose are left to the planner."""

from collections.abc import Collection, Mapping
from typing import Any, get_args

from ripstop.definitions.json_tree import plain
from ripstop.definitions.problems import nearest
from ripstop.definitions.yaml_tree import Value

from .bot_fields import BotFields, Fields, as_number, first_of, inner
from .definition import SYSTEM_ACTIONS, BotAction, BotFlow, BotTool, Skill, TimerRule
from .events import purpose_named
from .plan import LONGEST_DELAY, MOST_TIMERS, seconds_of
from .schema import LONGEST_MESSAGE, LONGEST_NAME, MOST_TRIGGERS, TIMER

SECTION = "timers"
DELAYS = ("delay", "delay_seconds", "seconds", "after")
FIELDS = (*TIMER["properties"], *DELAYS, "text", "name", "id", "description")
ACTION_FIELDS = ("type", "target", "params", "name", "tool")
TYPES: tuple[str, ...] = get_args(BotAction.__annotations__["type"])


def read_timers(
    reader: BotFields, top: Fields, tools: Collection[BotTool], skills: Collection[Skill], flows: Collection[BotFlow]
) -> tuple[TimerRule, ...]:
    targets = {
        "SKILL": [one.id for one in skills],
        "TOOL": [one.name for one in tools if not one.system],
        "FLOW": [one.id for one in flows],
        "SYSTEM": [*SYSTEM_ACTIONS, *(one.name for one in tools if one.system)],
    }
    found: list[TimerRule] = []
    items = list(reader.items_in(top.get(SECTION), SECTION, FIELDS))
    if items and not reader.within(items, MOST_TIMERS, "timers", items[0][2].place):
        items = items[:MOST_TIMERS]
    for path, _, item in items:
        timer = _timer(reader, path, item, targets)
        if timer is not None:
            reader.places["timer", str(len(found))] = item.place
            found.append(timer)
    return tuple(found)


def _timer(reader: BotFields, path: str, item: Value, targets: Mapping[str, list[str]]) -> TimerRule | None:
    if not isinstance(item.value, dict):
        reader.leave(item.place, path, "a timer that is not a mapping with a 'delay' is for the planner to read")
        return None
    fields = reader.fields(item, path, FIELDS)
    delay = _delay(reader, path, item, fields)
    message = reader.text(fields, "message", "text", path=path)
    if len(message) > LONGEST_MESSAGE:
        reader.problem(item.place, f"the message has {len(message)} characters; at most {LONGEST_MESSAGE} can be")
    action = _action(reader, path, fields, targets)
    most = _max_triggers(reader, fields)
    return None if delay is None else TimerRule(delay, message[:LONGEST_MESSAGE], action, most)


def _delay(reader: BotFields, path: str, item: Value, fields: Fields) -> float | None:
    entry = first_of(fields, *DELAYS)
    if entry is None:
        reader.leave(item.place, path, "the timer has no 'delay'", reader.field_hint.format(key="delay"))
        return None
    seconds = seconds_of(entry.value.value)
    if seconds is None and not isinstance(entry.value.value, int | float):
        text = f"this is not a length of time: {str(plain(entry.value))[:60]!r}"
        reader.leave(entry.value.place, path, text, "write seconds, or a text such as 5m")
        return None
    if seconds is None or not 0 < seconds <= LONGEST_DELAY:
        text = f"a delay must be above 0 and at most {LONGEST_DELAY / 86_400:.0f} days"
        reader.problem(entry.value.place, text)
        return None
    return seconds


def _max_triggers(reader: BotFields, fields: Fields) -> int:
    entry = first_of(fields, "max_triggers")
    if entry is None:
        return 1
    most = as_number(entry.value.value)
    if most is None or most != int(most) or not 0 <= most <= MOST_TRIGGERS:
        reader.problem(entry.value.place, f"'max_triggers' must be a whole number from 0 to {MOST_TRIGGERS}")
        return 1
    return int(most)


# Actions


def _action(reader: BotFields, path: str, fields: Fields, targets: Mapping[str, list[str]]) -> BotAction | None:
    entry = first_of(fields, "action")
    if entry is None:
        return None
    path, value = inner(path, "action"), entry.value
    if isinstance(value.value, str):
        return _resolved(reader, path, value, "", value.value.strip(), {}, targets)
    if not isinstance(value.value, dict):
        reader.leave(value.place, path, f"an action must be a name, but this is {value.kind}")
        return None
    said = reader.fields(value, path, ACTION_FIELDS)
    kind = reader.text(said, "type", path=path).upper()
    target = reader.text(said, "target", "name", "tool", path=path)
    params: Any = plain(said["params"].value) if "params" in said else {}
    if not isinstance(params, dict | None):
        reader.leave(said["params"].value.place, inner(path, "params"), f"'params' must be {reader.mapping_word}")
        params = {}
    if kind not in ("", *TYPES):
        reader.problem(
            said["type"].value.place, f"there is no type of action {kind[:40]!r}", f"known are {', '.join(TYPES)}"
        )
        return None
    return _resolved(reader, path, value, kind, target, params or {}, targets)


def _resolved(
    reader: BotFields,
    path: str,
    value: Value,
    kind: str,
    target: str,
    params: dict[str, Any],
    targets: Mapping[str, list[str]],
) -> BotAction | None:
    """The action that a target means, if there is one."""
    target = target[:LONGEST_NAME]
    for one in (kind,) if kind else ("SYSTEM", "TOOL", "FLOW", "SKILL"):
        if target in targets[one]:
            return BotAction(one, target, params)  # type: ignore[arg-type]  # one of TYPES
    purpose = purpose_named(target) if kind in ("", "SYSTEM", "TOOL") else ""
    if purpose:
        return BotAction("SYSTEM", purpose, params)
    known = targets[kind] if kind else [name for names in targets.values() for name in names]
    near = nearest(target, known)
    text = f"there is no action {target[:60]!r}, so the timer does nothing but speak"
    reader.leave(value.place, path, text, f"did you mean {near!r}?" if near else "")
    return None
