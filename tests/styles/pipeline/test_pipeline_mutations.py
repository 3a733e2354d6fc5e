"""Spoilt pipelines and flows are read or refused, and nothing else ever happens."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.styles.pipeline.parsing import default_flow
from ripstop.styles.pipeline.reader import READER
from tests.harness.mutate import TOKENS, spoilt
from tests.styles.pipeline.pipeline_definitions import RIGHT, flow
from tests.styles.pipeline.test_json_flows import POEM, PRD, chain

ENVIRONMENT = Environment(tools=("read_file",), about_workflow=lambda name: "", cycle_through=lambda name: ())
JSON_TOKENS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b'"..":',
    b"\\u0000",
    b"\xff",
)


def try_one(path: Path) -> bool:
    """Whether a file is right; what is wrong with it has a place, and a definition that is read can be pinned."""
    problems = READER.check(path, ENVIRONMENT)
    for problem in problems:
        assert problem.place.line >= 1 and problem.place.column >= 1 and problem.text, problem
        str(problem).encode()
    try:
        _, content = READER.read(path, Environment())
    except WrongDefinition as error:
        assert error.problems
        return False
    assert content and not any(problem.severity == "error" for problem in problems)
    return True


def spoil(path: Path, samples: list[str], tokens: tuple[bytes, ...], count: int, read: Callable[[Path], bool]) -> None:
    right = 0
    for data in spoilt(count, len(samples), samples, tokens):
        path.write_bytes(data)
        right += read(path)
    assert 0 < right < count, "the files are neither all wrong nor all right"


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.long)])
def test_a_spoilt_pipeline_is_read_or_refused(tmp_path: Path, count: int) -> None:
    samples = [RIGHT, RIGHT.replace("Write a recipe.", "&a |\n      Write.\n")]
    if count > 100:
        samples.append(default_flow().read_text(encoding="utf-8"))
    spoil(tmp_path / "pipeline.yaml", samples, TOKENS, count, try_one)


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.long)])
def test_a_spoilt_flow_is_read_or_refused(tmp_path: Path, count: int) -> None:
    path = flow(tmp_path, chain("idea", "prd", "poem"), {"prd": PRD, "poem": POEM}, config={"memory_scope": "x"})
    right = path.read_text(encoding="utf-8")
    spoil(path, [right, right.replace("null", '{"needs_confirmation": true}')], JSON_TOKENS, count, try_one)


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.long)])
def test_a_spoilt_stage_spoils_its_flow_at_most(tmp_path: Path, count: int) -> None:
    path = flow(tmp_path, chain("idea", "prd", "poem"), {"prd": PRD, "poem": POEM})
    stage = tmp_path / "stages" / "prd.json"

    def both(spoilt: Path) -> bool:
        READER.check(spoilt, ENVIRONMENT)
        return try_one(path)

    spoil(stage, [stage.read_text(encoding="utf-8"), json.dumps({"id": "prd"})], JSON_TOKENS, count, both)
