"""MAIN decides, specialists report: each way that an iteration can take, and each that stops it."""

import json
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    StartRun,
)
from ripstop.kernel.events import (
    FORMAT,
    CancelRequested,
    GuardTripped,
    Redefined,
    ResumeRequested,
    Started,
    Warned,
)
from ripstop.styles.blackboard.calls import ClaimResult
from ripstop.styles.blackboard.decision import KNOWN
from ripstop.styles.blackboard.definition import Evidence, EvidenceKind, Gate, Specialist, VerificationPolicy
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.state import BoardEdited, MainDecided, ReportVerified, UserDecided
from ripstop.testing import Given, given
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
    meddled,
    opened,
    prompt,
    said,
    tell,
    written,
)


def again(story: Given, **request: Any) -> list[Any]:
    return story.tell(ResumeRequested(**request))


# The loop


@pytest.mark.req("S4-2", "S4-53", "S4-54", "S4-55", "S4-56", "S4-41", "S4-49")
def test_an_iteration_is_main_then_history_then_agent_then_report() -> None:
    story = begun()
    assert asked(tell(story, decided("MAKER", "it is missing", task="Make it."))) == CallTool(tool="board_write")
    assert "next_agent: MAKER\nreason: it is missing\ntask: Make it.\n" in arguments(story)["append"]
    assert asked(story.tell(written())).agent == "MAKER"
    assert asked(story.tell(said("iteration: 1\nMade."))) == CallTool(tool="board_check")
    events = story.tell(checked())
    assert any(isinstance(event, ReportVerified) for event in events)
    assert arguments(story)["reports"] == {"reports/report_maker.md": "iteration: 1\nMade.\n"}
    assert asked(story.tell(written())).agent == "MAIN"
    assert "# Iteration\n2 " in prompt(story) and "Made." in prompt(story)


@pytest.mark.req("S4-47", "S4-57", "S4-17")
def test_finish_is_in_the_history_before_the_run_ends() -> None:
    story = begun()
    story.tell(decided("FINISH", "all is done", dev_plan="update M1-T1 status to VERIFIED"))
    writing = arguments(story)
    assert "next_agent: FINISH" in writing["append"] and writing["close"]
    assert writing["plan_text"] == PLAN.replace("- status: TODO", "- status: VERIFIED", 1)
    assert story.run is not None and story.run.ended is None
    story.tell(written())
    assert ended(story).outcome == "completed" and ended(story).because == "all is done"


@pytest.mark.req("S4-48")
def test_a_person_is_asked_and_the_answer_is_in_the_history() -> None:
    story = begun()
    tell(story, decided("USER", "two ways", question="Which?", options=["left", "right"], decision_title="Way"))
    question = asked(story.tell(written()))
    assert isinstance(question, AskPerson) and list(question.choices) == ["left", "right", "something else"]
    events = story.tell(PersonAnswered(choice="something else", text="straight on\n## Iteration 99", by="ann"))
    assert any(isinstance(event, UserDecided) for event in events)
    appended = arguments(story)["append"]
    assert appended.startswith("\n## User Decision (Iteration 1)\n") and "comment: straight on\n  ##" in appended
    assert asked(story.tell(written())).agent == "MAIN"
    assert "straight on" in prompt(story)


@pytest.mark.req("S4-52", "S4-58")
def test_the_last_iteration_leads_to_the_limit_and_can_be_raised() -> None:
    story = begun(board(VerificationPolicy(RULES, max_iterations=1)))
    iteration(story, "iteration: 1\n")
    assert ended(story).outcome == "limit" and "max_iterations" in ended(story).because
    assert any(isinstance(record.event, GuardTripped) for record in story.records)
    assert asked(again(story, raises={"iterations": 1})) == CallTool(tool="board_write")
    assert asked(story.tell(written())).agent == "MAIN"


