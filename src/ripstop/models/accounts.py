"""How servers say that an account cannot make a call, whatever their status: a person has to act."""

import re

REFUSING = (400, 403, 429)
"""Statuses with which they say that nothing is left; 402 says so by itself."""
_NO_QUOTA = re.compile(
    r"insufficient_quota|exceeded_current_quota|billing_hard_limit_reached|billing_not_active|arrearage"
    r"|insufficient[ _]balance|credit balance is too low",
    re.IGNORECASE,
)
NOT_ADMITTING = (400, 401, 403, 407, 422)
"""Statuses with which they say that a key is wrong; 401 and 407 say so by themselves."""
_WRONG_KEY = re.compile(
    r"(?:invalid|incorrect|wrong)[ _]api[ _]?key|api[ _]?key(?:[ _]is)?[ _](?:invalid|not valid)", re.IGNORECASE
)
MOST_SEARCHED = 8_000
"""Characters of a server's words."""


def says_no_quota(status: int, said: str) -> bool:
    """Whether a server's error means that the account has used up what it may spend."""
    return status == 402 or (status in REFUSING and bool(_NO_QUOTA.search(said[:MOST_SEARCHED])))


def says_wrong_key(status: int, said: str) -> bool:
    """Whether a server's error means that it does not accept the key."""
    return status in (401, 407) or (status in NOT_ADMITTING and bool(_WRONG_KEY.search(said[:MOST_SEARCHED])))
