"""What a run on a board believes before it goes on or ends: reports about this task, the plan, blockers, evidence."""

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, CallTool
from ripstop.kernel.events import Event, ResumeRequested, Warned
from ripstop.styles.blackboard.calls import ClaimResult
from ripstop.styles.blackboard.definition import Evidence, EvidenceKind, Gate, VerificationPolicy
from ripstop.styles.blackboard.gates import report_checks
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.report import read_report
from ripstop.styles.blackboard.state import ChecksFailed, MainDecided
from ripstop.styles.turn import Corrected
from ripstop.testing import Given
from tests.styles.blackboard.boards import (
    GOOD,
    PLAN,
    RULES,
    arguments,
    asked,
    begun,
    board,
    checked,
    decided,
    edited,
    ended,
    iteration,
    prompt,
    said,
    tell,
    written,
)

FIRST = Gate("before", "checks_first", first="CHECKER", then="MAKER", per_task=True)
NEEDS = Gate("finish_needs", "must_pass", ("CHECKER",), ("PASS",), per_task=True, after=("MAKER",))
DONE = Gate("finish_needs_plan", "all_done")
CLEAR = Gate("no_open_blockers", "clear")
BOTH = "update M1-T1 status to VERIFIED; update M1-T2 status to VERIFIED"
ALL = f"{GOOD}M1-T1 and M1-T2 are good."
WORK = "iteration: {}\nmade"
GOES_ON = CallTool(tool="board_write")


def gated(*gates: Gate, plan: str = PLAN, **changes: Any) -> Given:
    return begun(board(VerificationPolicy(RULES, gates=gates, **changes)), plan=plan)


def refused(story: Given, **decision: Any) -> str:
    story.tell(decided("FINISH", **decision))
    return ended(story).because


def passed(story: Given, agent: str = "FINISH", **decision: Any) -> list[Event]:
    events = story.tell(decided(agent, **decision))
    assert asked(events) == GOES_ON
    return events


# Which task a report is about


@pytest.mark.req("S4-33", "S4-60")
def test_a_report_about_another_task_does_not_count() -> None:
    story = gated(FIRST)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T2.")
    story.tell(decided("MAKER", task="Make M1-T1."))
    assert "'checks_first' wants a report of CHECKER on M1-T1 before MAKER is called" in ended(story).because
    story = gated(FIRST)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T1.")
    passed(story, "MAKER", task="Make M1-T1.")


def test_a_decision_that_names_no_task_is_about_every_open_one() -> None:
    story = gated(FIRST)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T2.")
    story.tell(decided("MAKER", task="Go on."))
    assert "on M1-T1 before MAKER" in ended(story).because
    story = gated(FIRST)
    iteration(story, ALL.format(1), "CHECKER", task="Check all.")
    passed(story, "MAKER", task="Make m1-t2 now.")


def test_the_task_is_named_by_its_id_in_any_script() -> None:
    story = gated(FIRST)
    iteration(story, GOOD.format(1), "CHECKER", task="检查M1-T1。")
    passed(story, "MAKER", task="完成M1-T1，不做M1-T10")


def test_the_reason_names_the_task_if_the_task_does_not() -> None:
    story = gated(FIRST)
    iteration(story, GOOD.format(1), "CHECKER", reason="M1-T1 comes first.", task="Check it.")
    story.tell(decided("MAKER", "Now M1-T2.", task="Make it."))
    assert "on M1-T2 before MAKER" in ended(story).because


def test_without_tasks_in_the_plan_any_report_of_the_run_counts() -> None:
    story = gated(FIRST, plan="# Plan\nMake it.\n")
    iteration(story, GOOD.format(1), "CHECKER")
    passed(story, "MAKER")


# What the end needs


@pytest.mark.req("S4-34", "S4-60", "S4-61")
def test_a_run_with_open_tasks_does_not_finish() -> None:
    assert "wants every task of the plan to be DONE" in refused(gated(DONE))
    assert "M1-T1 is TODO, M1-T2 is TODO" in refused(gated(DONE))
    story = gated(DONE)
    assert "M1-T2 is TODO" in refused(story, dev_plan="update M1-T1 status to DONE")
    passed(gated(DONE), dev_plan=BOTH)


