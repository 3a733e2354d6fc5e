"""The rules for commands of agents, from the settings."""

from ripstop.performers.tools.commands.allow_list import ALLOWED, CommandRules
from ripstop.settings.settings_file import Settings


def command_rules(settings: Settings) -> CommandRules:
    """The user's rules: `allow` takes the place of the built-in list, `also` adds to either."""
    chosen = settings.commands
    allowed = ALLOWED if chosen.allow is None else chosen.allow
    return CommandRules(
        allowed=tuple(dict.fromkeys((*allowed, *chosen.also))),
        seconds=chosen.seconds,
        read=chosen.read,
        unconfined=chosen.unconfined,
    )
