"""The table `[serve]`: what `ripstop serve` answers for, and under which names.

[serve]
hosts = ["bot.example.com"] # in the user's own file only
[serve.workflows]
shop = "bots/shop.json"     # http://127.0.0.1:8517/conversations/shop/…
"""

import re

import msgspec

from ripstop.kernel.plain import shown

NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""What a workflow is called in addresses."""


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workflows: dict[str, str] = {}
    """Paths of bots, by the names that they have in addresses."""
    hosts: tuple[str, ...] = ()
    """Names under which the server answers, besides the loopback ones. Only the user's own file has it."""

    @property
    def problem(self) -> tuple[tuple[str, ...], str] | None:
        """The keys of a value that is wrong, and why; none if all are right."""
        for name in self.workflows:
            if not NAME.fullmatch(name):
                return (
                    "serve",
                    "workflows",
                ), f"{shown(name)} cannot be in an address; use letters, digits, - and _"
        return None
