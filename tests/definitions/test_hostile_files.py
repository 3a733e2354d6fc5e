"""Files that are none: they are named as what they are, and nobody waits for them."""

import os
from pathlib import Path

import pytest

from ripstop.definitions.checking import check_graph
from ripstop.definitions.loading import find, find_all
from ripstop.definitions.problems import WrongDefinition
from ripstop.kernel.errors import DefinitionError
from ripstop.performers.agents.script_file import read_script


@pytest.mark.parametrize("named", ["flow", "flow/workflow.yaml"])
def test_a_pipe_is_no_workflow_and_does_not_hang(tmp_path: Path, named: str) -> None:
    (tmp_path / "flow").mkdir()
    os.mkfifo(tmp_path / "flow" / "workflow.yaml")
    with pytest.raises(WrongDefinition, match="it is a pipe, not a file"):
        find(named, beside=tmp_path)
    (path,) = find_all(named, beside=tmp_path)
    (problem,) = check_graph(path)
    assert "it is a pipe, not a file" in problem.text


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_no_workflow(device: str) -> None:
    with pytest.raises(WrongDefinition, match="it is a device, not a file"):
        find(device)


def test_a_huge_workflow_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "workflow.yaml").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(WrongDefinition, match="it has 1000000000000 bytes; at most 500000 are read"):
        find("workflow.yaml", beside=tmp_path)


def test_a_pipe_is_no_script_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.jsonl")
    with pytest.raises(DefinitionError, match="cannot be read: it is a pipe, not a file"):
        read_script(tmp_path / "s.jsonl")