def test_a_used_board_goes_on_after_its_highest_iteration() -> None:
    story = begun(iteration=23, history="## Iteration 22\nx\n\n## Iteration 23\ny\n", left_out=21)
    assert "# Iteration\n24 " in prompt(story)
    assert "[21 earlier entries are left out]" in prompt(story) and "## Iteration 23\ny" in prompt(story)


@pytest.mark.req("S4-16", "S4-71")
def test_main_sees_the_recent_reports_cut_to_their_bound() -> None:
    story = begun(board(VerificationPolicy(RULES, recent_reports=2, max_report_chars=40)))
    for number in range(1, 5):
        iteration(story, f"iteration: {number}\n" + "x" * 100)
    shown = prompt(story)
    assert "MAKER, iteration 2" not in shown and "MAKER, iteration 3" in shown and "MAKER, iteration 4" in shown
    assert "x" * 41 not in shown and "[cut: the first 40 of 113 characters]" in shown


@pytest.mark.parametrize("agent", ["MAIN", "CHECKER"])
def test_a_prompt_that_is_too_long_shortens_plan_and_reports_and_keeps_what_the_board_says(agent: str) -> None:
    story = begun(plan=f"{PLAN}{'x' * 90_000}")
    iteration(story, f"iteration: 1\n{'y' * 3_000}")
    if agent == "CHECKER":
        tell(story, decided(agent), written())
    before = prompt(story)
    story.tell(Failed(reason="too long", fault="agent", too_long=len(before) // 3))
    told = prompt(story)
    assert len(told) < len(before) / 2 and "characters are left out here" in told and "# Goal\nA good line." in told
    system, _, _ = before.partition("# ")
    assert told.startswith(system) and ("You decide." if agent == "MAIN" else "You check.") in system
    assert story.run is not None and not story.run.ended


def test_a_schema_for_main_lets_it_say_everything_that_a_decision_may_have() -> None:
    story = begun()
    assert story.run is not None
    command = story.run.open[story.opened(AskAgent)]
    assert isinstance(command.command, AskAgent)
    schema = KIT.style.render(command.state, command.command).schema
    assert schema is not None and set(schema["properties"]) == set(KNOWN)
    assert schema["properties"]["next_agent"] == {"enum": ["MAKER", "CHECKER", "FINISH", "USER"]}


def test_a_prompt_and_the_state_stay_bounded_however_long_the_run() -> None:
    story = begun(board(VerificationPolicy(RULES, max_iterations=1000)))
    sizes = []
    for number in range(1, 121):
        iteration(story, f"iteration: {number}\n" + "x" * 50, task=f"task {number}")
        sizes.append(len(prompt(story)))
    assert max(sizes[60:]) <= max(sizes[20:60]) + 60
    assert story.run is not None and len(story.run.state.reports) <= 12 and len(story.run.state.decisions) <= 12


def test_what_was_said_last_is_shown_as_said() -> None:
    story = begun()

    def last() -> str:
        assert story.run is not None
        return KIT.style.view.picture(story.run).document

    iteration(story, "iteration: 1\nMade.")
    assert last() == "iteration: 1\nMade."
    tell(story, decided("CHECKER", "it is made"), written())
    assert last() == "CHECKER: it is made"
    tell(story, said("no fields"), checked(), written())
    assert ended(story).outcome == "failed" and last() == "no fields"
    story = begun()
    iteration(story, "iteration: 1\nMade.")
    tell(story, decided("FINISH", "it is good"), written())
    assert ended(story).outcome == "completed" and last() == "FINISH: it is good", "not what the maker said before it"
    story = begun()
    iteration(story, "iteration: 1\nMade.")
    story.tell(said("not JSON"))
    assert ended(story).outcome == "failed" and last() == "not JSON"


# What MAIN says


@pytest.mark.req("S4-46", "S4-4", "S4-74")
@pytest.mark.parametrize(
    "text", ["I think MAKER.", 'Fine.\n{"next_agent": "MAKER", "reason": "x"}', "", "[1]", '{"a": ']
)
def test_words_that_are_not_json_stop_the_run(text: str) -> None:
    story = begun()
    story.tell(said(text))
    assert ended(story).outcome == "failed"
    assert "MAIN 输出非 JSON" in ended(story).because and "iteration 1" in ended(story).because


def test_prose_before_the_decision_is_allowed_with_last() -> None:
    story = begun(board(VerificationPolicy(RULES, main_json="last")))
    events = story.tell(said('Thinking {"x": 1}.\n{"next_agent": "maker", "reason": "x"}\n'))
    assert [event.next_agent for event in events if isinstance(event, MainDecided)] == ["MAKER"]


@pytest.mark.req("S4-50", "S4-42", "S4-43", "S4-51")
@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ({"reason": "x"}, "no 'next_agent'"),
        ({"next_agent": "BAKER", "reason": "x"}, "not one of: MAKER, CHECKER, FINISH, USER"),
        ({"next_agent": "MAIN", "reason": "x"}, "not one of: MAKER, CHECKER, FINISH, USER"),
        ({"next_agent": None, "reason": "x"}, "next_agent is None"),
        ({"next_agent": ["MAKER"], "reason": "x"}, "not one of"),
        ({"next_agent": "MAKER"}, "no 'reason'"),
        ({"next_agent": "MAKER", "reason": " "}, "no 'reason'"),
        ({"next_agent": "MAKER", "reason": 7}, "'reason' must be a text"),
        ({"next_agent": "MAKER", "reason": "x", "dev_plan": ["y"]}, "'dev_plan' must be a text"),
        ({"next_agent": "USER", "reason": "x", "options": "left"}, "'options' must be a list"),
    ],
)
def test_a_wrong_decision_stops_the_run_and_says_why(decision: dict[str, Any], told: str) -> None:
    story = begun()
    story.tell(said(msgspec.json.encode(decision).decode()))
    assert ended(story).outcome == "failed" and told in ended(story).because


