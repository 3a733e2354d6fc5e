"""Takes keys out of texts that people see or that are recorded: errors, log messages.

A server has seen the key, so its words can hold it in any form: quoted for a URL or for JSON, as base64 inside
`Authorization: Basic`, in hex, wrapped over several lines, or in part. So texts are compared without white space, and
eight characters in a row of a long key are enough.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "…"
SHORTEST = 4
"""Characters. What is shorter is a placeholder, and hiding it would spoil every text."""
PART = 8
"""Characters in a row that give a key away, if it has twice as many."""
_SECRET = re.compile(r"(?:^|_)(?:APIKEY|KEY|TOKEN|SECRET|PASSWORD|PAT)(?:_|$)")


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables whose names say that they are keys, tokens or passwords."""
    return tuple(value for name, value in environment.items() if value.strip() and _SECRET.search(name.upper()))


def redacted(text: str, *secrets: str) -> str:
    """The text without the secrets, in whatever form it has them."""
    forms = {"".join(form.split()) for secret in secrets for form in _forms(secret.strip())}
    windows: dict[int, set[str]] = {}
    for form in forms:
        if len(form) >= SHORTEST:
            size = PART if len(form) >= 2 * PART else len(form)
            windows.setdefault(size, set()).update(form[at : at + size] for at in range(len(form) - size + 1))
    at_of = [at for at, character in enumerate(text) if not character.isspace()]
    compact = "".join(text[at] for at in at_of)
    shown: list[str] = []
    end = 0
    for first, last in _joined(_found(compact, windows)):
        shown += (text[end : at_of[first]], HIDDEN)
        end = at_of[last - 1] + 1
    return "".join((*shown, text[end:])) if shown else text


MOST_BACKSLASHES = 8
"""In a row, before a character that is escaped: JSON inside of JSON doubles them. The bound keeps the search quick."""


def maybe_escaped(secret: str) -> re.Pattern[str]:
    """Finds a secret in a text, also where characters of it are escaped as in JSON: whoever reads the text as JSON has
    it. Only the whole secret is found."""
    parts = []
    for character in secret:
        units = character.encode("utf-16-be", "surrogatepass")
        plain = rf"\\{{0,{MOST_BACKSLASHES}}}" if character in '"\\/' else ""
        escape = "".join(
            rf"\\{{1,{MOST_BACKSLASHES}}}u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2)
        )
        parts.append(f"(?:{plain}{re.escape(character)}|{escape})")
    return re.compile("".join(parts))


def _found(compact: str, windows: Mapping[int, set[str]]) -> Iterable[tuple[int, int]]:
    return sorted(
        (at, at + size)
        for size, parts in windows.items()
        for at in range(len(compact) - size + 1)
        if compact[at : at + size] in parts
    )


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _forms(secret: str) -> Iterable[str]:
    data = secret.encode("utf-8", "surrogateescape")
    yield from (
        secret,
        quote(data, safe=""),
        quote_plus(data),
        json.dumps(secret)[1:-1],
        data.hex(),
        data.hex().upper(),
    )
    for before in range(3):
        # Whatever comes before and after shifts base64 by up to two bytes; the characters between stay the same.
        encoded = base64.b64encode(b"\0" * before + data).decode()
        inner = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(inner) >= PART:
            yield from (inner, inner.replace("+", "-").replace("/", "_"))
