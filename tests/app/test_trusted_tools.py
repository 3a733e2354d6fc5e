"""Tools of a project are code: they run only if the user named them or has agreed."""

import json
import sys
from pathlib import Path

import pytest

from ripstop.app.run_sync import run_sync
from ripstop.app.settings.settings_file import read_settings
from ripstop.app.trust import NotTrusted, Trust
from ripstop.kernel.errors import UsageError
from ripstop.testing.commands import command
from ripstop.tools.toolbox import load_tools
from tests.app.test_trust import on_a_terminal, ripstop

WORKFLOW = """\
name: shop
initial_message: Buy ink.
max_turns: 3
agents: [{name: buyer, type: ask, tools: [price]}]
states:
  - name: buy
    agent: buyer
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: bought."
    transitions: [{to: END, condition: bought}]
"""
SCRIPT = [
    {"calls": [{"tool": "price", "args": {"article": "ink"}}]},
    {"reply": '{"content": "Bought.", "decisions": {"bought": true}}'},
]
MODULE = """\
from pathlib import Path

import ripstop

Path("IMPORTED").touch()


@ripstop.tool("pure")
def price(article: str) -> int:
    return 30
"""
RUN = ("run", "shop.yaml", "--model", "script:s.jsonl")
NAMED = '[tools]\nmodules = ["goods.tools"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that was cloned, with a module of tools, and a home that has nothing in it yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "cloned"
    (folder / "goods").mkdir(parents=True)
    (folder / "goods" / "tools.py").write_text(MODULE)
    (folder / "shop.yaml").write_text(WORKFLOW)
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    (folder / "ripstop.toml").write_text(NAMED)
    return folder


def imported(project: Path) -> bool:
    return (project / "IMPORTED").exists()


@pytest.mark.long
def test_tools_of_a_cloned_project_do_not_run_without_consent(project: Path) -> None:
    for arguments in (RUN, ("work", "--until-idle"), ("resume", "--all")):
        refused = ripstop(*arguments, cwd=project)
        assert refused.returncode == 2, refused
        assert "'goods.tools'" in refused.stderr and "ripstop trust" in refused.stderr
    for looking in (("runs",), ("check", "shop.yaml"), ("trust", "--list")):
        ripstop(*looking, cwd=project)
    assert not imported(project)

    agreed = ripstop("trust", "--yes", "--json", cwd=project)
    assert [one["content"] for one in json.loads(agreed.stdout)["agreed"]] == ["goods.tools"]
    done = ripstop(*RUN, cwd=project)
    assert (done.returncode, imported(project)) == (0, True), done.stderr


def test_tools_that_the_user_names_for_a_command_need_no_consent(project: Path) -> None:
    done = ripstop(*RUN, "--tools", "goods.tools", cwd=project)
    assert done.returncode == 0, done.stderr
    (project / "ripstop.toml").write_text('[tools]\nmodules = ["goods.tools", "goods.more"]\n')
    (project / "goods" / "more.py").write_text(MODULE.replace("IMPORTED", "MORE"))
    refused = ripstop(*RUN, "--tools", "goods.tools", cwd=project)
    assert refused.returncode == 2 and "'goods.more'" in refused.stderr and not (project / "MORE").exists()


@pytest.mark.long
def test_a_person_is_asked_about_tools_on_a_terminal(project: Path) -> None:
    code, said = on_a_terminal(project, b"\n", *RUN)
    assert (code, imported(project)) == (2, False) and "goods.tools" in said and "all your rights" in said
    code, said = on_a_terminal(project, b"y\n", *RUN)
    assert (code, imported(project)) == (0, True), said


