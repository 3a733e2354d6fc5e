"""Calls of endpoints: what is sent, what comes back, whom secrets reach, and what a failure says about the effect."""

import asyncio
import json
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.settings.settings_file import Settings
from ripstop.app.settings.tables import Http
from ripstop.engine.performers import InDoubt, Kind, Refused, TryAgain
from ripstop.kernel.effects import CallTool
from ripstop.kernel.events import Doubted
from ripstop.security.consent import Consent, Consents, EndpointConsents
from ripstop.testing import Errands
from ripstop.tools.http.request import resolve
from ripstop.tools.http.tool import NAME, HttpEndpoints
from tests.tools.http.endpoint_server import (
    Answers,
    EndpointServer,
    Seen,
    answering,
    at_home,
    by_path,
    called,
    endpoints,
    redirecting,
    serving,
)

SECRET = "sk-0123456789abcdefghij"


def asked(
    answer: Answers = answering(), path: str = "/x", environment: Any = None, **call: Any
) -> tuple[Any, list[Seen]]:
    """What one call returns or raises, and the requests that came."""

    async def story() -> tuple[Any, list[Seen]]:
        async with serving(answer) as server:
            performer = endpoints(server.origin, environment=environment)
            try:
                return await called(performer, f"{server.origin}{path}", **call), server.seen
            except (Refused, TryAgain, InDoubt) as error:
                return error, server.seen

    return asyncio.run(story())


async def echo(seen: Seen) -> None:
    await answering(json.dumps({"headers": seen.headers, "body": seen.body.decode()}).encode())(seen)


# What is sent


def test_a_body_is_filled_in_and_sent_as_json() -> None:
    body = {"name": "{name}", "note": "for {name}", "phone": "#phone#", "age": "{age}", "tags": ["{tags}"], "fixed": 7}
    params = {"name": "王", "age": 40, "tags": ["a", "b"]}
    _, (seen,) = asked(method="post", effect="unsafe", body=body, params=params, variables={"phone": "+86"})
    assert (seen.method, seen.headers["content-type"]) == ("POST", "application/json")
    assert json.loads(seen.body) == {
        "name": "王", "note": "for 王", "phone": "+86", "age": 40, "tags": [["a", "b"]], "fixed": 7,
    }  # fmt: skip


def test_with_get_the_pairs_of_a_body_go_into_the_query() -> None:
    body = {"keywords": "{keywords}", "chatbotId": "#bot#", "none": "{none}", "top": 3}
    _, (seen,) = asked(path="/find?a=1", body=body, params={"keywords": "ink & 纸"}, variables={"bot": "b"})
    assert seen.target == "/find?a=1&keywords=ink%20%26%20%E7%BA%B8&chatbotId=b&top=3"
    assert seen.body == b"" and "content-length" not in seen.headers


@pytest.mark.parametrize("body", [None, {}])
def test_get_without_a_body_sends_none(body: Any) -> None:
    _, (seen,) = asked(body=body, headers={"Content-Type": "application/json"})
    assert seen.target == "/x" and "content-length" not in seen.headers


def test_a_form_and_plain_text_are_sent_as_their_header_says() -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    _, (seen,) = asked(method="POST", effect="unsafe", body={"a": "{a}", "b": 2}, params={"a": "x y&z"}, headers=form)
    assert seen.body == b"a=x%20y%26z&b=2"
    _, (seen,) = asked(
        method="POST", effect="unsafe", body="<a>{a}</a>", params={"a": 1}, headers={"content-type": "text/xml"}
    )
    assert seen.body == b"<a>1</a>"


def test_the_host_is_the_name_and_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    value, (seen,) = asked(echo)
    assert seen.headers["host"].startswith("shop.example:")
    assert value["body"]["headers"]["accept-encoding"] == "identity"


