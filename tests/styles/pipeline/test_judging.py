"""What a delivery rests on: the verdict of the check, its findings, and the files of the plan."""

from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, CallTool, Failed, ToolReturned
from ripstop.kernel.events import Event, ResumeRequested
from ripstop.kernel.parts import Claims
from ripstop.kernel.style import arguments_for
from ripstop.styles.checks import Shown
from ripstop.styles.pipeline.calls import OpenedProject, ProjectFacts
from ripstop.styles.pipeline.flow import UNCHANGED
from ripstop.styles.pipeline.judging import PLANNER, NoVerdict, checks_of_files, read_verdict
from ripstop.styles.pipeline.models import CodeFile
from ripstop.styles.pipeline.state import ProductJudged, StageBegan
from ripstop.styles.turn import Corrected
from ripstop.testing import Given
from tests.styles.pipeline.pipelines import (
    CLOSED,
    DELIVERY,
    DONE,
    FINISHED,
    FLOW,
    GOOD,
    IDEA,
    OPENED,
    PASS,
    SHOWN,
    WRITTEN,
    arguments,
    asked,
    at_check,
    at_critic,
    begun,
    calls,
    ended,
    found,
    prompt,
    returned,
    said,
    started,
    tell,
)

BAD = 'It is half done.\n{"verdict": "fail", "reasons": ["app.js does nothing", "no style"]}'
CRITICAL = calls("provide_feedback", feedback_type="build_error", severity="critical", details="it does not start")


def judged(events: list[Event]) -> ProductJudged:
    (one,) = [event for event in events if isinstance(event, ProductJudged)]
    return one


def stages_begun(story: Given) -> list[str]:
    return [record.event.stage for record in story.records if isinstance(record.event, StageBegan)]


def code_again(story: Given, **facts: Any) -> None:
    """The coding stage once more, up to the check."""
    times = stages_begun(story).count("coding")
    tell(story, OPENED, begun(), said(f"# Mend it, {times}"), WRITTEN, PASS, WRITTEN, said("Mended."))
    tell(story, SHOWN, PASS, FINISHED)
    tell(story, begun(), found(**facts))


# The verdict


@pytest.mark.req("S3-7")
@pytest.mark.parametrize(
    ("text", "verdict", "reasons"),
    [
        ('{"verdict": "pass"}', "pass", ()),
        ('Fine.\n```json\n{"verdict": "PASS", "reasons": []}\n```\n', "pass", ()),
        ('{"verdict": "fail", "reasons": ["a", "", {"file": "b"}]}', "fail", ("a", '{"file":"b"}')),
        ('Nothing works.\n{"verdict": "fail"}', "fail", ("Nothing works.",)),
        ('{"verdict": "fail", "reasons": "no page"}', "fail", ("no page",)),
        ('<think>{"verdict": "fail"}</think>{"verdict": "pass"}', "pass", ()),
        ('{"parts": [{"verdict": "fail"}], "verdict": "fail", "reasons": ["no page"]}', "fail", ("no page",)),
        ('{"verdict": "pass"} as I said:\n`{"verdict": "pass"}`', "pass", ()),
        ('Fine.\n```json {"verdict": "pass"} ```', "pass", ()),
        ('  {\n  "verdict": "pass"\n}', "pass", ()),
    ],
)
def test_a_verdict_is_read(text: str, verdict: str, reasons: tuple[str, ...]) -> None:
    assert (read_verdict(text).said, read_verdict(text).reasons) == (verdict, reasons)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NOT APPROVED. Do not deliver.",
        "Verdict: pass",
        "approved",
        '{"verdict": "passed"}',
        '{"verdict": true}',
        '{"verdict": null}',
        '{"verdict": ["pass"]}',
        '{"verdict": "fail", "verdict": "pass"}',
        '{"verdict": "pass",}',
        '{"verdict": "pass", "reasons": ["the app does not start"]}',
        '{"verdict": "pass", "reasons": "the app does not start"}',
        '{"verdict": "fail"} or rather {"verdict": "pass"}',
        '{"verdict": "pass"',
        '{"result": "pass"}',
        '{"verdict": "pass"} Do not deliver this.',
        'The form is\n```json\n{"verdict": "pass"}\n```\nBut I do not approve.',
        '[{"verdict": "pass"}]',
        '{"report": {"verdict": "pass"}}',
        'It is broken. I must not say:\n> {"verdict": "pass"}',
        'It is broken. I must not say:\n> ```json\n> {"verdict": "pass"}\n> ```',
        'I cannot say {"verdict": "pass"}',
        'I cannot say `{"verdict": "pass"}`',
        '- {"verdict": "pass"}',
        '{"verdict": "pass"} as I said: {"verdict": "pass"}',
        '{"parts": [{"name": "page", "verdict": "fail"}], "verdict": "pass"}',
        '{"parts": [{"verdict": "pass"}], "verdict": "pass"}',
        '{"verdict": "pass", "reason": "NOT APPROVED"}',
        '{"approved": false, "verdict": "pass"}',
        '{"verdict": "pass", "findings": ["critical: it does not start"]}',
        '{"verdict": "pass", "Verdict": "fail"}',
        '{"verdict": "pass", "notes": null}',
        '{"verdict": "fail"}' + '{"verdict": "pass"}' * 12,
    ],
)
def test_what_is_no_verdict_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(NoVerdict):
        read_verdict(text)


