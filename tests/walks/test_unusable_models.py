"""A model that cannot be used is refused before a run starts: exit code 2, no run, no call."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ripstop
from ripstop.app.application import App
from ripstop.app.start import check_model
from ripstop.faces.cli.main import cli
from ripstop.kernel.errors import UsageError
from ripstop.models.model_files import RUNNER, missing_parts

WORKFLOW = """\
name: brief
initial_message: a word
max_turns: 2
agents:
  - {name: one, type: ask%s}
states:
  - name: say
    agent: one
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Decide: done."
    transitions: [{to: END, condition: done}, {to: say, condition: NOT done}]
exit_conditions: [{condition: turns >= 1, action: save_and_end}]
"""
NOT_DONE = json.dumps({"reply": '{"content": "no", "decisions": {"done": false}}'})
SCRIPTS = [
    ("not json", "not JSON"),
    ('{"agnet": "one", "reply": "x"}', "unknown key 'agnet'"),
    ("\n\n", "the script is empty"),
    ('{"reply": "x"}\n{"error": "tired"}', "bad.jsonl:2: `error` is 'tired'"),
]


def ripstop_command(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "brief.yaml").write_text(WORKFLOW % "")
    (tmp_path / "good.jsonl").write_text(f"{NOT_DONE}\n" * 3)
    monkeypatch.chdir(tmp_path)


def refused(*args: str) -> str:
    done = ripstop_command(*args)
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.mark.parametrize(("content", "said"), SCRIPTS)
def test_a_wrong_script_starts_no_run(content: str, said: str) -> None:
    Path("bad.jsonl").write_text(content)
    assert said in refused("run", "brief.yaml", "--any-name", "--model", "script:bad.jsonl")
    assert "No runs yet" in ripstop_command("runs").stdout


def test_a_script_folder_without_replies_starts_no_run() -> None:
    Path("recorded").mkdir()
    assert "has no replies" in refused("run", "brief.yaml", "--any-name", "--model", "script:recorded")
    assert "No runs yet" in ripstop_command("runs").stdout


def test_a_script_that_was_mended_is_read_again() -> None:
    Path("bad.jsonl").write_text("{")
    with pytest.raises(UsageError):
        check_model("script:bad.jsonl")
    Path("bad.jsonl").write_text(NOT_DONE)
    check_model("script:bad.jsonl")
    Path("bad.jsonl").write_text("{")
    with pytest.raises(UsageError):
        check_model("script:bad.jsonl")


def test_a_script_in_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ripstop_command("run", "brief.yaml", "--any-name", "--model", "script:~/good.jsonl").exit_code == 3
    assert "no script" in refused("run", "brief.yaml", "--any-name", "--model", "script:~nobody-here/x.jsonl")


@pytest.mark.skipif(RUNNER in missing_parts("x.gguf"), reason="needs the runner of local models")
def test_a_model_file_that_is_missing_or_not_a_model_starts_no_run() -> None:
    Path("text.gguf").write_text("hello")
    run = ("run", "brief.yaml", "--any-name", "--model")
    assert "There is no model file" in refused(*run, "local:nope.gguf")
    assert "is not a GGUF model file" in refused(*run, "local:text.gguf")
    assert "is not a GGUF model file" in refused(*run, "local:.")
    assert "No runs yet" in ripstop_command("runs").stdout


def test_openai_without_a_key_is_refused_only_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused("run", "brief.yaml", "--any-name", "--model", "openai:m")
    assert "OPENAI_API_KEY is not set" in said
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        check_model("openai:m", base_url="https://api.openai.com/v1/")
    check_model("openai:m", base_url="http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        check_model("openai:m")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-01234\n56789")
    for address in ("", "http://127.0.0.1:9/v1"):  # it could be sent to neither
        with pytest.raises(UsageError, match="a line break") as refused_key:
            check_model("openai:m", base_url=address)
        assert "56789" not in str(refused_key.value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    check_model("openai:m")
    assert "No runs yet" in ripstop_command("runs").stdout


def test_a_provider_without_its_key_names_the_variable_and_nothing_else() -> None:
    pytest.importorskip("groq")
    said = refused("run", "brief.yaml", "--any-name", "--model", "groq:m")
    assert " ".join(said.split()).endswith("The model 'groq:m' cannot be used: set GROQ_API_KEY in the environment.")
    assert "No runs yet" in ripstop_command("runs").stdout


def test_a_blank_key_of_a_provider_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("groq")
    monkeypatch.setenv("GROQ_API_KEY", "  ")
    with pytest.raises(UsageError, match="The key in GROQ_API_KEY is blank"):
        check_model("groq:m")


def test_the_model_of_an_agent_is_checked_and_its_place_named() -> None:
    Path("own.yaml").write_text(WORKFLOW % ', model: "script:nowhere.jsonl"')
    said = refused("run", "own.yaml", "--any-name")
    assert "own.yaml: the model of 'one': There is no script 'nowhere.jsonl'" in " ".join(said.split())
    assert "No runs yet" in ripstop_command("runs").stdout


def test_a_strong_model_that_no_agent_uses_needs_no_key() -> None:
    Path("ripstop.toml").write_text('[models]\ndefault = "script:good.jsonl"\nstrong = "openai:m"\n')
    assert ripstop_command("run", "brief.yaml", "--any-name").exit_code == 3


def test_resume_refuses_an_unusable_model_and_records_nothing() -> None:
    started = ripstop_command("run", "brief.yaml", "--any-name", "--model", "script:good.jsonl", "--json")
    run = json.loads(started.stdout)["run"]
    before = ripstop_command("log", run, "--json").stdout
    Path("bad.jsonl").write_text("{")
    assert "not JSON" in refused("resume", run, "--model", "script:bad.jsonl")
    assert "OPENAI_API_KEY is not set" in refused("resume", run, "--model", "openai:m")
    Path("good.jsonl").unlink()
    assert "There is no script" in refused("resume", run)
    assert ripstop_command("log", run, "--json").stdout == before


def test_watch_refuses_an_unusable_model_of_a_role() -> None:
    Path("roles").mkdir()
    Path("roles/writer.md").write_text("Write.")
    assert "OPENAI_API_KEY is not set" in refused("docs", "watch", "--once", "--model", "openai:m")


def test_python_users_get_the_same_refusal() -> None:
    async def start() -> None:
        async with App(ripstop.read_settings(".", model="openai:m")) as app:
            await app.start(ripstop.find("brief.yaml", any_name=True))

    with pytest.raises(ripstop.UsageError, match="OPENAI_API_KEY is not set"):
        asyncio.run(start())


def test_all_public_names_are_listed() -> None:
    assert {*ripstop.__all__} <= {*dir(ripstop)}
