"""The table `[http]`: what tools can reach."""

from collections.abc import Mapping, Sequence

import msgspec

from ripstop.security.endpoint_consents import parse_allowed

VARIABLE = "RIPSTOP_HTTP_ALLOW"


class Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only the user's own file has it."""

    allow: tuple[str, ...] = ()
    """Origins that need no consent, and that can be private addresses."""

    def check(self) -> None:
        """Raises `UsageError`."""
        for one in self.allow:
            parse_allowed(one, "the address")

    def also(self, variables: Mapping[str, str], chosen: Sequence[str]) -> "Http":
        """The same with what the environment and the command line allow. Raises `UsageError`."""
        named = [one for one in variables.get(VARIABLE, "").split(",") if one.strip()]
        more = [parse_allowed(one, VARIABLE) for one in named] + [parse_allowed(one, "--allow") for one in chosen]
        return Http(tuple(dict.fromkeys((*self.allow, *more))))