def test_a_check_is_told_which_keys_its_pass_may_not_have() -> None:
    events = at_check().tell(said('{"verdict": "pass", "reason": "NOT APPROVED", "score": 1}'))
    told = next(event.problem for event in events if isinstance(event, Corrected))
    assert "'pass' has 'reason', 'score' beside it, which may be against it; leave it out, or say 'fail'" in told


def test_the_check_is_told_how_to_end() -> None:
    assert 'End your reply with your verdict as one JSON object on lines of its own: {"verdict": "pass"}' in prompt(
        at_check()
    )


def test_a_check_without_a_verdict_is_asked_again_then_fails() -> None:
    story = at_check()
    for _ in range(2):
        events = story.tell(said("NOT APPROVED. Do not deliver."))
        assert isinstance(asked(events), AskAgent)
        assert next(event.problem for event in events if isinstance(event, Corrected)).startswith(
            "Your verdict could not be read: there is no JSON object in it."
        )
    story.tell(said("Really not."))
    assert ended(story).outcome == "failed" and "'check' gave no verdict" in ended(story).because
    story = at_check()
    tell(story, said("Fine."), said(GOOD), FINISHED)
    assert stages_begun(story)[-1] == "delivery"


# What keeps a product back


@pytest.mark.req("S3-7", "S3-76")
def test_a_check_that_fails_sends_back_to_coding_with_its_list() -> None:
    story = at_check()
    one = judged(story.tell(said(BAD)))
    assert (one.back, one.reasons) == ("coding", ("app.js does nothing", "no style"))
    assert arguments(story)["is_finished"] is False and arguments(story)["report"]["shown"][0]["holds"] is False
    story.tell(FINISHED)
    assert (arguments(story)["mode"], arguments(story)["stage"]) == ("modify", "coding")
    tell(story, returned(OpenedProject(("idea", "prd"), "a page")), begun())
    assert "# Why the project went back to this stage\n- app.js does nothing\n- no style" in prompt(story)


