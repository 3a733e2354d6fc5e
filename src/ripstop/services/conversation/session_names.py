"""Names of sessions, and the ids of the runs that they are.

A run's id is `chat:<workflow>:<session>`. A dot in it would make it look like the id of a child, so everything but a
few safe characters is percent-encoded; two names never become one id.
"""

import unicodedata
from functools import lru_cache
from urllib.parse import quote, unquote

from ripstop.kernel.errors import UsageError
from ripstop.kernel.plain import shown

LONGEST = 128
PREFIX = "chat:"
SAFE = "@+="


def checked_session(name: str) -> str:
    """A session's name. Raises `UsageError`."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST:
        raise UsageError(f"A session needs a name of 1 to {LONGEST} characters, not {shown(name)}.")
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name) or name != name.strip():
        raise UsageError(f"The name of a session must be plain text without control characters, not {shown(name)}.")
    return name


@lru_cache(maxsize=10_000)
def run_of(workflow: str, session: str) -> str:
    """The id of a session's run. Raises `UsageError`."""
    return f"{PREFIX}{_encoded(workflow)}:{_encoded(checked_session(session))}"


def session_of(run_id: str) -> tuple[str, str] | None:
    """(workflow, session) of a run's id; none if it is not a session's."""
    if not run_id.startswith(PREFIX):
        return None
    workflow, colon, session = run_id.removeprefix(PREFIX).partition(":")
    return (unquote(workflow), unquote(session)) if colon else None


def _encoded(text: str) -> str:
    return quote(text, safe=SAFE).replace(".", "%2E")
