"""Every provider with an extra of ours is really constructed; one attempt of ours is one request."""

import asyncio
import http.server
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import Refused, TryAgain
from ripstop.models.provider_models import EXTRAS, extra_for, model_of
from ripstop.models.providers import ProviderAgent
from ripstop.models.router import wrong
from tests.models.asking import ask

KEY = "sk-0123456789abcdefghij"
SPECS = {
    "anthropic": ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
    "bedrock": ("bedrock:amazon.nova-lite-v1:0", "AWS_BEARER_TOKEN_BEDROCK"),
    "cerebras": ("cerebras:llama3.1-8b", "CEREBRAS_API_KEY"),
    "cohere": ("cohere:command-r7b-12-2024", "CO_API_KEY"),
    "crusoe": ("crusoe:m", "CRUSOE_API_KEY"),
    "google": ("google:gemini-3-flash-preview", "GOOGLE_API_KEY"),
    "groq": ("groq:llama-3.3-70b-versatile", "GROQ_API_KEY"),
    "huggingface": ("huggingface:Qwen/Qwen3-32B", "HF_TOKEN"),
    "mistral": ("mistral:mistral-small-latest", "MISTRAL_API_KEY"),
    "openai": ("openai-chat:m", "OPENAI_API_KEY"),
    "openrouter": ("openrouter:a/m", "OPENROUTER_API_KEY"),
    "snowflake": ("snowflake:m", "SNOWFLAKE_TOKEN"),
    "zai": ("zai:glm-5", "ZAI_API_KEY"),
}


def test_every_provider_has_an_extra_of_its_own() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(EXTRAS) == set(SPECS) == set(extras) - {"local", "mcp", "providers", "web"}
    assert extras["providers"] == [f"ripstop[{','.join(EXTRAS)}]"]
    assert all(extra_for(name) == f"ripstop[{name}]" for name in EXTRAS)
    assert extra_for("google-cloud") == "ripstop[google]" and extra_for("deepseek") == "ripstop[openai]"


@pytest.mark.parametrize("name", SPECS)
def test_each_provider_is_constructed_with_a_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, variable = SPECS[name]
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("SNOWFLAKE_ACCOUNT", "some-account")
    assert wrong(spec) is None
    assert model_of(spec).model_name == spec.partition(":")[2]


@pytest.fixture
def server() -> Iterator[Any]:
    """A server that is always too busy, with the key in what it says, and counts its requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            listening.seen.append({name.lower(): value for name, value in self.headers.items()})
            body = f'{{"error": {{"type": "overloaded", "message": "busy {KEY}"}}}}'.encode()
            self.send_response(listening.status)
            self.send_header("Location", f"{listening.url}/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    listening: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.seen, listening.status = [], 503
    listening.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield listening
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.mark.parametrize("name", ["anthropic", "groq", "openai"])
def test_one_attempt_is_one_request_and_its_error_hides_the_key(
    name: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, variable = SPECS[name]
    monkeypatch.setenv(variable, f" {KEY}\n")
    monkeypatch.setenv(f"{name.upper()}_BASE_URL", server.url)
    with pytest.raises(TryAgain) as busy:
        asyncio.run(ProviderAgent(spec).perform(ask()))
    assert len(server.seen) == 1
    assert KEY in (server.seen[0].get("x-api-key", ""), server.seen[0].get("authorization", "").removeprefix("Bearer "))
    assert KEY not in str(busy.value)


def test_a_redirect_is_not_followed_with_the_key(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    server.status = 307
    with pytest.raises((Refused, TryAgain)):
        asyncio.run(ProviderAgent(SPECS["anthropic"][0]).perform(ask()))
    assert len(server.seen) == 1


def test_a_missing_library_is_named_by_our_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("pydantic_ai.providers.groq", "groq"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "groq", None)
    found = wrong("groq:m")
    assert found is not None and "pip install 'ripstop[groq]'" in found.hint and not found.everywhere
    with pytest.raises(Refused, match=r"pip install 'ripstop\[groq\]'"):
        model_of("groq:m")


@pytest.mark.parametrize(
    "spec", ["huggingface:https://evil.example/m", "huggingface:http://127.0.0.1:1/", "google:a://b"]
)
def test_a_name_that_is_an_address_gets_no_key(spec: str) -> None:
    found = wrong(spec)
    assert found is not None and "address" in found.text
    with pytest.raises(Refused, match="address"):
        model_of(spec)


def test_a_key_with_a_line_break_inside_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-01234567\nabcdefgh")
    with pytest.raises(Refused, match="ANTHROPIC_API_KEY") as refused:
        asyncio.run(ProviderAgent("anthropic:m").perform(ask()))
    assert "01234567" not in str(refused.value)
