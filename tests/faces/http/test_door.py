"""The door lets in who names this server and carries its token, and nobody from a page of another origin."""

import asyncio
import json
import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ripstop.faces.http.asgi import Message
from ripstop.faces.http.door import MOST_CLIENTS, SAFE_HEADERS, AllowedHosts, RequestRate, client_of, is_same_origin
from ripstop.faces.http.tokens import BearerToken
from ripstop.kernel.errors import UsageError
from tests.faces.http.requests_to import GOOD, HOST, TOKEN, Inside, Reply, door, request

BEARER = (b"authorization", f"Bearer {TOKEN}".encode())


def ask(*headers: tuple[bytes, bytes], **more: object) -> tuple[Reply, Inside]:
    inside = Inside()
    return asyncio.run(request(door(inside), headers or GOOD, **more)), inside  # type: ignore[arg-type]


def test_lets_in_who_has_the_token_and_says_who_it_is_without_the_token() -> None:
    reply, inside = ask(*GOOD, (b"content-length", b"5"), method="POST", body=[b"he", b"llo"])
    assert (reply.status, reply.body) == (200, b"http:hello")
    assert TOKEN.encode() not in b" ".join(value for _, value in inside.seen[0]["headers"])


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"evil.example:8517",
        b"127.0.0.1",
        b"127.0.0.1:80",
        b"127.0.0.1:8518",
        b"127.0.0.1:08517",
        b"127.1:8517",
        b"2130706433:8517",
        b"localhost.:8517",
        b"localhost:8517.evil.example",
        b"evil.example@localhost:8517",
        b"localhost:8517 ",
        b" localhost:8517",
        b"localhost:8517, evil.example",
        b"[::1]",
        b"[::ffff:127.0.0.1]:8517",
        b"\xe9:8517",
        b"0.0.0.0:8517",
        b"",
    ],
)
def test_answers_under_no_other_name(host: bytes) -> None:
    reply, inside = ask((b"host", host), BEARER)
    assert reply.status == 421 and not inside.seen


@pytest.mark.parametrize("host", [b"127.0.0.1:8517", b"localhost:8517", b"LocalHost:8517", b"[::1]:8517"])
def test_answers_under_every_loopback_name(host: bytes) -> None:
    assert ask((b"host", host), BEARER)[0].status == 200


def test_refuses_no_host_and_two_hosts() -> None:
    assert ask(BEARER)[0].status == 421
    assert ask((b"host", HOST), (b"host", HOST), BEARER)[0].status == 421
    assert ask((b"host", HOST), (b"Host", b"evil.example"), BEARER)[0].status == 421


def test_a_listed_name_is_answered_with_and_without_the_port() -> None:
    for host, status in ((b"bot.example.com", 200), (b"bot.example.com:8517", 200), (b"a.bot.example.com", 421)):
        reply = asyncio.run(request(door(Inside(), ["Bot.example.com"]), [(b"host", host), BEARER]))
        assert reply.status == status, host
    for host, status in ((b"bot.example.com:8443", 200), (b"bot.example.com", 421), (b"bot.example.com:8517", 421)):
        reply = asyncio.run(request(door(Inside(), ["bot.example.com:8443"]), [(b"host", host), BEARER]))
        assert reply.status == status, host


def test_takes_ipv6_addresses_as_names_with_and_without_brackets() -> None:
    for name in ("fe80::1", "[fe80::1]"):
        assert AllowedHosts(80, [name]).answers("[fe80::1]")