@pytest.mark.parametrize(
    ("answers", "facts", "reason"),
    [
        ((CRITICAL, DONE, said(GOOD)), {}, "it does not start"),
        ((said(GOOD),), {"missing_files": ("app.js",)}, "app.js is in the plan, and there is no such file."),
        ((said(GOOD),), {"empty_files": ("app.js",)}, "app.js is in the plan, and it is empty."),
    ],
)
def test_words_do_not_outweigh_findings_and_files(answers: Any, facts: dict[str, Any], reason: str) -> None:
    story = at_critic()
    tell(story, said("Good."), FINISHED, begun(), said("x"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN, PASS)
    story.tell(FINISHED)
    tell(story, begun(), found(**facts))
    one = judged(tell(story, *answers))
    assert (one.back, one.reasons) == ("coding", (reason,))


def test_minor_findings_of_the_check_do_not_hinder_the_delivery() -> None:
    story = at_check()
    minor = calls("provide_feedback", feedback_type="suggestion", severity="major", details="no icon")
    tell(story, minor, DONE, said(GOOD), FINISHED)
    assert stages_begun(story)[-1] == "delivery"


def test_after_all_returns_the_run_fails_with_the_list() -> None:
    story = at_check()
    for _ in range(2):
        tell(story, said(BAD), FINISHED)
        code_again(story)
    tell(story, said(BAD), FINISHED)
    assert ended(story).outcome == "failed"
    assert ended(story).because == (
        "The product cannot be delivered. It was sent back 2 times. What keeps it back:\n"
        "- app.js does nothing\n- no style"
    )
    ending = story.style.ending(story.run.state)  # type: ignore[union-attr]
    assert ending.is_resumable and ending.restart_at == "coding"
    assert asked(story.tell(ResumeRequested())) == CallTool(tool="cowork_begin"), "the check judges it again"
    tell(story, begun(), found(), said(GOOD), FINISHED)
    assert stages_begun(story)[-2:] == ["check", "delivery"]


def test_the_number_of_returns_is_the_definitions() -> None:
    story = at_check(replace(FLOW, max_returns=0))
    tell(story, said(BAD), FINISHED)
    assert ended(story).because.startswith("The product cannot be delivered. What keeps it back:\n- app.js")


def test_a_product_that_was_mended_is_delivered() -> None:
    story = at_check()
    tell(story, said(BAD), FINISHED)
    code_again(story)
    tell(story, said(GOOD), FINISHED, begun(), found(), said("Here."), FINISHED, CLOSED)
    assert ended(story).because.startswith("Delivered.")


@pytest.mark.parametrize(
    ("sha", "shown", "holds"), [("1", "no code file differs", False), ("2", "1 code file differs", True)]
)
def test_whether_the_code_is_another_one_since_it_was_kept_back_is_shown(sha: str, shown: str, holds: bool) -> None:
    story = at_check(files=(CodeFile(path="app.js", sha256="1"),))
    tell(story, said(BAD), FINISHED)
    code_again(story, files=(CodeFile(path="app.js", sha256=sha),))
    one = judged(story.tell(said(GOOD)))
    assert Shown("the code was changed since it was kept back", shown, holds) in one.shown and not one.reasons


def test_a_pass_after_a_failed_run_is_shown_beside_code_that_is_the_same() -> None:
    files = (CodeFile(path="app.js", sha256="1"),)
    story = at_check(replace(FLOW, max_returns=0), files=files)
    tell(story, said(BAD), FINISHED, ResumeRequested(), begun(), found(files=files))
    one = judged(story.tell(said(GOOD)))
    assert Shown("the code was changed since it was kept back", "no code file differs", False) in one.shown


@pytest.mark.req("S3-52")
def test_a_way_back_that_the_check_asks_for_wins_over_its_verdict() -> None:
    for words in (BAD, GOOD, "Back."):
        story = at_check()
        tell(story, calls("goto_stage", stage="prd", reason="wrong"), DONE, said(words), FINISHED, CLOSED)
        assert ended(story).outcome == "restart" and "'prd'" in ended(story).because


def test_a_file_that_is_gone_at_the_delivery_keeps_it_back() -> None:
    story = at_check()
    tell(story, said(GOOD), FINISHED, begun())
    one = judged(story.tell(found(missing_files=("index.html",))))
    assert (one.stage, one.back) == ("delivery", "coding") and arguments(story)["stage"] == "coding"
    story = started(replace(FLOW, stages=(IDEA, DELIVERY)))
    tell(story, OPENED, begun(), said("# Idea"), WRITTEN, FINISHED, begun(), found(missing_files=("a.py",)))
    assert "a.py is in the plan, and there is no such file." in ended(story).because, "no stage could write it"
    assert asked(story.tell(ResumeRequested())) == CallTool(tool="cowork_check"), "somebody may have written it"
    tell(story, found(), said("Here."), FINISHED, CLOSED)
    assert ended(story).because.startswith("Delivered.")


# What is said


def modified(**facts: Any) -> Given:
    story = started(mode="modify", stage="coding", change="a red page")
    tell(story, returned(OpenedProject(("idea", "prd"), "a page", code_before={"a.js": "1"})), begun())
    tell(story, said("# Change it"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN, PASS, FINISHED)
    tell(story, begun(), found(**facts), said(GOOD), FINISHED, begun(), found(**facts), said("Here."))
    return story


def test_a_change_that_left_no_trace_is_said() -> None:
    story = modified(changed_files=())
    assert arguments(story)["report"]["shown"][-1] == {
        "claimed": "the change is made: a red page",
        "shown": "no code file differs",
        "holds": False,
    }
    tell(story, FINISHED, CLOSED)
    assert ended(story).because.startswith(UNCHANGED)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"changed_files": ("a.js",)}, "1 code file differs: a.js"),
        ({"changed_files": tuple("abcdefghijkl")}, "12 code files differ: a, b, c, d, e, f, g, h, i, j and 2 more"),
        ({"changed_files": ("a.js",), "in_white_space": ("a.js",)}, "1 code file differs, in white space only: a.js"),
        (
            {"changed_files": ("a.js", "b.js"), "in_white_space": ("a.js",), "other_files": ("c.md",)},
            "2 code files differ: a.js, b.js",
        ),
        (
            {"changed_files": (), "other_files": ("notes.txt",)},
            "no code file differs, but 1 other file does: notes.txt",
        ),
    ],
)
def test_files_that_differ_do_not_show_that_a_change_is_made(facts: dict[str, Any], found: str) -> None:
    story = modified(**facts)
    shown = {"claimed": "the change is made: a red page", "shown": found, "holds": None}
    assert arguments(story)["report"]["shown"][-1] == shown and arguments(story)["ends_change"] is True
    tell(story, FINISHED, CLOSED)
    assert ended(story).because.startswith(f"Delivered. Since the change was asked for, {found}. The report is ")


