"""A key goes only to an origin that the user chose; what a project or a journal names needs the user's consent."""

import http.server
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.settings.settings_file import Models, Settings, read_settings
from ripstop.app.trust import NotTrusted, Trust
from ripstop.kernel.errors import UsageError
from ripstop.security.consent import Consent, Consents
from ripstop.testing.commands import command
from tests.harness.own_journal import own_journal

KEY = "sk-0123456789abcdefghij"
WORKFLOW = """\
name: {name}
initial_message: a word
max_turns: 2
agents:
  - {{name: one, type: ask{model}}}
states:
  - name: only
    agent: one
    start: true
    prompt: "{{{{COLLABORATION_GUIDE}}}} Decide: done."
    transitions: [{{to: END}}]
"""
DONE = '{"content": "ok", "decisions": {"done": true}}'


@pytest.fixture
def server() -> Iterator[Any]:
    """A server that speaks OpenAI's protocol and keeps what it was sent."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            listening.seen.append(dict(self.headers))
            body = json.dumps({"choices": [{"message": {"content": DONE}, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    listening: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.seen = []
    listening.url = f"http://127.0.0.1:{listening.server_address[1]}/v1"
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield listening
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that was cloned, with a home that has nothing in it yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("RIPSTOP_BASE_URL", "RIPSTOP_MODEL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "w.yaml").write_text(WORKFLOW.format(name="w", model=', model: "openai:m"'))
    (folder / "plain.yaml").write_text(WORKFLOW.format(name="plain", model=""))
    (folder / "s.jsonl").write_text(json.dumps({"reply": DONE}))
    return folder


def ripstop(*arguments: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ripstop", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def on_a_terminal(folder: Path, answer: bytes, *arguments: str) -> tuple[int, str]:
    """The exit code of a command that asks one question, and what it said."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "ripstop", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=child, stdout=child, stderr=child, close_fds=True)
    os.close(child)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(parent, 1000)
    os.write(parent, answer)
    try:
        while more := os.read(parent, 1000):
            said += more
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    return process.wait(60), re.sub(r"\s+", " ", said.decode())


@pytest.mark.long
def test_an_address_of_a_cloned_project_gets_nothing_without_consent(project: Path, server: Any) -> None:
    (project / "ripstop.toml").write_text(f'[models]\nbase_url = "{server.url}"\n')
    done = ripstop("run", "w.yaml", "--any-name", cwd=project)
    assert done.returncode == 2
    assert server.url in done.stderr and "OPENAI_API_KEY" in done.stderr and "ripstop trust" in done.stderr
    assert server.seen == []
    assert KEY not in done.stderr
    assert json.loads(ripstop("runs", "--json", cwd=project).stdout) == []

    agreed = ripstop("trust", "--yes", cwd=project)
    assert agreed.returncode == 0, agreed.stderr
    assert ripstop("run", "w.yaml", "--any-name", cwd=project).returncode == 0
    assert server.seen[0]["Authorization"] == f"Bearer {KEY}"

    changed = server.url.replace("/v1", "/v2")
    (project / "ripstop.toml").write_text(f'[models]\nbase_url = "{changed}"\n')
    assert ripstop("run", "w.yaml", "--any-name", cwd=project).returncode == 2, "another address needs another consent"