def test_the_states_of_a_finished_plan_are_the_policys() -> None:
    polished = Gate("finish_needs_plan", "polished", statuses=("POLISHED",))
    assert "M1-T1 is VERIFIED" in refused(gated(polished), dev_plan=BOTH)
    passed(gated(polished), dev_plan=BOTH.replace("VERIFIED", "polished"))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("# Plan\n", "M1-T1 is not in the plan any more, M1-T2 is not in the plan any more"),
        ("### M1-T1: Write it\n- status: DONE\n", "M1-T2 is not in the plan any more"),
        ("```\n" + PLAN + "```\n### X1: other\n- status: DONE\n", "M1-T1 is not in the plan any more"),
        (PLAN.replace("- status: TODO\n", "", 1).replace("TODO", "DONE"), "M1-T1 is not in the plan any more"),
    ],
)
def test_main_cannot_make_a_task_disappear(plan: str, why: str) -> None:
    assert why in refused(gated(DONE), dev_plan_next=plan)


def test_a_person_can_take_a_task_out_of_the_plan() -> None:
    story = gated(DONE)
    tell(story, decided("MAKER"), edited("memory/dev_plan.md", PLAN.split("\n\n### M1-T2", maxsplit=1)[0]), written())
    tell(story, said(WORK.format(1)), checked(), written())
    passed(story, dev_plan="update M1-T1 status to DONE")


def test_a_plan_without_tasks_is_not_finished() -> None:
    assert "it has no task with a status" in refused(gated(DONE, plan="# Plan\n## M1: Later\n"))


def test_a_second_task_with_the_same_id_is_not_overlooked() -> None:
    plan = "| ID | Status |\n|---|---|\n| T1 | DONE |\n| T1 | TODO |\n"
    assert "T1 is DONE and TODO" in refused(gated(DONE, plan=plan))
    passed(gated(DONE, plan=plan), dev_plan="update T1 status to DONE")


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("82 %", True),
        ("123/150 (82 %)", True),
        ("82 % (wanted: 95 %)", True),
        ("n/a (wanted: 80 %)", False),
        ("wanted 80 %, measured 12 %", False),
        ("90 % lines, 40 % branches", False),
        ("90 % lines, 85 % branches", True),
        ("100%, of the happy path", False),
        ("below 90%", False),
        ("<90%", False),
        ("not 90%", False),
        ("100 of 1000 lines", False),
        ("100/1000 lines", False),
        ("100 of 1000 lines (10 %)", False),
        ("123/150 = 82 %", True),
        ("40-100%", False),
        ("9 9%", False),
        ("8５ %", True),
        ("-90 %", False),
        (".9", False),
        ("8e1", True),
    ],
)
def test_a_line_states_the_worst_of_its_numbers_or_none_if_it_says_anything_else(line: str, holds: bool) -> None:
    policy = VerificationPolicy(RULES, gates=(Gate("min_number", "min", prefix="coverage:", number=80),))
    assert [one.shown.holds for one in report_checks(f"coverage: {line}", "PASS", policy, "CHECKER")] == [holds]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("结论：FAIL\n阻塞：无\nNext time:\n```\n结论：PASS\n```", "FAIL"),
        ("结论：FAIL\nAgain.\n结论：PASS\n阻塞：无", "PASS"),
    ],
)
def test_the_last_verdict_is_not_an_example_in_a_code_block(text: str, verdict: str) -> None:
    report = read_report(f"iteration: 1\n{text}\n", replace(RULES, verdict_pick="last"), "CHECKER", 1)
    assert report.verdict == verdict and not report.problems


@pytest.mark.parametrize("pick", ["one", "last"])
def test_a_verdict_that_is_only_an_example_in_a_code_block_is_none(pick: Literal["one", "last"]) -> None:
    text = "iteration: 1\n阻塞：无\nIt would be:\n```\n结论：PASS\n```\nbut it is a fail.\n"
    report = read_report(text, replace(RULES, verdict_pick=pick), "CHECKER", 1)
    assert report.verdict is None
    (problem,) = report.problems
    assert problem.text.startswith("the verdict is in a block of code, a comment or a quotation, as an example is; ")


def test_a_ticked_box_is_a_finished_task() -> None:
    done = {"done_statuses": ("VERIFIED",)}
    passed(gated(DONE, plan="- [x] T1: a\n- [X] T2: b\n", **done))
    assert "T2 is TODO" in refused(gated(DONE, plan="- [x] T1: a\n- [ ] T2: b\n", **done))