@pytest.mark.req("S4-45")
def test_an_override_is_only_for_finish_and_needs_a_reason() -> None:
    story = begun()
    story.tell(decided("MAKER", finish_review_override="ignore"))
    assert "only for FINISH" in ended(story).because
    story = begun()
    story.tell(decided("FINISH", "", finish_review_override="ignore"))
    assert "needs a 'reason'" in ended(story).because


def test_main_is_asked_again_only_as_often_as_the_policy_says() -> None:
    story = begun(board(VerificationPolicy(RULES, main_retries=1)))
    again_asked = asked(story.tell(said("hm")))
    assert again_asked.agent == "MAIN" and again_asked.continues
    assert "could not be used" in prompt(story)
    story.tell(said("hm"))
    assert ended(story).outcome == "failed"


def test_a_failed_decision_can_be_made_again_after_resume() -> None:
    story = begun()
    story.tell(said("no"))
    assert asked(again(story)) == CallTool(tool="board_write")
    assert arguments(story)["append"] == "" and arguments(story)["plan_text"] is None
    assert asked(story.tell(written())).agent == "MAIN"
    assert asked(story.tell(decided())) == CallTool(tool="board_write")


def test_a_cancelled_run_and_a_completed_one_are_not_resumed() -> None:
    story = begun()
    story.tell(CancelRequested())
    assert story.run is not None and not KIT.style.ending(story.run.state).is_resumable
    story = begun()
    tell(story, decided("FINISH"), written())
    assert story.run is not None and not KIT.style.ending(story.run.state).is_resumable


@pytest.mark.req("S4-44")
def test_the_plan_is_updated_as_recognised_and_else_only_recorded() -> None:
    story = begun()
    events = story.tell(decided(dev_plan="update M1-T2 status to DOING; think about M3; update M9-T9 status to DONE"))
    assert arguments(story)["plan_text"] == PLAN.replace(
        "### M1-T2: Mend it\n- status: TODO", "### M1-T2: Mend it\n- status: DOING"
    )
    assert any(isinstance(event, Warned) and "M9-T9" in event.text for event in events)


