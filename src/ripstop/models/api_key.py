"""A provider's key: read from the environment, bound to the origins that may have it, never shown."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ripstop.engine.performers import Unavailable
from ripstop.kernel.advice import Advice, NextStep
from ripstop.security.addresses import Address

if TYPE_CHECKING:
    pass


OPENAI = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class ApiKey:
    def __init__(self, name: str, origins: frozenset[str]) -> None:
        self._name = name
        self._origins = origins

    def value_for(self, address: Address) -> str:
        """The key to send to an address; empty if none is set. Raises `Unavailable` if the key must not go there."""
        value = read_key(self._name)
        if value and address.origin not in self._origins:
            said = (
                f"The key in {self._name} is not for {address.origin}: you have not chosen that address, or it is not "
                "encrypted. "
            )
            agree = NextStep("trust", "Agree to it", "Agree to it with `{}`")
            raise Unavailable(Advice(said, agree, ", or choose an address: --base-url URL."), fault="definition")
        return value

    def __repr__(self) -> str:
        return f"ApiKey({self._name!r})"


def read_key(name: str, environment: Mapping[str, str] | None = None) -> str:
    """The key in an environment variable, without surrounding white space. Raises `Unavailable`, which never quotes it.

    A key with a line break or another odd character inside is a mistake in copying; as a header it would be refused by
    the HTTP library, in a message that quotes it.
    """
    value = (os.environ if environment is None else environment).get(name, "").strip()
    if not all("!" <= character <= "~" for character in value):
        raise Unavailable(
            f"The key in {name} has a space, a line break or another character in it that no key has. Set it again.",
            fault="definition",
        )
    return value
