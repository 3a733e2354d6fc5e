"""Content that records refer to by its hash. What does not fit its hash is never handed out: it was changed."""

import hashlib
from typing import Any

from ripstop.kernel.errors import JournalError


def as_bytes(body: Any) -> bytes:
    """What stands in a file, whatever type somebody gave it there."""
    return body if isinstance(body, bytes) else str(body).encode()


def is_genuine(body: bytes, digest: str) -> bool:
    return hashlib.sha256(body).hexdigest() == digest


def genuine(body: Any, digest: str, journal: str) -> bytes:
    """The content, if it is what was kept."""
    content = as_bytes(body)
    if not is_genuine(content, digest):
        raise JournalError(
            f"{journal}: the content {digest[:12]}… (a definition) was changed: it does not fit its hash. "
            "`ripstop verify` tells more; restore the journal from a backup."
        )
    return content