def test_headers_of_a_definition_cannot_break_a_message() -> None:
    _, (seen,) = asked(headers={"Accept-Encoding": "gzip", "Content-Length": "99", "Transfer-Encoding": "chunked"})
    assert seen.headers["accept-encoding"] == "identity" and "transfer-encoding" not in seen.headers
    for name in ("Host", "host", "Proxy-Authorization", "X Y", "X:", "", "X\r\nY"):
        error, came = asked(headers={name: "1"})
        assert isinstance(error, Refused) and error.fault == "definition" and came == []
    error, came = asked(headers={"X": "{v}"}, params={"v": "a\r\nEvil: 1"})
    assert isinstance(error, Refused) and error.fault == "agent" and came == []


@pytest.mark.parametrize(
    "call",
    [
        {"method": "TRACE"},
        {"method": "GET / HTTP/1.1"},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"timeout": 601},
        {"body": [1]},
        {"method": "POST", "effect": "unsafe", "body": "x" * 2**20},
        {"params": {"q": "x" * 9_000}, "path": "/x?q={q}"},
    ],
)
def test_a_call_that_cannot_be_is_not_made(call: dict[str, Any]) -> None:
    error, came = asked(**call)
    assert isinstance(error, Refused) and came == []


def test_a_keyed_call_sends_the_key_of_the_command() -> None:
    _, (seen,) = asked(method="POST", effect="keyed", run_id="chat:客服:7", headers={"idempotency-key": "{own}"})
    assert seen.headers["idempotency-key"] == "chat:%E5%AE%A2%E6%9C%8D:7/9"
    _, (seen,) = asked(method="POST", effect="unsafe")
    assert "idempotency-key" not in seen.headers


# What comes back


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        (b'{"a": [1, null]}', "application/json", {"a": [1, None]}),
        (b'\xef\xbb\xbf{"a": 1}', "text/html", {"a": 1}),
        (b"[1]", "", [1]),
        (b"12", "text/plain", "12"),
        (b"12", "application/json; charset=utf-8", 12),
        ("库存".encode("gbk"), "text/plain; charset=GBK", "库存"),
        ("库存".encode(), "text/plain; charset=zip", "库存"),
        (b"", "application/json", ""),
    ],
)
def test_a_body_is_given_on_as_json_or_text(body: bytes, kind: str, value: Any) -> None:
    assert asked(answering(body, kind=kind))[0] == {"status": 200, "body": value}


def test_json_that_is_too_long_is_given_on_as_the_beginning_of_its_text() -> None:
    long = json.dumps(["word"] * 10_000).encode()
    body = asked(answering(long))[0]["body"]
    assert body.startswith('["word"') and body.endswith(f"(cut here: the answer has {len(long):,} characters)")


STATUSES = [
    ("pure", 201, dict), ("pure", 404, Refused), ("pure", 429, TryAgain), ("pure", 500, TryAgain),
    ("pure", 304, Refused),
    ("unsafe", 204, dict), ("unsafe", 400, Refused), ("unsafe", 429, TryAgain), ("unsafe", 500, InDoubt),
    ("unsafe", 503, InDoubt), ("unsafe", 304, InDoubt), ("keyed", 409, Refused), ("keyed", 502, InDoubt),
]  # fmt: skip


@pytest.mark.parametrize(("effect", "status", "outcome"), STATUSES)
def test_a_status_says_whether_it_was_done(effect: str, status: int, outcome: type) -> None:
    body = b"" if status in (204, 304) else b"out of ink"
    value, (_,) = asked(
        answering(body, f"{status} X", kind="text/plain"), effect=effect, method="GET" if effect == "pure" else "POST"
    )
    assert isinstance(value, outcome)
    if outcome is not dict:
        assert f"answered {status}: " in str(value)
        assert "out of ink" in str(value) or not body


def test_a_server_that_asks_for_a_long_pause_is_not_waited_for() -> None:
    error, _ = asked(answering(b"", "429 X", "Retry-After: 3"))
    assert isinstance(error, TryAgain) and error.after == 3
    error, _ = asked(answering(b"", "429 X", "Retry-After: 86400"))
    assert isinstance(error, Refused) and "wait for 600 s" in str(error)


