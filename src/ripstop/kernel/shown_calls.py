"""What a person is shown of a tool call before agreeing to it, and how it is known that nothing else is called.

- The question holds the arguments whole, and their hash. What is called later must have the same hash.
- Arguments that are too long to be shown whole cannot be agreed to.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

MOST_SHOWN = 256 * 1024
"""Bytes of arguments, as JSON, that a person can be shown."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def digest_of_arguments(arguments: Mapping[str, Any]) -> str:
    """SHA-256 of the arguments, whatever the order of their keys."""
    return hashlib.sha256(_encode(arguments)).hexdigest()


def size_of_arguments(arguments: Mapping[str, Any]) -> int:
    """Bytes, as JSON."""
    return len(_encode(arguments))


def can_be_shown(arguments: Mapping[str, Any]) -> bool:
    """Whether a person can be shown the arguments whole."""
    return size_of_arguments(arguments) <= MOST_SHOWN