def test_an_update_in_other_words_is_warned_about() -> None:
    story = begun()
    events = story.tell(decided(dev_plan="update M1-T1 status to **DOING**. Update the status of M1-T2, too."))
    assert [event.text for event in events if isinstance(event, Warned)][-1] == (
        "nothing was updated by 'Update the status' of the dev_plan; `update ID status to STATUS` is carried out"
    )
    assert "- status: DOING" in arguments(story)["plan_text"]


def test_a_whole_new_plan_replaces_the_old_one() -> None:
    story = begun()
    story.tell(decided(dev_plan_next="# New\n- T1: x (status: TODO)\n"))
    assert arguments(story)["plan_text"] == "# New\n- T1: x (status: TODO)\n"
    tell(story, written(), said("iteration: 1"), checked(), written())
    assert "# New" in prompt(story)


def test_a_run_without_tasks_is_told_apart_by_its_reasons() -> None:
    story = begun()
    for number in range(1, 9):
        report = GOOD.replace("PASS", ("FAIL", "PASS")[number % 2]).format(number)
        iteration(story, report, "CHECKER", reason=f"M{number}")
    assert story.run is not None and story.run.ended is None


@pytest.mark.parametrize(
    ("options", "choices"),
    [
        (["train", "car", "train"], {"train": "", "car": ""}),
        (["opt1: take the train", "B：the car"], {"opt1": "take the train", "B": "the car"}),
        (["Note: it rains"], {"Note: it rains": ""}),
        ([{"option_id": "opt1", "description": "接受"}], {"opt1": "接受"}),
        ([{"key": "A", "value": "接受"}], {"A": "接受"}),
        ([{"label": "go", "description": "by train"}, {"label": "go", "description": "by car"}],
         {"go: by train": "", "go: by car": ""}),
    ],
)  # fmt: skip
def test_options_keep_their_ids_and_words(options: list[Any], choices: dict[str, str]) -> None:
    story = begun()
    question = asked(tell(story, decided("USER", question="How?", options=options), written()))
    assert {**question.choices} == {**choices, "something else": ""}


def test_options_with_one_id_and_different_words_are_refused() -> None:
    story = begun()
    story.tell(decided("USER", options=[{"id": "a", "label": "x"}, {"id": "a", "label": "y"}]))
    assert "'options' has 'a' twice, with different words" in ended(story).because


def test_an_override_that_is_false_overrides_nothing() -> None:
    story = gated(Gate("finish_needs", "must_pass", agents=("CHECKER",), verdicts=("PASS",)))
    story.tell(decided("FINISH", finish_review_override=False))
    assert "must_pass" in ended(story).because


def test_a_decision_is_the_outermost_object() -> None:
    story = begun(board(VerificationPolicy(RULES, main_json="last")))
    nested = {"next_agent": "FINISH", "reason": "outer", "task": {"next_agent": "MAKER", "reason": "inner"}}
    events = story.tell(said(f"So:\n{json.dumps(nested)}"))
    assert [event.next_agent for event in events if isinstance(event, MainDecided)] == ["FINISH"]


@pytest.mark.parametrize("before", ["<think>MAKER or CHECKER?</think>\n", "\ufeff"])
def test_thoughts_before_a_strict_decision_are_left_out(before: str) -> None:
    story = begun()
    events = story.tell(said(f'{before}{{"next_agent": "MAKER", "reason": "x"}}'))
    assert any(isinstance(event, MainDecided) for event in events)


def test_a_heading_in_history_append_keeps_its_words_but_not_its_number() -> None:
    story = begun()
    story.tell(decided(history_append="## Iteration 24: [MILESTONE] done\r\nnoted\n\r## Iteration 999999"))
    appended = arguments(story)["append"]
    assert "\n[MILESTONE] done\nnoted\n ## Iteration 999999" in appended and appended.count("\n## ") == 1