def test_trust_list_tells_consents_from_what_the_project_names(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert command("trust", "--list").out.splitlines() == [
        "You have not agreed to anything yet.",
        "This project names no address and no tools.",
    ]
    (project / "ripstop.toml").write_text('[models]\nbase_url = "http://127.0.0.1:9/v1"\n')
    none, named = command("trust", "--list").out.splitlines()
    assert none == "You have not agreed to anything yet."
    assert "names the address http://127.0.0.1:9/v1, which you have not agreed to" in named
    listed = json.loads(command("trust", "--list", "--json").out)
    assert (listed["agreed"], listed["not_agreed"][0]["content"]) == ([], "http://127.0.0.1:9/v1")
    command("trust", "--yes")
    agreed, named = command("trust", "--list").out.splitlines()
    assert agreed.startswith("agreed  address  http://127.0.0.1:9/v1")
    assert named.endswith("ripstop.toml names http://127.0.0.1:9/v1, which you have agreed to.")


def test_the_command_line_beats_the_model_of_the_definition(project: Path, server: Any) -> None:
    (project / "ripstop.toml").write_text(f'[models]\nbase_url = "{server.url}"\nstrong = "openai:x"\n')
    done = ripstop("run", "w.yaml", "--any-name", "--model", "script:s.jsonl", cwd=project)
    assert done.returncode == 0, done.stderr
    assert server.seen == []


@pytest.mark.long
def test_an_address_in_a_journal_is_checked_again_on_resume(project: Path, server: Any) -> None:
    chosen = ("--base-url", server.url)
    first = ("run", "plain.yaml", "--any-name", "--model", "openai:m", "--max-calls", "1", "--json")
    run = ripstop(*first, *chosen, cwd=project)
    name = json.loads(run.stdout)["run"]
    assert len(server.seen) == 1
    forked = json.loads(ripstop("fork", name, "--at", "2", "--json", cwd=project).stdout)["run"]
    ripstop("trust", "--revoke", cwd=project)  # now it is the journal of somebody else
    assert "journal" in ripstop("resume", forked, cwd=project).stderr
    own_journal(project / ".ripstop" / "journal.db")
    refused = ripstop("resume", forked, cwd=project)
    assert refused.returncode == 2
    assert server.url in refused.stderr and f"ripstop trust {forked}" in refused.stderr
    assert ripstop("resume", "--all", cwd=project).returncode == 2
    assert len(server.seen) == 1
    assert ripstop("resume", forked, "--model", "script:s.jsonl", cwd=project).returncode == 0, "it is not used then"
    again = json.loads(ripstop("fork", name, "--at", "2", "--json", cwd=project).stdout)["run"]
    assert ripstop("resume", again, *chosen, cwd=project).returncode == 0
    assert len(server.seen) == 2


@pytest.mark.long
def test_an_address_that_was_chosen_for_a_run_is_remembered_for_resume(project: Path, server: Any) -> None:
    first = ("run", "plain.yaml", "--any-name", "--model", "openai:m", "--base-url", server.url, "--json")
    name = json.loads(ripstop(*first, cwd=project).stdout)["run"]
    forked = json.loads(ripstop("fork", name, "--at", "2", "--json", cwd=project).stdout)["run"]
    assert ripstop("resume", forked, cwd=project).returncode == 0
    homeless = {"HOME": "", "XDG_STATE_HOME": ""}
    store = ("--store", "sqlite:.ripstop/journal.db")
    assert ripstop(*store, *first, cwd=project, **homeless).returncode == 0, "without a home nothing is remembered"


@pytest.mark.long
def test_a_person_is_asked_on_a_terminal_and_no_is_the_default(project: Path, server: Any) -> None:
    (project / "ripstop.toml").write_text(f'[models]\nbase_url = "{server.url}"\n')

    asking = ("run", "w.yaml", "--any-name")
    code, said = on_a_terminal(project, b"\n", *asking)
    assert code == 2 and server.url in said and "all prompts and the key in OPENAI_API_KEY" in said
    assert server.seen == []
    code, said = on_a_terminal(project, b"y\n", *asking)
    assert code == 0, said
    assert len(server.seen) == 1
    agreed = json.loads(ripstop("trust", "--list", "--json", cwd=project).stdout)["agreed"]
    listed = [one for one in agreed if one["kind"] != "journal"]
    assert listed == [{"kind": "address", "content": server.url, "project": str(project.resolve())}]
    ripstop("trust", "--revoke", cwd=project)
    assert ripstop("run", "w.yaml", "--any-name", cwd=project).returncode == 2


def test_what_the_user_chose_needs_no_consent(project: Path, tmp_path: Path) -> None:
    address = "https://models.example/v1"
    (project / "ripstop.toml").write_text('[models]\nbase_url = "https://elsewhere.example/v1"\n')
    Trust(read_settings(project, {}, base_url=address), project).check(address)
    Trust(read_settings(project, {"RIPSTOP_BASE_URL": address}), project).check(address)
    with pytest.raises(NotTrusted, match="elsewhere"):
        Trust(read_settings(project, {}), project).check("https://elsewhere.example/v1")
    own = tmp_path / "config" / "ripstop"
    own.mkdir(parents=True)
    (own / "ripstop.toml").write_text('concurrency = 7\n[models]\nbase_url = "https://elsewhere.example/v1"\n')
    settings = read_settings(project, {"XDG_CONFIG_HOME": str(tmp_path / "config")})
    assert settings.concurrency == 7
    Trust(settings, project).check("https://elsewhere.example/v1")


def test_a_key_goes_in_clear_text_to_loopback_only(project: Path) -> None:
    local, lan = "http://127.0.0.1:8080/v1", "http://192.168.0.9:8080/v1"
    for address in (local, "http://localhost/v1", "http://[::1]:80/v1", "https://192.168.0.9/v1"):
        trust = Trust(Settings(models=Models(base_url=address)), project)
        trust.check(address)
    trust = Trust(Settings(models=Models(base_url=lan)), project)
    with pytest.raises(NotTrusted, match="clear text") as refused:
        trust.check(lan)
    assert "http://192.168.0.9:8080" not in trust.key_origins
    Trust(Settings(models=Models(base_url=lan)), project, environment={}).check(lan)
    Consents().remember([refused.value.named])
    agreed = Trust(Settings(models=Models(base_url=lan)), project)
    agreed.check(lan)
    assert "http://192.168.0.9:8080" in agreed.key_origins


def test_a_consent_is_for_one_content_in_one_project(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "state")
    here = Consent("address", "https://a.example/v1", "/here")
    consents.remember([here, Consent("command", '["tool"]', "/here")])
    assert consents.cover(here)
    assert not consents.cover(Consent("address", "https://a.example/v1", "/there"))
    assert not consents.cover(Consent("command", "https://a.example/v1", "/here"))
    assert not consents.cover(Consent("command", '["tool","-x"]', "/here"))
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "consents.json").stat().st_mode & 0o777 == 0o600
    consents.revoke([here])
    assert [one.kind for one in consents.all()] == ["command"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 2}', b"\xff", b"[" * 100_000])
def test_a_damaged_store_is_an_error_not_a_consent(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "consents.json").write_bytes(damage)
    (tmp_path / "consents.json").chmod(0o600)
    with pytest.raises(UsageError, match=r"consents.json .*Remove it"):
        Consents(tmp_path).all()


def test_a_store_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    Consents(tmp_path).remember([Consent("address", "https://a.example/v1", "/here")])
    (tmp_path / "consents.json").chmod(0o666)
    with pytest.raises(UsageError, match="other users"):
        Consents(tmp_path).all()


def test_an_entry_whose_hash_is_another_does_not_count(tmp_path: Path) -> None:
    consents = Consents(tmp_path)
    consents.remember([Consent("address", "https://a.example/v1", "/here")])
    path = tmp_path / "consents.json"
    path.write_text(path.read_text().replace("a.example", "evil.example"))
    assert consents.all() == ()


def test_processes_that_agree_at_once_lose_nothing(tmp_path: Path) -> None:
    def agree(number: int) -> None:
        Consents(tmp_path).remember([Consent("address", f"https://a{number}.example", "/here")])

    threads = [threading.Thread(target=agree, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Consents(tmp_path).all()) == 8