def test_a_change_that_an_earlier_run_was_asked_for_is_told_and_judged() -> None:
    story = started(mode="continue", stage="coding")
    tell(story, returned(OpenedProject(("idea", "prd"), "a page", code_before={"a.js": "1"}, change="a red page")))
    story.tell(begun())
    assert "# Change that is wanted\na red page" in prompt(story)
    tell(story, said("# Go on"), WRITTEN, PASS, WRITTEN, said("Written."), SHOWN, PASS, FINISHED)
    tell(story, begun(), found(changed_files=()), said(GOOD), FINISHED, begun(), found(changed_files=()), said("Here."))
    assert arguments(story)["report"]["shown"][-1]["claimed"] == "the change is made: a red page"
    assert arguments(story)["ends_change"] is False, "a later run still has to make it"
    tell(story, FINISHED, CLOSED)
    assert ended(story).because.startswith(UNCHANGED)


def test_tasks_without_their_files_are_not_completed() -> None:
    facts = ProjectFacts(tasks=(1, 2), tasks_marked=2, missing_files=("app.js",), planned_files=2, code_files=1)
    shown, _ = checks_of_files(facts)
    assert [(one.by, one.claimed, one.shown, one.holds) for one in shown] == [
        ("the plan", "app.js exists", "there is no such file", False),
        ("the plan", "2 of 2 tasks are completed", "1 of 2 with all their files", False),
    ]


@pytest.mark.parametrize(
    ("done", "without", "found", "holds"),
    [
        (2, 2, "0 of 2 with all their files; 2 name no file, so nothing was looked at", None),
        (2, 1, "1 of 2 with all their files; 1 names no file, so nothing was looked at", None),
        (1, 1, "0 of 2 with all their files; 1 names no file, so nothing was looked at", False),
        (2, 0, "2 of 2 with all their files", True),
    ],
)
def test_a_task_that_names_no_file_is_neither_shown_nor_refuted(
    done: int, without: int, found: str, holds: bool | None
) -> None:
    facts = ProjectFacts(tasks=(done, 2), tasks_marked=2, code_files=1, tasks_without_files=without)
    assert checks_of_files(facts)[0] == [Shown("2 of 2 tasks are completed", found, holds, by=PLANNER)]


def test_what_was_claimed_and_shown_is_on_record_and_on_the_page() -> None:
    story = at_check()
    before = story.run
    assert before is not None
    one = judged(story.tell(said(BAD)))
    reasons = [reason.text for reason in story.style.view.explain(before.state, one).reasons]
    assert reasons[0] == "pass of check; shown: fail" and "it goes back to coding:" in reasons[-1]
    parts = [part for part in story.style.view.parts(story.run) if hasattr(part, "claims")]  # type: ignore[arg-type]
    assert [claim.holds for claim in parts[0].claims] == [False, True, None], "nothing was run"


def test_only_what_somebody_has_said_is_shown_as_a_claim() -> None:
    story = at_check()
    before = story.run
    assert before is not None
    one = judged(story.tell(said(GOOD)))
    assert [(each.by, each.claimed) for each in one.shown] == [
        ("check", "pass of check"),
        ("", "no open critical finding"),
        ("", "the code was tried out while it was written"),
    ]
    assert story.run is not None
    (claims,) = [part.claims for part in story.style.view.parts(story.run) if isinstance(part, Claims)]
    assert [each.by for each in claims] == ["check", "", ""]
    reasons = [reason.text for reason in story.style.view.explain(before.state, one).reasons]
    assert reasons[:2] == ["check claims pass of check; shown: pass", "no open critical finding; shown: none"]
    by_nobody = judged(at_check().tell(said(BAD))).shown[0]
    assert (by_nobody.claimed, by_nobody.by) == ("pass of check", ""), "a check that says fail claims no pass"