def test_nothing_left_if_there_was_no_connection() -> None:
    async def story() -> None:
        async with serving(answering()) as server:
            gone = server.origin
        with pytest.raises(TryAgain, match="ConnectError"):
            await called(endpoints(gone), f"{gone}/x", "unsafe", method="POST")

    asyncio.run(story())


def test_the_next_address_is_tried_while_nothing_has_left() -> None:
    async def story() -> None:
        async def two(_: str) -> list[str]:
            return ["127.0.0.2", "127.0.0.1"]

        async with serving(answering()) as server:
            value = await called(endpoints(server.origin, resolver=two), f"{server.origin}/x", "unsafe", method="POST")
            assert value["status"] == 200 and server.connections == 1

    asyncio.run(story())


@pytest.mark.parametrize(("number", "outcome"), [(socket.EAI_NONAME, Refused), (socket.EAI_AGAIN, TryAgain)])
def test_a_name_that_does_not_exist_is_not_tried_again(number: int, outcome: type[Exception]) -> None:
    async def nobody(_: str) -> list[str]:
        raise socket.gaierror(number, "no")

    with pytest.raises(outcome, match=r"The name shop\.example cannot be resolved"):
        asyncio.run(called(endpoints(resolver=nobody), "http://shop.example/", "unsafe", method="POST"))


def test_the_system_resolves_names() -> None:
    assert {"127.0.0.1", "::1"} & set(asyncio.run(resolve("localhost")))


# Redirects


def test_a_post_that_is_redirected_keeps_its_body_only_where_the_status_says_so() -> None:
    for status, method, body in (
        (307, "POST", '{"a":1}'),
        (308, "POST", '{"a":1}'),
        (302, "GET", ""),
        (303, "GET", ""),
    ):
        answer = by_path(x=redirecting(status, "/there?b=2"), there=echo)
        value, seen = asked(answer, method="POST", effect="unsafe", body={"a": 1})
        assert (seen[1].method, seen[1].target, value["body"]["body"]) == (method, "/there?b=2", body)
        assert ("content-type" in seen[1].headers) == bool(body)


def test_what_fails_after_a_post_was_answered_with_see_other_is_in_doubt() -> None:
    answer = by_path(x=redirecting(303, "/there"), there=answering(b"gone", "404 X"))
    assert isinstance(asked(answer, method="POST", effect="unsafe")[0], InDoubt)
    answer = by_path(x=redirecting(307, "/there"), there=answering(b"no", "404 X"))
    assert isinstance(asked(answer, method="POST", effect="unsafe")[0], Refused)


# Secrets and consent


def test_a_secret_goes_into_the_header_and_is_taken_out_of_what_comes_back() -> None:
    secret = {"SHOP_KEY": f" {SECRET}\n"}
    value, (seen,) = asked(echo, environment=secret, headers={"Authorization": "Bearer ${SHOP_KEY}"})
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert value["body"]["headers"]["authorization"] == "Bearer …"
    escaped = "".join(f"\\u{ord(one):04x}" for one in SECRET)
    for body, kind in (
        (f'{{"a": ["{escaped}"], "{SECRET}": 1}}', "application/json"),
        (f"you sent {SECRET}", "text/plain"),
        ("x" * 19_990 + SECRET + "y" * 5_000, "text/plain"),
    ):
        value, _ = asked(answering(body.encode(), kind=kind), environment=secret, headers={"X": "${SHOP_KEY}"})
        assert SECRET[:8] not in json.dumps(value) and "…" in json.dumps(value, ensure_ascii=False)
    for effect in ("pure", "unsafe"):
        for status in ("400 X", "500 X"):
            error, _ = asked(
                answering(SECRET.encode(), status), effect=effect, environment=secret, headers={"X": "${SHOP_KEY}"}
            )
            assert SECRET[:8] not in str(error) and "…" in str(error)


