"""The table of limits agrees with what is recorded, and costs a `--help` nothing."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from ripstop.kernel.budget import amount
from ripstop.kernel.effects import Limits, Usage
from ripstop.kernel.limits import BY_RANK, LIMITS, RAISABLE, Limit
from ripstop.kernel.run import Spent

OTHERS = ("depth", "input_price", "output_price")
"""What `Limits` has besides: always set, and not spent."""


def test_every_limit_of_a_run_has_a_row() -> None:
    assert (*(limit.name for limit in LIMITS), *OTHERS) == Limits.__struct_fields__


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_a_limit_is_recorded_as_the_kind_of_number_that_its_row_says(limit: Limit) -> None:
    assert get_type_hints(Limits)[limit.name] == (int if limit.is_whole else float) | None
    assert bool(limit.words) is not limit.is_whole


def test_people_read_each_limit_once() -> None:
    assert [limit.rank for limit in BY_RANK] == list(range(1, len(LIMITS) + 1))


@pytest.mark.parametrize("limit", [limit for limit in LIMITS if limit.unit != "s"], ids=lambda limit: limit.name)
def test_what_a_limit_counts_can_be_told(limit: Limit) -> None:
    spent = Spent(turns=3, calls=4, usage=Usage(5, 6, 0.5, unreported_input=7, unreported_money=0.25), runs=2)
    assert amount(spent, limit.name) == {"turns": 3, "calls": 4, "tokens": 18, "money": 0.75, "runs": 2}[limit.name]


def test_the_help_of_resume_names_all_that_can_be_raised() -> None:
    said = " ".join(run_python("from ripstop.faces.cli.run import resume; resume(['--help'])").split())
    assert f"reached: {', '.join(RAISABLE[:-1])} or {RAISABLE[-1]};" in said


def test_the_pages_name_every_limit() -> None:
    guards, graph, settings = (text_of(page) for page in ("guards", "graph", "settings"))
    raised = next(line for line in guards.splitlines() if "--raise turns=+5`" in line)
    assert ["turns", *re.findall(r"`(\w+)`", raised)] == list(RAISABLE)
    nested = next(line for line in graph.splitlines() if line.startswith("| `states[].limits`"))
    table = settings.split("[limits]")[1].split("\n\n")[0]
    for limit in LIMITS:
        assert f"| `budget.{limit.name}` |" in guards
        assert f"`{limit.name}`" in nested
        assert f"\n{limit.name} = " in table


def text_of(page: str) -> str:
    return (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text("utf-8")


def test_the_options_of_commands_load_neither_msgspec_nor_rich_nor_yaml() -> None:
    code = "import sys, ripstop.faces.cli.options; print({'msgspec', 'rich', 'yaml'} & set(sys.modules))"
    assert run_python(code) == "set()\n"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
