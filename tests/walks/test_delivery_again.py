"""A project is restarted with what it was begun with: its server, its model, the language of its flow."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.walks.delivery import (
    SCRIPT,
    answer_of,
    deliver,
    meta,
    questions,
    ripstop,
    say,
)

pytestmark = pytest.mark.long

MODEL = f"script:{SCRIPT}"
KEY = "sk-not-a-key-0123456789"
ZH = "浏览器里的待办清单"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[Any]:
    """A model server that answers everything with a draft, and remembers who was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            http.asked.append(body["model"])  # type: ignore[attr-defined]
            choice = {"message": {"role": "assistant", "content": "# A draft"}, "finish_reason": "stop", "index": 0}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            data = json.dumps({**answer, "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.asked = []  # type: ignore[attr-defined]
    http.url = f"http://127.0.0.1:{http.server_address[1]}/v1"  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


# The server


def test_a_modify_uses_the_model_and_the_server_of_the_last_run_without_their_being_named(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Path("flow").mkdir()
    Path("flow/pipeline.yaml").write_text(
        "name: quick\nrate_limit: 0\nstages:\n"
        "  - {name: idea, instructions: Write it., draft: artifacts/idea.md}\n"
        "  - {name: text, instructions: Write it., draft: artifacts/text.md, review: true}\n"
    )
    chosen = ("--model", "openai:mine", "--base-url", server.url)
    code, first = answer_of(*chosen, "new", "an essay", "--flow", "flow")
    assert code == 4 and server.asked == ["mine", "mine"], first
    code, second = answer_of("modify", "--from", "text", "shorter", "--yes")
    assert code == 4 and second["run"] != first["run"], second
    assert server.asked == ["mine", "mine", "mine"]
    assert answer_of("--model", MODEL, "modify", "--from", "text", "--yes")[0] != 4, "one that is named now wins"
    assert len(server.asked) == 3
    assert KEY not in ripstop("log", second["run"], "--json").stdout
    assert not any(KEY.encode() in path.read_bytes() for path in Path(".cowork").rglob("*") if path.is_file())


def test_a_server_that_the_user_has_not_agreed_to_is_not_used_because_a_journal_names_it(server: Any) -> None:
    chosen = ("--model", "openai:mine", "--base-url", server.url)
    assert answer_of(*chosen, "new", "an essay")[0] == 4
    asked = len(server.asked)
    assert ripstop("trust", "--revoke").exit_code == 0
    done = ripstop("modify", "--from", "prd", "--yes")
    assert done.exit_code != 4 and len(server.asked) == asked


# The language


def test_an_idea_in_chinese_gets_the_chinese_flow_and_keeps_it(tmp_path: Path) -> None:
    code, result = answer_of("--model", MODEL, "new", ZH)
    assert code == 4 and result["run"].startswith("delivery-zh-")
    assert meta()["flow"] == "shipped:delivery-zh"
    (question,) = questions()
    assert question["question"] == "Review the draft of the stage '需求'."
    say("pass")
    code, result = answer_of("--model", MODEL, "modify", "--from", "prd", "更短", "--yes")
    assert code == 4 and result["run"].startswith("delivery-zh-"), "also when it is restarted"
    assert json.loads(ripstop("--json", "status").stdout)["rail"]["title"] == "delivery-zh"


def test_what_was_chosen_is_said_and_a_named_flow_wins() -> None:
    done = ripstop("--model", MODEL, "new", ZH)
    assert "The idea is in Chinese, so the flow delivery-zh is used; --flow names another." in done.output
    assert done.exit_code == 4


def test_a_flow_that_is_named_wins_over_the_language_of_the_idea() -> None:
    assert ripstop("init", "pipeline", "mine").exit_code == 0
    code, result = answer_of("--model", MODEL, "new", ZH, "--flow", "mine")
    assert code == 4 and result["run"].startswith("delivery-") and not result["run"].startswith("delivery-zh")


def test_an_english_idea_gets_the_english_flow() -> None:
    assert deliver()[0] == 0
    assert meta()["flow"] == ""


def test_a_project_cannot_name_a_flow_that_is_not_shipped() -> None:
    assert answer_of("--model", MODEL, "new", ZH)[0] == 4
    wrong = {**meta(), "flow": "shipped:../../../evil"}
    Path(".cowork/session/meta.json").write_text(json.dumps(wrong))
    done = ripstop("--model", MODEL, "modify", "--from", "prd", "--yes")
    assert done.exit_code == 2 and "There is no shipped flow '../../../evil'" in done.output
