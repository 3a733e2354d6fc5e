"""With `--json` a program that reads stdout gets one document, whatever goes wrong."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks.commands import ripstop
from tests.walks.test_command_line import HAIKU


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("show nobody --json", "usage", "There is no journal at .ripstop/journal.db yet"),
        ("--json show nobody", "usage", "There is no journal at .ripstop/journal.db yet"),
        ("log nobody --json", "usage", "There is no journal at .ripstop/journal.db yet"),
        ("fork nobody --json", "usage", "There is no journal at .ripstop/journal.db yet"),
        ("verify nobody --json", "usage", "There is no journal at .ripstop/journal.db yet"),
        ("graph nobody --json", "usage", "There is no workflow 'nobody'"),
        ("docs show nobody --json", "usage", "There is no document 'nobody'"),
        ("runs --store where:ever --json", "usage", "--store 'where:ever' is not known"),
        ("run --json", "usage", "Missing argument 'WORKFLOW'"),
        ("run nowhere --max-calls x --json", "usage", "'x' is not a valid integer"),
        ("frobnicate --json", "usage", "No such command 'frobnicate'"),
        ("--json docs", "usage", "needs a command: accept, clean"),
        ("answer nothing pass --json", "usage", "is not RUN/NUMBER"),
        ("run bad --json", "definition", "bad/workflow.yaml"),
        ("runs --store sqlite:bad/workflow.yaml --json", "journal", "workflow.yaml"),
    ],
)
def test_an_error_is_one_document_on_stdout_and_words_on_stderr(
    tmp_path: Path, line: str, kind: str, words: str
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "workflow.yaml").write_text("name: bad\nstates: []\n" * 500)
    done = ripstop(*line.split(), cwd=tmp_path)
    told = json.loads(done.stdout)
    assert set(told) == {"error", "kind", "exit_code"}
    assert words in told["error"]
    assert (told["kind"], told["exit_code"]) == (kind, done.returncode)
    assert done.returncode == (1 if kind == "journal" else 2)
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_without_json_an_error_leaves_stdout_alone(tmp_path: Path) -> None:
    for line in ("show nobody", "frobnicate", "answer x pass -- --json", "answer x/1 pass -- --json"):
        done = ripstop(*line.split(), cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr


def test_a_bug_of_ours_is_a_document_too(tmp_path: Path) -> None:
    code = (
        "import ripstop.app.stores, ripstop.faces.cli.main as main\n"
        "def broken(*_, **__): raise ZeroDivisionError('oops')\n"
        "ripstop.app.stores.open_engine = broken\n"
        "main.cli(['runs', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    told = json.loads(done.stdout)
    assert told == {"error": "ZeroDivisionError: oops", "kind": "internal", "exit_code": 1}
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.long
def test_an_interrupted_run_says_where_it_stands(tmp_path: Path) -> None:
    script = tmp_path / "slow.jsonl"
    script.write_text('{"reply": "never", "delay": 600}\n')
    command = [sys.executable, "-m", "ripstop", "run", str(HAIKU), "--model", f"script:{script}", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / ".ripstop" / "journal.db").exists():
        assert process.poll() is None
    while not json.loads(ripstop("runs", "--json", cwd=tmp_path).stdout):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said, words = process.communicate(timeout=30)
    assert process.returncode == 130, words
    told = json.loads(said)
    assert (told["outcome"], told["turns"]) == ("interrupted", 1)
