"""One attempt to deliver: a POST to an address that was checked. Redirects are not followed, and no answer is read."""

import asyncio
import ssl

from ripstop.performers.http_headers import UNCOMPRESSED, retry_after
from ripstop.performers.tools.http.connection import exchange
from ripstop.performers.tools.http.names import Resolver, addresses_of, resolve
from ripstop.performers.tools.http.request import PreparedRequest
from ripstop.runtime.doubts import describe
from ripstop.runtime.performers import Refused, TryAgain
from ripstop.runtime.process_clock import SECOND, system_time
from ripstop.security.endpoints import EndpointUrl

from .deliveries import Delivery
from .signature import signature_headers

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
