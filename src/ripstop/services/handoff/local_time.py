"""The time as documents and their files say it: local, to the second."""

import time

from ripstop.app import now
from ripstop.styles.handoff.texts import timestamp


def utc_offset() -> int:
    return time.localtime().tm_gmtoff


def local_time() -> str:
    return timestamp(now(), utc_offset())


def stamp(at: str) -> str:
    """A document's time as file names have it."""
    return at.replace("-", "").replace(":", "").replace(" ", "_")
