"""Files that are none: they are named as what they are, and nobody waits for them."""

import os
from pathlib import Path

import pytest

from ripstop.definitions.loading import find, find_all
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.kernel.errors import DefinitionError
from ripstop.models.scripted import read_script
from ripstop.styles.graph.reader import READER


@pytest.mark.parametrize("named", ["flow", "flow/workflow.yaml"])
def test_a_pipe_is_no_workflow_and_does_not_hang(tmp_path: Path, named: str) -> None:
    (tmp_path / "flow").mkdir()
    os.mkfifo(tmp_path / "flow" / "workflow.yaml")
    with pytest.raises(WrongDefinition, match="it is a pipe, not a file"):
        find([READER], named, beside=tmp_path)
    (found,) = find_all([READER], named, beside=tmp_path)
    (problem,) = found.reader.check(found.path, Environment())
    assert "it is a pipe, not a file" in problem.text


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_no_workflow(device: str) -> None:
    with pytest.raises(WrongDefinition, match="it is a device, not a file"):
        find([READER], device)


def test_a_huge_workflow_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "workflow.yaml").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(WrongDefinition, match="it has 1000000000000 bytes; at most 500000 are read"):
        find([READER], "workflow.yaml", beside=tmp_path)


def test_a_pipe_is_no_script_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.jsonl")
    with pytest.raises(DefinitionError, match="cannot be read: it is a pipe, not a file"):
        read_script(tmp_path / "s.jsonl")
