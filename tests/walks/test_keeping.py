"""Care of a journal from the command line: copies of it, and runs that are removed from it."""

import json
from pathlib import Path

import pytest

from tests.walks.commands import a_run, ripstop, succeed
from tests.walks.test_work import begun

pytestmark = pytest.mark.long


def test_a_copy_of_a_journal_that_is_worked_on_is_sound(tmp_path: Path) -> None:
    with begun(tmp_path) as (run, _):
        told = succeed("backup", "copy.db", cwd=tmp_path)
    assert told == "copy.db holds 1 run. Check it:  ripstop --store sqlite:copy.db verify\n"
    assert succeed("--store", "sqlite:copy.db", "verify", cwd=tmp_path).startswith("Sound: 1 run,")
    assert json.loads(succeed("--store", "sqlite:copy.db", "show", run, "--json", cwd=tmp_path))["path"] == [
        "write",
        "judge",
    ]
    again = ripstop("backup", "copy.db", cwd=tmp_path)
    assert again.returncode in (1, 2) and "copy.db" in again.stderr and "Traceback" not in again.stderr


def test_a_run_is_forgotten_and_the_journal_stays_sound(tmp_path: Path) -> None:
    first, second = a_run(tmp_path)["run"], a_run(tmp_path)["run"]
    assert succeed("forget", first, "--dry-run", cwd=tmp_path) == f"{first}\nWould forget 1 run.\n"
    assert succeed("forget", first, cwd=tmp_path) == "Forgot 1 run.\n"
    assert [row["run"] for row in json.loads(succeed("runs", "--json", cwd=tmp_path))] == [second]
    assert succeed("verify", cwd=tmp_path).startswith("Sound: 1 run,")
    gone = ripstop("show", first, cwd=tmp_path)
    assert gone.returncode == 2
    assert f"Run '{first}' was forgotten on " in gone.stderr and "`ripstop runs` lists the runs" in gone.stderr
    assert ripstop("forget", first, cwd=tmp_path).returncode == 2
    assert json.loads(succeed("forget", "--older", "30d", "--json", cwd=tmp_path))["forgotten"] == []
    found = json.loads(succeed("forget", "--older", "0s", "--dry-run", "--json", cwd=tmp_path))
    assert found == {"forgotten": [second], "kept": {}, "dry_run": True}
    assert succeed("forget", "--older", "0s", cwd=tmp_path) == "Forgot 1 run.\n"


def test_a_run_that_others_need_is_not_forgotten(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    fork = json.loads(succeed("fork", run, "--at", "5", "--json", cwd=tmp_path))["run"]
    for name in (run, fork):  # its records are shared; and it has not ended
        done = ripstop("forget", name, cwd=tmp_path)
        assert done.returncode == 2 and name in done.stderr, done.stderr
    told = json.loads(succeed("forget", "--older", "0s", "--json", cwd=tmp_path))
    assert (told["forgotten"], [*told["kept"]]) == ([], [run])


@pytest.mark.parametrize("args", [(), ("run-1", "--older", "30d"), ("--older", "soon")])
def test_what_to_forget_is_said_in_one_way(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = ripstop("forget", *args, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
