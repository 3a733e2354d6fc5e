"""A person reviews code as it is: against what was there before the run, file by file."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool
from ripstop.kernel.events import ResumeRequested
from ripstop.kernel.questions import kind_of
from ripstop.styles.pipeline.code_differences import MAX_LINES, MAX_SHOWN, NOTHING, difference_of
from ripstop.styles.pipeline.stages import own_tools
from ripstop.testing import Given
from ripstop.tools.snapshots.run_files import DifferingFile
from tests.styles.pipeline.pipelines import (
    FLOW,
    OPENED,
    PASS,
    SHOWN,
    WRITTEN,
    arguments,
    asked,
    begun,
    feedback,
    prompt,
    said,
    started,
    tell,
)
from tests.styles.pipeline.projects import ProjectDesk


def at_code_review() -> Given:
    story = started(mode="continue", stage="coding")
    tell(story, OPENED, begun(), said("# What I write"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN)
    return story


# When


@pytest.mark.req("S3-27", "S3-43")
def test_code_is_reviewed_after_it_is_written_and_before_anything_is_checked() -> None:
    story = started(mode="continue", stage="coding")
    events = tell(story, OPENED, begun(), said("# What I write"), WRITTEN, PASS, WRITTEN, said("Written."))
    assert asked(events) == CallTool(tool="cowork_show")
    question = asked(story.tell(SHOWN))
    assert isinstance(question, AskPerson) and kind_of(question) == "review"
    assert question.question == "Review the code of the stage 'coding'." and set(question.choices) == {
        "pass",
        "feedback",
    }
    shown = next(one for one in story.records if one.number == question.document)
    assert story.style.view.document(shown) == "# The code"
    assert asked(story.tell(PASS)) == CallTool(tool="cowork_finish")


def test_feedback_on_code_is_kept_and_goes_to_the_coder_with_the_accepted_draft() -> None:
    story = at_code_review()
    story.tell(feedback("Do not use eval."))
    assert arguments(story)["feedback"]["details"] == "Do not use eval." and not arguments(story)["files"]
    events = story.tell(WRITTEN)
    assert isinstance(asked(events), AskAgent) and asked(events).agent == "coding"
    told = prompt(story)
    assert "Feedback of the person who reviewed the code\nDo not use eval.\n\nChange the code accordingly." in told
    assert "# Draft\n# What I write" in told and "The draft is accepted." in told
    assert asked(tell(story, said("Changed."))) == CallTool(tool="cowork_show"), "and it is shown again"


def test_reviews_of_code_are_bounded_apart_from_those_of_the_draft() -> None:
    story = started(replace(FLOW, max_reviews=1), mode="continue", stage="coding")
    tell(story, OPENED, begun(), said("# What I write"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN)
    tell(story, feedback("No."), WRITTEN, said("Changed."), SHOWN)
    assert story.run is not None and story.run.verdict is not None
    assert story.run.verdict.guard == "max_reviews"
    story.tell(ResumeRequested(raises={"reviews": 1}))
    assert isinstance(asked(story.tell(SHOWN)), AskPerson)


# What


def showing(desk: ProjectDesk) -> str:
    return str(desk.own("cowork_show", stage="coding")["text"])


@pytest.fixture
def desk(tmp_path: Path) -> ProjectDesk:
    """A project with code of its own, in which a run is about to write code."""
    desk = ProjectDesk(tmp_path, tools=own_tools())
    stages = [{"name": "coding", "products": [], "writes_code": True}]
    desk.code("old.js", "one\ntwo\nthree\n")
    desk.code("gone.js", "x\n")
    desk.code("same.js", "s\n")
    desk.own("cowork_open", stages=stages, mode="new", stage="coding", idea="notes")
    desk.own("cowork_begin", stage="coding", writes_code=True)
    return desk


def test_what_is_new_changed_or_gone_is_shown_file_by_file(desk: ProjectDesk) -> None:
    desk.code("old.js", "one\n2\nthree\n")
    desk.code("src/new.js", "eval(1)\n")
    (desk.project / "gone.js").unlink()
    text = showing(desk)
    assert "3 files: 1 new, 1 changed, 1 removed." in text
    assert "## old.js (changed, 12 bytes)\n\n```diff\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n```" in text
    assert "## src/new.js (new, 8 bytes)\n\n```diff\n@@ -0,0 +1,1 @@\n+eval(1)\n```" in text
    assert "## gone.js (removed)\n\n```diff\n@@ -1,1 +0,0 @@\n-x\n```" in text
    assert "same.js" not in text and ".cowork/artifacts" not in text
    assert "All of it is in .cowork/logs/coding_changes.diff." in text
    assert "+eval(1)" in desk.text("logs/coding_changes.diff")


def test_hidden_files_are_shown_too(desk: ProjectDesk) -> None:
    desk.code(".github/workflows/x.yml", "run: curl\n")
    assert "+run: curl" in showing(desk)


def test_a_run_that_wrote_nothing_says_so(desk: ProjectDesk) -> None:
    assert NOTHING in showing(desk)


def test_the_snapshot_is_the_one_of_the_runs_first_visit(desk: ProjectDesk) -> None:
    desk.code("src/new.js", "1\n")
    desk.own("cowork_begin", stage="coding", writes_code=True)
    assert "+1" in showing(desk)


def test_without_a_snapshot_whole_files_are_shown_and_that_is_said(
    desk: ProjectDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.project.parent / "elsewhere"))
    desk.code("src/new.js", "1\n")
    text = str(desk.own("cowork_show", stage="coding", code_before={"old.js": "0" * 64})["text"])
    assert "There is nothing to compare with, so whole files are shown: No snapshot was taken." in text
    assert "+1" in text and "old.js (changed, 14 bytes; what it was is not known)" in text


def test_long_differences_are_bounded_and_what_is_left_out_is_said() -> None:
    long = DifferingFile("long.py", False, True, None, b"x\n" * (MAX_LINES + 10))
    many = [DifferingFile(f"f{n:03}.py", False, True, None, b"y" * 500 + b"\n") for n in range(200)]
    shown = difference_of([long, *many], "", ".cowork/logs/coding_changes.diff")
    assert len(shown.text) < MAX_SHOWN + 20_000
    assert "(11 more lines of this file are not shown here.)" in shown.text, "with the one that says where it is"
    assert "## Not shown here" in shown.text and "- f199.py (new, 501 bytes)" in shown.text
    assert all(f"f{n:03}.py" in shown.whole for n in range(200)) and shown.whole.count("+x") == MAX_LINES + 10


def test_nothing_in_code_acts_on_the_reader_or_ends_its_block() -> None:
    bad = DifferingFile("a\u202eb.md", False, True, None, "```\n# Approved\n\x1b[2J\u202e\n".encode())
    text = difference_of([bad], "", "x").text
    assert "````diff\n" in text and "\x1b" not in text and "\u202e" not in text
    binary = DifferingFile("a.png", False, True, None, b"\x89PNG\0\xff")
    assert "(not text)" in difference_of([binary], "", "x").text
