"""What the tools of a board read, check and write."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.engine.performers import Kind, Refused, TryAgain
from ripstop.kernel.events import Record, Resumed
from ripstop.styles.blackboard import board_files as board_module
from ripstop.styles.blackboard import bookkeeping, contents
from ripstop.styles.blackboard.tools import own_tools
from tests.styles.blackboard.board_folders import HISTORY, PLAN, REPORT, BoardDesk


@pytest.fixture
def desk(tmp_path: Path) -> BoardDesk:
    return BoardDesk.fresh(tmp_path)


# Opening


@pytest.mark.req("S4-9", "S4-10", "S4-11")
def test_opening_makes_history_and_reports(desk: BoardDesk) -> None:
    found = desk.open()
    assert found["plan"] == "- T1 TODO\n"
    assert (found["history"], found["left_out"], found["iteration"]) == ("# Project History\n", 0, 0)
    assert desk.text(HISTORY) == "# Project History\n"
    assert (desk.folder / "reports").is_dir()
    assert stat.S_IMODE((desk.folder / HISTORY).stat().st_mode) == 0o644


def test_the_digest_is_of_every_path_and_content(desk: BoardDesk) -> None:
    desk.edit("memory/prompts/deep/er.md", "x")
    digest = desk.open()["digest"]
    rows = [f"{path}\0{hashlib.sha256(data).hexdigest()}\n" for path, data in sorted(desk.files().items())]
    assert digest == hashlib.sha256("".join(rows).encode()).hexdigest()
    assert desk.open()["digest"] == digest


def test_opening_without_a_plan_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with pytest.raises(Refused, match=r"no plan '.*memory/dev_plan.md'"):
        BoardDesk(tmp_path).open()
    assert not (tmp_path / "reports").exists()


def test_opening_returns_the_lines_of_a_report_that_say_what_blocks(desk: BoardDesk) -> None:
    desk.edit(REPORT, "x\n Blockers: a\r\n```\nBlockers: none\n```\nBlockers：b\nOther blockers: c\n")
    assert desk.open()["blocker_lines"] == {REPORT: "Blockers: a\nBlockers：b"}
    assert desk.open(reports=["reports/report_other.md"])["blocker_lines"] == {}
    desk.edit(REPORT, b"Blockers: \xff")
    assert desk.open()["blocker_lines"] == {}


def test_opening_returns_the_end_of_a_long_history(desk: BoardDesk) -> None:
    entries = [f"## Iteration {number}\nwords {number}\n" for number in range(1, 50)]
    desk.edit(HISTORY, "# Project History\n" + "".join(entries) + "## User Decision (Iteration 900)\n")
    found = desk.open(tail=70, iteration_pattern=r"^## Iteration (\d{1,9})\b")
    assert found["history"].startswith("## Iteration 49\n")
    assert (found["left_out"], found["iteration"]) == (48, 49)


@pytest.mark.parametrize(
    ("history", "tail", "shown", "left_out"),
    [
        ("## a\n## b\n", 100, "## a\n## b\n", 0),
        ("## a\n## b\n", 5, "## b\n", 1),
        ("## a\n## b\n", 4, "# b\n", 2),
        ("x" * 30, 10, "x" * 10, 0),
        ("## a\nx", 0, "", 1),
    ],
)
def test_the_end_begins_with_an_entry_where_possible(
    desk: BoardDesk, history: str, tail: int, shown: str, left_out: int
) -> None:
    desk.edit(HISTORY, history)
    found = desk.open(tail=tail)
    assert (found["history"], found["left_out"]) == (shown, left_out)


def test_iterations_are_found_by_the_given_pattern(desk: BoardDesk) -> None:
    desk.edit(HISTORY, f"## 第 7 轮\n## 第 12 轮\n## 第 {'9' * 5000} 轮\n## Iteration 30\n")
    assert desk.open(iteration_pattern=r"^## 第 (\d+) 轮")["iteration"] == 12


@pytest.mark.parametrize("pattern", ["(", "no group"])
def test_a_pattern_that_cannot_be_used_is_refused(desk: BoardDesk, pattern: str) -> None:
    desk.edit(HISTORY, "no group")
    with pytest.raises(Refused, match="find iterations") as refused:
        desk.open(iteration_pattern=pattern)
    assert refused.value.fault == "ours"


# Checking


@pytest.mark.req("S4-15")
def test_a_check_finds_every_change_and_shows_it(desk: BoardDesk) -> None:
    desk.edit("memory/gone.md", "text\n")
    desk.open()
    desk.edit(PLAN, "- T1 DONE\n")
    desk.edit("reports/extra/new.md", "new\n")
    (desk.folder / "memory/gone.md").unlink()
    changed = desk.check(REPORT)["changed"]
    assert [(one["path"], one["what"]) for one in changed] == [
        (PLAN, "changed"),
        ("memory/gone.md", "deleted"),
        ("reports/extra/new.md", "created"),
    ]
    assert "-- T1 TODO\n+- T1 DONE" in changed[0]["diff"]
    assert "-text" in changed[1]["diff"]
    assert "+new" in changed[2]["diff"]


def test_a_check_hands_back_the_own_report_once(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(REPORT, "iteration: 1\n")
    found = desk.check(REPORT)
    assert (found["changed"], found["report"]) == ([], "iteration: 1\n")
    assert desk.check(REPORT)["report"] is None
    desk.edit(REPORT, "iteration: 2\n")
    assert desk.check(REPORT)["report"] == "iteration: 2\n"


def test_a_check_repeated_after_a_crash_says_the_same(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(REPORT, "iteration: 1\n")
    arguments: dict[str, Any] = {"digest": desk.digest, "own": REPORT}
    first = desk.call("board_check", **arguments)
    assert desk.call("board_check", again=True, **arguments) == first


def test_a_changed_board_stays_changed_until_it_is_put_back(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(PLAN, "other")
    assert desk.check(REPORT)["digest"] is None
    assert desk.check(REPORT)["changed"]
    desk.edit(PLAN, "- T1 TODO\n")
    assert desk.check(REPORT)["changed"] == []


def test_the_report_of_another_agent_is_a_change(desk: BoardDesk) -> None:
    desk.open()
    desk.edit("reports/report_other.md", "x")
    assert [one["path"] for one in desk.check(REPORT)["changed"]] == ["reports/report_other.md"]


def test_a_change_in_a_long_history_is_shown(desk: BoardDesk) -> None:
    history = "# Project History\n" + "".join(f"## Iteration {n}\nwords\n" for n in range(9000))
    desk.edit(HISTORY, history)
    desk.open()
    desk.edit(HISTORY, history + "## Forged\n")
    assert "+## Forged" in desk.check(REPORT)["changed"][0]["diff"]
    desk.edit(HISTORY, history.replace("## Iteration 5\n", "## Iteration 5x\n"))
    assert desk.check(REPORT)["changed"][0]["diff"].startswith("(more than the last")


def test_differences_are_bounded_and_keep_line_numbers(desk: BoardDesk) -> None:
    lines = [f"line {number}" for number in range(100_000)]
    desk.edit(PLAN, "\n".join(lines))
    desk.open()
    desk.edit(PLAN, "\n".join([*lines[:50_000], "new", *lines[50_000:]]))
    assert "@@ -49998,6 +49998,7 @@" in desk.check(REPORT)["changed"][0]["diff"]
    desk.edit(PLAN, "\n".join(reversed(lines)))
    difference = desk.check(REPORT)["changed"][0]["diff"]
    assert len(difference.splitlines()) <= 60
    assert len(difference) <= 6_000


def test_many_changes_have_bounded_differences_together(desk: BoardDesk) -> None:
    desk.open()
    for number in range(200):
        desk.edit(f"reports/{number}.md", "words\n" * 500)
    changed = desk.check(REPORT)["changed"]
    assert len(changed) == 200
    assert sum(len(one["diff"]) for one in changed) < 70_000


@pytest.mark.parametrize(
    "note",
    [b"\xff{", b'{"x":' + b"[" * 100_000],
    ids=["damaged", "too deep"],
)
def test_lost_notes_are_told_as_a_change(desk: BoardDesk, note: bytes) -> None:
    desk.open()
    desk.edit(".ripstop/board/index.json", note)
    assert desk.check(REPORT)["changed"] == []
    desk.edit(REPORT, "x")
    found = desk.check(REPORT)
    assert [one["path"] for one in found["changed"]] == [".ripstop/board/index.json"]
    assert "not known any more" in found["changed"][0]["diff"]


def test_a_note_that_is_too_large_is_not_read(desk: BoardDesk) -> None:
    desk.open()
    note = ".ripstop/board/index.json"
    desk.edit(note, desk.text(note) + " " * bookkeeping.MAX_NOTE)
    desk.edit(REPORT, "x")
    assert [one["path"] for one in desk.check(REPORT)["changed"]] == [note]


@pytest.mark.parametrize("name", ["index.json", "pending.json"])
def test_a_pipe_in_place_of_a_note_is_replaced(desk: BoardDesk, name: str) -> None:
    desk.open()
    note = desk.folder / ".ripstop/board" / name
    note.unlink(missing_ok=True)
    os.mkfifo(note)
    assert desk.write(append="x\n")["edited"] == []
    assert note.is_file()


def test_the_largest_board_has_notes_that_are_read() -> None:
    files = {f"memory/{number:05}{'x' * 280}": "f" * 64 for number in range(contents.MAX_FILES)}
    assert len(msgspec.json.encode(bookkeeping.Index(files, files))) < bookkeeping.MAX_NOTE


# Writing


@pytest.mark.req("S4-17", "S4-55")
def test_writing_puts_reports_plan_and_history_in_place(desk: BoardDesk) -> None:
    desk.open()
    os.chmod(desk.folder / PLAN, 0o600)
    done = desk.write(plan_text="- T1 DONE\n", append="## Iteration 1\n", reports={REPORT: "said\n"})
    assert done["edited"] == []
    assert desk.text(PLAN) == "- T1 DONE\n"
    assert desk.text(HISTORY) == "# Project History\n## Iteration 1\n"
    assert desk.text(REPORT) == "said\n"
    assert stat.S_IMODE((desk.folder / PLAN).stat().st_mode) == 0o600
    assert stat.S_IMODE((desk.folder / REPORT).stat().st_mode) == 0o644
    assert desk.check(REPORT)["changed"] == []
    assert desk.open()["digest"] == done["digest"]


def test_a_history_without_a_last_line_break_gets_one(desk: BoardDesk) -> None:
    desk.edit(HISTORY, "by hand")
    desk.open()
    desk.write(append="## Iteration 1\n")
    assert desk.text(HISTORY) == "by hand\n## Iteration 1\n"


def test_writing_nothing_only_looks_for_edits(desk: BoardDesk) -> None:
    digest = desk.open()["digest"]
    assert desk.write() == {"edited": [], "digest": digest, "plan": None, "history": None}


def test_an_edited_board_is_not_written_but_told(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(PLAN, "- T1 by hand\n")
    done = desk.write(plan_text="ours", append="## Iteration 1\n", reports={REPORT: "x"})
    assert [(one["path"], one["what"]) for one in done["edited"]] == [(PLAN, "changed")]
    assert "+- T1 by hand" in done["edited"][0]["diff"]
    assert (done["plan"], done["history"]) == ("- T1 by hand\n", None)
    assert desk.text(HISTORY) == "# Project History\n"
    assert not (desk.folder / REPORT).exists()
    assert desk.write(append="## Iteration 1\n")["edited"] == []


def test_an_edited_history_is_read_again(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(HISTORY, "# Project History\n## Iteration 4\n")
    done = desk.write(append="## Iteration 1\n")
    assert done["history"] == {"history": "# Project History\n## Iteration 4\n", "left_out": 0, "iteration": 4}
    assert done["plan"] is None


def test_a_deleted_history_begins_anew(desk: BoardDesk) -> None:
    desk.open()
    (desk.folder / HISTORY).unlink()
    done = desk.write(append="## Iteration 1\n")
    assert done["edited"][0]["what"] == "deleted"
    assert "-# Project History" in done["edited"][0]["diff"]
    assert done["history"] == {"history": "", "left_out": 0, "iteration": 0}
    desk.write(append="## Iteration 1\n")
    assert desk.text(HISTORY) == "# Project History\n## Iteration 1\n"


def test_a_deleted_plan_stops_until_it_is_back(desk: BoardDesk) -> None:
    desk.open()
    (desk.folder / PLAN).unlink()
    for _ in range(2):
        with pytest.raises(Refused, match="no plan"):
            desk.write(append="x\n")
    desk.edit(PLAN, "- T1 TODO\n")
    assert desk.write(append="x\n")["edited"] == []


def test_edits_told_before_a_crash_are_told_again(desk: BoardDesk) -> None:
    desk.open()
    desk.edit(PLAN, "by hand")
    arguments: dict[str, Any] = {"digest": desk.digest, "append": "x\n"}
    first = desk.call("board_write", **arguments)
    assert desk.call("board_write", again=True, **arguments) == first
    desk.edit(PLAN, "by hand again")
    second = desk.call("board_write", again=True, **arguments)
    assert second["plan"] == "by hand again"
    assert "-- T1 TODO\n+by hand again" in second["edited"][0]["diff"]


def reread(calls: list[str], refusal: str = "") -> Any:
    async def read(run_id: str) -> bool:
        calls.append("read")
        if refusal:
            raise Refused(refusal, "definition")
        return True

    return read


def test_only_a_resumed_run_reads_its_definition_again_before_it_opens_the_board(desk: BoardDesk) -> None:
    rereads: list[str] = []
    desk.open(of={"reread": reread(rereads)})
    assert rereads == []
    resumed = [Record(1, 0, Resumed())]
    with pytest.raises(TryAgain, match="was mended"):
        desk.open(of={"reread": reread(rereads), "records": resumed})
    with pytest.raises(Refused, match="still wrong"):
        desk.open(of={"reread": reread(rereads, "still wrong"), "records": resumed})
    assert len(rereads) == 2
    assert desk.open(of={"records": resumed})["plan"] == "- T1 TODO\n", "it has not changed"


def test_an_edit_without_known_files_gives_plan_and_history(desk: BoardDesk) -> None:
    desk.open()
    (desk.folder / ".ripstop/board/index.json").unlink()
    desk.edit(PLAN, "by hand")
    rereads: list[str] = []
    done = desk.write(of={"reread": reread(rereads)})
    assert done["plan"] == "by hand"
    assert done["history"]["history"] == "# Project History\n"
    assert rereads, "the definition may have changed"


def test_an_edited_definition_is_read_again_first(desk: BoardDesk) -> None:
    policy = "memory/verification_policy.json"
    desk.edit(policy, "{}")
    desk.open()
    desk.edit(policy, "{wrong")
    rereads: list[str] = []
    arguments: dict[str, Any] = {"digest": desk.digest, "append": "x\n", "definition_files": [policy]}
    with pytest.raises(Refused, match="is wrong"):
        desk.call("board_write", of={"reread": reread(rereads, "the policy is wrong")}, **arguments)
    desk.edit(policy, '{"a": 1}')
    done = desk.call("board_write", again=True, of={"reread": reread(rereads)}, **arguments)
    assert [one["path"] for one in done["edited"]] == [policy]
    assert len(rereads) == 2
    other = desk.call("board_write", **{**arguments, "digest": done["digest"]}, of={"reread": reread(rereads)})
    assert (other["edited"], len(rereads)) == ([], 2)


def test_a_definition_edited_while_it_is_read_is_read_again(desk: BoardDesk) -> None:
    desk.edit("memory/prompts/a.md", "1")
    desk.open()
    desk.edit("memory/prompts/a.md", "2")
    calls: list[int] = []

    async def edit_meanwhile(run_id: str) -> bool:
        calls.append(1)
        if len(calls) == 1:
            desk.edit("memory/prompts/a.md", "3")
        return True

    desk.write(definition_files=["memory/prompts/a.md"], of={"reread": edit_meanwhile})
    assert len(calls) == 2


def test_an_edit_saved_while_we_write_is_not_overwritten(desk: BoardDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open()

    def save(name: str) -> None:
        if name == "board.between_files":
            desk.edit(PLAN, "saved meanwhile")

    monkeypatch.setattr(board_module, "failpoint", save)
    done = desk.write(plan_text="ours", append="## Iteration 1\n", reports={REPORT: "x"})
    assert [one["path"] for one in done["edited"]] == [PLAN]
    assert desk.text(PLAN) == "saved meanwhile"
    assert desk.text(HISTORY) == "# Project History\n"
    assert not (desk.folder / REPORT).exists(), "what we had written is taken back"


def test_files_with_the_same_text_are_told_apart(desk: BoardDesk) -> None:
    desk.edit(PLAN, "# Project History\n")
    desk.open()
    desk.edit(PLAN, "- T1\n")
    (desk.folder / HISTORY).unlink()
    differences = [one["diff"] for one in desk.write()["edited"]]
    assert ["-# Project History" in one for one in differences] == [True, True]


def test_copies_of_old_texts_are_removed(desk: BoardDesk) -> None:
    desk.open()
    for number in range(9):
        desk.write(plan_text=f"plan {number}\n", append=f"## Iteration {number}\n")
    assert len(list((desk.folder / ".ripstop/board/copies").iterdir())) == 4, "two files, now and before"


def test_all_tools_can_be_repeated() -> None:
    tools = own_tools()
    assert {name: tool.offers() for name, tool in tools.items()} == {name: (f"tool:{name}",) for name in tools}
    assert {tool.kind(None) for tool in tools.values()} == {Kind.PURE}  # type: ignore[arg-type]


# Copies


def test_a_child_works_on_a_copy(desk: BoardDesk) -> None:
    desk.edit("memory/verification_policy.json", "{}")
    desk.edit(REPORT, "said")
    desk.edit(HISTORY, "# Project History\n## Iteration 3\n")
    before = desk.files()
    child = BoardDesk(desk.folder, "parent/1.child")
    assert child.open(copy=True)["iteration"] == 3
    child.write(copy=True, append="## Iteration 4\n", reports={REPORT: "new"})
    copy = desk.workspace / "boards" / "parent-1.child"
    assert (copy / HISTORY).read_text().endswith("## Iteration 4\n")
    assert (copy / REPORT).read_text() == "new"
    assert not (copy / "memory/verification_policy.json").exists()
    assert desk.files() == before
    assert child.open(copy=True)["iteration"] == 4, "the copy is made once"


def test_a_copy_that_has_gone_is_not_made_again_by_a_write(desk: BoardDesk) -> None:
    child = BoardDesk(desk.folder, "child")
    child.open(copy=True)
    (desk.workspace / "boards/child").rename(desk.workspace / "away")
    with pytest.raises(Refused, match="There is no folder"):
        child.write(copy=True, append="x\n")


def test_a_copy_behind_a_link_is_refused(desk: BoardDesk, tmp_path_factory: pytest.TempPathFactory) -> None:
    desk.workspace.mkdir()
    (desk.workspace / "boards").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(Refused, match="link"):
        BoardDesk(desk.folder, "child").open(copy=True)
