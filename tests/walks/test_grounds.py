"""`ripstop why RUN` shows the checks that the end of a run rests on, whatever its style."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.lie_table import DELIVERY, LIES, Lie
from tests.harness.lies import tell, truth
from tests.walks.delivery import ripstop

pytestmark = pytest.mark.long

CASES: dict[str, tuple[Lie, list[str]]] = {
    "a board that was completed": (truth("tdd"), ["✓ ", "no open blocker; shown: none"]),
    "a board that failed": (LIES[0], ["✗ ", "M1-T1 is ", "; shown: it is TODO"]),
    "a report that was refused": (
        next(one for one in LIES if one.name == "PASS with too little coverage"),
        ["✗ ", "coverage: at least 80; shown: 79.9"],
    ),
    "a delivery": (truth(DELIVERY), ["✓ ", "every file of the plan exists; shown: "]),
    "a product that was kept back": (
        next(one for one in LIES if one.name == "pass with a critical finding"),
        ["✗ ", "no open critical finding; shown: It does not start."],
    ),
}


@pytest.mark.parametrize(("lie", "words"), CASES.values(), ids=list(CASES))
def test_why_a_run_has_ended_shows_the_checks_that_this_rests_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: Lie, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tell(lie, tmp_path)
    run = json.loads(ripstop("--json", "runs").stdout)[-1]["run"]
    text = ripstop("why", run).stdout
    assert any(all(word in line for word in words) for line in text.splitlines()), text
    assert "comes later" not in text and "not needed" not in text
    found: list[dict[str, Any]] = json.loads(ripstop("--json", "why", run).stdout)
    checks = [one for entry in found for one in entry["reasons"] if one["is_check"]]
    assert {one["holds"] for one in checks} >= {"✓" in words[0]}
    assert [entry["number"] for entry in found] == sorted({entry["number"] for entry in found})
    assert found[-1]["type"] == "ended"


def test_a_run_is_shown_without_claims_that_nobody_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tell(CASES["a product that was kept back"][0], tmp_path)
    text = ripstop("show", json.loads(ripstop("--json", "runs").stdout)[-1]["run"]).stdout
    assert "✗ no open critical finding  shown: It does not start." in text
    assert "✓ check claims: pass of check  shown: pass" in text and "✓ the plan claims: " in text