@pytest.mark.parametrize(
    "name",
    ["", "*", "*.example.com", "a b", "http://bot.example.com", "bot/", "a..b", "x:0", "x:70000", "é.com", "u@x"],
)
def test_refuses_names_that_are_not_hosts(name: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a host"):
        AllowedHosts(8517, [name])


@pytest.mark.parametrize("target", [b"http://127.0.0.1:8517/", b"*", b"evil.example:443", b"", b"\\\\evil\\x"])
def test_refuses_targets_that_are_not_paths(target: bytes) -> None:
    reply, inside = ask(raw_path=target)
    assert reply.status == 400 and not inside.seen


@pytest.mark.parametrize(
    "values",
    [
        [],
        [b""],
        [b"Bearer"],
        [b"Bearer "],
        [TOKEN.encode()],
        [b"Basic " + TOKEN.encode()],
        [b"Bearer " + TOKEN.encode()[:-1]],
        [b"Bearer " + TOKEN.encode() + b"x"],
        [b"Bearer " + TOKEN.upper().encode()],
        [b"Bearer " + TOKEN.encode() + b", Bearer x"],
        [b"Bearer " + TOKEN.encode(), b"Bearer " + TOKEN.encode()],
        [b"Bearer \xff\xfe"],
    ],
)
def test_refuses_every_request_without_the_one_token(values: list[bytes]) -> None:
    reply, inside = ask((b"host", HOST), *((b"authorization", value) for value in values))
    assert reply.status == 401 and not inside.seen
    assert reply.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in reply.body.decode()


@given(st.text(max_size=60))
@example("bearer " + TOKEN)
def test_accepts_only_the_token_itself(text: str) -> None:
    assert BearerToken(TOKEN).accepts(text) == (text.lower().startswith("bearer ") and text[7:].strip(" ") == TOKEN)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"origin", b"http://evil.example")],
        [(b"origin", b"null")],
        [(b"origin", b"")],
        [(b"origin", b"http://127.0.0.1:8518")],
        [(b"origin", b"http://127.0.0.1:8517.evil.example")],
        [(b"origin", b"http://localhost:8517")],
        [(b"origin", b"http://127.0.0.1:8517"), (b"origin", b"http://evil.example")],
        [(b"sec-fetch-site", b"cross-site")],
        [(b"sec-fetch-site", b"same-site")],
        [(b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"cross-site")],
        [(b"sec-fetch-site", b"same-origin"), (b"origin", b"http://evil.example")],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_refuses_pages_of_other_origins(method: str, headers: list[tuple[bytes, bytes]]) -> None:
    reply, inside = ask(*GOOD, *headers, method=method)
    assert reply.status == 403 and not inside.seen
    assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_lets_its_own_pages_and_programs_in() -> None:
    assert ask(*GOOD, (b"origin", b"http://" + HOST), (b"sec-fetch-site", b"same-origin"))[0].status == 200
    assert ask(*GOOD, (b"sec-fetch-site", b"none"))[0].status == 200


@given(st.sampled_from(["x", "localhost:8517", "bot.example.com"]), st.text(max_size=40))
def test_only_the_origin_of_the_host_is_the_same(host: str, origin: str) -> None:
    assert is_same_origin(host, origin, None) == (origin.lower() in (f"http://{host}", f"https://{host}"))


def test_checks_host_before_token_before_origin() -> None:
    evil = (b"origin", b"http://evil.example")
    assert ask((b"host", b"evil"), (b"authorization", b"x"), evil)[0].status == 421
    assert ask((b"host", HOST), (b"authorization", b"x"), evil)[0].status == 401
    assert ask(*GOOD, evil)[0].status == 403


# Bounds


def test_refuses_a_body_that_is_too_large_with_and_without_its_length() -> None:
    inside = Inside()
    for headers, body in (
        ([(b"content-length", b"11")], [b"x" * 11]),
        ([(b"content-length", b"99999999999999999")], []),
        ([], [b"x" * 6, b"x" * 5]),
        ([(b"transfer-encoding", b"chunked")], [b"x"] * 11),
    ):
        reply = asyncio.run(request(door(inside, body=10), [*GOOD, *headers], method="POST", body=body))
        assert reply.status == 413
    assert not inside.seen
    assert asyncio.run(request(door(inside, body=10), GOOD, body=[b"x" * 10])).status == 200


@pytest.mark.parametrize("length", [b"-1", b"+5", b"0x5", b"5, 5", b"5 5", b"1e3", b"", "٣".encode(), b"9" * 30])
def test_refuses_lengths_that_are_not_numbers(length: bytes) -> None:
    assert ask(*GOOD, (b"content-length", length), method="POST")[0].status == 400


def test_refuses_two_lengths() -> None:
    five = (b"content-length", b"5")
    assert ask(*GOOD, five, five, method="POST")[0].status == 400
    assert ask(*GOOD, five, (b"Transfer-Encoding", b"chunked"), method="POST")[0].status == 400


def test_refuses_more_headers_than_it_reads() -> None:
    assert ask(*GOOD, *[(b"x-%d" % n, b"") for n in range(62)])[0].status == 200
    assert ask(*GOOD, *[(b"x-%d" % n, b"") for n in range(63)])[0].status == 431


def test_refuses_a_head_that_is_too_long() -> None:
    assert ask(*GOOD, (b"x", b"a" * 20_000))[0].status == 431
    assert ask(path="/" + "a" * 20_000)[0].status == 431
    assert ask(query_string=b"a" * 20_000)[0].status == 431


def test_a_body_has_to_arrive_in_time() -> None:
    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    reply = asyncio.run(request(door(Inside(), body_seconds=0.01), [*GOOD, (b"content-length", b"5")], receive=never))
    assert reply.status == 408


