"""Hand-off documents: what is read, what is refused, and that nothing is lost."""

from collections.abc import Callable

import pytest

from ripstop.kernel.errors import UsageError
from ripstop.styles.handoff.document import (
    HEADERS,
    LEGAL,
    SECTIONS,
    STATUSES,
    HandoffDocument,
    Malformed,
    interactions,
    line_of,
    oddities,
    read,
    write,
)
from ripstop.styles.handoff.state import draft
from tests.styles.handoff.test_message import SHORT

TIME = "2031-05-04 08:00:00"


def document(body: str, status: str = "pending") -> str:
    return f"# Workflow: w\nStatus: {status}\nCurrent_Owner: Mira\n\n{body}"


# Reading


@pytest.mark.req("S0-2", "S0-3", "S0-4", "S0-5", "S0-6", "S0-7", "S0-8", "S0-9", "S0-10", "S0-11", "S0-14", "S0-15")
def test_reads_every_part_of_a_document() -> None:
    paper = read(SHORT)
    assert (paper.id, paper.status, paper.owner, paper.previous) == ("bread_007", "in_progress", "Mira", "Otto")
    assert (paper.created, paper.updated, paper.count) == ("2031-05-04 06:00:00", "2031-05-04 06:20:00", 1)
    assert (paper.task, paper.next_action) == ("Bake a loaf of rye.", "Mira heats the oven")
    assert paper.conditions == ("the loaf is baked", "more than 6 interactions")
    last = paper.history[-1]
    assert (last.at, last.agent, last.action) == ("2031-05-04 06:20:00", "Mira", "took it")
    assert (last.before, last.after, last.line) == ("pending", "in_progress", 14)
    assert oddities(paper) == ()


@pytest.mark.req("S0-12", "S0-17", "S0-19", "S0-21", "S0-27", "S0-28", "S0-64")
def test_reads_a_chinese_document_that_was_created_and_assigned() -> None:
    paper = read(
        "# Workflow: calc_2plus2_001\nStatus: pending\nCurrent_Owner: 李四\nPrevious_Owner: 张三\n\n"
        "## Task\n算一算\n\n## History\n- 2024-01-01 10:00:00 张三 新建 pending→pending\n"
        "- 2024-01-01 10:00:01 张三 指派李四 pending→pending\n\n## Next_Action\n李四来算\n\n"
        "## Termination_Conditions\n- 李四答完\n"
    )
    assert (paper.id, paper.status, paper.owner, paper.previous) == ("calc_2plus2_001", "pending", "李四", "张三")
    assert [(b.agent, b.before, b.after) for b in paper.history] == [("张三", "pending", "pending")] * 2
    assert paper.conditions == ("李四答完",)
    assert oddities(paper) == ()


@pytest.mark.req("S0-20", "S0-21", "S0-29", "S0-30", "S0-31", "S0-65")
def test_accepts_and_flags_a_hand_over_that_its_giver_recorded_as_an_acceptance() -> None:
    paper = read(
        "# Workflow: code_test_001\nStatus: in_progress\nCurrent_Owner: 测试员\nPrevious_Owner: 程序员\n\n"
        "## Task\n测一测\n\n## History\n- 2024-01-01 10:00:00 秘书 新建 pending→pending\n"
        "- 2024-01-01 10:01:00 程序员 接手 pending→in_progress\n- 2024-01-01 10:05:00 程序员 写完 in_progress→pending\n"
        "- 2024-01-01 10:05:00 程序员 交出 pending→in_progress\n\n## Next_Action\n测\n\n## Termination_Conditions\n"
    )
    assert (paper.status, paper.owner, paper.previous) == ("in_progress", "测试员", "程序员")
    assert [b.action for b in paper.history] == ["新建", "接手", "写完", "交出"], "the file's order, also at one time"
    (odd,) = oddities(paper)
    assert odd.line == 13 and "程序员" in odd.text and "测试员" in odd.text


HEAD = "# Workflow: w\nStatus: pending\nCurrent_Owner: Mira\n"


