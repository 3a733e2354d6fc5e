"""Courtesy, as styles ask for it: whether a message says nothing else, and whether a user's own phrases can match.

The recogniser and its tables are imported when first needed, because most runs never say anything so short.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from ripstop.kernel.effects import Guards

if TYPE_CHECKING:
    from .recognition import Manners

LONGEST, LONGEST_DECOMPOSED = 240, 960
"""Characters of the longest courtesy; and in any Unicode form, since a composed character has at most four parts."""


def courteous(text: str, guards: Guards) -> bool:
    """Whether a text says nothing but courtesies, the guards' own phrases included."""
    if len(text) > (LONGEST if text.isascii() else LONGEST_DECOMPOSED):
        return False
    from .recognition import is_courtesy

    return is_courtesy(text, _manners(guards.phrases))


def check_phrases(guards: Guards) -> Guards:
    """Return the guards as they are. Raises `UsageError` for a phrase that no message could ever match."""
    if guards.phrases:
        _manners(guards.phrases)
    return guards


@lru_cache(maxsize=16)
def _manners(phrases: tuple[str, ...]) -> "Manners":
    from .recognition import MANNERS

    return MANNERS.with_phrases(phrases) if phrases else MANNERS