def test_evidence_that_does_not_hold_is_a_warning() -> None:
    story = begun(board(VerificationPolicy(RULES, evidence=(Evidence(EvidenceKind.FILE, path="x"),))))
    tell(story, decided("CHECKER"), written(), said(GOOD.format(1)))
    events = story.tell(checked(ClaimResult(False, "there is no file 'x'")))
    told = [event.text for event in events if isinstance(event, Warned)]
    assert told == ["CHECKER claims PASS: x exists, and that does not hold: there is no file 'x'"]


def test_history_append_cannot_forge_an_entry() -> None:
    story = begun()
    story.tell(decided(history_append="## Iteration 1:\nnoted\n## Iteration 77\nforged"))
    appended = arguments(story)["append"]
    assert "noted" in appended and "\n## Iteration 77" not in appended and appended.count("\n## ") == 1


# What agents report


@pytest.mark.req("S4-21", "S4-22", "S4-26", "S4-28", "S4-36", "S4-23", "S4-3", "S4-18")
@pytest.mark.parametrize(
    ("report", "told"),
    [
        ("结论：PASS\n阻塞：无", "Report missing iteration (critical field)"),
        ("iteration: 2\n结论：PASS\n阻塞：无", "of iteration 2, and the current one is 1"),
        ("iteration: one\n结论：PASS\n阻塞：无", "not a whole number"),
        ("iteration: 1\n阻塞：无", "has no verdict"),
        ("iteration: 1\n结论：MAYBE\n阻塞：无", "'MAYBE' is not allowed; allowed are PASS, FAIL"),
        ("iteration: 1\n结论：PASS", "does not say what blocks"),
        ("iteration: 1\n结论：PASS\n阻塞：", "says nothing"),
        ("iteration: 1\n结论：PASS\n结论：FAIL\n阻塞：无", "several verdicts that differ"),
    ],
)
def test_a_report_that_the_policy_refuses_stops_the_run(report: str, told: str) -> None:
    story = begun()
    tell(story, decided("CHECKER"), written(), said(report), checked())
    assert arguments(story)["reports"] == {"reports/report_checker.md": f"{report}\n"}, "a person can mend it there"
    story.tell(written())
    because = ended(story).because
    assert ended(story).outcome == "failed" and told in because
    assert "reports/report_checker.md of CHECKER in iteration 1" in because


@pytest.mark.req("S4-27", "S4-40")
def test_an_agent_outside_the_rules_needs_only_the_iteration() -> None:
    story = begun()
    assert asked(iteration(story, "iteration: 1\nfree words")).agent == "MAIN"


def test_a_refused_report_is_asked_for_again_after_resume() -> None:
    story = begun()
    tell(story, decided("CHECKER", task="Check."), written(), said("no fields"), checked(), written())
    assert asked(again(story)) == CallTool(tool="board_check")
    question = asked(story.tell(checked()))
    assert question.agent == "CHECKER" and question.continues is None
    assert asked(tell(story, said(GOOD.format(1)), checked(), written())).agent == "MAIN"


def test_a_report_that_a_person_mended_on_disk_is_taken_after_resume() -> None:
    story = begun()
    tell(story, decided("CHECKER"), written(), said("no fields"), checked(), written())
    again(story)
    events = story.tell(checked(report=GOOD.format(1)))
    assert [event.verdict for event in events if isinstance(event, ReportVerified)] == ["PASS"]


@pytest.mark.req("S4-11", "S4-15")
def test_a_report_that_the_agent_wrote_itself_counts_instead_of_its_words() -> None:
    story = begun()
    tell(story, decided("CHECKER"), written(), said("I am done."))
    story.tell(checked(report=GOOD.format(1)))
    assert arguments(story)["reports"]["reports/report_checker.md"] == GOOD.format(1)


# The board


def test_a_board_that_changed_during_an_agents_turn_stops_the_run() -> None:
    story = begun()
    found = meddled("memory/dev_plan.md", "-status: TODO\n+status: DONE")
    tell(story, decided(), written(), said("iteration: 1"), found)
    because = ended(story).because
    assert "memory/dev_plan.md (changed)" in because and "MAKER" in because and "+status: DONE" in because
    assert "--accept-edits" in because
    assert asked(again(story)) == CallTool(tool="board_check")
    story.tell(found)
    assert ended(story).outcome == "failed"


