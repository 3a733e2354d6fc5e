"""Who may come through the door, by what a request carries. Each HTTP face says it in its own way.

`TokenAdmission` is for programs: every request carries the token, and none comes from a page of another origin.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .asgi import Scope
from .hosts import is_same_origin
from .refusals import RequestRefused, too_many
from .request_rate import RequestRate, client_of
from .tokens import BearerToken

BY = "ripstop.by"
"""The key of the scope that says who sends a request."""
GivenHeaders = Mapping[bytes, list[bytes]]
"""The values of the headers that must be there once, by their names in lower case."""
WRONG_TOKENS = 10
"""Requests with a wrong token or none, per minute and client, that are told so."""


class Admission(Protocol):
    def identify(self, scope: Scope, given: GivenHeaders) -> dict[str, Any]:
        """What the scope says of the sender from now on; `BY` is among it. Raises `RequestRefused`."""

    def check_origin(self, scope: Scope, host: str, given: GivenHeaders) -> None:
        """Raise `RequestRefused` for a request that a page of another origin may have caused."""


class WrongTokens:
    """Counts the requests of each client that do not have the token."""

    def __init__(self, per_minute: int = WRONG_TOKENS, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = RequestRate(per_minute / 60, per_minute, now)

    def count(self, scope: Scope) -> None:
        """Raise `RequestRefused` if its client has had too many of them."""
        if wait := self._rate.take(client_of((scope.get("client") or ("",))[0])):
            raise too_many("Too many requests without the token.", wait)


class TokenAdmission:
    def __init__(
        self,
        token: str,
        by: str = "http",
        wrong_tokens: int = WRONG_TOKENS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        by: Who sends a request that has the token.
        """
        self._token = BearerToken(token)
        self._by = by
        self._wrong = WrongTokens(wrong_tokens, now)

    def identify(self, scope: Scope, given: GivenHeaders) -> dict[str, Any]:
        values = given[b"authorization"]
        if len(values) == 1 and self._token.accepts(values[0].decode("latin-1")):
            return {BY: self._by}
        self._wrong.count(scope)
        raise RequestRefused(
            401,
            "The token is wrong." if values else "The token is missing.",
            "Send the header `Authorization: Bearer TOKEN`; `ripstop serve` says where the token is.",
            {"www-authenticate": "Bearer"},
        )

    def check_origin(self, scope: Scope, host: str, given: GivenHeaders) -> None:
        if not is_from_here(host, given):
            raise RequestRefused(403, "Pages of other origins get no answer.", "Send it from a program.")


def is_from_here(host: str, given: GivenHeaders) -> bool:
    """Whether a request comes from no page, or from a page of this server; `host` is its checked `Host`."""
    origins, sites = given[b"origin"], given[b"sec-fetch-site"]
    origin, site = (one[0].decode("latin-1") if one else None for one in (origins, sites))
    return len(origins) < 2 and len(sites) < 2 and is_same_origin(host, origin, site)
