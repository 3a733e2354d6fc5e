"""Which origins tools can reach is the user's choice: settings, environment, command line, and consents by workflow."""

import json
from pathlib import Path

import pytest

from ripstop.app.settings.settings_file import read_settings
from ripstop.kernel.errors import UsageError
from ripstop.kernel.style import EndpointUse, Uses
from ripstop.styles.graph.style import GraphStyle
from ripstop.testing.commands import command
from tests.app.test_trust import WORKFLOW

TABLE = '[http]\nallow = ["http://127.0.0.1:8080", "https://API.shop.example"]\n'
USES = (
    EndpointUse("stock", "https://api.shop.example/stock?q={q}"),
    EndpointUse("order", "https://api.shop.example/orders", {"Authorization": "Bearer ${SHOP_KEY}"}),
    EndpointUse("crm", "http://crm.example:8000/save", {"X-Key": "${CRM_KEY}"}),
    EndpointUse("broken", "/only/a/path"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RIPSTOP_HTTP_ALLOW", raising=False)
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "w.yaml").write_text(WORKFLOW.format(name="w", model=""))
    monkeypatch.chdir(folder)
    return folder


def uses_endpoints(monkeypatch: pytest.MonkeyPatch, endpoints: tuple[EndpointUse, ...]) -> None:
    """Let graphs call endpoints, which only bots do."""
    monkeypatch.setattr(GraphStyle, "uses", lambda self, definition: Uses(endpoints=endpoints))


def test_the_user_allows_origins_in_settings_environment_and_command_line(project: Path, tmp_path: Path) -> None:
    (tmp_path / "config" / "ripstop").mkdir(parents=True)
    (tmp_path / "config" / "ripstop" / "ripstop.toml").write_text(TABLE)
    environment = {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "RIPSTOP_HTTP_ALLOW": "http://10.0.0.1, https://b.example:443,",
    }
    found = read_settings(project, environment, allow=["http://[::1]:9"])
    assert found.http.allow == (
        "http://127.0.0.1:8080", "https://API.shop.example", "http://10.0.0.1", "https://b.example", "http://[::1]:9",
    )  # fmt: skip


def test_a_project_cannot_allow_origins(project: Path) -> None:
    (project / "ripstop.toml").write_text(TABLE)
    with pytest.raises(UsageError, match="a project must not choose which addresses tools can reach"):
        read_settings(project)


@pytest.mark.parametrize(
    "wrong", ["localhost:8080", "http://127.1", "http://a.example/x", "ftp://a.example", "http://u@a"]
)
def test_an_origin_that_is_wrong_is_refused_where_it_is_written(project: Path, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match="--allow"):
        read_settings(project, {}, allow=[wrong])
    with pytest.raises(UsageError, match="RIPSTOP_HTTP_ALLOW"):
        read_settings(project, {"RIPSTOP_HTTP_ALLOW": wrong})
    (tmp_path / "config" / "ripstop").mkdir(parents=True)
    (tmp_path / "config" / "ripstop" / "ripstop.toml").write_text(f'[http]\nallow = ["{wrong}"]\n')
    with pytest.raises(UsageError, match=r"ripstop\.toml:2: `http\.allow`"):
        read_settings(project)


@pytest.mark.parametrize("name", ["run", "resume", "work"])
def test_commands_that_run_tools_take_allow(project: Path, name: str) -> None:
    done = command(name, "--allow", "http://127.1", *(["w.yaml", "--any-name"] if name == "run" else []))
    assert done.code == 2 and "--allow names the host '127.1'" in done.err


def test_trust_shows_every_origin_of_a_workflow_with_its_tools_and_secrets(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses_endpoints(monkeypatch, USES)
    refused = command("trust", "w.yaml")
    assert refused.code == 2 and "Agree on a terminal, or with --yes" in refused.err
    agreed = json.loads(command("trust", "w.yaml", "--yes", "--json").out)["agreed"]
    assert [(one["kind"], one["content"]) for one in agreed] == [
        ("endpoint", "https://api.shop.example SHOP_KEY"),
        ("endpoint", "http://crm.example:8000 CRM_KEY"),
    ]
    assert "There is nothing new to agree to" in command("trust", "w.yaml", "--yes").out
    assert "endpoint  https://api.shop.example SHOP_KEY" in command("trust", "--list").out

    more = (*USES, EndpointUse("refund", "https://api.shop.example/refunds", {"X": "${BANK_KEY}"}))
    uses_endpoints(monkeypatch, more)
    (changed,) = json.loads(command("trust", "w.yaml", "--yes", "--json").out)["agreed"]
    assert changed["content"] == "https://api.shop.example BANK_KEY SHOP_KEY", "another secret needs another consent"
    assert json.loads(command("trust", "--revoke", "--json").out)["revoked"]
    assert json.loads(command("trust", "w.yaml", "--yes", "--json").out)["agreed"]


def test_what_is_said_before_a_consent_names_what_would_be_sent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uses_endpoints(monkeypatch, USES[2:])
    said = command("trust", "w.yaml").err
    assert "http://crm.example:8000" in said and "crm" in said
    assert "secrets CRM_KEY of your environment in clear text" in " ".join(said.split())


def test_an_origin_that_the_user_named_needs_a_consent_only_for_its_secrets(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPSTOP_HTTP_ALLOW", "https://api.shop.example")
    uses_endpoints(monkeypatch, USES[:1])
    assert json.loads(command("trust", "w.yaml", "--yes", "--json").out) == {"agreed": []}
    uses_endpoints(monkeypatch, USES[:2])
    assert len(json.loads(command("trust", "w.yaml", "--yes", "--json").out)["agreed"]) == 1


def test_trust_of_a_file_that_is_not_a_workflow_says_what_is_wrong(project: Path) -> None:
    (project / "notes.txt").write_text("x")
    done = command("trust", "notes.txt")
    assert done.code == 2 and "a workflow must be a mapping" in done.err