def test_a_board_that_was_put_back_lets_the_run_continue_with_the_same_report() -> None:
    story = begun()
    found = meddled("memory/dev_plan.md", "")
    tell(story, decided(), written(), said("iteration: 1\nMade."), found)
    again(story)
    assert any(isinstance(event, ReportVerified) for event in story.tell(checked()))
    assert "Made." in arguments(story)["reports"]["reports/report_maker.md"]


def test_accepted_edits_count_and_the_run_continues_with_the_same_report() -> None:
    story = begun()
    found = meddled("memory/dev_plan.md", "")
    tell(story, decided(), written(), said("iteration: 1\nMade."), found)
    assert asked(again(story, accept_edits=True)) == CallTool(tool="board_write")
    events = story.tell(edited("memory/dev_plan.md", plan="# Theirs\n"))
    assert BoardEdited(paths=("memory/dev_plan.md",)) in events
    assert asked(story.tell(written())) == CallTool(tool="board_check")
    assert asked(tell(story, checked(), written())).agent == "MAIN"
    assert "# Theirs" in prompt(story)


def test_a_persons_edit_of_the_plan_between_turns_is_kept_with_the_update() -> None:
    story = begun()
    story.tell(decided(dev_plan="update M1-T1 status to DONE"))
    events = story.tell(edited("memory/dev_plan.md", plan=PLAN + "\n### M1-T3: More\n- status: TODO\n"))
    assert BoardEdited(paths=("memory/dev_plan.md",)) in events
    writing = arguments(story)["plan_text"]
    assert "M1-T3" in writing and "### M1-T1: Write it\n- status: DONE" in writing


def test_a_whole_new_plan_does_not_overwrite_an_edit_that_main_has_not_seen() -> None:
    story = begun()
    story.tell(decided(dev_plan_next="# Mine\n"))
    events = story.tell(edited("memory/dev_plan.md", plan="# Theirs\n"))
    assert any(isinstance(event, Warned) and "was edited while MAIN decided" in event.text for event in events)
    assert arguments(story)["plan_text"] is None


def test_a_board_that_is_edited_all_the_time_stops_the_run() -> None:
    story = begun()
    story.tell(decided())
    for _ in range(5):
        story.tell(edited("memory/dev_plan.md"))
    assert "edited all the time" in ended(story).because


def test_a_turn_that_was_broken_off_begins_again_on_an_unchanged_board() -> None:
    story = given(KIT.style, board(), limits=Limits(calls=2))
    tell(story, opened(), decided(), written(), said("iteration: 1"), checked(), written())
    assert ended(story).outcome == "limit"
    assert asked(again(story, raises={"calls": 5})) == CallTool(tool="board_write")


@pytest.mark.parametrize("at", [0, 2, 4], ids=["open", "write", "check"])
def test_a_board_tool_that_fails_stops_the_run_and_is_called_again_after_resume(at: int) -> None:
    story = given(KIT.style, board())
    way: list[Answer] = [opened(), decided(), written(), said("iteration: 1"), checked()]
    tell(story, *way[:at])
    before = asked([record.event for record in story.records])
    story.tell(Failed(reason="The disk is full."))
    assert "The disk is full." in ended(story).because
    assert asked(again(story)) == before


def test_a_new_definition_is_taken_over_between_turns() -> None:
    story = begun()
    story.tell(decided("CHECKER"))
    story.contents.definitions["new"] = board(agents=(Specialist("CHECKER", "You check twice.", "checker"),))
    story.tell(Redefined(definition="new"))
    story.tell(written())
    assert "You check twice." in prompt(story)


# Gates, evidence, guards


def gated(*gates: Gate, **changes: Any) -> Given:
    return begun(board(VerificationPolicy(RULES, gates=gates, **changes)))