@pytest.mark.req("S0-2", "S0-3", "S0-4", "S0-8")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("\ufeff \n\t\r\n", 1, "empty"),
        ("Hello\n# Workflow: w\n", 1, "# Workflow: <id>"),
        ("\n## Workflow: w\n", 2, "# Workflow: <id>"),
        ("# Workflow:  \nStatus: pending\n", 1, "id is missing"),
        ("# Workflow: w\nCurrent_Owner: Mira\n", 1, "no `Status:`"),
        ("# Workflow: w\nStatus: done\nCurrent_Owner: M\n", 2, "`in_progress`, `completed` or `terminated`"),
        ("# Workflow: w\nStatus: Pending\nCurrent_Owner: Mira\n", 2, "'Pending' is not a status"),
        ("# Workflow: w\nStatus:\nCurrent_Owner: Mira\n", 2, "'' is not a status"),
        ("# Workflow: w\nStatus: pending\n\nCurrent_Owner: Mira\n", 1, "ends at the first blank line"),
        ("# Workflow: w\nStatus: pending\nCurrent_Owner:\n", 3, "names nobody"),
        (HEAD + "Oven: hot\nStatus: pending\n", 5, "first in line 2"),
        (HEAD + "Interaction_Count: many\n", 4, "whole number"),
        (HEAD + "Interaction_Count: -1\n", 4, "whole number"),
        (HEAD + "Interaction_Count: ²\n", 4, "whole number"),
        (HEAD + "Interaction_Count: " + "9" * 5000, 4, "whole number"),
        (HEAD + "\n## Task\na\0b\n", 6, "NUL"),
    ],
)
def test_refuses_what_leaves_open_whose_turn_it_is_and_says_what_would_be_right(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(Malformed) as refused:
        read(text)
    assert refused.value.line == line
    assert words in refused.value.reason
    assert str(refused.value).startswith(f"line {line}: ")
    assert len(str(refused.value)) < 400


@pytest.mark.req("S0-8", "S0-19")
def test_takes_full_width_colons_and_blank_lines_above_the_header() -> None:
    paper = read("# Workflow：面包\n\n\nStatus：pending\nCurrent_Owner ： 米拉\n\n## Task\n烤\n")
    assert (paper.id, paper.status, paper.owner, paper.task) == ("面包", "pending", "米拉", "烤")


@pytest.mark.req("S0-8", "S0-9")
def test_header_lines_inside_a_section_are_text() -> None:
    text = document("Status: completed\n\n## Task\nStatus: completed\nCurrent_Owner: Eve\nInteraction_Count: x\n")
    paper = read(text)
    assert (paper.status, paper.owner, paper.count) == ("pending", "Mira", None)
    assert paper.task == "Status: completed\nCurrent_Owner: Eve\nInteraction_Count: x"


RECORD = f"- {TIME} Otto began pending→pending"


@pytest.mark.req("S0-9", "S0-10", "S0-18")
@pytest.mark.parametrize(
    "inside",
    [
        "## History\nof bread",
        "## History\n- wheat\n- rye",
        f"## History\n{RECORD}",
        "## Next_Action\nnone",
        "## Termination_Conditions\n- none",
        "## Termination_Conditions\n- x\n\n## History\n\n## Next_Action\ny",
        "```\n## History\n## Task\n```",
        "~~~~ md\n## Notes\n```\n~~~\n~~~~",
        "````\n```\n## Notes\n```",
        "## Task\nonce more",
    ],
)
def test_headings_inside_the_task_are_text(inside: str) -> None:
    rest = f"## History\n{RECORD}\n\n## Next_Action\ngo\n\n## Termination_Conditions\n- end\n"
    paper = read(document(f"## Task\nWrite about\n{inside}\n\n{rest}"))
    assert paper.task == f"Write about\n{inside}"
    assert [b.raw for b in paper.history] == [RECORD]
    assert (paper.next_action, paper.conditions) == ("go", ("end",))


@pytest.mark.req("S0-10")
def test_a_history_with_other_text_gives_way_to_one_of_bullets() -> None:
    paper = read(document(f"## Task\nx\n\n## History\n{RECORD}\n\n## History\nof bread\n"))
    assert [b.raw for b in paper.history] == [RECORD]


@pytest.mark.req("S0-14", "S0-18")
def test_a_heading_that_comes_too_late_gives_way_to_one_in_its_place() -> None:
    paper = read(document("## Next_Action\ngo\n\n## Termination_Conditions\n- end\n\n## Next_Action\nstay\n"))
    assert (paper.next_action, paper.conditions) == ("go", ("end", "## Next_Action", "stay"))


@pytest.mark.req("S0-9", "S0-18")
def test_a_fence_that_is_never_closed_swallows_nothing() -> None:
    paper = read(document("## Task\n```python\nx = 1\n\n## History\n\n## Next_Action\ngo\n~~~\n"))
    assert (paper.task, paper.next_action) == ("```python\nx = 1", "go\n~~~")


@pytest.mark.req("S0-18")
def test_sections_in_another_order_are_read_and_flagged() -> None:
    paper = read(
        document(f"## Next_Action\ngo\n\n## History\n{RECORD}\n\n## Task\nbake\n\n## Termination_Conditions\n- end\n")
    )
    assert (paper.task, paper.next_action, len(paper.history), paper.conditions) == ("bake", "go", 1, ("end",))
    assert [(odd.line, odd.text) for odd in oddities(paper)] == [
        (8, "`## History` should be before `## Next_Action`"),
        (11, "`## Task` should be before `## History`"),
    ]


@pytest.mark.req("S0-11", "S0-12", "S0-13")
@pytest.mark.parametrize(
    ("rest", "parts"),
    [
        ("Otto began pending→pending", ("Otto", "began", "pending", "pending")),
        ("Otto pending→in_progress", ("Otto", "", "pending", "in_progress")),
        ("Otto  said so  and went in_progress -> pending  ", ("Otto", "said so  and went", "in_progress", "pending")),
        ("奥托 交给米拉 pending → terminated", ("奥托", "交给米拉", "pending", "terminated")),
        ("奥托 交给米拉pending→pending", ("奥托", "交给米拉", "pending", "pending")),
        ("Otto only talked", ("Otto", "only talked", "", "")),
        ("Otto", ("Otto", "", "", "")),
        ("Otto renamed a→b", ("Otto", "renamed a→b", "", "")),
        ("Otto a->b pending→pending", ("Otto", "a->b", "pending", "pending")),
        ("Otto was done pending→finished", ("Otto", "was done", "pending", "finished")),
        ("Otto points →", ("Otto", "points →", "", "")),
    ],
)
def test_reads_a_history_record(rest: str, parts: tuple[str, ...]) -> None:
    (bullet,) = read(document(f"## History\n- {TIME} {rest}\n")).history
    assert (bullet.agent, bullet.action, bullet.before, bullet.after) == parts
    assert (bullet.at, bullet.line, bullet.raw) == (TIME, 6, f"- {TIME} {rest}")


@pytest.mark.req("S0-11", "S0-13")
@pytest.mark.parametrize(
    "raw", ["- yesterday Otto began", "- 2031-05-04 Otto began", "-", f"- {TIME}", f"- [{TIME}] Otto x"]
)
def test_a_record_in_another_form_is_kept_and_flagged(raw: str) -> None:
    text = document(f"## Task\n\n## History\n{raw}\n\n## Next_Action\n\n## Termination_Conditions\n")
    paper = read(text)
    (bullet,) = paper.history
    assert (bullet.raw, bullet.agent) == (raw, "")
    assert [odd.line for odd in oddities(paper)] == [8]
    assert write(paper) == text


# Round trips


@pytest.mark.req("S0-66")
@pytest.mark.parametrize(
    "text",
    [
        SHORT,
        SHORT.replace("\n", "\r\n"),
        SHORT.replace("\n", "\r\n", 9),
        "\ufeff" + SHORT,
        SHORT.rstrip(),
        SHORT + "\n \n\t\n",
        "\n\n" + SHORT,
        SHORT.replace("Status: in", "Oven: hot\nStatus:    in").replace(
            "## History", "## Shape\nround  \n\n## History"
        ),
        HEAD.rstrip(),
    ],
    ids=["plain", "CRLF", "mixed", "BOM", "no final newline", "blanks at the end", "blanks above", "unknown", "bare"],
)
def test_a_document_written_again_is_the_same_text(text: str) -> None:
    assert write(read(text)) == text


# Changes


@pytest.mark.req("S0-53", "S0-55")
def test_a_header_is_changed_in_its_line_and_nowhere_else() -> None:
    text = SHORT.replace("Status: in", "Oven: hot\nStatus：\tin").replace("\n", "\r\n")
    changed = read(text).with_header("Status", "completed").with_header("Oven", " cold\nand dark ")
    assert write(changed) == text.replace("\tin_progress", "\tcompleted", 1).replace("Oven: hot", "Oven: cold and dark")


@pytest.mark.req("S0-8")
def test_a_missing_header_gets_its_proper_place() -> None:
    paper = read(HEAD.rstrip() + "\nOven: hot")
    for key in ("Interaction_Count", "Created_At", "Updated_At", "Previous_Owner", "Baker"):
        paper = paper.with_header(key, "7")
    assert [header.key for header in paper.headers] == [*HEADERS, "Oven", "Baker"]
    assert paper.count == 7


@pytest.mark.req("S0-3", "S0-4")
@pytest.mark.parametrize(("key", "value"), [("Status", "done"), ("Current_Owner", " \n"), ("Interaction_Count", "x")])
def test_a_header_that_could_not_be_read_is_not_written(key: str, value: str) -> None:
    with pytest.raises(Malformed):
        read(SHORT).with_header(key, value)


@pytest.mark.req("S0-54", "S0-10", "S0-20")
def test_a_record_is_added_below_the_last_one() -> None:
    text = SHORT.replace("took it pending→in_progress", "took it pending→in_progress\n  ```\nnote\n  ```")
    changed = read(text).with_bullet(TIME, "Mira Bell", "baked\nit\r\n", "in_progress", "completed")
    record = f"- {TIME} Mira_Bell baked it in_progress→completed\n"
    assert write(changed) == text.replace("\n\n## Next_Action", f"\n{record}\n## Next_Action")
    assert changed.with_bullet(TIME, "Mira", "rested", "completed", "completed").history[-2:][0] == changed.history[-1]


@pytest.mark.req("S0-18", "S0-54", "S0-56")
def test_missing_sections_are_made_in_their_proper_order() -> None:
    paper = read(HEAD.replace("\n", "\r\n") + "\r\n## Notes\r\nx")
    paper = paper.with_conditions(["a", "b\nc", " "]).with_bullet(TIME, "Otto", "", "pending", "pending")
    paper = paper.with_section("Result", "a loaf").with_next_action("eat").with_task("bake")
    assert [section.name for section in paper.sections] == [*SECTIONS, "Notes", "Result"]
    assert write(paper).count("\n") == write(paper).count("\r\n")
    assert (paper.task, paper.next_action, paper.conditions) == ("bake", "eat", ("a", "b c"))
    assert paper.section("Result") == "a loaf" and paper.section("Notes") == "x" and paper.section("None") == ""
    assert write(paper.with_section("Result", "two loaves")) == write(paper).replace("a loaf", "two loaves")
    twice = read(write(paper) + "## Result\nlast")
    assert write(twice.with_section("Result", "two")) == write(paper) + "## Result\ntwo\r\n"


@pytest.mark.req("S0-9", "S0-56")
def test_text_that_looks_like_structure_is_escaped_as_markdown_does_it() -> None:
    paper = read(SHORT).with_next_action("## History\n\\## x\n```\n## code\n```\n~~~ open")
    assert "\n\\## History\n\\\\## x\n```\n## code\n```\n\\~~~ open\n" in write(paper)


@pytest.mark.parametrize(
    "change",
    [
        *(lambda paper, key=key: paper.with_header(key, "x") for key in ("", "a: b", "a\nb", "#x", "- x")),
        lambda paper: paper.with_bullet("today", "Mira", "x", "pending", "pending"),
        lambda paper: paper.with_bullet(TIME, "Mira", "x", "", ""),
        lambda paper: paper.with_bullet(TIME, "Mira", "x", "pending", "done"),
        lambda paper: paper.with_section(" \n", "x"),
        lambda paper: draft("x", "a", "a", "t", TIME, language="xx"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(change: Callable[[HandoffDocument], HandoffDocument]) -> None:
    with pytest.raises(UsageError):
        change(read(SHORT))


def test_a_nul_becomes_the_sign_for_what_cannot_be_shown() -> None:
    assert read(SHORT).with_task("a\0b").task == "a\ufffdb"


# New documents


@pytest.mark.req("S0-2", "S0-8", "S0-16", "S0-18", "S0-27", "S0-28")
def test_a_new_document_is_pending_and_its_creator_has_assigned_it() -> None:
    paper = draft("bread_008", "Otto", "Mira", "bake", TIME, next_action="heat", limit=6)
    assert (paper.id, paper.status, paper.owner, paper.previous) == ("bread_008", "pending", "Mira", "Otto")
    assert paper.count == 0
    assert paper.created == paper.updated == TIME
    assert [(b.agent, b.action, b.before, b.after) for b in paper.history] == [
        ("Otto", "created", "pending", "pending"),
        ("Otto", "assigned to Mira", "pending", "pending"),
    ]
    assert paper.next_action == "heat"
    assert len(paper.conditions) == 3 and "6" in paper.conditions[1] and "[WORKFLOW_END]" in paper.conditions[2]
    assert [header.key for header in paper.headers] == list(HEADERS)
    assert [section.name for section in paper.sections] == list(SECTIONS)
    assert oddities(paper) == ()


@pytest.mark.req("S0-16", "S0-17", "S0-19")
def test_a_new_document_can_be_chinese_and_for_oneself() -> None:
    paper = draft("面包", "米拉", "米拉", "烤", TIME, conditions=["烤好"], language="zh")
    assert len(paper.history) == 1 and paper.conditions == ("烤好",) and "米拉" in paper.next_action
    assert oddities(paper) == ()


# What a document amounts to


def test_interactions_are_the_header_s_count_or_the_acceptances_hand_overs_and_completions() -> None:
    paper = draft("w", "Otto", "Mira", "bake", TIME)
    for before, after in (("pending", "in_progress"), ("in_progress", "pending"), ("pending", "pending")):
        paper = paper.with_bullet(TIME, "Mira", "x", before, after)
    assert interactions(paper) == 0
    bare = read(write(paper).replace("Interaction_Count: 0\n", ""))
    assert interactions(bare) == 2
    assert interactions(bare.with_bullet(TIME, "Mira", "x", "in_progress", "completed")) == 3
    assert interactions(bare.with_bullet(TIME, "Mira", "x", "pending", "terminated")) == 2


@pytest.mark.req("S0-22", "S0-23", "S0-24", "S0-25")
@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_an_illegal_change_in_history_is_flagged_and_kept(before: str, after: str) -> None:
    legal = {
        *(("pending", "pending"), ("pending", "in_progress"), ("in_progress", "completed"), ("in_progress", "pending")),
        *(("pending", "terminated"), ("in_progress", "terminated")),
    }
    text = document(
        f"## Task\n\n## History\n- {TIME} Mira x {before}→{after}\n\n## Next_Action\n\n## Termination_Conditions\n",
        after,
    )
    assert [odd.line for odd in oddities(read(text))] == ([] if (before, after) in legal else [8])
    assert (after in LEGAL[before]) == ((before, after) in legal)
    assert write(read(text)) == text


@pytest.mark.req("S0-8", "S0-18")
def test_says_where_a_document_contradicts_itself() -> None:
    text = SHORT.replace("Status: in_progress", "Oven: hot\nStatus: pending").replace("## Next_Action", "## Next")
    text = text.replace("took it pending→", "took it in_progress→")
    found = {odd.line: odd.text for odd in oddities(read(text))}
    assert "'Oven' is unknown" in found[2]
    assert "but the last record in line 15 ended at 'in_progress'" in found[3]
    assert "`## Next_Action` is missing" in found[1]
    lines = [odd.line for odd in oddities(read(text))]
    assert lines == [1, 2, 3, 15, 15], "a gap, and no legal change"


def test_names_the_line_of_a_header_and_of_a_section() -> None:
    paper = read("\n" + SHORT)
    assert [line_of(paper, what) for what in ("Status", "Task", "Termination_Conditions", "None")] == [3, 10, 20, 2]