def test_every_task_needs_its_own_verdict() -> None:
    story = gated(NEEDS)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T1.")
    assert "wants PASS of CHECKER before FINISH, which has not reported in this run (M1-T2)" in refused(
        story, dev_plan=BOTH
    )
    story = gated(NEEDS)
    iteration(story, ALL.format(1), "CHECKER", task="Check M1-T1 and M1-T2.")
    passed(story, dev_plan=BOTH)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("All is well.", "M1-T1, M1-T2"),
        ("M1-T1 is good.", "M1-T2"),
        ("m1-t1 is good; M1-T22 is another one.", "M1-T2"),
        ("M1-T1 is good.\n```\nM1-T2 ok\n```", "M1-T2"),
    ],
)
def test_a_report_on_several_tasks_counts_only_for_those_that_it_names(words: str, left: str) -> None:
    story = gated(NEEDS)
    iteration(story, GOOD.format(1) + words, "CHECKER", task="Check M1-T1. (M1-T2 comes later.)")
    because = refused(story, dev_plan=BOTH)
    assert "wants PASS of CHECKER" in because and f"({left})" in because


def test_a_report_that_names_none_of_several_tasks_takes_back_what_was_said_of_them() -> None:
    story = gated(NEEDS)
    iteration(story, ALL.format(1), "CHECKER", task="Check M1-T1 and M1-T2.")
    iteration(story, GOOD.format(2), "CHECKER", task="Look at M1-T1 and M1-T2 again.", reason="the same as before")
    passed(story, dev_plan=BOTH)
    story = gated(NEEDS)
    iteration(story, ALL.format(1), "CHECKER", task="Check M1-T1 and M1-T2.")
    iteration(story, GOOD.format(2).replace("PASS", "FAIL"), "CHECKER", task="Look at M1-T1 and M1-T2 again.")
    assert "whose last verdict is FAIL (M1-T1, M1-T2)" in refused(story, dev_plan=BOTH)


def test_a_report_about_one_of_several_tasks_leaves_the_verdict_on_the_others() -> None:
    story = gated(NEEDS)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T1.")
    iteration(story, GOOD.format(2) + "M1-T2 is good.", "CHECKER", task="M1-T1 is checked; check M1-T2.")
    passed(story, dev_plan=BOTH)


def test_work_on_several_tasks_makes_the_verdicts_on_all_of_them_old_whatever_it_names() -> None:
    story = gated(NEEDS)
    iteration(story, ALL.format(1), "CHECKER", task="Check M1-T1 and M1-T2.")
    iteration(story, WORK.format(2) + " M1-T1", "MAKER", task="Mend M1-T1 and M1-T2.")
    iteration(story, GOOD.format(3), "CHECKER", task="Check M1-T1.")
    assert "PASS, which is of iteration 1, and MAKER has worked in 2 (M1-T2)" in refused(story, dev_plan=BOTH)


@pytest.mark.parametrize(("clears", "names"), [(True, "M1-T1 and M1-T2"), (True, "M1-T1"), (False, "M1-T2")])
def test_a_blocker_of_one_task_is_cleared_by_a_report_that_names_it(clears: bool, names: str) -> None:
    story = gated(CLEAR)
    iteration(story, "iteration: 1\n结论：PASS\n阻塞：db down", "CHECKER", task="M1-T1")
    iteration(story, GOOD.format(2) + f"{names} are good.", "CHECKER", task="Check M1-T1 and M1-T2.")
    if clears:
        passed(story)
    else:
        assert "open are CHECKER on M1-T1: db down" in refused(story)


def test_an_agent_is_told_that_its_report_has_to_name_the_tasks_that_it_is_about() -> None:
    told = "Your report counts only for those of these tasks that it names: M1-T1, M1-T2."
    for gates, task, tells in (((NEEDS,), "Check all.", True), ((NEEDS,), "M1-T1", False), ((CLEAR,), "All.", False)):
        story = gated(*gates)
        tell(story, decided("CHECKER", task=task), written())
        assert (told in prompt(story)) is tells