@pytest.mark.req("S4-33", "S4-34", "S4-35", "S4-5", "S4-68")
def test_a_gate_keeps_an_agent_from_being_called_before_another_has_reported() -> None:
    gate = Gate("before", "checks_first", first="CHECKER", then="MAKER")
    story = gated(gate)
    story.tell(decided("MAKER"))
    assert "'checks_first' wants a report of CHECKER before MAKER is called" in ended(story).because
    story = gated(gate)
    iteration(story, GOOD.format(1), "CHECKER")
    assert asked(story.tell(decided("MAKER"))) == CallTool(tool="board_write")


def test_a_gate_for_marked_tasks_lets_other_tasks_pass() -> None:
    gate = Gate("before", "marked_first", first="CHECKER", then="MAKER", marked="test_required")
    story = gated(gate)
    assert asked(story.tell(decided("MAKER", task="Do M1-T2."))) == CallTool(tool="board_write")
    story = gated(gate)
    story.tell(decided("MAKER", task="Do M1-T1."))
    assert "marked_first" in ended(story).because


def test_a_run_cannot_finish_over_a_failed_verdict_unless_it_is_overridden() -> None:
    gate = Gate("finish_needs", "must_pass", agents=("CHECKER",), verdicts=("PASS",))
    story = gated(gate)
    iteration(story, "iteration: 1\n结论：FAIL\n阻塞：broken", "CHECKER")
    story.tell(decided("FINISH"))
    assert "wants PASS of CHECKER before FINISH, whose last verdict is FAIL" in ended(story).because
    again(story)
    story.tell(written())
    assert asked(story.tell(decided("FINISH", "known", finish_review_override="ignore"))) == CallTool(
        tool="board_write"
    )


def test_a_run_cannot_finish_without_a_verdict_that_is_needed() -> None:
    gate = Gate("finish_needs", "must_pass", agents=("CHECKER",), verdicts=("PASS",))
    story = gated(gate)
    story.tell(decided("FINISH"))
    assert "wants PASS of CHECKER before FINISH, which has not reported in this run" in ended(story).because
    story = gated(msgspec.structs.replace(gate, if_reported=True))
    assert asked(story.tell(decided("FINISH"))) == CallTool(tool="board_write")


@pytest.mark.parametrize(
    ("line", "accepted"),
    [("coverage: 79.9%", False), ("Coverage: 50/63 (79.9 %)", False), ("coverage：80%", True), ("", True)],
)
def test_a_number_below_the_minimum_is_refused(line: str, accepted: bool) -> None:
    story = gated(Gate("min_number", "min_coverage", prefix="coverage:", number=80, verdicts=("PASS",)))
    tell(story, decided("CHECKER"), written(), said(f"{GOOD.format(1)}{line}\n"), checked(), written())
    assert story.run is not None and (story.run.ended is None) is accepted
    if not accepted:
        assert "at least 80, and the report says 79.9" in ended(story).because


def test_main_sees_what_was_claimed_beside_what_was_shown() -> None:
    evidence = (
        Evidence(EvidenceKind.FILE, "code", path="collab/a.py"),
        Evidence(EvidenceKind.QUOTE, "source", path="n.md", line="quote:"),
    )
    story = begun(board(VerificationPolicy(RULES, evidence=evidence)))
    tell(story, decided("CHECKER"), written(), said(f"{GOOD.format(1)}quote: “so it is”\n"))
    assert [look["path"] for look in arguments(story)["evidence"]] == ["collab/a.py", "n.md"]
    assert arguments(story)["evidence"][1]["text"] == "so it is"
    tell(story, checked(ClaimResult(True, "12 bytes"), ClaimResult(False, "not in the file")), written())
    assert "claimed: PASS: collab/a.py exists; shown: 12 bytes (holds)" in prompt(story)
    assert "shown: not in the file (DOES NOT HOLD)" in prompt(story)
    assert story.run is not None
    claims = KIT.style.view.parts(story.run)[-1]
    assert [claim.holds for claim in claims.claims] == [True, False]  # type: ignore[union-attr]


