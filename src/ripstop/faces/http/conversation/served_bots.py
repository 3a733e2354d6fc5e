"""Which bots a server answers for, and what they are called in its addresses."""

from collections.abc import Mapping, Sequence

from ripstop.kernel.errors import UsageError
from ripstop.services.conversation.chats import Chats


async def served_bots(chats: Chats, named: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    """Paths by name: those that the settings name, and others under the names that their bots have.

    All are read, so that a wrong one is found before the first message. Raises `UsageError` or `DefinitionError`.
    """
    served = dict(named)
    for path in paths:
        name = (await chats.bots.get(path)).bot.name
        if served.setdefault(name, path) != path:
            raise UsageError(
                f"{served[name]} and {path} would both be served as {name!r}. Name them in [serve.workflows]."
            )
    if not served:
        raise UsageError("There is nothing to serve. Name a workflow:  ripstop serve WORKFLOW")
    bots: dict[str, str] = {}
    for path in served.values():
        bot = (await chats.bots.get(path)).bot.name
        if bots.setdefault(bot, path) != path:
            raise UsageError(
                f"{bots[bot]} and {path} are both called {bot!r}, and would share their sessions. Rename one."
            )
    return served
