"""`ripstop run` against a model server that misbehaves: every mode ends in order, and leaves a sound journal."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.hostile_matrix import WORKFLOW, matrix
from tests.harness.hostile_server import MODES
from tests.harness.mutated_replies import run

QUICK = ("name_as_object", "gzip_bomb", "usage_negative", "headers_with_the_key", "reset_in_the_middle")


def assert_all_in_order(*modes: str) -> None:
    results = asyncio.run(matrix(modes))
    wrong = {result.mode: (result.problems, result.output[-1000:]) for result in results if result.problems}
    assert wrong == {}


@pytest.mark.long
def test_a_run_ends_in_order_with_a_hostile_server() -> None:
    assert_all_in_order(*QUICK)


@pytest.mark.long
def test_a_run_ends_in_order_in_every_fourth_hostile_mode() -> None:
    """The short form of `make soak-server`, which takes all of them."""
    assert len(MODES) >= 100
    assert_all_in_order(*list(MODES)[::4])


def test_mutated_replies_are_answers_or_clean_retries() -> None:
    outcomes = run(1000, seed=1)
    assert set(outcomes) == {"AgentReplied", "TryAgain"}


@pytest.mark.long
def test_many_mutated_replies_are_answers_or_clean_retries() -> None:
    assert sum(run(10_000, seed=2).values()) == 10_000


def test_a_money_limit_without_a_price_is_refused_before_anything_starts(tmp_path: Path) -> None:
    workflow = tmp_path / "hello" / "workflow.yaml"
    workflow.parent.mkdir()
    workflow.write_text(WORKFLOW)
    command = [sys.executable, "-m", "ripstop", "run", "hello/workflow.yaml", "--model", "openai:m", "--max-money", "1"]
    environment = {**os.environ, "OPENAI_API_KEY": "sk-not-a-key-0123456789"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 2
    assert "'openai:m' has no price" in done.stderr and "--max-tokens" in done.stderr