def test_evidence_that_must_hold_stops_the_run() -> None:
    story = begun(
        board(VerificationPolicy(RULES, evidence=(Evidence(EvidenceKind.FILE, path="x", on_failure="stop"),)))
    )
    tell(story, decided("CHECKER"), written(), said(GOOD.format(1)))
    tell(story, checked(ClaimResult(False, "there is no such file")), written())
    assert "claimed PASS: x exists, shown there is no such file" in ended(story).because


def test_the_same_task_for_the_same_agent_with_nothing_changed_is_a_circle() -> None:
    story = begun()
    for number in range(1, 20):
        if story.run is not None and story.run.ended:
            break
        iteration(story, f"iteration: {number}\nStill the same.", task="Make it.")
    assert ended(story).outcome == "stopped" and "nothing changed" in ended(story).because


def test_verdicts_that_flip_back_and_forth_stop_the_run() -> None:
    story = begun(board(VerificationPolicy(RULES), guards={"patience": 3}))
    number = 0
    while not (story.run and story.run.ended):
        number += 1
        verdict = "PASS\n阻塞：无" if number % 2 else f"FAIL\n阻塞：{number}"
        if not (story.run and story.run.ended):
            tell(story, decided("CHECKER", f"r{number}", task="Check.", dev_plan=f"note {number}"), written())
            tell(story, said(f"iteration: {number}\n结论：{verdict}"), checked())
        if story.run and not story.run.ended:
            story.tell(written())
        assert number < 10
    assert "changed its verdict on one task 3 times: PASS → FAIL → PASS → FAIL" in ended(story).because


# Workflows as agents


def test_the_result_of_a_workflow_is_its_report() -> None:
    agents = (Specialist("CHECKER", "Check it.", "checker", workflow="reviewers"),)
    definition = board(agents=agents)
    assert KIT.style.uses(definition).children == {"reviewers": ""}
    story = begun(definition)
    command = asked(tell(story, decided("CHECKER", task="Check."), written()))
    assert isinstance(command, StartRun) and command.workflow == "reviewers"
    assert story.run is not None
    given_input = KIT.style.start_child(story.run.open[story.opened(StartRun)].state, command).input
    assert "Check." in given_input and "结论：" in given_input
    story.contents.results["r"] = {"content": "结论：PASS\n阻塞：无"}
    story.tell(RunFinished(run="story.9", outcome="completed", result="r"))
    events = story.tell(checked())
    assert [event.verdict for event in events if isinstance(event, ReportVerified)] == ["PASS"]
    assert arguments(story)["reports"]["reports/report_checker.md"].startswith("iteration: 1\n")


def test_a_workflow_that_does_not_complete_stops_the_run() -> None:
    story = begun(board(agents=(Specialist("CHECKER", "", "checker", workflow="reviewers"),)))
    tell(story, decided("CHECKER"), written(), RunFinished(run="x", outcome="limit", because="too dear"))
    assert "ended as limit (x): too dear" in ended(story).because


def test_a_workflow_that_reaches_the_limit_of_the_run_continues_when_it_is_raised() -> None:
    definition = board(agents=(Specialist("CHECKER", "", "checker", workflow="reviewers"),))
    started = Started(style="blackboard", definition="definition", format=FORMAT, limits=Limits(calls=3))
    story = Given(KIT.style, {"definition": definition})
    story.tell(started)
    tell(story, opened(), decided("CHECKER"), written())
    story.tell(RunFinished(run="story.9", outcome="limit", because="no calls left", calls=2))
    assert ended(story).outcome == "limit"
    again(story, raises={"calls": 5})
    command = asked(story.tell(checked()))
    assert isinstance(command, StartRun) and command.name == "story.9"


def test_a_child_works_on_a_copy_of_the_board() -> None:
    started = Started(style="blackboard", definition="definition", format=FORMAT, parent=("p", 3))
    story = Given(KIT.style, {"definition": board()})
    story.tell(started)
    assert arguments(story)["copy"] is True
