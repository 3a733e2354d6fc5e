"""One attempt to deliver: a POST to an address that was checked. Redirects are not followed, and no answer is read."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import ssl
from collections.abc import Mapping

from ripstop.engine.clock import SECOND, system_time
from ripstop.engine.doubts import describe
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import UNCOMPRESSED, retry_after
from ripstop.security.endpoints import EndpointUrl
from ripstop.tools.http.request import PreparedRequest, Resolver, addresses_of, exchange, resolve

from .deliveries import Delivery

# Signatures as Standard Webhooks defines them: HMAC-SHA256 of the id, the time of the attempt and the body.


PREFIX = "whsec_"
MIN_SECRET, MAX_SECRET = 24, 64
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
    if not MIN_SECRET <= len(key) <= MAX_SECRET:
        raise UsageError(
            f"The value of {variable}, the secret of the webhook {webhook!r}, is not one: it must be {PREFIX} and then "
            f"{MIN_SECRET} to {MAX_SECRET} bytes in base64."
        )
    return key


def signature_headers(key: bytes, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows who sent a request, when, and that it is this one."""
    signed = f"{id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{digest}"}


TIME_LIMIT = 20.0
"""Seconds for one attempt."""
GONE = 410


class NotDelivered(Exception):
    """It may have arrived all the same, and is sent again."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        """`after`: seconds that the receiver wants to be left alone."""
        super().__init__(reason)
        self.after = after


class ReceiverGone(Exception):
    """The receiver wants nothing any more."""


class WebhookSender:
    def __init__(self, url: EndpointUrl, key: bytes, allow_private: bool, resolver: Resolver = resolve) -> None:
        self._url = url
        self._key = key
        self._allow_private = allow_private
        self._resolver = resolver
        self._tls: ssl.SSLContext | None = None

    async def send(self, delivery: Delivery) -> None:
        """Raises `NotDelivered`, or `ReceiverGone`."""
        import httpx2

        try:
            async with asyncio.timeout(TIME_LIMIT):
                status, pause = await self._post(delivery)
        except TimeoutError as error:
            raise NotDelivered(f"{self._url.origin} did not answer within {TIME_LIMIT:g} s") from error
        except (Refused, TryAgain) as error:
            raise NotDelivered(str(error).rstrip(".")) from error
        except (httpx2.RequestError, OSError) as error:
            raise NotDelivered(f"the connection to {self._url.origin} broke ({describe(error)})") from error
        if status == GONE:
            raise ReceiverGone(f"{self._url.origin} answered {GONE}: it wants no more messages")
        if not 200 <= status < 300:
            raise NotDelivered(f"{self._url.origin} answered {status}", pause or 0.0)

    async def _post(self, delivery: Delivery) -> tuple[int, float | None]:
        addresses = await addresses_of(self._url, self._resolver, self._allow_private)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "ripstop",
            **UNCOMPRESSED,
            **signature_headers(self._key, delivery.id, system_time() // SECOND, delivery.body),
        }
        request = PreparedRequest("POST", self._url, headers, delivery.body)
        async with exchange(request, addresses, self._context(), lambda: None) as response:
            return response.status_code, retry_after(response.headers)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import httpx2

            self._tls = httpx2.create_ssl_context()
        return self._tls
