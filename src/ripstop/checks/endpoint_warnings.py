"""Why calls of tools to their URLs would fail here, though the user has agreed to them.

A consent does not cover a private address: the user has to name it. And a secret has to be in the environment.
"""

import os
from collections.abc import Iterable, Mapping

from ripstop.kernel.errors import UsageError
from ripstop.kernel.style import EndpointUse
from ripstop.security.endpoint_consents import EndpointConsents
from ripstop.security.endpoints import parse_origin, secret_names, split_url
from ripstop.security.public_addresses import names_private_address


def private_addresses(uses: Iterable[EndpointUse], consents: EndpointConsents) -> dict[str, str]:
    """A warning for each private address that tools call and that the user has not named, by its origin."""
    tools: dict[str, dict[str, None]] = {}
    for use in uses:
        try:
            origin = parse_origin(split_url(use.url)[0]).origin
        except UsageError:
            continue  # the check of the definition says so
        if names_private_address(origin) and not consents.allow_private(origin):
            tools.setdefault(origin, {})[use.tool] = None
    return {
        origin: f"{origin} is a private address, so calls of {', '.join(names)} also need --allow {origin}."
        for origin, names in tools.items()
    }


def unset_secrets(uses: Iterable[EndpointUse], environment: Mapping[str, str] | None = None) -> list[str]:
    """A warning for each secret that headers name and that the environment does not have."""
    known = os.environ if environment is None else environment
    tools: dict[str, dict[str, None]] = {}
    for use in uses:
        for name in secret_names(use.headers):
            if not known.get(name, "").strip():
                tools.setdefault(name, {})[use.tool] = None
    return [
        f"The environment variable {name} is not set, so calls of {', '.join(names)} fail."
        for name, names in tools.items()
    ]
