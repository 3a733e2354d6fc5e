"""Key lines of reports: in any notation one cannot hide what another says, and an example says nothing."""

import pytest

from ripstop.styles.blackboard.definition import Evidence, EvidenceKind, Gate, ReportRules, VerificationPolicy
from ripstop.styles.blackboard.report import Report, read_report
from ripstop.styles.key_lines import key_lines, lines_of, shown_lines
from ripstop.testing import Given
from tests.styles.blackboard.boards import arguments, begun, board, decided, ended, iteration, said, tell, written

RULES = ReportRules(("COOK",), True, "Verdict:", ("PASS", "FAIL", "BLOCKED"), "Blockers:", "none")
GOOD = "iteration: 8\n\nWords.\n\nVerdict: PASS\nBlockers: none\n"
NOTATIONS = [
    "{}",
    "- {}",
    "* {}",
    "1. {}",
    "- [ ] {}",
    "## {}",
    "> {}",
    "**{}**",
    "`{}`",
    '"{}"',
    "- **{}**",
    "⛔ {}",
    "    {}",
    "\u200b{}",
    "\u00a0{}",
]


def read(text: str, rules: ReportRules = RULES) -> Report:
    return read_report(text, rules, "COOK", 8)


def fields(report: Report) -> list[str]:
    return [one.field for one in report.problems]


@pytest.mark.req("S4-23", "S4-25")
@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize(
    "key", ["Verdict:", "verdict:", "VERDICT：", "Ver\u200bdict:", "Verdict\u00a0:", "**Verdict**:"]
)
def test_another_verdict_is_seen_in_any_notation(key: str, notation: str) -> None:
    for line in (f"{key} FAIL", f"{key}FAILED hard"):
        report = read(GOOD.replace("Words.", f"Words.\n{notation.format(line)}"))
        assert report.verdict is None and fields(report) == ["verdict"]


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("key", ["Blockers:", "blockers:", "BLOCKERS：", "Bl\u200bockers:", "Blockers\u00a0:"])
def test_what_blocks_is_seen_in_any_notation(key: str, notation: str) -> None:
    line = notation.format(f"{key} the code does not run")
    report = read(GOOD.replace("Blockers: none", f"Blockers: none\n{line}"))
    assert fields(report) == ["blockers"] and "the report contradicts itself" in report.problems[0].text
    assert report.open_blockers == ("the code does not run",)


@pytest.mark.parametrize("line", ["Iteration: 3", "- iteration: 3", "**Iteration:** 3", "ITERATION：3"])
def test_another_iteration_is_seen_in_any_notation(line: str) -> None:
    assert fields(read(f"{line}\n{GOOD}")) == ["iteration"]


@pytest.mark.req("S4-22", "S4-26")
@pytest.mark.parametrize(
    "hidden",
    [
        "```\n{}\n```",
        "~~~\n{}",
        "- example:\n    ```\n    {}\n    ```",
        "\n    {}",
        "\n\t{}",
        "<pre>\n{}\n</pre>",
        "x <PRE>\n{}\n</PRE>",
        "<!-- {} -->",
        "<!--\n{}\n-->",
        "<!--\n{}",
        "It would be: <!--\n{}\n-->",
        "> {}",
        "`{}`",
        "~~{}~~",
    ],
)
@pytest.mark.parametrize(
    ("line", "field"), [("Verdict: PASS", "verdict"), ("Blockers: none", "blockers"), ("iteration: 8", "iteration")]
)
def test_an_example_says_nothing(line: str, field: str, hidden: str) -> None:
    report = read(GOOD.replace(line, hidden.format(line)))
    assert field in fields(report)
    assert getattr(report, field if field != "blockers" else "clear") is None


@pytest.mark.parametrize(
    "line",
    [
        "```\nVerdict: FAIL\nBlockers: no salt\n```",
        "<!-- Verdict: FAIL -->",
        "~~Verdict: FAIL~~",
        "\n    Verdict: FAIL\n",
        "## Verdict:",
        "- Verdict: see below",
        "The verdict: FAIL was wrong.",
        "> Blockers: none",
        "`<!--` is how a comment begins.",
        "<script> was added to the page.",
    ],
)
def test_what_does_not_contradict_is_accepted(line: str) -> None:
    report = read(GOOD.replace("Words.", line))
    assert (report.verdict, report.clear, report.problems) == ("PASS", True, ())


