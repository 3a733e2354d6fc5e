"""A document whose model server refuses calls: what its folder says of it."""

import json
from pathlib import Path

import pytest

from tests.walks.commands import ripstop, succeed

NOBODY = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")


@pytest.fixture
def paused(tmp_path: Path) -> Path:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "clerk.md").write_text("You are the clerk.")
    (tmp_path / "ripstop.toml").write_text("attempts = 1\n")
    succeed("docs", "new", "Paper", "--to", "clerk", "--id", "paper", cwd=tmp_path)
    return tmp_path


def test_a_list_of_documents_tells_an_outage(paused: Path) -> None:
    done = ripstop("docs", "watch", "--once", *NOBODY, cwd=paused)
    run = json.loads(succeed("runs", "--json", cwd=paused))[0]["run"]
    assert done.returncode == 4
    assert "A person is asked" not in done.stderr, "it is tried again by itself"
    for said in (done, ripstop("docs", "list", cwd=paused)):
        assert "in_progress (paused)" in said.stdout
        assert "paper is paused: http://127.0.0.1:9/v1 cannot be reached" in said.stderr
        assert "tries again from" in said.stderr and f"ripstop retry {run}" in said.stderr
    (listed,) = json.loads(succeed("docs", "list", "--json", cwd=paused))["documents"]
    assert listed["outage"] == json.loads(succeed("runs", "--json", cwd=paused))[0]["outages"][0]
    succeed("docs", "terminate", "paper", cwd=paused)
    done = ripstop("docs", "list", cwd=paused)
    assert "terminated" in done.stdout and "paused" not in done.stdout + done.stderr
