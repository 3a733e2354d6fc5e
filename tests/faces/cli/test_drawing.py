"""What `ripstop graph` can be given."""

import json
from pathlib import Path

import pytest

from ripstop.testing.commands import command


def test_a_document_is_drawn_by_its_id_as_it_is_by_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = json.loads(command("docs", "new", "Write a poem", "--to", "poet", "--id", "poem", "--json").out)["run"]
    drawn, by_run = command("graph", "poem"), command("graph", run)
    assert (drawn.code, by_run.code) == (0, 0), drawn.err
    assert drawn.out == by_run.out and "poet" in drawn.out
    unknown = command("graph", "poen")
    assert unknown.code == 2 and "Nor is there a run 'poen'" in unknown.err
