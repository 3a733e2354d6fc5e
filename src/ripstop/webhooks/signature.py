"""Signatures as Standard Webhooks defines them: HMAC-SHA256 of the id, the time of the attempt and the body."""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping

from ripstop.kernel.errors import UsageError

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""Bytes of a secret."""


def signing_key(webhook: str, variable: str, environment: Mapping[str, str] | None = None) -> bytes:
    """The key in an environment variable. Raises `UsageError`, which never quotes it."""
    value = (os.environ if environment is None else environment).get(variable, "").strip()
    if not value:
        raise UsageError(
            f"The webhook {webhook!r} needs its secret in the environment variable {variable}, which is not set. "
            f'Make one:  export {variable}="{PREFIX}$(openssl rand -base64 32)"'
        )
    try:
        key = base64.b64decode(value.removeprefix(PREFIX), validate=True) if value.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST <= len(key) <= LONGEST:
        raise UsageError(
            f"The value of {variable}, the secret of the webhook {webhook!r}, is not one: it must be {PREFIX} and then "
            f"{SHORTEST} to {LONGEST} bytes in base64."
        )
    return key


def signature_headers(key: bytes, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows who sent a request, when, and that it is this one."""
    signed = f"{id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{digest}"}
