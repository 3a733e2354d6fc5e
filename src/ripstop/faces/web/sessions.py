"""Signing in, and who a request is from.

- A session begins with the token, pasted, or with a link that works once, for two minutes. The token is never part of
  an address.
- Its cookie is signed with a key made from the token and holds the person's name, an id and an end. So sessions outlive
  a restart of the server, and another token ends all of them. Signing out ends one for as long as this server runs.
- Every form carries a second value made from the session (CSRF), and an *intent*, which makes a repeat harmless.
- A program sends the token with each request instead. It has no cookie that a page could misuse, so it needs neither.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.faces.http.asgi import RequestRefused, Scope
from ripstop.faces.http.door import BY, GivenHeaders, WrongTokens, is_from_here
from ripstop.faces.http.tokens import BearerToken
from ripstop.kernel.questions import checked_name

SESSION = "ripstop.session"
"""The key of the scope that holds the `WebSession`; `None` for a program and for a page that needs none."""
SESSION_SECONDS = 12 * 3600
ONCE_SECONDS = 120
MOST_ENDED = 1000
"""Sessions that were ended here and are remembered; the oldest is forgotten first."""
PUBLIC = ("/login", "/ready", "/static/", "/favicon.ico")
"""Paths that need no session. They show nothing of the journal."""


class WebSession(Struct, frozen=True):
    """What the cookie of a person says."""

    by: str
    id: str
    ends: int
    """Seconds since 1970."""


class WebSessions:
    def __init__(self, token: str, by: str, port: int, now: Callable[[], float] = time.time) -> None:  # noqa: TID251
        """Args:
        by: The name of who signs in with the link.
        """
        self.by = checked_name(by)
        self.cookie = f"ripstop_{port}"  # a browser keeps the cookies of all ports of a host together
        self._token = BearerToken(token)
        self._key = hashlib.sha256(b"ripstop web session\0" + token.encode()).digest()
        self._now = now
        self.wrong_tokens = WrongTokens()
        """Of those who try to sign in."""
        self._links: dict[str, float] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    # Signing in and out

    def link_secret(self) -> str:
        """A secret for a link that signs in once."""
        secret = secrets.token_urlsafe(24)
        self._links = {old: until for old, until in self._links.items() if until > self._now()}
        self._links[secret] = self._now() + ONCE_SECONDS
        return secret

    def by_link(self, secret: str) -> WebSession | None:
        """The session that a link begins; `None` if it was used, is too old, or never was one."""
        until = self._links.pop(secret, 0.0)
        return self._new(self.by) if until > self._now() else None

    def by_token(self, token: str, by: str) -> WebSession | None:
        """The session that the pasted token begins; `None` if it is wrong. Raises `UsageError` for a bad name."""
        name = checked_name(by.strip() or self.by)
        return self._new(name) if self.accepts(f"Bearer {token.strip()}") else None

    def accepts(self, authorization: str) -> bool:
        return self._token.accepts(authorization)

    def end(self, session: WebSession) -> None:
        self._ended[session.id] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    def _new(self, by: str) -> WebSession:
        return WebSession(by, secrets.token_urlsafe(16), int(self._now()) + SESSION_SECONDS)

    # Cookies and forms

    def write(self, session: WebSession) -> str:
        """The value of the cookie."""
        body = base64.urlsafe_b64encode(msgspec.json.encode(session)).decode()
        return f"{body}.{self._sign(f'cookie {body}')}"

    def read(self, cookies: str) -> WebSession | None:
        """The session in a `Cookie` header, if there is a good one.

        Other servers of this machine set cookies of any form for the same host, so ours is looked for alone. One of
        them can also set ours: the first that is good counts.
        """
        found = (part.strip().partition("=") for part in cookies.split(";"))
        sessions = (self._session(value.strip().strip('"')) for name, _, value in found if name.strip() == self.cookie)
        return next((session for session in sessions if session), None)

    def _session(self, value: str) -> WebSession | None:
        body, _, signature = value.partition(".")
        if not hmac.compare_digest(self._sign(f"cookie {body}").encode(), signature.encode()):
            return None
        try:
            session = msgspec.json.decode(base64.urlsafe_b64decode(body), type=WebSession)
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            return None
        return session if session.ends > self._now() and session.id not in self._ended else None

    def sign_notice(self, coded: str) -> str:
        """Words for the next page, signed: another server of this machine can set any cookie for it."""
        return f"{self._sign(f'notice {coded}')}.{coded}"

    def read_notice(self, cookie: str) -> str:
        """The words that were signed; empty if they were not."""
        signature, _, coded = cookie.partition(".")
        return coded if hmac.compare_digest(self._sign(f"notice {coded}").encode(), signature.encode()) else ""

    def form_token(self, session: WebSession) -> str:
        """What every form of the session carries."""
        return self._sign(f"form {session.id}")

    def is_form_token(self, session: WebSession, given: str) -> bool:
        return hmac.compare_digest(self.form_token(session).encode(), given.encode("utf-8", "replace"))

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class SessionAdmission:
    """Lets people in by their cookie, and programs by the token."""

    def __init__(self, sessions: WebSessions, now: Callable[[], float] = time.monotonic) -> None:
        self._sessions = sessions
        self._wrong = WrongTokens(now=now)

    def identify(self, scope: Scope, given: GivenHeaders) -> dict[str, Any]:
        if values := given[b"authorization"]:
            if len(values) == 1 and self._sessions.accepts(values[0].decode("latin-1")):
                return {BY: self._sessions.by, SESSION: None}
            self._wrong.count(scope)
            raise RequestRefused(401, "The token is wrong.", "Send the header `Authorization: Bearer TOKEN`.")
        cookies = given[b"cookie"]
        session = self._sessions.read(cookies[0].decode("latin-1")) if len(cookies) == 1 else None
        if session is not None:
            return {BY: session.by, SESSION: session}
        if scope["path"].startswith(PUBLIC):
            return {BY: "", SESSION: None}
        raise RequestRefused(401, "You are not signed in.", "Sign in, or send `Authorization: Bearer TOKEN`.")

    def check_origin(self, scope: Scope, host: str, given: GivenHeaders) -> None:
        """A page is changed only from a page of this server; any site may link to it."""
        is_read = scope["method"] in ("GET", "HEAD")
        if is_read and _is_navigation(scope):
            return
        says_where = given[b"origin"] or given[b"sec-fetch-site"]
        if not is_from_here(host, given) or not (is_read or says_where or given[b"authorization"]):
            raise RequestRefused(403, "This was not sent from a page of the desk.", "Open the page here and try again.")


def _is_navigation(scope: Scope) -> bool:
    """Whether the browser opens it as a page of its own, not as a part of another."""
    found = {name.lower(): value for name, value in scope["headers"]}
    return found.get(b"sec-fetch-mode") == b"navigate" and found.get(b"sec-fetch-dest") == b"document"