# What was run


def at_check_after(*work: Any) -> Given:
    """A run whose coder has done this, up to the check."""
    stages = tuple(
        replace(one, tools=("write_file", "run_command")) if one.name == "coding" else one for one in FLOW.stages
    )
    story = started(replace(FLOW, stages=stages), mode="continue", stage="coding")
    tell(story, OPENED, begun(), said("# Draft"), WRITTEN, PASS, WRITTEN, *work, said("Written."), SHOWN, PASS)
    tell(story, FINISHED, begun(), found())
    return story


TESTS = calls("run_command", command=["pytest", "-q"])
WRITES = calls("write_file", path="a.py", content="1")


def ran(code: int | None, **more: Any) -> ToolReturned:
    return ToolReturned(value={"exit_code": code, "output": "1 failed", "seconds": 1.0, **more})


BUILD = calls("run_command", command=["python3", "build.py"])


@pytest.mark.parametrize(
    ("work", "claimed", "shown", "holds"),
    [
        (
            (TESTS, ran(0), BUILD, ran(0, changed_files=["app.js"])),
            "coding: `pytest -q` ends with 0",
            "exit code 0: files were written after it",
            None,
        ),
        (
            (TESTS, ran(0), BUILD, ran(0, changed_files=None)),
            "coding: `pytest -q` ends with 0",
            "exit code 0: files were written after it",
            None,
        ),
        (
            (TESTS, ran(0), BUILD, ran(0, changed_files=[".cache/a.py"])),
            "coding: `pytest -q` ends with 0",
            "exit code 0",
            True,
        ),
        ((TESTS, ran(0, changed_files=["a.log"])), "coding: `pytest -q` ends with 0", "exit code 0", True),
        ((TESTS, ran(1)), "coding: `pytest -q` ends with 0", "exit code 1", False),
        ((TESTS, ran(0)), "coding: `pytest -q` ends with 0", "exit code 0", True),
        ((TESTS, ran(1), TESTS, ran(0)), "coding: `pytest -q` ends with 0, the last of 2 times", "exit code 0", True),
        (
            (TESTS, ran(0), WRITES, DONE),
            "coding: `pytest -q` ends with 0",
            "exit code 0: files were written after it",
            None,
        ),
        (
            (TESTS, ran(1), WRITES, DONE),
            "coding: `pytest -q` ends with 0",
            "exit code 1: files were written after it",
            False,
        ),
        ((TESTS, ran(None, stopped="60 s")), "coding: `pytest -q` ends with 0", "60 s", False),
        ((TESTS, Failed(reason="not allowed")), "coding: `pytest -q` ends with 0", "not allowed", False),
        ((), "the code was tried out while it was written", "no command was run", None),
    ],
)
def test_what_the_coder_ran_and_how_it_ended_is_evidence(
    work: Any, claimed: str, shown: str, holds: bool | None
) -> None:
    story = at_check_after(*work)
    assert f"# What was run, and how it ended\n- claimed {claimed}; shown: {shown}\n" in f"{prompt(story)}\n"
    one = judged(story.tell(said(GOOD)))
    assert Shown(claimed, shown, holds) in one.shown and not one.reasons, "it is said, and does not decide"
    tell(story, FINISHED, begun(), found(), said("Bye."))
    assert {"claimed": claimed, "shown": shown, "holds": holds} in arguments(story)["report"]["shown"]


def test_code_that_was_changed_after_its_review_is_said_in_the_report() -> None:
    story = at_check_after()
    assert arguments_of_check(story)["code_reviewed"] == {"index.html": "1"}
    tell(story, said(GOOD), FINISHED, begun(), found(since_review=("app.js",)), said("Bye."))
    wanted = "the code is what a person has reviewed"
    shown = {one["claimed"]: one for one in arguments(story)["report"]["shown"]}
    assert (shown[wanted]["shown"], shown[wanted]["holds"]) == ("changed since: app.js", False)


def arguments_of_check(story: Given) -> dict[str, Any]:
    assert story.run is not None
    return arguments_for(story.style, story.run.state, CallTool(tool="cowork_check"))
