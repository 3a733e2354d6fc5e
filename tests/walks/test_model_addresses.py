"""A model is asked where the user sent it, whichever process makes the call: model and address are recorded together.

Nothing here leaves the machine: `provider` takes the place of OpenAI's own server.
"""

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.app.application import App
from ripstop.app.plugins import find
from ripstop.app.settings.settings_file import Models, Settings, read_settings
from ripstop.app.start import with_models_of
from ripstop.app.trust import Trust
from ripstop.definitions.loading import Workflow
from ripstop.kernel.events import RunSettings
from ripstop.kernel.run import Run
from ripstop.styles.conversation.chats import Chats
from tests.walks.commands import ripstop, succeed
from tests.walks.talking_bot import decision, write_bot
from tests.walks.test_command_line import EXAMPLES, HAIKU

pytestmark = pytest.mark.long

MODEL = ("--model", "openai:x")
OTHER, HERE = "http://127.0.0.1:1/other/v1", "http://127.0.0.1:1/here/v1"
DONE = {"action": "terminate", "to": "", "next_action": "", "result": "Not needed."}


class ModelServer(ThreadingHTTPServer):
    """Refuses every call, until it is told to answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.asked: list[str] = []
        """The models that were asked for."""
        self.decisions: dict[str, str] = {}
        """What it answers."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"])
        content = json.dumps({"content": "It is not needed.", "decisions": self.server.decisions})
        body = json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}).encode()
        self.send_response(200 if self.server.decisions else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def _served() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def chosen() -> Iterator[ModelServer]:
    yield from _served()


@pytest.fixture
def another() -> Iterator[ModelServer]:
    yield from _served()


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    for server in _served():
        monkeypatch.setattr("ripstop.models.api_key.OPENAI", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key-0123456789")
        monkeypatch.delenv("RIPSTOP_BASE_URL", raising=False)
        yield server
        assert server.asked == [], "the provider was asked, which nobody has named"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    shutil.copytree(EXAMPLES / "handoff", folder)
    (folder / "ripstop.toml").write_text("attempts = 1\n")
    return folder


def paused_document(docs: Path, chosen: ModelServer) -> str:
    made = json.loads(succeed("docs", "new", "We need sub(a, b)", "--to", "secretary", "--json", cwd=docs))
    done = ripstop("docs", "watch", "--once", *MODEL, "--base-url", chosen.url, cwd=docs)
    assert done.returncode == 4 and chosen.asked == ["x"], done.stderr
    return str(made["run"])


def settings_of(run: str, folder: Path) -> dict[str, Any]:
    log = [json.loads(line) for line in succeed("log", run, "--json", cwd=folder).splitlines()]
    settings: dict[str, Any] = [one["settings"] for one in log if one.get("settings")][-1]
    return settings


# Documents


@pytest.mark.parametrize("command", ["retry", "resume"])
def test_a_paused_document_is_retried_where_it_was_asked(docs: Path, chosen: ModelServer, command: str) -> None:
    run = paused_document(docs, chosen)
    assert ripstop(command, run, cwd=docs).returncode == 4
    assert chosen.asked == ["x", "x"]
    settings = settings_of(run, docs)
    assert (settings["model"], settings["base_url"]) == ("openai:x", chosen.url)


def test_a_document_is_not_asked_elsewhere_because_a_later_watch_names_no_address(
    docs: Path, chosen: ModelServer
) -> None:
    chosen.decisions = {"action": "pass", "to": "programmer", "next_action": "Write it.", "result": ""}
    succeed("docs", "new", "We need sub(a, b)", "--to", "secretary", cwd=docs)
    succeed("docs", "watch", "--once", "--role", "secretary", *MODEL, "--base-url", chosen.url, cwd=docs)
    chosen.decisions = DONE
    succeed("docs", "watch", "--once", "--model", "openai:y", cwd=docs)
    assert chosen.asked == ["x", "y"]


def test_an_address_that_is_named_for_a_watch_is_used_for_calls_that_wait(
    docs: Path, chosen: ModelServer, another: ModelServer
) -> None:
    run = paused_document(docs, chosen)
    ripstop("docs", "watch", "--once", "--model", "openai:y", "--base-url", another.url, cwd=docs)
    another.decisions = DONE
    assert "terminated" in ripstop("retry", run, cwd=docs).stderr
    assert chosen.asked == ["x"] and another.asked == ["y"]


def test_a_retry_changes_the_model_of_a_document_back_to_that_of_its_folder(docs: Path, chosen: ModelServer) -> None:
    """It was taken for the one that was used, because the journal named the folder's, not that of the watch."""
    script = docs / "replies.jsonl"
    script.write_text(json.dumps({"reply": json.dumps({"content": "No.", "decisions": DONE})}) + "\n")
    with (docs / "ripstop.toml").open("a") as file:
        file.write(f'[models]\ndefault = "script:{script}"\n')
    run = paused_document(docs, chosen)
    done = ripstop("retry", run, "--model", f"script:{script}", cwd=docs)
    assert "terminated" in done.stderr and chosen.asked == ["x"], done.stderr


def test_a_new_document_has_model_and_address_of_who_made_it(docs: Path) -> None:
    made = json.loads(succeed("docs", "new", "Add", "--json", *MODEL, "--base-url", OTHER, cwd=docs))
    settings = settings_of(made["run"], docs)
    assert (settings["model"], settings["base_url"]) == ("openai:x", OTHER)


# Runs of all styles


def test_a_retry_remembers_that_its_address_was_chosen(
    tmp_path: Path, chosen: ModelServer, another: ModelServer
) -> None:
    (tmp_path / "ripstop.toml").write_text("attempts = 1\n")
    done = ripstop("--json", *MODEL, "--base-url", chosen.url, "run", str(HAIKU), cwd=tmp_path)
    run = json.loads(done.stdout)["run"]
    for named in (("--base-url", another.url), ()):
        done = ripstop(*named, "retry", run, cwd=tmp_path)
        assert done.returncode == 4, done.stderr
    assert len(chosen.asked) == 1 and len(another.asked) == 2


@pytest.mark.parametrize(("recorded", "used"), [("", HERE), (OTHER, OTHER)])
def test_a_model_is_changed_together_with_the_address_where_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str, used: str
) -> None:
    monkeypatch.chdir(tmp_path)
    workflow = find(str(HAIKU))

    async def story() -> RunSettings:
        Trust(Settings(models=Models(base_url=recorded))).remember_choice(["openai:x"], recorded)
        async with App(Settings(store="sqlite:j.db", models=Models(base_url=HERE))) as app:
            app.engine.dispatcher = None  # nobody works on it
            old = RunSettings(model="local", base_url=recorded)
            await app.engine.start("run", workflow.style, workflow.content, settings=old)
            await app.use_model("run", "openai:y")
            return (await app.engine.look("run")).run.settings

    changed = asyncio.run(story())
    assert (changed.model_for_all, changed.base_url) == ("openai:y", used)


def test_a_new_plan_is_asked_for_where_the_last_one_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bot = write_bot(tmp_path, decision("Planned."))

    def plans(base_url: str, model: str) -> RunSettings:
        settings = read_settings(tmp_path, {}, store="sqlite:j.db", model=model, base_url=base_url)

        async def story() -> RunSettings:
            async with App(settings, scope=None) as app:
                chats = Chats(app)
                if model:
                    await app.launch(*await first_plan(chats, bot))
                    return RunSettings()
                return (await chats.replan(bot)).settings

        return asyncio.run(story())

    plans(OTHER, "openai:x")
    for here in (HERE, ""):
        again = plans(here, "")
        assert (again.model_for_all, again.base_url) == ("openai:x", OTHER)


async def first_plan(chats: Chats, bot: Path) -> tuple[Workflow, str]:
    known = await chats.bots.get(bot)
    return replace(known.workflow, style="planning"), known.bot.plan_name


def test_what_follows_a_run_has_its_models_and_their_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a project that is restarted. The address alone would get another model's prompts."""
    monkeypatch.chdir(tmp_path)
    workflow = find(str(HAIKU))

    async def story() -> Run[Any]:
        async with App(Settings(store="sqlite:j.db"), scope=None) as app:
            last = RunSettings(model="openai:x", base_url=OTHER)
            return await app.engine.start("r", workflow.style, workflow.content, settings=last)

    run = asyncio.run(story())
    for named in ("", "openai:z"):
        found = with_models_of(Settings(models=Models(default="openai:y", base_url=HERE)), run, named)
        assert (found.models.default, found.model_for_all) == ("openai:x", named)
        assert (found.models.base_url, found.address_from) == (OTHER, "The journal of 'r'")
