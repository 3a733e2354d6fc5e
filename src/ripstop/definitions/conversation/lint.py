"""What the author of a bot would want to know, although nothing is wrong."""

from collections.abc import Iterator

from ripstop.definitions.problems import WARNING, Position, Problem
from ripstop.definitions.yaml_tree import Value
from ripstop.styles.conversation.actions import FLOW_EXECUTOR
from ripstop.styles.conversation.definition import Bot

from .bot_fields import BotFields, snake

PROCEDURE = ("sop", "instruction", "instructions", "procedure")


def lint(bot: Bot, reader: BotFields, tree: Value) -> Iterator[Problem]:
    yield from _procedure(bot, tree.place)
    yield from _skills(bot, reader.places)
    yield from _flows(bot, reader.places)
    yield from _timers(bot, reader.places)


def _warning(place: Position, text: str, hint: str = "") -> Problem:
    return Problem(place, text, hint, WARNING)


def _procedure(bot: Bot, place: Position) -> Iterator[Problem]:
    settings = bot.config.get("basic_settings") or bot.config.get("basicSettings")
    keys = {snake(key) for key, value in bot.config.items() if value}
    keys |= {snake(key) for key, value in settings.items() if value} if isinstance(settings, dict) else set()
    if not keys & set(PROCEDURE) and not bot.skills:
        text = "the bot has neither a procedure nor skills, so the model has nothing to go by"
        yield _warning(place, text, "add `sop`")


def _skills(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    for skill in bot.skills:
        place = places["skill", skill.id]
        if not skill.condition:
            text = f"the skill {skill.id!r} has no condition, so the model has to guess when it applies"
            yield _warning(place, text, "add `condition`")
        if not skill.action and not skill.tools and skill.endpoint is None:
            yield _warning(place, f"the skill {skill.id!r} does not say what to do", "add `action` or `tools`")


def _flows(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for flow in bot.flows:
        place = places["flow", flow.id]
        runners = [name for name in ("workflow", "tool", "endpoint") if getattr(flow, name)]
        if not runners and bot.tool(FLOW_EXECUTOR) is None:
            text = f"nothing can run the flow {flow.id!r}"
            yield _warning(place, text, f"add `workflow`, `tool` or `endpoint`, or a tool {FLOW_EXECUTOR!r}")
        if len(runners) > 1:
            text = f"the flow {flow.id!r} has {' and '.join(runners)}; only its {runners[0]} is used"
            yield _warning(place, text, "keep one of them")
        if not flow.patterns and (flow.match != "intent" or not flow.description):
            text = f"the flow {flow.id!r} does not say when it starts"
            yield _warning(place, text, "add `trigger_patterns`")
        for pattern in flow.patterns if flow.match != "intent" else ():
            other = owner.setdefault(pattern.casefold(), flow.id)
            if other != flow.id:
                yield _warning(place, f"{pattern[:60]!r} starts the flow {other!r}, never {flow.id!r}")


def _timers(bot: Bot, places: dict[tuple[str, str], Position]) -> Iterator[Problem]:
    seen: set[float] = set()
    for number, timer in enumerate(bot.timers):
        place = places["timer", str(number)]
        if not timer.message and timer.action is None:
            yield _warning(place, "the timer says nothing and does nothing", "add `message` or `action`")
        if timer.delay in seen:
            text = f"two timers fire after {timer.delay:g} seconds, both counted from the last message of the bot"
            yield _warning(place, text, "give the second step a longer delay")
        seen.add(timer.delay)
        if timer.max_triggers == 0:
            yield _warning(place, "the timer fires again and again until the user says something")
