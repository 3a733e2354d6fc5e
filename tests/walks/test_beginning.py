"""The first steps with a style: an example of it, checked and run; and tools of one's own."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ripstop.faces.cli.main import cli
from tests.walks.test_command_line import ripstop, succeed

SHOP = """\
from ripstop import tool

@tool("pure")
def price(article: str) -> int:
    \"\"\"The price of an article.\"\"\"
    return 30
"""
ORDER = """\
name: order
initial_message: ink
agents: [{name: ada, type: coder, tools: [price]}]
states:
  - {name: buy, agent: ada, prompt: "{{COLLABORATION_GUIDE}} Buy {{initial_message}}.", transitions: [{to: END}]}
"""


@pytest.mark.parametrize("style", ["graph", "handoff"])
def test_the_example_of_a_style_is_sound_and_runs(tmp_path: Path, style: str) -> None:
    made = json.loads(succeed("init", style, "workflows/first", "--json", cwd=tmp_path))
    assert all((tmp_path / file).is_file() for file in made["files"])
    assert json.loads(succeed("check", "workflows/first", "--strict", "--json", cwd=tmp_path))["problems"] == []
    script = "script:workflows/first/script.jsonl"
    done = ripstop("run", "first", "--input", "the sea", "--model", script, "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["style"]) == (0, style), done.stderr
    again = ripstop("init", style, "workflows/first", cwd=tmp_path)
    assert again.returncode == 2 and "Traceback" not in again.stderr, "nothing is overwritten"
    assert ripstop("init", "ballet", "x", cwd=tmp_path).returncode == 2


def test_an_agent_calls_a_tool_of_a_module_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "order.yaml").write_text(ORDER, encoding="utf-8")
    lines = [
        {"calls": [{"tool": "price", "args": {"article": "ink"}}]},
        {"reply": '{"content": "ok", "decisions": {}}'},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    args = ("run", "order.yaml", "--model", "script:s.jsonl", "--json")
    done = ripstop("--tools", "shop", *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    log = succeed("log", json.loads(done.stdout)["run"], "--json", cwd=tmp_path)
    values = [json.loads(line).get("answer", {}).get("value") for line in log.splitlines()]
    assert 30 in values
    without = ripstop(*args, cwd=tmp_path)
    assert "does not have the tool 'price'" in without.stderr


@pytest.mark.parametrize(
    ("content", "said"), [(None, "shop"), ("x = 1\n", "shop"), ("raise OSError('no')\n", "shop"), ("def (\n", "shop")]
)
def test_a_module_that_brings_no_tools_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "shop.py").write_text(content, encoding="utf-8")
    done = ripstop("--tools", "shop", "work", "--until-idle", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and "bug in ripstop" not in done.stderr


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*names, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))


@pytest.mark.parametrize("names", [*commands(cli)], ids=" ".join)
def test_the_help_of_a_command_has_an_example(names: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(cli, [*names, "--help"]).output
    assert f"ripstop {' '.join(names)}" in shown.partition("Example")[2], shown


@pytest.mark.parametrize("name", ["run", "resume", "show", "work", "docs", "board"])
def test_the_help_of_a_command_names_the_options_that_all_commands_share(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"]).output
    (line,) = (line for line in shown.splitlines() if "--store" in line and "--model" in line)
    shared = line.strip().split(", ")
    assert "`ripstop --help`" in shown
    whole = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"{option} " in whole or f"{option}," in whole for option in shared), whole
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and {*shared} <= {option for one in command.params for option in one.opts}