def test_what_was_done_before_the_run_needs_no_verdict_unless_it_is_judged_again() -> None:
    plan = PLAN.replace("TODO", "DONE", 1)
    story = gated(NEEDS, plan=plan)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T2.")
    passed(story, dev_plan="update M1-T2 status to DONE")
    story = gated(NEEDS, plan=plan)
    iteration(story, GOOD.format(1).replace("PASS", "FAIL"), "CHECKER", task="Check M1-T1 and M1-T2.")
    assert "whose last verdict is FAIL (M1-T1, M1-T2)" in refused(story)
    story = gated(NEEDS, plan=plan)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T2.", dev_plan="update M1-T1 status to DOING")
    assert "(M1-T1)" in refused(story, dev_plan=BOTH)


def test_what_was_done_before_the_run_is_shown_as_not_looked_at() -> None:
    events = passed(gated(NEEDS, plan=PLAN.replace("TODO", "VERIFIED")))
    (one,) = [event for event in events if isinstance(event, MainDecided)]
    told = "not looked at: it was VERIFIED when the run was given it"
    assert [(each.claimed, each.shown, each.holds) for each in one.shown] == [
        ("PASS of CHECKER on M1-T1", told, None),
        ("PASS of CHECKER on M1-T2", told, None),
    ]


# A status that ends a task


@pytest.mark.req("S4-60")
@pytest.mark.parametrize("agent", ["USER", "MAKER"])
@pytest.mark.parametrize(
    "change", [{"dev_plan": BOTH}, {"dev_plan_next": PLAN.replace("TODO", "VERIFIED")}], ids=["updates", "a new plan"]
)
def test_main_finishes_no_task_whose_verdict_is_not_there(agent: str, change: dict[str, str]) -> None:
    story = gated(DONE, NEEDS)
    events = story.tell(decided(agent, **change))
    told = (
        "the gate 'must_pass' wants PASS of CHECKER before a task is VERIFIED, which has not reported in this run "
        "(M1-T1, M1-T2); leave its status as it is until then"
    )
    assert any(isinstance(event, Corrected) for event in events) and told in prompt(story)
    passed(story, agent)
    assert story.run is not None and story.run.state.writing.plan is None


def test_main_finishes_a_task_once_its_verdict_is_there() -> None:
    story = gated(DONE, NEEDS)
    iteration(story, GOOD.format(1), "CHECKER", task="Check M1-T1.")
    story.tell(decided("MAKER", dev_plan=BOTH))
    assert "which has not reported in this run (M1-T2)" in prompt(story)
    (one,) = [
        each for each in passed(story, "MAKER", dev_plan=BOTH[: BOTH.index(";")]) if isinstance(each, MainDecided)
    ]
    assert [(each.claimed, each.holds) for each in one.shown] == [("PASS of CHECKER on M1-T1", True)]


def test_a_status_that_does_not_end_a_task_can_be_set_at_any_time() -> None:
    gate = replace(DONE, statuses=("VERIFIED",))
    passed(gated(gate, NEEDS), "MAKER", dev_plan=BOTH.replace("VERIFIED", "DONE"))


def test_only_a_status_with_which_a_run_may_end_was_done_before_the_run() -> None:
    story = gated(replace(DONE, statuses=("VERIFIED",)), NEEDS, plan=PLAN.replace("TODO", "DONE"))
    assert "must_pass" in refused(story, dev_plan=BOTH)


def test_what_a_person_has_set_finished_stays_so() -> None:
    story = gated(DONE, NEEDS)
    story.tell(decided())
    story.tell(edited("memory/dev_plan.md", plan=PLAN.replace("TODO", "VERIFIED")))
    tell(story, written(), said("iteration: 1"), checked(), written())
    passed(story)


def test_a_verdict_that_is_older_than_the_work_does_not_count() -> None:
    story = gated(NEEDS)
    iteration(story, ALL.format(1), "CHECKER", task="Check M1-T1 and M1-T2.")
    iteration(story, WORK.format(2), "MAKER", task="Mend M1-T2.")
    because = refused(story, dev_plan=BOTH)
    assert "PASS, which is of iteration 1, and MAKER has worked in 2 (M1-T2)" in because


