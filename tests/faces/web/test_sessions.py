"""Signing in: a link works once, a cookie is signed, and a form belongs to its session."""

import base64

import msgspec
import pytest

from ripstop.faces.http.asgi import RequestRefused
from ripstop.faces.http.door import BY
from ripstop.faces.web.sessions import ONCE_SECONDS, SESSION, SESSION_SECONDS, SessionAdmission, WebSessions
from ripstop.kernel.errors import UsageError

TOKEN = "t0ken-" + "y" * 40
HOST = "127.0.0.1:8517"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock | None = None, token: str = TOKEN) -> WebSessions:
    return WebSessions(token, "ann", 8517, clock or Clock())


def cookie_of(made: WebSessions, by: str = "ann") -> str:
    session = made.by_token(TOKEN, by)
    assert session is not None
    return f"{made.cookie}={made.write(session)}"


def test_a_link_signs_in_once() -> None:
    made = sessions()
    secret = made.link_secret()
    first = made.by_link(secret)
    assert first is not None and first.by == "ann"
    assert made.by_link(secret) is None


def test_a_link_is_too_old_after_two_minutes() -> None:
    clock = Clock()
    made = sessions(clock)
    secret = made.link_secret()
    clock.now += ONCE_SECONDS + 1
    assert made.by_link(secret) is None


def test_a_session_outlives_the_server_but_not_its_token() -> None:
    clock = Clock()
    cookie = cookie_of(sessions(clock), "bob")
    again = sessions(clock).read(cookie)
    assert again is not None and again.by == "bob"
    assert sessions(clock, TOKEN + "x").read(cookie) is None


@pytest.mark.parametrize(
    "others",
    [
        "a[b]=1; {}",
        'theme="x; {}',
        "=; {}",
        "b:c={{}}; {}; d",
        "; ;{};",
        "né=1; {}",
        '{}; x="',
        "a=b=c;{}",
        "ripstop_1=x; {}",
    ],
)
def test_odd_cookies_of_other_servers_do_not_sign_anybody_out(others: str) -> None:
    made = sessions(Clock())
    found = made.read(others.format(cookie_of(made, "ann")))
    assert found is not None and found.by == "ann"


def test_a_cookie_that_another_server_sets_in_the_same_name_does_not_sign_anybody_out() -> None:
    made = sessions(Clock())
    good = cookie_of(made, "ann")
    for cookies in (f"{made.cookie}=x.y; {good}", f"{good}; {made.cookie}=x.y"):
        found = made.read(cookies)
        assert found is not None and found.by == "ann"


def test_a_notice_that_this_server_has_not_signed_is_not_shown() -> None:
    made = sessions(Clock())
    signed = made.sign_notice("Answered.")
    assert made.read_notice(signed) == "Answered."
    for forged in (
        "Answered.",
        "x.Answered.",
        signed + "x",
        "",
        "é.é",
        sessions(Clock(), TOKEN + "x").sign_notice("a"),
    ):
        assert made.read_notice(forged) == ""


def test_a_session_ends_after_twelve_hours_and_when_its_owner_signs_out() -> None:
    clock = Clock()
    made = sessions(clock)
    cookie = cookie_of(made)
    session = made.read(cookie)
    assert session is not None
    made.end(session)
    assert made.read(cookie) is None
    other = cookie_of(made)
    clock.now += SESSION_SECONDS + 1
    assert made.read(other) is None


@pytest.mark.parametrize("spoiled", ["", "x", "a.b", "{body}.", "{other}.{signature}", "{body}.{signature}0"])
def test_refuses_a_cookie_that_was_changed(spoiled: str) -> None:
    made = sessions()
    body, _, signature = cookie_of(made).partition("=")[2].rpartition(".")
    other = base64.urlsafe_b64encode(msgspec.json.encode({"by": "root", "id": "x", "ends": 9_999_999_999})).decode()
    value = spoiled.format(body=body, other=other, signature=signature)
    assert made.read(f"{made.cookie}={value}") is None


def test_a_form_belongs_to_one_session() -> None:
    made = sessions()
    mine, other = (made.read(cookie_of(made)) for _ in range(2))
    assert mine is not None and other is not None
    assert made.is_form_token(mine, made.form_token(mine))
    assert not made.is_form_token(mine, made.form_token(other))
    assert not made.is_form_token(mine, "")
    assert not made.is_form_token(mine, "ü\ud800")


def test_refuses_a_name_that_cannot_be_shown() -> None:
    with pytest.raises(UsageError, match="cannot be a name"):
        sessions().by_token(TOKEN, "ann\x1b[2J")


def scope(method: str = "GET", path: str = "/desk", **headers: str) -> dict[str, object]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "headers": named, "client": ("127.0.0.1", 1)}


def given_in(found: dict[str, object]) -> dict[bytes, list[bytes]]:
    names = (b"authorization", b"cookie", b"origin", b"sec-fetch-site")
    headers: list[tuple[bytes, bytes]] = found["headers"]  # type: ignore[assignment]
    return {name: [value for one, value in headers if one == name] for name in names}


def identify(admission: SessionAdmission, found: dict[str, object]) -> dict[str, object]:
    return admission.identify(found, given_in(found))


def test_lets_in_who_has_the_cookie_or_the_token() -> None:
    made = sessions()
    admission = SessionAdmission(made, lambda: 0.0)
    person = identify(admission, scope(cookie=cookie_of(made, "bob")))
    assert person[BY] == "bob" and person[SESSION] is not None
    program = identify(admission, scope(authorization=f"Bearer {TOKEN}"))
    assert program == {BY: "ann", SESSION: None}
    assert identify(admission, scope(path="/login")) == {BY: "", SESSION: None}


@pytest.mark.parametrize("path", ["/", "/desk", "/runs/x", "/live", "/health", "/statics"])
def test_sends_others_to_sign_in(path: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        identify(SessionAdmission(sessions(), lambda: 0.0), scope(path=path))
    assert refused.value.status == 401


def test_wrong_tokens_are_answered_rarely() -> None:
    admission = SessionAdmission(sessions(), lambda: 0.0)
    statuses = []
    for _ in range(12):
        with pytest.raises(RequestRefused) as refused:
            identify(admission, scope(authorization="Bearer wrong"))
        statuses.append(refused.value.status)
    assert statuses == [401] * 10 + [429] * 2


REFUSED = [
    ("POST", {"cookie": "x"}),
    ("POST", {"origin": "http://evil.example"}),
    ("POST", {"sec_fetch_site": "cross-site"}),
    ("POST", {"sec_fetch_site": "same-site"}),
    ("POST", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}),
    ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}),
    ("GET", {"origin": "http://evil.example", "sec_fetch_site": "cross-site"}),
]


@pytest.mark.parametrize(("method", "headers"), REFUSED)
def test_refuses_what_other_sites_cause(method: str, headers: dict[str, str]) -> None:
    found = scope(method, **headers)
    with pytest.raises(RequestRefused) as refused:
        SessionAdmission(sessions(), lambda: 0.0).check_origin(found, HOST, given_in(found))
    assert refused.value.status == 403


ALLOWED = [
    ("GET", {}),
    ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}),
    ("POST", {"sec_fetch_site": "same-origin"}),
    ("POST", {"origin": f"http://{HOST}"}),
    ("POST", {"authorization": "Bearer x"}),
]


@pytest.mark.parametrize(("method", "headers"), ALLOWED)
def test_lets_through_links_from_anywhere_and_forms_of_its_own(method: str, headers: dict[str, str]) -> None:
    found = scope(method, **headers)
    SessionAdmission(sessions(), lambda: 0.0).check_origin(found, HOST, given_in(found))
