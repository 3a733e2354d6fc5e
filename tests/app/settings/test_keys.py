"""Keys and passwords are never shown, recorded or sent where they do not belong."""

import asyncio
import base64
import json
import os
import pydoc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripstop
from ripstop.app.settings.settings_file import read_settings
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.models.api_key import ApiKey, read_key
from ripstop.models.openai_compatible import OpenAICompatibleAgent
from ripstop.security.addresses import parse_address
from ripstop.security.redaction import redacted, secrets_in
from tests.models.asking import ask

KEY = "sk-0123456789abcdefghij"
PASSWORDS = [
    "https://user:pa55word@host.example/v1",
    "https://pa55word@host.example/v1",
    "https://host.example/v1?api_key=pa55word",
    "https://host.example/v1#pa55word",
    "https://host.example\\@pa55word/v1",
    "https:///pa55word@host",
    "user:pa55word@host",
]


@pytest.mark.parametrize("address", PASSWORDS)
def test_a_password_in_an_address_is_refused_and_not_shown(tmp_path: Path, address: str) -> None:
    for given_as in ({"base_url": address}, {"environment": {"RIPSTOP_BASE_URL": address}}):
        with pytest.raises(UsageError) as refused:
            read_settings(tmp_path, **{"environment": {}, **given_as})  # type: ignore[arg-type]
        assert "pa55word" not in str(refused.value)
    (tmp_path / "ripstop.toml").write_text(f"[models]\nbase_url = '{address}'\n")
    with pytest.raises(UsageError, match=r"ripstop.toml:2: `models.base_url`") as refused:
        read_settings(tmp_path, {})
    assert "pa55word" not in str(refused.value)
    with pytest.raises(Refused) as unused:
        OpenAICompatibleAgent("m", address)
    assert "pa55word" not in str(unused.value)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://API.example.com/v1", "https://api.example.com"),
        ("https://api.example.com:443/v1/", "https://api.example.com"),
        ("http://localhost:80", "http://localhost"),
        ("http://[::1]:8080/v1", "http://[::1]:8080"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
    ],
)
def test_an_origin_is_scheme_host_and_port(address: str, origin: str) -> None:
    assert parse_address(address).origin == origin


@pytest.mark.parametrize(
    "address",
    ["", "localhost:80", "ftp://x", "http://", "http:///v1", "http://a b/", "http://a\n/v1", "http://a/\x1b[2J", "http://é/",
     "http://a:0/", "http://a:99999/", "http://a:-1", "http://[::g]/", "http://a..b/", "http://\u212a.example", "//a", "http://.a"],
)  # fmt: skip
def test_whatever_is_not_plainly_an_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        parse_address(address)


@given(st.text(alphabet="htps:/.@#?\\[]a\u212a1%-é \n", max_size=25).map("http://".__add__) | st.text(max_size=30))
def test_the_http_library_connects_to_the_origin_that_was_checked(text: str) -> None:
    import httpx2

    try:
        address = parse_address(text)
    except UsageError:
        return
    url = httpx2.URL(f"{text.rstrip('/')}/chat/completions")
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    again = parse_address(address.url)
    assert again == address
    host = f"[{url.host}]" if ":" in url.host else url.host
    assert parse_address(f"{url.scheme}://{host}:{port}").origin == address.origin
    assert not url.userinfo and not url.query


def test_a_key_is_sent_without_the_white_space_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" \t{KEY}\r\n")
    assert read_key("OPENAI_API_KEY") == KEY
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async def play() -> None:
        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        agent = OpenAICompatibleAgent("m", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        with pytest.raises(TryAgain):
            await agent.perform(ask())
        await agent.close()
        listening.close()

    asyncio.run(play())
    assert f"authorization: bearer {KEY}\r\n".encode() in seen[0].lower()


@pytest.mark.parametrize("inside", ["\n", "\r\nX-Evil: 1", " ", "\t", "\x00", "\x7f", "é", "\u2028", "\x1b[2J"])
def test_a_key_with_an_odd_character_inside_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    with pytest.raises(Refused, match="Set it again") as refused:
        read_key("OPENAI_API_KEY", {"OPENAI_API_KEY": f"sk-01234567{inside}89abcdef"})
    assert "01234567" not in str(refused.value) and "89abcdef" not in str(refused.value)


def test_a_key_goes_only_to_the_origins_it_is_bound_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    key = ApiKey("OPENAI_API_KEY", frozenset({"https://a.example"}))
    assert key.value_for(parse_address("https://a.example/any/path")) == KEY
    for other in ("http://a.example", "https://a.example:444", "https://b.example", "https://a.example.evil.example"):
        with pytest.raises(Refused, match="OPENAI_API_KEY"):
            key.value_for(parse_address(other))
    assert KEY not in repr(key) and KEY not in str(vars(key))
    agent = OpenAICompatibleAgent("m", "http://127.0.0.1:9/v1", key_origins=frozenset({"https://a.example"}))
    with pytest.raises(Refused, match="not for http://127"):
        asyncio.run(agent.perform(ask()))


def test_help_does_not_print_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in set(ripstop.__all__) - {"__version__"}:
        assert KEY not in pydoc.render_doc(getattr(ripstop, name))


FORMS: list[Any] = [
    KEY,
    quote(f"{KEY}", safe=""),
    json.dumps(f"x{KEY}"),
    base64.b64encode(f"user:{KEY}".encode()).decode(),
    base64.b64encode(f":{KEY}".encode()).decode(),
    base64.urlsafe_b64encode(f"ab{KEY}x".encode()).decode(),
    KEY.encode().hex(),
    "\n".join(KEY),
    KEY[:12] + "\n    " + KEY[12:],
    f"{KEY[:10]}********{KEY[-8:]}",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_hidden_in_whatever_form_it_comes_back(form: str) -> None:
    said = redacted(f"before {form} after", KEY)
    assert said.startswith("before ") and said.endswith(" after") and "…" in said
    packed = "".join(said.split())
    assert not any(KEY[at : at + 8] in packed for at in range(len(KEY) - 7))
    for at in range(3):
        assert base64.b64encode(b"\0" * at + KEY.encode()).decode()[4:20] not in packed


WITHOUT_KEY = st.text(st.characters(exclude_characters=KEY), max_size=60)


@given(WITHOUT_KEY, WITHOUT_KEY)
def test_a_text_without_a_key_stays_as_it_is(text: str, other: str) -> None:
    assert redacted(text) == text
    assert redacted(text, KEY) == text
    assert KEY not in redacted(text + KEY + other, KEY)


def test_keys_are_known_by_the_names_of_their_variables() -> None:
    environment = {
        "OPENAI_API_KEY": "a",
        "HF_TOKEN": "b",
        "AWS_SECRET_ACCESS_KEY": "c",
        "KEYBOARD": "d",
        "PATH": "e",
        "X_KEY": "",
    }
    assert secrets_in(environment) == ("a", "b", "c")


def test_an_environment_is_not_a_default_argument() -> None:
    assert all(default is not os.environ for default in read_settings.__defaults__ or ())