def test_trust_lists_and_revokes_tools(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    listed = json.loads(command("trust", "--list", "--json").out)
    assert listed["not_agreed"] == [{"kind": "tools", "content": "goods.tools", "project": str(project.resolve())}]
    command("trust", "--yes")
    agreed, named = command("trust", "--list").out.splitlines()
    assert agreed.startswith("agreed  tools  goods.tools")
    assert named.endswith("ripstop.toml names goods.tools, which you have agreed to.")
    Trust(read_settings(project), project).check_tools()
    command("trust", "--revoke")
    with pytest.raises(NotTrusted, match=r"goods\.tools"):
        Trust(read_settings(project), project).check_tools()


def test_a_consent_to_tools_is_for_one_module_in_one_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    command("trust", "--yes")
    with pytest.raises(NotTrusted, match=r"goods\.tools"):
        Trust(read_settings(project), project.parent).check_tools()
    (project / "ripstop.toml").write_text('[tools]\nmodules = ["goods.tools", "other"]\n')
    with pytest.raises(NotTrusted, match="'other'"):
        Trust(read_settings(project), project).check_tools()


def test_tools_of_the_users_own_settings_are_not_taken_from_the_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "config" / "ripstop"
    own.mkdir(parents=True)
    (own / "ripstop.toml").write_text(NAMED)
    for text in ("", NAMED):  # a project that names the same module does not bring it either
        (project / "ripstop.toml").write_text(text)
        settings = read_settings(project)
        assert (settings.tools.modules, settings.tools_from) == (("goods.tools",), "")
        Trust(settings, project).check_tools()
    monkeypatch.chdir(project)
    with pytest.raises(UsageError, match=r"There is no module 'goods\.tools'"):
        load_tools(installed=settings.tools.modules)
    assert not imported(project)


@pytest.mark.parametrize("name", ["", "..goods", "goods/tools", "goods tools", "a..b", "x;y"])
def test_a_module_must_have_a_name_of_a_module(project: Path, name: str) -> None:
    (project / "ripstop.toml").write_text(f"[tools]\nmodules = [{json.dumps(name)}]\n")
    with pytest.raises(UsageError, match=r"ripstop\.toml:2: `tools.modules`: .* is not the name of a Python module"):
        read_settings(project)


def test_a_file_cannot_claim_that_the_user_chose_its_tools(project: Path) -> None:
    (project / "ripstop.toml").write_text(f'tools_from = ""\n{NAMED}')
    with pytest.raises(UsageError, match="no such setting"):
        read_settings(project)


@pytest.mark.parametrize("ending", ["raise SystemExit(0)", "raise RuntimeError('no')", "import nowhere_at_all"])
def test_a_module_that_cannot_be_imported_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"broken_{abs(hash(ending))}"
    (tmp_path / f"{name}.py").write_text(ending)
    with pytest.raises(UsageError, match="cannot be imported"):
        load_tools([name])


def test_an_app_loads_the_tools_that_its_settings_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    with pytest.raises(NotTrusted, match="which you have not agreed to"):
        run_sync("shop.yaml", model="script:s.jsonl")
    assert not (project / "IMPORTED").exists() and not (project / ".ripstop").exists()
    assert ripstop("trust", "--yes", cwd=project).returncode == 0
    monkeypatch.setattr(sys, "modules", dict(sys.modules))  # the module is forgotten with the folder
    assert run_sync("shop.yaml", model="script:s.jsonl").status == "completed"


@pytest.mark.long
def test_documents_are_watched_with_the_tools_that_the_settings_name(project: Path) -> None:
    (project / "roles").mkdir()
    (project / "roles" / "ann.md").write_text("You are ann.")
    watch = ("docs", "watch", "--once", "--model", "script:s.jsonl")
    refused = ripstop(*watch, cwd=project)
    assert refused.returncode == 2 and "names the Python module 'goods.tools'" in refused.stderr
    assert ripstop("docs", "new", "Buy ink", "--to", "bob", cwd=project).returncode == 0
    assert ripstop("docs", "list", cwd=project).returncode == 0
    assert not (project / "IMPORTED").exists()
    assert ripstop(*watch, "--tools", "goods.tools", cwd=project).returncode == 0
    assert (project / "IMPORTED").exists()