@pytest.mark.parametrize("mark", ["test_required: no", "- Test_Required：No", "test_required:   no (docs)"])
def test_a_task_can_be_exempt_by_what_the_plan_says(mark: str) -> None:
    gate = Gate("finish_needs", "must_pass", ("CHECKER",), ("PASS",), per_task=True, unless=("test_required: no",))
    plan = f"### M1-T1: a\n- status: DONE\n{mark}\n"
    passed(gated(gate, plan=plan.replace("DONE", "TODO")))
    not_exempt = plan.replace("DONE", "TODO").replace("no", "not yet").replace("No", "not yet")
    assert "must_pass" in refused(gated(gate, plan=not_exempt))


def test_main_cannot_exempt_a_task_that_was_given() -> None:
    gate = Gate("finish_needs", "must_pass", ("CHECKER",), ("PASS",), per_task=True, unless=("test_required: no",))
    exempt = PLAN.replace("- status: TODO", "- status: DONE\n- test_required: no")
    assert "must_pass" in refused(gated(gate), dev_plan_next=exempt)


def test_an_open_blocker_hinders_the_end_until_its_agent_clears_it() -> None:
    story = gated(CLEAR)
    iteration(story, "iteration: 1\n结论：PASS\n阻塞：db down", "CHECKER", task="M1-T1")
    iteration(story, GOOD.format(2), "CHECKER", task="M1-T2")
    assert "wants no open blockers before FINISH; open are CHECKER on M1-T1: db down" in refused(story)
    story = gated(CLEAR)
    iteration(story, "iteration: 1\n结论：PASS\n阻塞：db down", "CHECKER", task="M1-T1")
    iteration(story, GOOD.format(2), "CHECKER", task="M1-T1")
    passed(story)


def test_a_blocker_of_an_earlier_run_hinders_the_end_until_its_agent_reports_again() -> None:
    left = {"reports/report_checker.md": "阻塞：db lost", "reports/report_maker.md": "阻塞：无"}
    blocked = board(VerificationPolicy(RULES, gates=(CLEAR,)))
    story = begun(blocked, blocking=left)
    assert "# Open blockers of earlier runs\n- CHECKER: db lost" in prompt(story)
    assert story.run is not None
    facts = KIT.style.view.parts(story.run)[0]
    assert ("Blocker of an earlier run", "CHECKER: db lost") in facts.rows  # type: ignore[union-attr]
    iteration(story, "iteration: 1\n阻塞：无", "MAKER")
    assert "open are CHECKER before this run: db lost" in refused(story, finish_review_override="known", reason="x")
    story = begun(blocked, blocking=left)
    iteration(story, GOOD.format(1), "CHECKER")
    assert "earlier runs" not in prompt(story)
    passed(story)


def test_a_verdict_that_the_evidence_does_not_bear_out_opens_no_gate() -> None:
    evidence = (Evidence(EvidenceKind.FILE, "code", path="a.py"),)
    story = gated(NEEDS, evidence=evidence)
    tell(story, decided("CHECKER"), written(), said(ALL.format(1)))
    tell(story, checked(ClaimResult(False, "there is no such file")), written())
    because = refused(story, dev_plan=BOTH)
    assert "PASS, which does not hold: claimed PASS: a.py exists; shown: there is no such file" in because


def test_a_required_number_that_is_missing_is_a_failure() -> None:
    gate = Gate(
        "min_number", "min", prefix="coverage:", also=("覆盖率：",), number=80, verdicts=("PASS",), required=True
    )
    for line, why in (("", "wants a line 'coverage:' with a number"), ("覆盖率：79%", "at least 80")):
        story = gated(gate)
        tell(story, decided("CHECKER"), written(), said(GOOD.format(1) + line), checked(), written())
        assert why in ended(story).because
    story = gated(gate)
    iteration(story, GOOD.format(1) + "覆盖率：81%", "CHECKER")
    assert story.run is not None and story.run.ended is None


# Who may pass, who is told


def test_an_override_passes_verdicts_but_neither_the_plan_nor_blockers() -> None:
    override = {"reason": "known", "finish_review_override": "ignore"}
    events = passed(gated(NEEDS), **override)
    (warning,) = [event.text for event in events if isinstance(event, Warned) and "gate" in event.text][:1]
    assert "MAIN overrides it: ignore" in warning
    assert "all_done" in refused(gated(NEEDS, DONE), **override)
    assert "must_pass" in refused(gated(NEEDS, finish_override=False), **override)


