"""Every example runs to its end with its script, and leaves the files that its replies deliver."""

import json
import shutil
from pathlib import Path

import pytest

from tests.walks.commands import ripstop
from tests.walks.test_command_line import EXAMPLES

FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/workflow.yaml"))
FILES = {
    "review": {"collab/note.md": "The oven timer starts with the recipe"},
    "haibao": {"collab/haibao.html": "刚出炉的，才叫早晨。"},
}


@pytest.mark.req("S1-1", "S1-2", "S1-46", "S1-86")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_runs_to_its_end_with_its_script(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / folder.name)  # some keep documents beside their definition
    script = f"script:{folder / 'script.jsonl'}"
    done = ripstop("run", folder.name, "--model", script, "--workspace", "ws", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"] == "completed"
    for name, text in FILES.get(folder.name, {}).items():
        assert text in (tmp_path / "ws" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_has_no_mistakes_and_nothing_to_warn_of(folder: Path, tmp_path: Path) -> None:
    done = ripstop("check", str(folder), "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["ok"]
    assert found["problems"] == []


def test_a_saved_run_is_resumed_from_exactly_where_it_ended(tmp_path: Path) -> None:
    folder = EXAMPLES / "review"
    lines = (folder / "script.jsonl").read_text(encoding="utf-8").splitlines()
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    args = ("run", str(folder), "--model", f"script:{script}", "--workspace", "ws", "--json")
    first = json.loads(ripstop(*args, cwd=tmp_path).stdout)
    assert (first["outcome"], first["path"]) == ("failed", ["writer_draft", "reviewer_score", "writer_revise"])
    assert first["ways_on"] == [f"ripstop resume {first['run']}", f"ripstop fork {first['run']}"]
    script.write_text("\n".join([*lines[:2], lines[2], *lines[2:]]) + "\n", encoding="utf-8")
    again = json.loads(ripstop("resume", first["run"], "--json", cwd=tmp_path).stdout)
    assert again["outcome"] == "completed", again
    assert again["path"] == [*first["path"], "writer_revise", "reviewer_score"]
