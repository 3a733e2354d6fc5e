"""How servers say that an account has nothing left, so that waiting does not help: a person has to act."""

import re

REFUSING = (400, 403, 429)
"""Statuses with which they say so in words; 402 says so by itself."""
_NO_QUOTA = re.compile(
    r"insufficient_quota|exceeded_current_quota|billing_hard_limit_reached|billing_not_active|arrearage"
    r"|insufficient[ _]balance|credit balance is too low",
    re.IGNORECASE,
)
MOST_SEARCHED = 8_000
"""Characters of a server's words."""


def says_no_quota(status: int, said: str) -> bool:
    """Whether a server's error means that the account has used up what it may spend."""
    return status == 402 or (status in REFUSING and bool(_NO_QUOTA.search(said[:MOST_SEARCHED])))