def test_main_is_told_by_a_gate_that_tells_and_the_run_stops_in_the_end() -> None:
    tells = Gate("finish_needs_plan", "all_done", on_failure="tell")
    story = gated(tells)
    for _ in range(3):
        events = story.tell(decided("FINISH"))
        assert isinstance(asked(events), AskAgent)
        (told,) = [event.problem for event in events if isinstance(event, Corrected)]
        assert "M1-T1 is TODO" in told and told in prompt(story)
    assert "M1-T1 is TODO" in refused(story)
    story = gated(tells)
    story.tell(decided("FINISH"))
    passed(story, "MAKER")


def test_a_gate_that_stops_beside_one_that_tells_stops_the_run() -> None:
    assert "must_pass" in refused(gated(Gate("finish_needs_plan", "all_done", on_failure="tell"), NEEDS))


def test_a_refused_end_can_be_mended_after_resume() -> None:
    story = gated(DONE)
    refused(story)
    story.tell(ResumeRequested())
    story.tell(written())
    passed(story, dev_plan=BOTH)


def test_what_the_gates_found_is_on_record_and_shown() -> None:
    story = gated(NEEDS, DONE, CLEAR)
    iteration(story, ALL.format(1), "CHECKER")
    before = story.run
    assert before is not None
    events = passed(story, dev_plan=BOTH)
    (made,) = [event for event in events if isinstance(event, MainDecided)]
    shown = [(one.claimed, one.shown, one.holds) for one in made.shown]
    assert ("PASS of CHECKER on M1-T2", "PASS", True) in shown and ("no open blocker", "none", True) in shown
    assert ("M1-T1 is DONE or VERIFIED", "it is VERIFIED", True) in [(c[:25], s, h) for c, s, h in shown]
    reasons = KIT.style.view.explain(before.state, made).reasons
    assert "no open blocker; shown: none" in [one.text for one in reasons]
    assert story.run is not None
    claims = KIT.style.view.parts(story.run)[-1].claims  # type: ignore[union-attr]
    assert [one.holds for one in claims if one.by == "MAIN, iteration 2"] == [True] * len(shown)


@pytest.mark.parametrize("on_failure", ["tell", "stop"])
def test_a_gate_that_does_not_let_a_decision_pass_is_on_record_and_shown(on_failure: Literal["tell", "stop"]) -> None:
    story = gated(replace(DONE, on_failure=on_failure), CLEAR)
    before = story.run
    events = story.tell(decided("FINISH", reason="done"))
    (one,) = [event for event in events if isinstance(event, ChecksFailed)]
    found = [(each.claimed[:9], each.shown, each.holds) for each in one.shown]
    tasks = [("M1-T1 is ", "it is TODO", False), ("M1-T2 is ", "it is TODO", False)]
    assert found == [*tasks, ("no open b", "none", True)] and (one.agent, one.iteration) == ("MAIN", 1)
    assert story.run is not None and before is not None
    claims = KIT.style.view.parts(story.run)[-1].claims  # type: ignore[union-attr]
    assert [(each.by, each.claimed[:9], each.shown, each.holds) for each in claims] == [
        ("MAIN, iteration 1", *row) for row in tasks
    ]


def test_the_reasons_of_a_refused_decision_are_all_of_its_checks() -> None:
    story = gated(DONE, CLEAR)
    (one,) = [each for each in story.tell(decided("FINISH", reason="done")) if isinstance(each, ChecksFailed)]
    assert story.run is not None
    reasons = KIT.style.view.explain(story.run.state, one).reasons
    assert [(each.text[:14], each.holds, each.taken) for each in reasons] == [
        ("FINISH: done", None, False),
        ("M1-T1 is DONE ", False, False),
        ("M1-T2 is DONE ", False, False),
        ("no open blocke", True, False),
    ]


