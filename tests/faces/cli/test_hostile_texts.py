"""Hostile texts from every place, through every command: nothing but text, newlines and our own styles gets out."""

import json
import random
import re
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ripstop.text.visible_text import visible
from tests.faces.cli.many_commands import Shown, run_commands

ATTACKS = (
    *("\x1b[8m", "\x1b[45m", "\x1b[5;7m", "\x1b[2J", "\x1b[H", "\x1b[?1049h", "\x1b]0;pwned\x07", "\x1b]8;;x\x1b\\"),
    *(
        "\x1bP1$q\x1b\\",
        "\x1b[6n",
        "\x1bc",
        "\x1b",
        "\x9b8m",
        "\x9d0;x\x9c",
        "\x90q\x9c",
        "\x85",
        "\x00",
        "\x07",
        "\x08",
    ),
    *("\x0b", "\x0c", "\rhidden", "\x0e", "\x7f", "\u202eevil", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"),
    *("\u2028", "\u2029", "\u200b", "\ufeff", "\u00ad", "\u2060", "\U000e0001", "\U000e0068", "\ufe0f\ufe0e"),
    *("\u200d\u200c\u200d", "\n\x1b[1Aripstop: all is well\n", "[bold]", "[/]", "[link=x]y[/link]", ":smile:", "%s"),
    *("{0}", "\\x1b"),
)
WORDS = ("done", "海の夜", "e\u0301", "👨\u200d👩\u200d👧", "مرحبا", "a b", "`x`", '"', "'", "<b>", "&amp;", "")
OUR_STYLES = re.compile(r"\x1b\[(?:0|1|2|3[0-7]|9[0-7]|[12];3[0-7]|[12];9[0-7])?m")
LIVE_LINE = re.compile(r"\x1b\[\?25[lh]|\r?\x1b\[2K|\x1b\[1A|\r\n|\r(?=\x1b)")
"""What rich writes to redraw the live line, and what a terminal makes of a newline."""


def hostile(seed: int) -> Iterator[str]:
    """Texts that try to act on a terminal; a lone surrogate only where `surrogates` are text at all."""
    rng = random.Random(seed)
    while True:
        pieces = [rng.choice(ATTACKS) if rng.random() < 0.6 else rng.choice(WORDS) for _ in range(rng.randint(1, 6))]
        if rng.random() < 0.2:
            pieces.append(chr(rng.choice([*range(0x20), *range(0x7F, 0xA0), *range(0x200B, 0x2010)])))
        yield "".join(pieces)


def assert_harmless(shown: Shown, terminal: bool) -> None:
    text = shown.text.decode()
    if terminal:
        text = LIVE_LINE.sub(lambda found: "\n" if found[0].endswith("\n") else "", OUR_STYLES.sub("", text))
    assert visible(text) == text, (shown.arguments, set(text) - set(visible(text)))
    assert "Traceback" not in text, text
    assert shown.code in range(6), (shown.arguments, shown.code, text[-2000:])


class World:
    """A folder with hostile texts in every file, and the commands that show them."""

    def __init__(self, folder: Path, count: int, seed: int) -> None:
        self.folder = folder
        self._texts: Iterator[str] = islice(hostile(seed), count)
        self.used = 0

    def text(self) -> str:
        """The next text; the first ones again when all were used."""
        found = next(self._texts, None)
        if found is None:
            self._texts = hostile(1)
            return self.text()
        self.used += 1
        return found

    def write(self, name: str, content: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")

    def definition(self) -> str:
        """Hostile in all that a definition has; YAML takes what JSON takes."""
        return f"""\
name: loop
description: {json.dumps(self.text())}
initial_message: {json.dumps(self.text())}
max_turns: 100000
guards: {{ patience: 0 }}
agents:
  - {{ name: "a\\u202enn海", type: coder }}
states:
  - name: "o\\x1b[8mne"
    agent: "a\\u202enn海"
    start: true
    prompt: {json.dumps(self.text() + " {{COLLABORATION_GUIDE}}")}
    transitions:
      - {{ to: END, condition: done }}
      - {{ to: "o\\x1b[8mne", condition: NOT done }}
"""

    def script(self, turns: int) -> str:
        """Replies, tool calls and files with hostile texts, and the last reply that ends the run."""
        lines: list[dict[str, Any]] = []
        for turn in range(turns):
            decisions = {"done": turn == turns - 1, "note": self.text()}
            reply = {"reply": json.dumps({"content": self.text(), "decisions": decisions})}
            if turn % 3 == 1:
                calls = [
                    {"tool": "write_file", "args": {"path": f"f{turn}.txt", "content": self.text()}},
                    {"tool": "read_file", "args": {"path": self.text()}},
                ]
                lines.append({"reply": self.text(), "calls": calls})
            lines.append(reply)
        return "\n".join(map(json.dumps, lines))

    def prepare(self, turns: int) -> None:
        self.write("loop.yaml", self.definition())
        self.write("script.jsonl", self.script(turns))
        self.write("failing.jsonl", json.dumps({"agent": self.text(), "reply": "never"}))
        wrong = self.definition().replace("to: END", f"to: {json.dumps(self.text())}  # \u202e \u2066 \u200b")
        self.write("wrong.yaml", wrong.replace("max_turns: 100000", f"max_turns: {json.dumps(self.text())}"))
        self.write(f"odd\x1b[8m\u202e\n{self.text()[:20].replace('/', '').replace(chr(0), '')}.yaml", "name: [\x1b\n")
        toml = json.dumps(self.text() or "x")
        self.write("settings/ripstop.toml", f"[models]\ndefault = {toml}\n")
        self.write("settings/loop.yaml", self.definition())
        self.write("key/ripstop.toml", f"{toml} = 1\n")
        self.write("script2.jsonl", '{"reply": 1, ' + json.dumps(self.text()) + ": 2}")
        for number in range(3):
            message = f"# {self.text()}\nFrom: {self.text()}\nType: {self.text()}\n\n{self.text()}\n"
            self.write(f".inbox/ann/m{number}.md", message)
        self.write("roles/ann.md", f"{self.text()}\n")


@pytest.fixture
def failing_server() -> Iterator[str]:
    """A model server that refuses every request in hostile words."""
    texts = hostile(7)

    class Refuse(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"error": {"message": next(texts), "type": next(texts)}}).encode()
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuse)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def show_everything(folder: Path, texts: int, turns: int, server: str, terminal: bool, thorough: bool) -> int:
    world = World(folder, texts, seed=3)
    world.prepare(turns)
    titles = [world.text().replace("\x00", "") or "x" for _ in range(4)]
    model = ("--model", "script:script.jsonl")
    making: list[tuple[str, ...]] = [
        ("run", "loop.yaml", *model, "--max-calls", "100000", "--max-seconds", "3600"),
        ("run", "loop.yaml", *model, "--max-calls", "1", "-v"),
        ("run", "loop.yaml", "--model", "script:failing.jsonl"),
        ("run", "loop.yaml", "--model", "script:script2.jsonl"),
        ("run", "loop.yaml", "--model", "openai:m\x1b[8m", "--base-url", server),
        *(("docs", "new", text, "--to", "ann", "--id", f"d{at}", "--until", text) for at, text in enumerate(titles)),
        ("docs", "accept", "d0"),
        ("docs", "pass", "d0", "--to", "bob", "-m", titles[2], "--next", titles[3]),
        ("docs", "new", "x", "--to", "ann\u202e"),
        ("docs", "pass", "d1", "--to", f"b\x1b{titles[1]}"),
    ]
    shown = run_commands(folder, making, terminal)
    assert [one.code for one in shown] == [0, 3, 1, 2, 1, *[0] * 6, 2, 2], shown
    for document in (folder / ".workflows").glob("*.md"):
        text = document.read_text(encoding="utf-8")
        document.write_text(text.replace("pending", f"pend{world.text()}ing"), encoding="utf-8", newline="")
    runs = [info["run"] for info in json.loads(run_commands(folder, [("runs", "--json")], False)[0].text)]
    odd = next(path.name for path in folder.iterdir() if path.name.startswith("odd"))
    looking: list[tuple[str, ...]] = [
        ("runs",), ("desk",), ("verify",), ("docs", "list"), ("docs", "inbox"), ("docs", "show", "d0"),
        ("docs", "show", "d1"), ("check", "loop.yaml"), ("check", "wrong.yaml"), ("check", odd), ("run", "wrong.yaml"),
        ("check", "no\x1b[8m\u202e"), ("--store", "sqlite:\x1b[8m.db", "runs"), ("show", "\u202e\x1b[8m"),
        ("answer", "\x1b[8m/1", "x"), ("cancel", "\x9b"),
        *((command, run) for run in runs[: 9 if thorough else 1] for command in ("show", "log", "why")),
        *(("resume", run) for run in runs[: 3 if thorough else 1]),
        *(("graph", what, "--format", form) for what in ("loop.yaml", runs[0]) for form in ("mermaid", "dot", "svg")),
        ("docs", "inbox", "--handle"), ("docs", "list"),
    ]  # fmt: skip
    as_json = [(*one, "--json") for one in looking]
    shown += run_commands(folder, [*looking, *(as_json if thorough else as_json[::6])], terminal)
    shown += run_commands(folder / "settings", [("run", "loop.yaml"), ("runs",)], terminal)
    shown += run_commands(folder / "key", [("runs",)], terminal)
    database = folder / ".ripstop" / "journal.db"
    with sqlite3.connect(database) as db:  # somebody else's journal can have any text in it
        db.execute("UPDATE runs SET id = ?, style = ? WHERE key = 2", (world.text() or "x", world.text()))
    db.close()
    shown += run_commands(folder, [("runs",), ("verify",), ("runs", "--json"), ("verify", "--json")], terminal)
    for one in shown:
        assert_harmless(one, terminal)
        if "svg" in one.arguments and "--json" not in one.arguments and not terminal:
            ElementTree.fromstring(one.text)
        if one.arguments[-1] == "--json" and one.arguments[0] != "log" and not terminal:
            assert any(_is_json(line) for line in one.text.splitlines()), one
    everything = b"".join(one.text for one in shown).decode()
    for escape in (r"\x1b[8m", r"\u202e", r"\x9b"):
        assert escape in everything, "the texts were shown"
    return world.used


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.mark.long
def test_no_command_lets_control_characters_out(tmp_path: Path, failing_server: str) -> None:
    assert show_everything(tmp_path, 50, 4, failing_server, terminal=True, thorough=False) > 40


@pytest.mark.long
def test_five_hundred_hostile_texts_are_shown_as_text_on_a_terminal(tmp_path: Path, failing_server: str) -> None:
    assert show_everything(tmp_path, 500, 680, failing_server, terminal=True, thorough=True) >= 500


@pytest.mark.soak
@pytest.mark.parametrize("terminal", [False, True], ids=["file", "terminal"])
def test_two_thousand_hostile_texts_are_shown_as_text(tmp_path: Path, failing_server: str, terminal: bool) -> None:
    assert show_everything(tmp_path, 2000, 680, failing_server, terminal, thorough=True) >= 2000