@pytest.mark.parametrize(
    "line",
    ["**Verdict:** PASS", "**Verdict: PASS**", "- Verdict: PASS", "# verdict: **PASS**", "✅ Verdict : `PASS`"],
)
def test_a_verdict_with_marks_counts_where_none_has_none(line: str) -> None:
    report = read(GOOD.replace("Verdict: PASS", line))
    assert (report.verdict, report.problems) == ("PASS", ())


def test_values_are_read_without_the_marks_around_them() -> None:
    lines = ["- **file**: `a b.py`", "file:`c.py`", "**file: d.py**", "file: `e.py` and `f.py`", "file: __init__.py"]
    assert [one.value for one in key_lines(lines, "file:")] == [
        "a b.py",
        "c.py",
        "d.py",
        "`e.py` and `f.py`",
        "__init__.py",
    ]


@pytest.mark.parametrize(
    "line", ["- file: b.py", "File: b.py", "**FILE**： `b.py`", "> file: b.py", "f\u200bile: b.py"]
)
def test_every_file_that_a_report_names_is_looked_for(line: str) -> None:
    named = Evidence(EvidenceKind.FILE, line="file:", agents=("MAKER",))
    story = begun(board(VerificationPolicy(RULES, evidence=(named,))))
    tell(
        story,
        decided("MAKER"),
        written(),
        said(f"iteration: 1\nfile: a.py\n{line}\n\nAn example:\n```\nfile: c.py\n```"),
    )
    assert [one["path"] for one in arguments(story)["evidence"]] == ["a.py", "b.py"]


def test_a_verdict_on_one_task_is_not_the_one_on_all() -> None:
    parts = "### M1-T1: soup\n#### Result\n- Verdict: {}\n- Blockers: none\n### M1-T2\n- Verdict: FAIL\n## Summary\n"
    text = GOOD.replace("Words.", parts.format("PASS")).replace("PASS\nBlockers: none", "FAIL\nBlockers: no salt")
    report = read(text)
    assert (report.verdict, report.open_blockers, report.problems) == ("FAIL", ("no salt",), ())
    assert report.of_tasks == (("M1-T1", "PASS"), ("M1-T2", "FAIL"))
    report = read(GOOD.replace("Words.", parts.format("PASS").replace("Blockers: none", "Blockers: no salt")))
    assert fields(report) == ["blockers"]


def test_a_verdict_that_a_report_takes_back_of_one_task_opens_no_gate_for_it() -> None:
    def tried(part: str) -> Given:
        gate = Gate("before", "checks_first", first="CHECKER", then="MAKER", verdicts=("PASS",), per_task=True)
        rules = ReportRules(("CHECKER",), True, "Verdict:", ("PASS", "FAIL"), "Blockers:", "none")
        story = begun(board(VerificationPolicy(rules, gates=(gate,))))
        parts = f"## M1-T1\n- Verdict: {part}\n## M1-T2\n- Verdict: PASS\n# Summary"
        report = GOOD.replace("8", "1").replace("Words.", parts)
        iteration(story, report, "CHECKER", task="Check M1-T1 and M1-T2.")
        story.tell(decided("MAKER", task="Make M1-T1 and M1-T2."))
        return story

    why = ended(tried("FAIL")).because
    assert "on M1-T1 before MAKER is called" in why
    assert "its last verdict is PASS, which does not hold: the report says FAIL of M1-T1 itself" in why
    run = tried("PASS").run
    assert run is not None and run.ended is None


HOSTILE = ["    ", "- ", "> ", "1. ", "<!--", "<pre>", "x<!-- ", "```", "**", "\u200b", "Verdict:", "Verdict "]


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_report_is_read_before_anybody_notices(line: str) -> None:
    for text in (line * 50_000, f"{line}\n" * 20_000, f"{line}Verdict" + " " * 100_000):
        key_lines(shown_lines(lines_of(text)), "Verdict:")