def test_what_a_refused_report_claimed_is_on_record_and_shown() -> None:
    low = Gate("min_number", "min", prefix="coverage:", number=80)
    evidence = (Evidence(EvidenceKind.FILE, "code", path="a.py", on_failure="stop"),)
    for gates, result in (((low,), True), ((), False)):
        story = gated(*gates, evidence=evidence)
        tell(story, decided("CHECKER"), written(), said(GOOD.format(1) + "coverage: 12"))
        events = tell(story, checked(ClaimResult(result, "looked at")), written())
        (one,) = [event for event in events if isinstance(event, ChecksFailed)]
        failed = (
            ("coverage: at least 80", "12, which is less than 80") if result else ("PASS: a.py exists", "looked at")
        )
        assert one.agent == "CHECKER" and failed in [(each.claimed, each.shown) for each in one.shown]
        assert story.run is not None and story.run.ended is not None
        claims = KIT.style.view.parts(story.run)[-1].claims  # type: ignore[union-attr]
        assert [(each.by, each.claimed, each.shown, each.holds) for each in claims] == [
            ("CHECKER, iteration 1", *failed, False)
        ]


# What is said to agents, and how strictly they are read


def test_specialists_are_told_which_lines_the_policy_wants() -> None:
    gates = (
        Gate("min_number", "min", prefix="coverage:", also=("覆盖率：",), number=80, verdicts=("PASS",), required=True),
        Gate("require_line", "sure", prefix="confidence:", allowed=("low", "high")),
        Gate("forbid_line", "no", ("MAKER",), prefix="TODO"),
    )
    evidence = (
        Evidence(EvidenceKind.FILE, verdicts=("PASS",), line="file:"),
        Evidence(EvidenceKind.COMMAND, command=("make", "test")),
    )
    story = gated(*gates, evidence=evidence)
    tell(story, decided("CHECKER"), written())
    told = prompt(story)
    assert "- with PASS: the line that begins with 'coverage:' or '覆盖率：' has a number of at least 80" in told
    assert "- a line that begins with 'confidence:' and one of low, high" in told
    assert "every file that you name on a line that begins with 'file:', one at least, is there and not empty" in told
    assert "- `make test` is run, and ends with 0" in told and "TODO" not in told.split("# Iteration")[0]


@pytest.mark.req("S4-23")
@pytest.mark.parametrize("pick", ["one", "last"])
@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("结论：PASS\n结论：FAILED hard", None),
        ("结论：PASS\n结论: fail, see below", None),
        ("结论：FAIL\n结论：PASS | FAIL | BLOCKED", "FAIL"),
        ("结论：PASS\n结论：PASSED with 3 tests", "PASS"),
        ("结论：PASS\n结论：see above", "PASS"),
        ("结论：PASS\n```\n结论：FAILED hard\n```", "PASS"),
    ],
)
def test_a_line_that_begins_with_another_verdict_contradicts_the_one_that_counts(
    pick: Any, lines: str, verdict: str | None
) -> None:
    rules = replace(RULES, verdict_pick=pick)
    report = read_report(f"iteration: 1\n{lines}\n阻塞：无\n", rules, "CHECKER", 1)
    assert report.verdict == verdict
    assert [str(one) for one in report.problems if one.field == "verdict"] == (
        []
        if verdict
        else [f"the report contradicts itself: its verdict is PASS, and another line says another ({_quoted(lines)})"]
    )


def _quoted(lines: str) -> str:
    number, line = list(enumerate(lines.split("\n"), 2))[-1]
    return f"line {number}: {line!r}"


def test_where_the_last_verdict_counts_a_contradiction_before_it_does_not() -> None:
    text = "iteration: 1\n结论：FAILED hard\n结论：PASS\n阻塞：无\n"
    assert read_report(text, replace(RULES, verdict_pick="last"), "CHECKER", 1).verdict == "PASS"
    assert read_report(text, RULES, "CHECKER", 1).verdict is None


@pytest.mark.parametrize("name", ["结论：", "结论:"])
@pytest.mark.parametrize(
    "line",
    ["- {}FAIL", "**{}FAIL**", "> {}FAIL", "# {}FAIL", "2. {}**FAIL**", "- **{}** FAIL", "* {}fail"],
)
def test_another_verdict_in_other_notation_contradicts_the_one_that_counts(name: str, line: str) -> None:
    text = f"iteration: 1\n{line.format(name)}\n结论：PASS\n阻塞：无\n"
    report = read_report(text, RULES, "CHECKER", 1)
    assert report.verdict is None
    assert [(one.line, one.text) for one in report.problems] == [
        (2, "the report contradicts itself: its verdict is PASS, and another line says another")
    ]


