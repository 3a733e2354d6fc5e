"""The tables `[webhooks.NAME]`: who is told what happens in conversations and other runs."""

import re
from collections.abc import Mapping

import msgspec

from ripstop.kernel.errors import UsageError
from ripstop.security.endpoints import parse_endpoint

MOST = 20
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    secret: str
    """The environment variable with the secret that signs, `whsec_…`."""
    workflows: tuple[str, ...] = ()
    """Only runs of these; empty: of all."""
    kinds: tuple[str, ...] = ()
    """Only notices of these kinds, such as `message`; empty: all."""


def check_webhooks(webhooks: Mapping[str, Webhook]) -> tuple[tuple[str, ...], str] | None:
    """The keys of a setting that is wrong, and what is wrong with it; `None` if all are right."""
    if len(webhooks) > MOST:
        return ("webhooks",), f"there are {len(webhooks)} webhooks; at most {MOST} are possible"
    for name, hook in webhooks.items():
        if not _NAME.fullmatch(name):
            return ("webhooks", name), "the name of a webhook has 1 to 40 letters, digits, '-' and '_'"
        try:
            parse_endpoint(hook.url, "the URL")
        except UsageError as error:
            return ("webhooks", name, "url"), str(error)
        if not _VARIABLE.fullmatch(hook.secret):  # not quoted: it may be the secret itself
            return ("webhooks", name, "secret"), (
                "this is not the name of an environment variable. The secret itself is not written here: put it into a "
                "variable, and name that"
            )
    return None


def named_by_project(merged: Mapping[str, Webhook], users: Mapping[str, object]) -> tuple[str, ...]:
    """The webhooks that are not exactly what the user's own file says."""
    return tuple(
        name for name, hook in merged.items() if name not in users or msgspec.convert(users[name], Webhook) != hook
    )
