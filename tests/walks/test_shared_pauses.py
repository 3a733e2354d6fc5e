"""Calls of one provider wait for each other, whichever process makes them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks.commands import ripstop
from tests.walks.test_command_line import HAIKU, SCRIPT


@pytest.mark.req("S3-92")
def test_the_first_call_of_a_process_waits_for_the_last_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "ripstop.toml").write_text("[rate_limits]\nscript = 600\n", encoding="utf-8")
    run = ("run", str(HAIKU), "--model", SCRIPT)
    first = ripstop(*run, "--max-calls", "1", cwd=tmp_path)
    assert first.returncode == 3 and "rate limit" not in first.stdout + first.stderr
    command = [sys.executable, "-m", "ripstop", *run]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second:
        assert second.stdout
        said = next((line for line in second.stdout if "rate limit" in line or "●" in line), "")
        second.kill()
    assert "waits " in said and "for the rate limit of script" in said
