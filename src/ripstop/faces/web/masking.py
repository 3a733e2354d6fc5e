"""Hides what looks like a key in texts of lists: an agent can repeat a key that a tool or a file has shown it.

Only shapes that keys of well-known services have are hidden, and names such as `password=` in front of a value. The
page of a record shows its text as it is.
"""

import re

HIDDEN = "…"
SHOWN = 4
"""Characters of a key that stay, so that a person can tell which one it is."""

_KEY = re.compile(
    r"""
    (?<![A-Za-z0-9])
    (?: sk-[A-Za-z0-9_-]{16,}                           # OpenAI, Anthropic
      | gh[oprsu]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
      | glpat-[\w-]{16,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,}                  # Slack
      | A[KS]IA[0-9A-Z]{16}                             # AWS
      | AIza[\w-]{30,}                                  # Google
      | eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}            # JWT
    )
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*
    """,
    re.VERBOSE | re.ASCII,
)
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|token|secret|password|passwd|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)"
    r"(?=[^\s\"',;]*[0-9])([^\s\"',;]{10,})",
    re.ASCII,
)


def masked(text: str) -> str:
    """The text with all but the first characters of each key hidden."""
    text = _KEY.sub(lambda found: f"{found[0][:SHOWN]}{HIDDEN}", text)
    return _NAMED.sub(lambda found: f"{found[1]}{HIDDEN}", text)