def test_a_client_that_leaves_before_its_body_is_complete_is_not_answered() -> None:
    reply, inside = ask(*GOOD, (b"content-length", b"5"), method="POST", body=[])
    assert reply.status == 0 and not inside.seen


def test_refuses_more_requests_than_the_rate_and_says_when_to_come_back() -> None:
    clock = [0.0]
    inside = Inside()
    guarded = door(inside, rate=2, now=lambda: clock[0])
    statuses = [asyncio.run(request(guarded)).status for _ in range(6)]
    assert statuses == [200] * 4 + [429] * 2
    assert int(asyncio.run(request(guarded)).headers["retry-after"]) >= 1
    clock[0] = 0.5
    assert [asyncio.run(request(guarded)).status for _ in range(2)] == [200, 429]


def test_wrong_tokens_are_limited_by_address_and_never_lock_out_the_right_one() -> None:
    guarded = door(Inside(), wrong_tokens=3)
    wrong = [(b"host", HOST), (b"authorization", b"Bearer guess")]
    assert [asyncio.run(request(guarded, wrong)).status for _ in range(5)] == [401] * 3 + [429] * 2
    assert asyncio.run(request(guarded, wrong, client="10.0.0.9")).status == 401
    assert asyncio.run(request(guarded)).status == 200


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.5, 50), st.integers(1, 20))
def test_no_window_has_more_requests_than_burst_and_rate_allow(pauses: list[float], rate: float, burst: int) -> None:
    now, passed = 0.0, []
    limit = RequestRate(rate, burst, lambda: now)
    for pause in pauses:
        now += pause
        wait = limit.take("a")
        assert wait >= 0
        if not wait:
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - passed[first]) + 1e-6


def test_a_client_that_waits_as_long_as_it_is_told_passes() -> None:
    now = 0.0
    limit = RequestRate(0.5, 1, lambda: now)
    assert limit.take("a") == 0
    now += limit.take("a")
    assert limit.take("a") == 0


def test_the_table_of_clients_is_bounded() -> None:
    limit = RequestRate(1, 1, lambda: 0.0)
    for number in range(MOST_CLIENTS + 100):
        limit.take(str(number))
    assert len(limit._buckets) == MOST_CLIENTS


def test_an_ipv6_network_is_one_client() -> None:
    assert client_of("2001:db8:1:2::1") == client_of("2001:db8:1:2:ffff::9") != client_of("2001:db8:1:3::1")
    assert client_of("10.0.0.1") != client_of("10.0.0.2")


# Answers


def test_every_answer_has_the_safe_headers() -> None:
    for headers, status in ((GOOD, 200), ([BEARER], 421), ([GOOD[0]], 401), ([*GOOD, (b"origin", b"null")], 403)):
        reply, _ = ask(*headers)
        assert reply.status == status
        assert {name.decode(): value.decode() for name, value in SAFE_HEADERS.items()}.items() <= reply.headers.items()
        if status != 200:
            assert reply.headers["content-type"] == "application/json"
            assert {*reply.json} == {"error", "hint"} and reply.json["error"]


def test_a_failure_inside_says_nothing_about_itself(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "ripstop.http"):
        reply, _ = ask(path="/broken")
    assert reply.status == 500 and "secret" not in reply.body.decode()
    assert "a secret detail" in caplog.text and TOKEN not in caplog.text


def test_web_sockets_are_refused() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    inside = Inside()
    asyncio.run(door(inside)({"type": "websocket", "path": "/", "headers": list(GOOD)}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}] and not inside.seen


HEADER_NAMES = st.sampled_from(
    [b"host", b"authorization", b"origin", b"content-length", b"sec-fetch-site", b"x", b"Host"]
)
HEADER_VALUES = st.one_of(
    st.binary(max_size=20), st.sampled_from([HOST, BEARER[1], b"http://" + HOST, b"5", b"evil.example", b"cross-site"])
)


@given(
    st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=8),
    st.sampled_from(["GET", "POST", "OPTIONS", "DELETE", "QUERY"]),
    st.lists(st.binary(max_size=8), max_size=4),
)
def test_whatever_headers_come_in_nobody_passes_without_host_and_token(
    headers: list[tuple[bytes, bytes]], method: str, body: list[bytes]
) -> None:
    reply, inside = ask(*headers, (b"x-last", b""), method=method, body=body)
    assert reply.status in (0, 200, 400, 401, 403, 413, 421)
    if inside.seen:
        assert [value.lower() for name, value in headers if name.lower() == b"host"] == [HOST]
        assert [value for name, value in headers if name == b"authorization"] == [BEARER[1]]
        assert b"evil.example" not in [value for name, value in headers if name == b"origin"]
        assert reply.status == 200
    elif reply.status:
        assert json.loads(reply.body)["error"]
