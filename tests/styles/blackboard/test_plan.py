"""Plans as people and agents write them: an update changes the status of its task, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.styles.blackboard.plan import MAX_UPDATES, Update, apply_update, tasks_of, unread_updates, updates_in

DONE = ("DONE", "VERIFIED")


def updated(plan: str, status: str = "DONE", task: str = "M1-T1") -> str | None:
    return apply_update(plan, Update(task, status), DONE)


@pytest.mark.req("S4-44")
@pytest.mark.parametrize(
    ("plan", "after"),
    [
        ("### M1-T1: Login\n- status: TODO\n- evidence: none", "### M1-T1: Login\n- status: DONE\n- evidence: none"),
        ("### M1-T1：登录\n- 状态：TODO  \n", "### M1-T1：登录\n- 状态：DONE  \n"),
        ("### [M1-T1] Login\nstatus: TODO", "### [M1-T1] Login\nstatus: DONE"),
        ("### Task M1-T1: Login\n- **Status:** TODO", "### Task M1-T1: Login\n- **Status:** DONE"),
        ("## M1-T1\n* status: **TODO** (since May)", "## M1-T1\n* status: **DONE**"),
        ("## M1-T1\n- status: TODO, tests fail", "## M1-T1\n- status: DONE"),
        ("- M1-T1: Login (status: TODO, tests fail)", "- M1-T1: Login (status: DONE)"),
        ("## M1-T1\n- status: IN PROGRESS", "## M1-T1\n- status: DONE"),
        ("## M1-T1\n- status: TODO → DOING", "## M1-T1\n- status: DONE"),
        ("## M1-T1\n- status:", "## M1-T1\n- status: DONE"),
        ("## M1-T1\r\n- status: TODO\r\nmore\r\n", "## M1-T1\r\n- status: DONE\r\nmore\r\n"),
        ("- M1-T1: Login (status: TODO)", "- M1-T1: Login (status: DONE)"),
        ("- M1-T1: Login\n  - status: TODO\n- M1-T2: x", "- M1-T1: Login\n  - status: DONE\n- M1-T2: x"),
        ("- [ ] M1-T1: Login", "- [x] M1-T1: Login"),
        ("| ID | Task | Status | Owner |\n|---|---|---|---|\n| M1-T1 | Login | TODO | DEV |",
         "| ID | Task | Status | Owner |\n|---|---|---|---|\n| M1-T1 | Login | DONE | DEV |"),
        ("| ID | 状态 | 任务 |\n|---|:-:|---|\n| M1-T1 | **TODO** | 登录 |",
         "| ID | 状态 | 任务 |\n|---|:-:|---|\n| M1-T1 | **DONE** | 登录 |"),
        ("| ID | Task | Status |\n|---|---|---|\n| M1-T1 | Login |  |",
         "| ID | Task | Status |\n|---|---|---|\n| M1-T1 | Login | DONE |"),
        ("### M1-T2: b\n- depends_on:\n  - M1-T1\n- status: TODO\n### M1-T1: a\n- status: TODO",
         "### M1-T2: b\n- depends_on:\n  - M1-T1\n- status: TODO\n### M1-T1: a\n- status: DONE"),
        ("### M1-T1: HTTP status: 400 comes back\n- accepts {status: approved|rejected}\n- status: TODO",
         "### M1-T1: HTTP status: 400 comes back\n- accepts {status: approved|rejected}\n- status: DONE"),
        ("```\n### M1-T1: template\n- status: TODO\n```\n### M1-T1: real\n- status: TODO",
         "```\n### M1-T1: template\n- status: TODO\n```\n### M1-T1: real\n- status: DONE"),
    ],
)  # fmt: skip
def test_an_update_changes_the_status_and_nothing_else(plan: str, after: str) -> None:
    assert updated(plan) == after.replace("|  |", "| DONE |")


@pytest.mark.req("S4-44")
@pytest.mark.parametrize(
    "example",
    [
        "````markdown\n```\n- T9: x\n```\n- T8: x\n````",
        "~~~\n```\n- T9: x\n~~~",
        "- T1: a\n      ```\n      - T9: x (status: TODO)\n      ```",
        "```\n- T9: x\n``` not closed\n- T8: x\n```",
        "```\n- T9: x\n`````",
    ],
)
def test_an_example_in_a_fence_is_not_a_task(example: str) -> None:
    assert [task.id for task in tasks_of(f"{example}\n- T1: real")] == ["T1"]


def test_code_in_a_line_opens_no_fence() -> None:
    assert [task.id for task in tasks_of("```inline``` code\n- T1: a\n#tag\n- T2: b")] == ["T1", "T2"]


@pytest.mark.parametrize(
    "plan",
    [
        "# Plan\nM1-T1 is mentioned here, status: TODO",
        "| ID | Task |\n|---|---|\n| M1-T1 | Login page |",
        "| M1-T1 | Login | TODO |",
        "### M1-T1: no status",
        "### M1-T2: b\n- M1-T1 comes first\n- status: TODO",
        "",
    ],
)
def test_a_plan_without_a_place_for_the_status_stays_as_it_is(plan: str) -> None:
    assert updated(plan) is None


@pytest.mark.parametrize(
    ("box", "status", "after"), [(" ", "VERIFIED", "x"), ("x", "DOING", " "), ("x", "TODO", " "), (" ", "TODO", " ")]
)
def test_a_box_is_ticked_only_for_what_is_done(box: str, status: str, after: str) -> None:
    assert updated(f"- [{box}] M1-T1: a", status) == f"- [{after}] M1-T1: a"


def test_a_clear_box_cannot_say_that_a_task_is_under_way() -> None:
    assert updated("- [ ] M1-T1: a", "IN_PROGRESS") is None


def test_tasks_are_listed_once_with_title_and_status() -> None:
    plan = (
        "# Plan\n- M1-T1: overview\n\n## M1: Foundations\n### M1-T1: Login (rendered + reviewed)\n- status: DOING\n"
        "- acceptance:\n  - E2E tests pass\n  - Python3 works\n## 1.1 Numbered\n- status: TODO\n## 2. Notes\n"
        "### 第1章：雾\n- 状态：TODO\n"
    )
    assert [(one.id, one.title, one.status) for one in tasks_of(plan)] == [
        ("M1-T1", "Login (rendered + reviewed)", "DOING"),
        ("M1", "Foundations", ""),
        ("1.1", "Numbered", "TODO"),
        ("第1章", "雾", "TODO"),
    ]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("DONE", "DONE"),
        ("**DONE** ✅", "DONE"),
        ("DONE.", "DONE"),
        ("DONE (2026-01-30)", "DONE"),
        ("DONE 2026-01-30 14:05 ✔", "DONE"),
        ("完成（2026年1月30日）", "完成"),
        ("IN_PROGRESS", "IN_PROGRESS"),
        ("DONE (not verified)", "DONE (not verified)"),
        ("**DONE** (not verified)", "DONE (not verified)"),
        ("DONE, tests fail", "DONE, tests fail"),
        ("DONE - but broken", "DONE - but broken"),
        ("DONE. Not tested.", "DONE. Not tested"),
        ("完成，未测试", "完成，未测试"),
    ],
)
def test_a_status_is_all_that_stands_there_but_for_a_date_and_marks(said: str, status: str) -> None:
    places = [f"### T1: a\n- status: {said}", f"| ID | Status |\n|---|---|\n| T1 | {said} |"]
    assert [[task.status for task in tasks_of(plan)] for plan in places] == [[status], [status]]


@pytest.mark.parametrize("said", ["DONE, tests fail", "DONE (not verified)", "DONE（未测试）"])
def test_a_status_on_the_line_of_its_task_is_all_that_stands_there(said: str) -> None:
    assert [task.status for task in tasks_of(f"- T1: a (status: {said})")] == [said]


@pytest.mark.parametrize(
    ("said", "updates"),
    [
        ("update M1-T1 status to DONE, then rest", [("M1-T1", "DONE")]),
        ("update `M1-T1` status to 'IN PROGRESS'.", [("M1-T1", "IN PROGRESS")]),
        ("update M1-T1 status to IN PROGRESS", [("M1-T1", "IN PROGRESS")]),
        ("update M1-T1 status to in progress, then rest", [("M1-T1", "in progress")]),
        ("update M1-T1 status to NEEDS REVIEW; ask DEV", [("M1-T1", "NEEDS REVIEW")]),
        ("update M1-T1 status to DONE and go on", [("M1-T1", "DONE")]),
        ("UPDATE T1 STATUS TO DONE UPDATE T2 STATUS TO TODO", [("T1", "DONE"), ("T2", "TODO")]),
        ("update M1-T1 status to DOING Next: TEST", [("M1-T1", "DOING")]),
        ("update M1-T1 status to DONE并派发DEV", [("M1-T1", "DONE")]),
        ("Update 第1章 status to 完成", [("第1章", "完成")]),
        ("update M1-T1 status to **DONE**", [("M1-T1", "DONE")]),
        ("update **M1-T1** status to *IN REVIEW*.", [("M1-T1", "IN REVIEW")]),
        ("update task M1-T1 status to DONE", [("M1-T1", "DONE")]),
        ("Update the tasks T1 and T2 statuses to DONE", [("T1", "DONE"), ("T2", "DONE")]),
        ("update `T1`, T2, and T3 status to DONE; go on", [("T1", "DONE"), ("T2", "DONE"), ("T3", "DONE")]),
        ("update T1、任务2 status to 完成", [("T1", "完成"), ("任务2", "完成")]),
        ("do not update M1-T1 and M1-T2 status to DONE", []),
        ("do not update M1-T1 status to DONE yet", []),
        ("M1-T1 is done", []),
    ],
)
def test_updates_are_recognised_in_free_words(said: str, updates: list[Any]) -> None:
    assert [(one.task, one.status) for one in updates_in(said)] == updates


@pytest.mark.parametrize(
    ("said", "unread"),
    [
        ("update the status of M1-T1 to DONE", ["update the status"]),
        ("Update M1-T1: status DONE; update M1-T2 status to DONE", ["Update M1-T1: status"]),
        ("update M1-T1 and M1-T2 status to DONE", []),
        ("update the plan, then update T1 status to DONE", []),
        ("do not update M1-T1 status to DONE yet", []),
        ("the update is in; its status is good", []),
    ],
)
def test_an_update_in_other_words_is_found(said: str, unread: list[str]) -> None:
    assert list(unread_updates(said)) == unread


HOSTILE = [
    f"# P\n| a1 | x{' ' * 3000}| |\n",
    "- a1 status: X\n" * 100_000,
    "- a1 x\n" * 140_000,
    "#" * 100_000,
    "| " * 100_000 + "\n|-|\n",
    "".join(f"{' ' * (number % 1000)}- a{number}: x\n" for number in range(5_000)),
    "- [ ] a1" + "(status: " * 20_000,
]


@pytest.mark.parametrize("plan", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_plan_is_read_before_anybody_notices(plan: str) -> None:
    """Some of these once took minutes; a test that hangs says so better than a bound in seconds."""
    tasks_of(plan)
    apply_update(plan, Update("a1", "DONE"), DONE)
    assert len(updates_in("update a9 status to D " * 9_000)) == MAX_UPDATES
    assert not unread_updates("update a9 status to D " * 9_000)
    for said in (
        "update a, " * 20_000,
        "update a and " * 15_000,
        f"update {'a' * 100_000}",
        f"update a{' ' * 100_000}b",
    ):
        assert not updates_in(said) and not unread_updates(said)


@given(st.lists(st.sampled_from(["#", "- ", "M1-T1", ": ", "status: ", "TODO", "|", "\n", "[ ] ", "```", "(", ")"])))
def test_any_plan_keeps_all_but_one_line(pieces: list[str]) -> None:
    plan = "".join(pieces)
    after = updated(plan)
    if after is not None:
        changed = [one for one, other in zip(plan.split("\n"), after.split("\n"), strict=True) if one != other]
        assert len(changed) <= 1
