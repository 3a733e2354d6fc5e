"""Questions about configurations that cannot be planned: a bot has one on the desk, about its newest configuration.

A configuration that was edited is not in force any more, and neither is a plan for which another was asked: what a
person would answer there changes nothing. So an older question is withdrawn, when the bot is used next.
"""

import re

from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunQuery
from ripstop.kernel.errors import RunHasEnded

from .definition import Bot
from .planning import NO_PLAN

_REST = re.compile(r"([0-9a-f]{32})(?::([0-9]+))?")
"""A hash and a generation: what follows the bot's name in the id of a planning run (`Bot.plan_name`)."""
WHY = "The question is about an earlier configuration of the bot, or about a plan for which another was asked."


async def withdraw_older_questions(engine: Engine, bot: Bot) -> None:
    """End the planning runs of a bot that wait for a person, but for the newest of the configuration as it is now."""
    prefix = f"plan:{bot.name}:"
    waiting: dict[str, int] = {}
    query = RunQuery(statuses=("waiting",), styles=("planning",), text=prefix)
    while True:
        page = await engine.runs(query)
        for info in page.items:
            named = _REST.fullmatch(info.run_id.removeprefix(prefix)) if info.run_id.startswith(prefix) else None
            if named:
                waiting[info.run_id] = int(named[2] or 1) if named[1] == bot.hash else 0
        if not page.next:
            break
        query = RunQuery(statuses=query.statuses, styles=query.styles, text=prefix, cursor=page.next)
    counting = {run_id: generation for run_id, generation in waiting.items() if generation >= bot.generation}
    newest = max(counting, key=counting.__getitem__, default="")
    for run_id in waiting:
        run = (await engine.look(run_id)).run
        if run_id == newest or run.verdict is None or run.verdict.guard != NO_PLAN or not run.asks_about_verdict:
            continue
        try:
            await engine.cancel(run_id, because=WHY)
        except RunHasEnded:  # a person has answered a moment ago
            continue