def test_a_secret_that_is_missing_or_broken_is_not_sent_and_not_shown() -> None:
    for environment in ({}, {"SHOP_KEY": "  "}, {"SHOP_KEY": "abcd\nefgh"}, {"SHOP_KEY": "schlüssel"}):
        error, came = asked(environment=environment, headers={"X": "${SHOP_KEY}"})
        assert isinstance(error, Refused) and error.fault == "definition" and came == []
        assert "SHOP_KEY" in str(error) and "efgh" not in str(error) and "schl" not in str(error)


def test_no_secret_and_no_credential_follows_a_redirect_to_another_origin() -> None:
    async def story() -> None:
        async with serving(echo) as other:
            answer = by_path(away=redirecting(307, f"{other.origin}/x"), near=redirecting(307, "/echo"), echo=echo)
            async with serving(answer) as server:
                performer = endpoints(server.origin, other.origin, environment={"K": SECRET})
                headers = {"X-Key": "${K}", "Authorization": "Basic {user}", "Cookie": "a=1", "X-Plain": "1"}
                params = {"user": "dTpw"}
                near = await called(performer, f"{server.origin}/near", headers=headers, params=params)
                assert near["body"]["headers"]["x-key"] == "…"
                assert near["body"]["headers"]["authorization"] == "Basic dTpw"
                away = await called(performer, f"{server.origin}/away", headers=headers, params=params)
                got = away["body"]["headers"]
                assert got["x-plain"] == "1"
                assert not {"x-key", "authorization", "cookie"} & got.keys()

    asyncio.run(story())


@pytest.fixture
def consents(tmp_path: Path) -> Consents:
    return Consents(tmp_path / "state")


def test_an_origin_gets_nothing_before_the_user_agreed_and_a_secret_only_by_name(
    tmp_path: Path, consents: Consents
) -> None:
    async def story() -> None:
        async with serving(answering()) as server:

            def performer(*allow: str) -> HttpEndpoints:
                rules = EndpointConsents(allow, tmp_path, consents)
                return HttpEndpoints(rules, at_home, {"K": SECRET, "OTHER": SECRET})

            async def refused(by: HttpEndpoints, **call: Any) -> str:
                with pytest.raises(Refused) as error:
                    await called(by, f"{server.origin}/x", **call)
                assert error.value.fault == "definition"
                return str(error.value)

            key, other = {"X": "${K}"}, {"X": "${K}", "Y": "${OTHER}"}
            assert "so nothing was sent. Look at it and agree to it." in await refused(performer())
            assert "secrets K" in await refused(performer(server.origin), headers=key)
            consents.remember([Consent("endpoint", server.origin, str(tmp_path))])
            assert "not a public address" in await refused(performer()), "a consent is not for private addresses"
            assert "secrets K" in await refused(performer(server.origin), headers=key)
            consents.remember([Consent("endpoint", f"{server.origin} K", str(tmp_path))])
            assert "secrets K, OTHER" in await refused(performer(server.origin), headers=other)
            assert server.connections == 0
            assert (await called(performer(server.origin), f"{server.origin}/x", headers=key))["status"] == 200
            elsewhere = EndpointConsents((server.origin,), tmp_path / "elsewhere", consents)
            assert "secrets K" in await refused(HttpEndpoints(elsewhere, at_home, {"K": SECRET}), headers=key)

    asyncio.run(story())


def test_a_redirect_to_an_origin_without_consent_is_not_followed(tmp_path: Path, consents: Consents) -> None:
    async def story() -> None:
        async with serving(answering()) as other:
            async with serving(redirecting(302, f"{other.origin}/x")) as server:
                performer = HttpEndpoints(EndpointConsents([server.origin], tmp_path, consents), at_home)
                with pytest.raises(Refused, match="You have not agreed"):
                    await called(performer, f"{server.origin}/x")
                assert other.connections == 0

    asyncio.run(story())


# Encryption


