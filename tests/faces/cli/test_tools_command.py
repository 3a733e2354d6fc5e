"""`ripstop tools`: what servers have, and what the user lets agents use; and runs that use it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.testing.commands import command
from tests.tools.mcp.served import HARNESS

WORKFLOW = """\
name: shop
initial_message: Say it.
max_turns: 3
agents: [{name: crier, type: ask, tools: ["shop__*"]}]
states:
  - name: cry
    agent: crier
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: done."
    transitions: [{to: END, condition: done}, {to: cry, condition: NOT done}]
"""
SCRIPT = [
    {"calls": [{"tool": "shop__echo", "args": {"text": "hello"}}]},
    {"reply": '{"content": "Said.", "decisions": {"done": true}}'},
]
RUN = ("run", "shop.yaml", "--model", "script:s.jsonl")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that was cloned and names a server, and a home that has nothing in it yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "shop.yaml").write_text(WORKFLOW)
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    (folder / "server.py").write_text((HARNESS / "hostile_mcp.py").read_text())
    (folder / "ripstop.toml").write_text(
        f'[mcp.shop]\ncommand = ["{sys.executable}", "server.py", "garbage", "called"]\ntimeout = 300\n'
    )
    monkeypatch.chdir(folder)
    return folder


def tools_listed() -> dict[str, str]:
    (server,) = json.loads(command("tools", "list", "--json").out)["servers"]
    return {tool["name"]: tool["status"] for tool in server["tools"]}


def test_a_server_is_not_started_without_consent(project: Path) -> None:
    (project / "server.py").write_text("open('STARTED', 'w')")
    assert "which you have not agreed to" in command("tools", "list").out
    assert command("tools", "trust", "shop").code == 2  # nobody can be asked here
    command("check", "shop.yaml")
    listed = json.loads(command("trust", "--list", "--json").out)
    assert [one["kind"] for one in listed["not_agreed"]] == ["server"]
    done = command(*RUN)
    assert done.code != 0 and "names the MCP server shop" in done.err
    assert not (project / "STARTED").exists()


def test_tools_are_offered_once_agreed_to_and_a_run_calls_them(project: Path) -> None:
    assert "there is no tool 'shop__*' here" in command("check", "shop.yaml").out
    agreed = command("tools", "trust", "shop", "--yes")
    assert agreed.code == 0 and "You have agreed to 1 tool of shop." in agreed.out
    assert "shop__echo" in agreed.out and "with all your rights" in agreed.err
    assert "\x1b" not in agreed.out and "\u202e" not in agreed.out
    assert command("check", "shop.yaml", "--strict").code == 0
    assert tools_listed() == {"shop__echo": "pinned"}
    done = command(*RUN)
    assert done.code == 0, done.err
    assert (project / "called").read_text() == "1"
    assert "Nothing has changed" in command("tools", "trust", "shop", "--yes").out


def test_a_changed_tool_is_shown_as_a_difference_and_not_called_before_it_is_agreed_to(project: Path) -> None:
    command("tools", "trust", "shop", "--yes")
    code = (project / "server.py").read_text()
    (project / "server.py").write_text(code.replace("Say it", "Shout it"))
    assert tools_listed() == {"shop__echo": "changed"}
    refused = command(*RUN)
    assert not (project / "called").exists()
    assert "shop__echo has changed since you agreed to it" in refused.err
    shown = command("tools", "trust", "shop", "--yes").out
    assert "-Say it again.[2J" in shown and "+Shout it again.[2J" in shown
    assert command(*RUN).code == 0 and (project / "called").read_text() == "1"


def test_a_server_that_is_gone_still_shows_what_was_agreed_to(project: Path) -> None:
    command("tools", "trust", "shop", "--yes")
    (project / "server.py").unlink()
    listed = command("tools", "list").out
    assert "pinned" in listed and "cannot be used" in listed
    refused = command("tools", "trust", "shop", "--yes")
    assert refused.code == 2 and "'shop' cannot be used" in refused.err


def test_a_server_that_the_settings_do_not_have_is_said(project: Path) -> None:
    refused = command("tools", "trust", "shpo", "--yes")
    assert refused.code == 2 and "There is no MCP server 'shpo' in the settings; there are: shop." in refused.err
    (project / "ripstop.toml").unlink()
    assert "The settings name no MCP server" in command("tools", "list").out


def test_help_and_import_do_not_load_the_sdk() -> None:
    loaded = "import sys, ripstop.app, ripstop.faces.cli.main; print({'mcp', 'jsonschema'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
