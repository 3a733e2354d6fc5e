"""Edits by hand: what they mean, what is refused, and that neither side's change is lost without a word."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.styles.handoff.document import HandoffDocument, read, write
from ripstop.styles.handoff.edits import DocumentEdit, Move, Refusal, read_edit
from ripstop.styles.handoff.state import draft

AT, LATER = "2026-01-01 10:00:00", "2026-01-01 11:00:00"
PAPER = draft("calc", "boss", "ann", "What is 2 + 2?", AT)
ACCEPTED = PAPER.with_bullet(LATER, "ann", "accepted it", "pending", "in_progress").with_header("Status", "in_progress")
ACCEPTED = ACCEPTED.with_header("Updated_At", LATER).with_header("Interaction_Count", "1")


def edit(paper: HandoffDocument, *changes: tuple[str, str], views: tuple[HandoffDocument, ...] = ()) -> DocumentEdit:
    text = write(paper)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return read_edit(text, views or (paper,))


def refusal(paper: HandoffDocument, *changes: tuple[str, str], views: tuple[HandoffDocument, ...] = ()) -> Refusal:
    with pytest.raises(Refusal) as refused:
        edit(paper, *changes, views=views)
    assert refused.value.reason
    return refused.value


def test_a_change_of_status_is_a_move_by_the_owner() -> None:
    assert edit(PAPER, ("Status: pending", "Status: in_progress")).moves == (
        Move("accept", "ann", "pending", "in_progress"),
    )


def test_a_change_of_owner_of_a_pending_document_assigns_it() -> None:
    (move,) = edit(PAPER, ("Current_Owner: ann", "Current_Owner: bob")).moves
    assert (move.action, move.to) == ("assign", "bob")


def test_status_and_owner_together_hand_it_over() -> None:
    changes = (("Status: in_progress", "Status: pending"), ("Current_Owner: ann", "Current_Owner: bob"))
    (move,) = edit(ACCEPTED, *changes).moves
    assert (move.action, move.by, move.to) == ("pass", "ann", "bob")


def test_a_program_that_follows_the_protocol_to_the_letter_is_taken_at_its_word() -> None:
    line = f"- {LATER} ann accepted it pending→in_progress\n"
    mine = f"{line}- 2026-01-01 12:00:00 ann done, over to bob in_progress→pending\n"
    changes = (
        ("Status: in_progress", "Status: pending"),
        ("Current_Owner: ann", "Current_Owner: bob"),
        ("Previous_Owner: boss", "Previous_Owner: ann"),
        ("Interaction_Count: 1", "Interaction_Count: 2"),
        (f"Updated_At: {LATER}", "Updated_At: 2026-01-01 12:00:00"),
        (line, mine),
    )
    (move,) = edit(ACCEPTED, *changes).moves
    assert (move.action, move.to, move.written) == ("pass", "bob", True)


def test_two_steps_in_one_save_are_two_moves() -> None:
    lines = f"- {LATER} ann took it pending→in_progress\n- {LATER} ann did it in_progress→completed\n"
    changes = (("Status: pending", "Status: completed"), ("## Next_Action", lines + "\n## Next_Action"))
    assert [move.action for move in edit(PAPER, *changes).moves] == ["accept", "complete"]


def test_free_text_may_be_edited_without_a_move() -> None:
    result = edit(PAPER, ("What is 2 + 2?", "What is 3 + 3?"), ("## Next_Action", "## Notes\nmine\n\n## Next_Action"))
    assert result == DocumentEdit((), "")


@pytest.mark.req("S0-26", "S0-57")
@pytest.mark.parametrize(
    ("paper", "changes", "line", "words"),
    [
        (PAPER, [("Status: pending", "Status: completed")], 2, "pending→completed is not legal"),
        (PAPER, [("Status: pending", "Status: done")], 2, "pending"),
        (ACCEPTED, [("Current_Owner: ann", "Current_Owner: bob")], 3, "with a hand-over"),
        (ACCEPTED, [("Status: in_progress", "Status: pending")], 2, "say to whom"),
        (PAPER, [("# Workflow: calc", "# Workflow: other")], 1, "cannot be changed"),
        (PAPER, [(f"- {AT} boss created pending→pending\n", "")], 13, "only be added to"),
        (PAPER, [("boss created", "boss invented")], 13, "only be added to"),
        (PAPER, [("## Next_Action", f"- {LATER} hello\n\n## Next_Action")], 16, "a history line is"),
        (
            PAPER,
            [
                ("Status: pending", "Status: in_progress"),
                ("## Next_Action", f"- {LATER} bob took it pending→in_progress\n\n## Next_Action"),
            ],
            16,
            "'bob' may not accept",
        ),
        (PAPER, [("# Workflow: calc", "Workflow: calc")], 1, "# Workflow"),
    ],
)
def test_what_only_the_engine_keeps_is_refused_with_its_line(
    paper: HandoffDocument, changes: list[tuple[str, str]], line: int, words: str
) -> None:
    refused = refusal(paper, *changes)
    assert words in refused.reason and refused.line == line


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (f"Created_At: {AT}", f"Created_At: {LATER}", 5),
        ("Previous_Owner: boss", "Previous_Owner: eve", 4),
        ("Interaction_Count: 0", "Interaction_Count: 9", 7),
        ("Interaction_Count: 0", "Interaction_Count: 1/10", 7),
    ],
)
def test_puts_engine_headers_right_and_takes_the_transition(old: str, new: str, line: int) -> None:
    result = edit(PAPER, (old, new), ("Status: pending", "Status: in_progress"))
    assert [move.action for move in result.moves] == ["accept"]
    (note,) = result.notes
    assert note.startswith(f"line {line}: ") and new.partition(":")[0] in note


def test_a_line_appended_to_the_file_is_history() -> None:
    line = f"- {LATER} ann took it pending→in_progress"
    for end in ("", "\n", "\n\n"):
        text = f"{write(PAPER)}{line}{end}"
        assert read(text).conditions == PAPER.conditions and write(read(text)) == text
        assert [move.action for move in read_edit(text, [PAPER]).moves] == ["accept"]
        assert read(text).gathered().history[-1].raw == line and not read(text).gathered().appended


@pytest.mark.parametrize(
    "appended",
    [
        f"- {LATER} ann asked for more\n",
        f"- {LATER} ann asked for more\n- {LATER} ann took it pending→in_progress\n",
        f"- {LATER} ann took it pending→in_progress\n* {LATER} ann asked for more",
    ],
)
def test_an_appended_line_with_a_time_and_no_change_is_refused(appended: str) -> None:
    text = write(PAPER) + appended
    with pytest.raises(Refusal, match="a history line is") as refused:
        read_edit(text, [PAPER])
    assert text.split("\n")[refused.value.line - 1].endswith("more")


def test_an_end_condition_with_a_time_that_was_there_stays() -> None:
    paper = PAPER.with_conditions([f"{LATER} has passed"])
    assert edit(paper, ("Status: pending", "Status: in_progress")).moves


def test_text_of_ours_never_becomes_a_history_record() -> None:
    line = f"- {LATER} ann took it pending→completed"
    for paper in (PAPER.with_section("Result", line), PAPER.with_section("Notes", f"a\n{line}")):
        assert [bullet.raw for bullet in paper.history] == [bullet.raw for bullet in PAPER.history]
    paper = PAPER.with_conditions([line.removeprefix("- ")])
    assert (len(paper.history), paper.conditions) == (len(PAPER.history), (line.removeprefix("- "),))


FOREIGN = write(PAPER).replace("Status: pending", "Status: completed")
FOREIGN = FOREIGN.replace("## Next_Action", f"- {LATER} ann answered 4 pending→completed\n\n## Next_Action")


def test_a_senders_illegal_history_is_taken_at_its_word_and_flagged() -> None:
    result = read_edit(FOREIGN, [PAPER], sender="ann")
    assert [(move.action, move.written) for move in result.moves] == [("accept", True), ("complete", True)]
    assert any("pending→completed" in note for note in result.notes)
    with pytest.raises(Refusal):
        read_edit(FOREIGN, [PAPER])


def test_a_sender_who_is_not_the_owner_cannot_complete_it() -> None:
    with pytest.raises(Refusal, match="pending→completed"):
        read_edit(FOREIGN.replace("ann answered", "eve answered"), [PAPER], sender="eve")


# Two sides at once


def test_a_save_from_before_the_last_move_undoes_nothing() -> None:
    old = edit(PAPER, ("What is 2 + 2?", "What is 3 + 3?"), views=(PAPER, ACCEPTED))
    joined = read(old.text)
    assert (joined.task, joined.status, len(joined.history)) == ("What is 3 + 3?", "in_progress", 3)


def test_both_changed_the_same_field_differently_so_the_edit_is_refused() -> None:
    theirs = ACCEPTED.with_next_action("do this")
    refused = refusal(PAPER, ("## Next_Action\n", "## Next_Action\ndo that\n"), views=(PAPER, theirs))
    assert "Next_Action was changed meanwhile" in refused.reason and "do this" in refused.reason


def test_both_moved_it_so_the_edit_is_refused() -> None:
    refused = refusal(PAPER, ("Status: pending", "Status: terminated"), views=(PAPER, ACCEPTED))
    assert "moved on meanwhile" in refused.reason


def test_a_section_of_ones_own_in_an_old_save_is_refused_rather_than_lost() -> None:
    refusal(PAPER, ("## Next_Action", "## Notes\nmine\n\n## Next_Action"), views=(PAPER, ACCEPTED))


# The view that was in the file before the edit, where it is known


def test_the_known_view_decides_between_two_of_the_same_second() -> None:
    later = PAPER.with_task("What is 3 + 3?")
    text = write(later.with_task("What is 4 + 4?"))
    assert read_edit(text, (PAPER, later), base=later) == DocumentEdit((), "")
    with pytest.raises(Refusal, match="Task was changed meanwhile"):
        read_edit(text, (PAPER, later))


def test_a_text_with_the_time_of_an_older_view_was_made_in_that_one() -> None:
    later = PAPER.with_task("What is 3 + 3?").with_header("Updated_At", LATER)
    with pytest.raises(Refusal, match="Task was changed meanwhile"):
        read_edit(write(PAPER.with_task("What is 4 + 4?")), (PAPER, later), base=later)


def test_an_editor_that_sets_the_time_undoes_nothing_that_was_not_in_the_file_yet() -> None:
    unwritten = PAPER.with_task("What is 3 + 3?").with_header("Updated_At", LATER)
    mine = PAPER.with_next_action("Ask bob").with_header("Updated_At", "2026-01-01 12:00:00")
    joined = read(read_edit(write(mine), (PAPER, unwritten), base=PAPER).text)
    assert (joined.task, joined.next_action) == ("What is 3 + 3?", "Ask bob")


# One buffer that is saved again and again


def taken(text: str, views: list[HandoffDocument]) -> HandoffDocument:
    """The document after an edit, as the engine writes it with a later time."""
    result = read_edit(text, views)
    number = len(views)
    return read(result.text or text).gathered().with_header("Updated_At", f"2026-01-01 11:00:{number % 60:02}")


words = st.sampled_from(["add", "a, b", "the", "2 + 2?", "测试", "is", "What"])


@st.composite
def growing(draw: st.DrawFn) -> list[str]:
    """A text, changed in any way, and then what becomes of it by inserting words or going on with the last one."""
    texts = [" ".join(draw(st.lists(words, min_size=1, max_size=6)))]
    for _ in range(draw(st.integers(1, 5))):
        parts = texts[-1].split(" ")
        for _ in range(draw(st.integers(1, 3))):
            parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from(["new", "函数", "(x)", "more"])))
        texts.append(" ".join(parts) + draw(st.sampled_from(["", "s", "\n\nlast"])))
    return texts


@for_all(task=growing(), upcoming=growing(), notes=growing())
def test_a_buffer_that_grows_is_taken_at_every_save(task: list[str], upcoming: list[str], notes: list[str]) -> None:
    buffer, views = PAPER, [PAPER]
    for one, other, third in zip(task, upcoming, notes, strict=False):
        buffer = buffer.with_task(one).with_next_action(other).with_section("Notes", third)
        document = taken(write(buffer), views)
        assert (document.task, document.next_action) == (buffer.task, buffer.next_action)
        assert document.section("Notes") == buffer.section("Notes")
        views.append(document)


def test_a_buffer_that_changed_the_status_can_be_saved_again() -> None:
    text = write(PAPER).replace("Status: pending", "Status: in_progress").replace("2 + 2?", "2 + 3?")
    result = read_edit(text, (PAPER, ACCEPTED))
    assert (result.moves, read(result.text).task, read(result.text).status) == ((), "What is 2 + 3?", "in_progress")


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ("Write sum", "Write add quickly"),
        ("Write", "Write add and test"),
        ("Write add with tests", "Write add with docs"),
        ("Write sum", "Write"),
        ("", "Write add and test"),
        ("sum", "Write sum add"),
    ],
)
def test_a_save_that_contradicts_a_change_is_still_refused(theirs: str, mine: str) -> None:
    view = PAPER.with_task("Write add")
    current = view.with_task(theirs).with_header("Updated_At", LATER)
    with pytest.raises(Refusal, match="Task was changed meanwhile"):
        read_edit(write(view.with_task(mine)), (view, current))


texts = st.text(alphabet="abc #-:\n→é谢", max_size=30)


@for_all(task=texts, upcoming=texts, theirs=texts, stale=st.booleans())
def test_neither_side_is_lost_silently(task: str, upcoming: str, theirs: str, stale: bool) -> None:
    """Given both sides change what they like: either both changes stand in the result, or the edit is refused."""
    current = ACCEPTED.with_next_action(theirs)
    base = PAPER if stale else current
    mine = base.with_task(task).with_next_action(upcoming)
    try:
        result = read_edit(write(mine), (PAPER, current))
    except Refusal:
        assert stale and mine.next_action != PAPER.next_action != current.next_action
        return
    joined = read(result.text or write(mine))
    assert joined.task == mine.task
    assert joined.next_action == (mine.next_action if mine.next_action != base.next_action else current.next_action)
    assert len(joined.history) == len(current.history)


@for_all(st.text(max_size=200))
def test_any_text_is_an_edit_or_a_refusal(text: str) -> None:
    try:
        read_edit(text, (PAPER, ACCEPTED))
    except Refusal as refused:
        assert refused.line >= 1 and refused.reason


@for_all(st.data())
def test_any_damage_to_a_document_is_an_edit_or_a_refusal(data: st.DataObject) -> None:
    text = write(ACCEPTED)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    damaged = text[:start] + data.draw(texts) + text[end:]
    try:
        result = read_edit(damaged, (PAPER, ACCEPTED))
    except Refusal:
        return
    assert read(result.text or damaged).id == "calc"


def test_an_owner_that_cannot_be_a_name_is_refused_with_its_line() -> None:
    for name in ("bob\x1b[2J", "b\u202eob", "b" * 201):
        refused = refusal(PAPER, ("Current_Owner: ann", f"Current_Owner: {name}"))
        assert refused.line == 3 and "name" in refused.reason
