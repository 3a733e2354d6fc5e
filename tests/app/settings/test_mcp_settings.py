"""`[mcp.NAME]` in the settings, and the consent that a project's server needs."""

from pathlib import Path

import pytest

from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.app.settings.tables import McpServer, McpTool
from ripstop.app.toolbox import server_tools, spec_of
from ripstop.app.trust import Trust
from ripstop.engine.performers import Kind
from ripstop.faces.next_steps import in_commands
from ripstop.kernel.errors import UsageError
from ripstop.security.consent import Consents

GIT = """\
[mcp.git]
command = ["mcp-server-git", "--quiet"]
env = ["GIT_TOKEN"]
hints = true
timeout = 5

[mcp.git.tools.git_commit]
kind = "keyed"
approve = true
"""


def read(folder: Path, project: str = "", users: str = "") -> Settings:
    (folder / "config" / "ripstop").mkdir(parents=True, exist_ok=True)
    (folder / "project").mkdir(exist_ok=True)
    (folder / "config" / "ripstop" / "ripstop.toml").write_text(users)
    (folder / "project" / "ripstop.toml").write_text(project)
    return read_settings(folder / "project", {"XDG_CONFIG_HOME": str(folder / "config")})


def trust(folder: Path, settings: Settings) -> Trust:
    return Trust(settings, folder / "project", Consents(folder / "state"))


def test_a_server_is_read_with_what_it_says_about_its_tools(tmp_path: Path) -> None:
    settings = read(tmp_path, users=GIT)
    server = settings.mcp["git"]
    assert server.command == ("mcp-server-git", "--quiet") and server.tools["git_commit"] == McpTool("keyed", True)
    assert settings.project_servers == ()
    spec = spec_of(settings, trust(tmp_path, settings), "git")
    assert (spec.timeout, spec.hints, spec.project, spec.rules["git_commit"].kind) == (5, True, "", Kind.KEYED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mcp.git]\n", r"ripstop.toml:1: `mcp.git`: a server has either a `command`"),
        ('[mcp.git]\ncommand = ["x"]\nurl = "https://a.example"', "either a `command`"),
        ('[mcp.a__b]\ncommand = ["x"]', "a server's name has at most 32 letters"),
        ('[mcp."a.b"]\ncommand = ["x"]', "a server's name has at most 32 letters"),
        (f'[mcp.{"x" * 33}]\ncommand = ["x"]', "a server's name has at most 32 letters"),
        ('[mcp.git]\ncommand = "git"', "expected `array`, got `str`"),
        ('[mcp.git]\ncommand = [""]', "a program and its arguments"),
        ('[mcp.git]\ncommand = ["x"]\nenv = ["TOKEN=secret"]', r":3: `mcp.git.env`: 'TOKEN' is not the name"),
        ('[mcp.git]\nurl = "https://a.example"\nenv = ["TOKEN"]', "one at a `url` gets none"),
        ('[mcp.git]\nurl = "ftp://a.example"', "is not the address of a server"),
        ('[mcp.git]\nurl = "https://ann:pw@a.example"', "has a user name or password in it"),
        ('[mcp.git]\ncomand = ["x"]', "there is no such setting; did you mean 'command'"),
        ('[mcp.git]\ncommand = ["x"]\n[mcp.git.tools.a]\nkind = "safe"', "invalid enum value 'safe'"),
        ('[mcp.git]\ncommand = ["x"]\n[mcp.git.tools.a]\naprove = true', "did you mean 'approve'"),
    ],
)
def test_a_server_that_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        read(tmp_path, project=text)
    assert "secret" not in str(refused.value) and "pw" not in str(refused.value)


def test_a_projects_server_needs_a_consent_to_its_whole_table(tmp_path: Path) -> None:
    settings = read(tmp_path, project=GIT)
    (refusal,) = trust(tmp_path, settings).unagreed_servers().values()
    for part in ('"mcp-server-git","--quiet"', "GIT_TOKEN", '"approve":true', "with all your rights and get GIT_TOKEN"):
        assert part in str(refusal)
    Consents(tmp_path / "state").remember([refusal.named])
    assert trust(tmp_path, settings).unagreed_servers() == {}
    for change in (GIT.replace("true", "false"), GIT.replace("--quiet", "--loud"), GIT.replace("[mcp.git", "[mcp.got")):
        assert trust(tmp_path, read(tmp_path, project=change)).unagreed_servers()
    assert Trust(settings, tmp_path, Consents(tmp_path / "state")).unagreed_servers()  # another project


def test_the_users_own_server_needs_none_and_a_project_that_changes_it_does(tmp_path: Path) -> None:
    same = read(tmp_path, project=GIT, users=GIT)
    assert same.project_servers == () and not trust(tmp_path, same).unagreed_servers()
    changed = read(tmp_path, project='[mcp.git]\ncommand = ["evil"]\n', users=GIT)
    assert changed.mcp["git"] == McpServer(command=("evil",))  # as a whole: no variable of the user's table is in it
    assert list(trust(tmp_path, changed).unagreed_servers()) == ["git"]


def test_tools_of_a_server_without_consent_are_not_offered_and_it_is_said(tmp_path: Path) -> None:
    settings = read(tmp_path, project=GIT)
    tools = server_tools(settings, trust(tmp_path, settings))
    assert tools is not None and tools.names == () and not tools.handles("git__git_status")
    assert "ripstop tools trust git" in in_commands(tools.why_missing("git__*"))
    assert server_tools(Settings(), trust(tmp_path, Settings())) is None


def test_a_private_address_is_for_the_users_own_server_or_an_allowed_origin(tmp_path: Path) -> None:
    local = '[mcp.a]\nurl = "http://127.0.0.1:9/mcp"\n'
    for project, users, allowed in (
        (local, "", False),
        ("", local, True),
        (local, '[http]\nallow = ["http://127.0.0.1:9"]\n', True),
    ):
        settings = read(tmp_path, project=project, users=users)
        assert spec_of(settings, trust(tmp_path, settings), "a").allow_private is allowed
