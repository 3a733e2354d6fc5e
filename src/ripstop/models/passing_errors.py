"""How servers say that they cannot answer now, or that something else answers in their place, with a status that says
less."""

import re

REFUSING = (400, 403, 422)
"""Statuses that some servers give to every error."""
_BUSY = re.compile(
    r"\b(?:server|service|engine|system|backend|model)\b(?: [\w./:-]{1,80})?(?: is| are| was)?"
    r"(?: currently| temporarily| still| too)* "
    r"(?:overloaded|busy|at capacity|loading|being loaded|starting|temporarily unavailable)\b"
    r"|\bloading (?:the )?model\b"
    r"|\b(?:re)?try (?:it |this |your request )?(?:again )?(?:later\b|in a (?:few|moment|while))",
    re.IGNORECASE,
)
_PAGE = re.compile(rb"\s*(?:<!doctype html|<html)\b", re.IGNORECASE)


def says_busy(status: int, said: str) -> bool:
    """Whether a server's error means that the same call may work later."""
    return status in REFUSING and bool(_BUSY.search(said))


def is_page(body: bytes) -> bool:
    """Whether an error is a page for people: a web server or a proxy has answered, and no model server."""
    return _PAGE.match(body) is not None
