"""What came back, as it is given on: JSON or text, bounded, without the secrets that were sent."""

import codecs
import re
from typing import Any

import msgspec

from ripstop.kernel.errors import Unwritable
from ripstop.kernel.plain import plain, whole_characters
from ripstop.security.redaction import HIDDEN, redacted

MOST_READ = 2**20
"""Bytes of a body."""
MOST_GIVEN = 20_000
"""Characters that are given on."""
LONGEST_COMPLAINT = 500
"""Characters of what a server says about an error."""
MARGIN = 1_000
"""Characters beyond what is given on that are looked at, so that no secret is cut in half before it is found."""
_CHARSET = re.compile(r'charset\s*=\s*"?([\w.:-]+)', re.ASCII)
ENCODINGS = frozenset(
    ("utf-8", "ascii", "iso8859-1", "cp1252", "gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr")
)
"""Those that web servers use. Others that Python knows are not encodings of text, or take very long."""


def decode_text(data: bytes, content_type: str) -> str:
    named = _CHARSET.search(content_type.lower()[:1_000])
    try:
        encoding = codecs.lookup(named[1]).name if named else "utf-8"
    except LookupError:
        encoding = "utf-8"
    text = data.decode(encoding if encoding in ENCODINGS else "utf-8", "replace")
    return whole_characters(text.removeprefix("\ufeff"))


def body_of(data: bytes, has_more: bool, content_type: str, secrets: tuple[str, ...]) -> Any:
    """The JSON value of a body, or its text if it is not JSON, too long, or too deep."""
    text = decode_text(data, content_type)
    if not has_more and ("json" in content_type.lower() or text.lstrip()[:1] in ("{", "[")):
        try:
            value = plain(msgspec.json.decode(text))
        except (msgspec.DecodeError, Unwritable, RecursionError, ValueError):
            return _bounded(text, has_more, secrets)
        written = msgspec.json.encode(value).decode()
        if len(written) <= MOST_GIVEN:
            # one look at all of it is much quicker than one at each part
            return value if redacted(written, *secrets) == written else _without(value, secrets)
    return _bounded(text, has_more, secrets)


def beginning(data: bytes, content_type: str, secrets: tuple[str, ...]) -> str:
    """What a server says about an error."""
    text = redacted(decode_text(data, content_type)[: LONGEST_COMPLAINT + MARGIN].strip(), *secrets)
    return text if len(text) <= LONGEST_COMPLAINT else f"{text[:LONGEST_COMPLAINT]}…"


def _bounded(text: str, has_more: bool, secrets: tuple[str, ...]) -> str:
    shown = redacted(text[: MOST_GIVEN + MARGIN], *secrets)
    if len(shown) <= MOST_GIVEN and len(text) <= MOST_GIVEN:
        return shown
    size = "more than a mebibyte" if has_more else f"{len(text):,} characters"
    return f"{shown[:MOST_GIVEN]}… (cut here: the answer has {size})"


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return redacted(value, *secrets)
    if isinstance(value, dict):
        return {redacted(key, *secrets): _without(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, secrets) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if redacted(str(value), *secrets) == str(value) else HIDDEN
    return value
