"""Reports: an agent's text is readable, and can neither pass for the engine's evidence nor hide it."""

import itertools

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ripstop.styles.pipeline.calls import ReportCall
from ripstop.styles.pipeline.checks import NOT_RUN, Findings, ProjectData
from ripstop.styles.pipeline.code_files import CodeListing
from ripstop.styles.pipeline.definition import CHECK_REPORT, DELIVERY_REPORT
from ripstop.styles.pipeline.models import CodeFile, DevelopmentTask, Feature, Requirement
from ripstop.styles.pipeline.reports import cell, embedded, report_text

FOUND = Findings(
    ProjectData(
        requirements=[Requirement(id="REQ-001", title="No|tes\n## x <b>")],
        features=[Feature(id="FEAT-001", name="`Add`")],
    ),
    CodeListing([CodeFile(path="in|dex`.html", size=3, sha256="a" * 64)], [], []),
    [NOT_RUN],
    frozenset(),
)
SECTIONS = [
    *("Files", "Coverage", "Consistency", "What was built, in the agent's words", "Feedback and decisions"),
    *("What could not be checked", "Cost"),
]
PIECES = [
    *("```", "~~~", "````", "```js", "~~~ `x`", "``` `", "> ```", "- ```", "  ```", "   ~~~", "1. ```", "- > ~~~"),
    *("# H", "## Files", "   ## Cost", "- # x", "> ## Files", "#", "===", "---", "   ---", "> ---", "text", "    code"),
    *("<!--", "<div>", "<h2>x</h2>", "<script>", "<![CDATA[", "</div>", "", "", "- a", "> b", "\t```", "\\", "`"),
    *("|a|b|", "|-|-|", "[x]: y", "a  ", "\x1b[2J", "\u202e", "* * *", "+ ", "10) ~~~"),
]


def report(path: str, title: str = "", prose: str = "") -> ReportCall:
    return ReportCall(path=path, title=title, prose=prose, decisions=(), cost=None, shown=())


def headings(text: str) -> list[tuple[str, str]]:
    """Every heading of a document, wherever it is: its level and its text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [(one.tag, after.content) for one, after in itertools.pairwise(tokens) if one.type == "heading_open"]


def test_a_report_begins_with_what_is_shown_and_marks_what_is_only_claimed() -> None:
    claim = "All 48 tests passed, server.py runs."
    text = report_text(report(DELIVERY_REPORT, "Notes", claim), FOUND, [], "r")
    shown, _, words = text.partition("## What was built, in the agent's words\n\n*Claimed, not checked:")
    assert claim in words and claim not in shown
    assert "## Files" in shown and "## Coverage" in shown and "## Consistency" in shown


def test_tasks_that_name_no_file_are_completed_by_claim_only() -> None:
    tasks = [
        DevelopmentTask(
            id="TASK-001", title="Page", feature_id="FEAT-001", status="completed", files_to_create=["index.html"]
        ),
        DevelopmentTask(id="TASK-002", title="List", feature_id="FEAT-001", status="completed"),
    ]
    requirement = Requirement(id="REQ-001", title="Notes", related_features=["FEAT-001"])
    feature = Feature(id="FEAT-001", name="Add", status="completed")
    code = CodeListing([CodeFile(path="index.html", size=3, sha256="a" * 64)], [], [])
    data = ProjectData([requirement], [feature], (), tasks)
    text = report_text(report(DELIVERY_REPORT), Findings(data, code, [], frozenset()), [], "r")
    claimed = "(1 task by claim only: no file is named)"
    assert f"1 of 1 features and 2 of 2 tasks completed {claimed}. Written" in text
    assert f"| TASK-001, TASK-002 | completed {claimed} |" in text
    named = Findings(msgspec.structs.replace(data, tasks=tasks[:1]), code, [], frozenset())
    assert "by claim" not in report_text(report(DELIVERY_REPORT), named, [], "r")


@given(
    st.lists(st.sampled_from(PIECES), max_size=10).map("\n".join) | st.text(alphabet="`~#->=|<! \n\tx1.", max_size=40)
)
@example("> ```\nx")
@example("- a\n\n  ```\nx\n```")
@example("x\n===")
@example("```\n```\u3000")
@example("~~~\n~~~\xa0\n# x")
@settings(max_examples=80)
def test_no_text_of_an_agent_changes_the_sections_of_a_report(prose: str) -> None:
    text = report_text(report(DELIVERY_REPORT, "Notes", prose), FOUND, [], "r")
    found = headings(text)
    assert [title for level, title in found if level == "h2"] == SECTIONS
    assert [title for level, title in found if level == "h1"] == ["Delivery report: Notes"]
    assert "\x1b" not in text and "\u202e" not in text
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "REQ-001 No|tes ## x &lt;b&gt;</td>" in html
    assert "<!--" not in html and "<script>" not in html


def test_ordinary_prose_is_kept() -> None:
    prose = "A page.\n\n- one\n- **two**\n\n```js\nconst a = 1 < 2  # not a heading\n```\n\n1 < 2, `code`"
    assert embedded(prose) == prose
    assert embedded("# Overview\n## Use") == "### Overview\n#### Use"
    assert embedded("```\nopen") == "```\nopen\n```"


@given(st.text(max_size=300))
def test_a_cell_is_one_line(text: str) -> None:
    assert "\n" not in cell(text) and len(cell(text)) <= 2 * 6 * 120


@pytest.mark.req("S3-78", "S3-98")
def test_a_check_report_has_the_same_evidence_and_an_empty_one_says_so() -> None:
    text = report_text(report(CHECK_REPORT), FOUND, [], "r")
    assert text.startswith("# Check report\n") and "## What was found" in text
    assert "*Nothing was handed in.*" in text and "The cost is not known." in text