@pytest.mark.parametrize(
    "line", ["- 结论：PASS", "**结论：PASS | FAIL**", "> 结论：一会儿再说", "```\n- 结论：FAIL\n```"]
)
def test_a_line_in_other_notation_that_says_no_other_verdict_contradicts_nothing(line: str) -> None:
    report = read_report(f"iteration: 1\n{line}\n结论：PASS\n阻塞：无\n", RULES, "CHECKER", 1)
    assert report.verdict == "PASS" and not report.problems


def test_a_hostile_report_is_read_before_anybody_notices() -> None:
    for mark in ("#", "*", "> ", "1. ", "- "):
        read_report(f"iteration: 1\n{mark * 100_000}\n结论：PASS\n阻塞：无\n", RULES, "CHECKER", 1)


@pytest.mark.parametrize(("clear", "said"), [("none", "None"), ("none", "none."), ("None.", "NONE"), ("无", "无。")])
def test_case_and_marks_behind_it_do_not_matter_where_nothing_blocks(clear: str, said: str) -> None:
    rules = replace(RULES, blocker_clear_value=clear)
    report = read_report(f"iteration: 1\n结论：PASS\n阻塞：{said}\n", rules, "CHECKER", 1)
    assert (report.clear, report.open_blockers, report.problems) == (True, (), ())
    report = read_report(f"iteration: 1\n结论：PASS\n阻塞：{said} of the keys\n", rules, "CHECKER", 1)
    assert (report.clear, report.open_blockers) == (False, (f"{said} of the keys",))


def test_what_blocks_is_not_said_in_a_block_of_code() -> None:
    report = read_report("iteration: 1\n结论：PASS\n```\n阻塞：无\n```\n", RULES, "CHECKER", 1)
    assert report.clear is None
    (problem,) = report.problems
    assert "a line '阻塞：' outside of code, comments and quotations with '无' if nothing does" in problem.text


def test_blockers_that_contradict_one_another_are_refused() -> None:
    story = begun()
    report = "iteration: 1\n结论：PASS\n阻塞：无\n阻塞：db down\n"
    tell(story, decided("CHECKER"), written(), said(report), checked(), written())
    assert "the report contradicts itself" in ended(story).because and "阻塞：db down" in ended(story).because


@pytest.mark.req("S4-44", "S4-45")
def test_missing_keys_of_a_decision_are_warned_about() -> None:
    def warnings(**more: Any) -> list[str]:
        return [event.text for event in begun().tell(decided(**more)) if isinstance(event, Warned)]

    assert warnings() == ["MAIN's decision has no 'dev_plan' and no 'finish_review_override', which counts as null"]
    assert warnings(dev_plan=None) == ["MAIN's decision has no 'finish_review_override', which counts as null"]
    assert warnings(dev_plan=None, finish_review_override=None) == []


@pytest.mark.req("S4-46")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"next_agent": "FINISH", "reason": "a", "next_agent": "MAKER"}', "the key 'next_agent' is in it twice"),
        ('{"next_agent": "MAKER", "reason": "a",}', "a comma before a closing bracket"),
        ('{"next_agent": "MAKER", "reason": "a", "x": {"y": 1, "y": 2}}', "the key 'y' is in it twice"),
        ('{"next_agent": "MAKER", // who\n "reason": "a"}', "it has a comment"),
        ('{"next_agent": "MAKER", "reason": "a", "x": NaN}', "NaN is no number"),
    ],
)
def test_almost_json_is_not_json(text: str, why: str) -> None:
    story = begun()
    story.tell(said(text))
    assert "MAIN 输出非 JSON" in ended(story).because and why in ended(story).because


def test_an_option_with_a_small_letter_is_chosen_by_it() -> None:
    story = begun()
    question = asked(tell(story, decided("USER", question="How?", options=["a: by train", "b) by car"]), written()))
    assert question.choices == {"a": "by train", "b": "by car", "something else": ""}


def test_evidence_is_shown_beside_the_claim_for_gates_of_reports_too() -> None:
    story = gated(Gate("min_number", "min", prefix="coverage:", number=80))
    tell(story, decided("CHECKER"), written(), said(GOOD.format(1) + "coverage: 90%"))
    assert arguments(story)["evidence"] == []
    tell(story, checked(), written())
    assert "- claimed: coverage: at least 80; shown: 90 (holds)" in prompt(story)