def test_the_certificate_has_to_be_for_the_name_although_the_address_is_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = pytest.importorskip("tests.tools.http.certificates")
    server_side = certificates.for_name("shop.example", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))

    async def story() -> None:
        async with serving(answering(), ssl=server_side) as server:
            right, wrong = (f"https://{name}:{server.port}" for name in ("shop.example", "evil.example"))
            value = await called(endpoints(right), f"{right}/x", "unsafe", method="POST")
            assert value == {"status": 200, "body": {"ok": True}}
            assert server.seen[0].headers["host"] == f"shop.example:{server.port}"
            with pytest.raises(Refused, match="would not be secure"):
                await called(endpoints(wrong), f"{wrong}/x", "unsafe", method="POST")
            monkeypatch.delenv("SSL_CERT_FILE")
            with pytest.raises(Refused, match="would not be secure"):
                await called(endpoints(right), f"{right}/x", "unsafe", method="POST")
            assert len(server.seen) == 1

    asyncio.run(story())


# In a run


def test_the_kind_is_what_the_definition_declares_or_follows_from_the_method() -> None:
    def kind(effect: Any = "", **arguments: Any) -> Kind:
        return endpoints().kind(CallTool(tool=NAME, arguments=arguments or None, effect=effect))

    assert kind(method="get") is Kind.PURE and kind(method="POST") is Kind.UNSAFE and kind() is Kind.UNSAFE
    assert kind("keyed", method="POST") is Kind.KEYED and kind("unsafe", method="GET") is Kind.UNSAFE


def run_of(commands: Iterable[CallTool], allow: tuple[str, ...]) -> tuple[Any, list[Any], list[Any]]:
    """A run that makes calls one after the other: the run, its events, and the desk."""

    async def story() -> tuple[Any, list[Any], list[Any]]:
        plugins = Plugins([*BUILT_IN, Plugin(name="errands", kits=("ripstop.testing:ERRANDS",))])
        async with App(Settings(http=Http(allow)), plugins=plugins) as app:
            errands = Errands(rounds=tuple((command,) for command in commands))
            run = await app.engine.start("story-1", "errands", errands.content())
            view = await app.wait(run)
            records = await app.engine.journal.read("story-1")
            return view.run, [record.event for record in records], await app.desk()

    return asyncio.run(story())


def test_a_run_calls_endpoints_and_a_person_is_asked_about_one_that_broke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_KEY", SECRET)
    answers = by_path(stock=answering(b'{"ink": 4}'), pay=lambda seen: seen.send(b"HTTP/1.1 2"), not_agreed=answering())
    server = start_in_thread(answers)
    origin = f"http://127.0.0.1:{server.port}"
    calls = [
        CallTool(tool=NAME, effect="pure", arguments={"tool": "stock", "url": f"{origin}/stock", "method": "GET"}),
        CallTool(
            tool=NAME,
            effect="pure",
            arguments={"tool": "key", "url": f"{origin}/not_agreed", "headers": {"X": "${SHOP_KEY}"}},
        ),
        CallTool(tool=NAME, effect="unsafe", arguments={"tool": "pay", "url": f"{origin}/pay", "method": "POST"}),
    ]
    run, events, desk = run_of(calls, (origin,))
    assert run.state.answers[0] == "{'status': 200, 'body': {'ink': 4}}"
    assert "key: You have not agreed to" in run.state.answers[1] and run.state.failures == 1
    (doubted,) = (event for event in events if isinstance(event, Doubted))
    assert "pay" in doubted.evidence and "The connection broke" in doubted.evidence
    assert len(desk) == 1
    assert [seen.target for seen in server.seen] == ["/stock", "/pay"]
    assert SECRET[:8] not in str(events)


def start_in_thread(answer: Answers) -> EndpointServer:
    """A server with its own loop, for a story that brings one."""
    import threading

    ready: list[EndpointServer] = []
    started = threading.Event()

    async def serve() -> None:
        async with serving(answer) as server:
            ready.append(server)
            started.set()
            await asyncio.sleep(30)

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    assert started.wait(10)
    return ready[0]
