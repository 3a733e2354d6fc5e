"""Webhooks in settings files: what is wrong is said with its line, and those of a project need a consent."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.app.settings.settings_file import read_settings
from ripstop.app.settings.tables import Webhook
from ripstop.faces.cli.main import cli
from ripstop.kernel.errors import UsageError
from tests.app.webhooks.receiver import SECRET

HOOK = '[webhooks.crm]\nurl = "https://crm.example.com/hook?a=1"\nsecret = "CRM_SECRET"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CRM_SECRET", SECRET)
    (tmp_path / "config" / "ripstop").mkdir(parents=True)
    return tmp_path


def users(here: Path) -> Path:
    return here / "config" / "ripstop" / "ripstop.toml"


def ripstop(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_webhook_has_a_url_a_secret_and_filters(here: Path) -> None:
    (here / "ripstop.toml").write_text(HOOK + 'workflows = ["shop"]\nkinds = ["message"]\n')
    hook = Webhook("https://crm.example.com/hook?a=1", "CRM_SECRET", ("shop",), ("message",))
    assert read_settings(here).webhooks == {"crm": hook}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HOOK + 'kind = "message"', ":4: `webhooks.crm.kind`: there is no such setting; did you mean 'kinds'?"),
        ('[webhooks.crm]\nurl = "ftp://x"\nsecret = "S"', ":2: `webhooks.crm.url`: the URL"),
        ('[webhooks.crm]\nurl = "https://a:b@x/"\nsecret = "S"', ":2: `webhooks.crm.url`: the URL has a user name"),
        ('[webhooks.crm]\nurl = "https://x"\nsecret = "whsec_a+b="', ":3: `webhooks.crm.secret`: this is not the name"),
        ('[webhooks.crm]\nurl = "https://x"', "missing required field `secret`"),
        ('[webhooks."a b"]\nurl = "https://x"\nsecret = "S"', "the name of a webhook has"),
        ("webhooks = 3", "webhooks"),
        ('[webhooks]\ncrm = "https://x"', "webhooks"),
        ("".join(f'[webhooks.h{n}]\nurl = "https://x"\nsecret = "S"\n' for n in range(21)), "at most 20"),
        ('project_webhooks = ["crm"]', "there is no such setting"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(here: Path, text: str, says: str) -> None:
    (here / "ripstop.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_settings(here)
    assert says in str(refused.value) and "whsec_" not in str(refused.value) and "a:b@" not in str(refused.value)


def test_the_users_own_webhooks_need_no_consent(here: Path) -> None:
    users(here).write_text(HOOK)
    (here / "ripstop.toml").write_text(HOOK)
    assert read_settings(here).project_webhooks == ()
    (here / "ripstop.toml").write_text('[webhooks.crm]\nurl = "https://evil.example"\nsecret = "CRM_SECRET"\n')
    assert read_settings(here).project_webhooks == ("crm",)


def test_a_projects_webhook_is_told_nothing_before_the_user_agrees(here: Path) -> None:
    (here / "ripstop.toml").write_text(HOOK.replace("https", "http"))
    refused = ripstop("work", "--until-idle", "--json")
    assert refused.exit_code == 2
    assert "the webhook 'crm' (http://crm.example.com/hook?a=1)" in json.loads(refused.stdout)["error"]
    assert "in clear text" in json.loads(refused.stdout)["error"]
    assert ripstop("trust", "--list", "--json").stdout.count('"kind": "webhook"') == 1
    assert ripstop("trust", "--yes").exit_code == 0
    done = ripstop("work", "--until-idle")
    assert done.exit_code == 0, done.output
    assert "http://crm.example.com/hook?a=1, which you have agreed to" in ripstop("trust", "--list").stdout
    (here / "ripstop.toml").write_text(HOOK.replace("CRM_SECRET", "OTHER_SECRET"))
    assert ripstop("work", "--until-idle").exit_code == 2


def test_work_says_that_a_secret_is_missing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRM_SECRET")
    users(here).write_text(HOOK)
    done = ripstop("work", "--until-idle")
    assert done.exit_code == 2 and "CRM_SECRET, which is not set" in done.stderr
