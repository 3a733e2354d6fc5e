"""Hand-off documents through the command line: people, editors, other programs and agents in one folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.styles.handoff.publisher import key_of
from ripstop.testing.commands import command
from tests.walks.commands import ripstop, succeed
from tests.walks.test_command_line import EXAMPLES

pytestmark = pytest.mark.long  # every story is a dozen commands, one after the other

HANDOFF = EXAMPLES / "handoff"


def docs(*args: str, cwd: Path) -> Any:
    return json.loads(succeed("docs", *args, "--json", cwd=cwd))


def new(cwd: Path, task: str = "What is 2 + 2?", to: str = "ann", *more: str) -> dict[str, Any]:
    found: dict[str, Any] = docs("new", task, "--to", to, "--from", "boss", *more, cwd=cwd)
    return found


def file_of(document: dict[str, Any], cwd: Path) -> Path:
    return cwd / ".workflows" / str(document["file"])


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def age(path: Path) -> None:
    """Nobody is writing it any more."""
    os.utime(path, (time.time() - 60, time.time() - 60))


@pytest.mark.req("S0-4", "S0-5", "S0-27", "S0-28", "S0-48", "S0-49", "S0-58", "S0-59")
def test_a_document_goes_from_hand_to_hand(tmp_path: Path) -> None:
    made = new(tmp_path, "What is 2 + 2?", "ann", "--type", "calc")
    assert made["file"].startswith("workflow_calc_") and made["file"].endswith(".md")
    assert (made["status"], made["current_owner"], made["previous_owner"]) == ("pending", "ann", "boss")
    assert [line["from"] + line["to"] for line in made["history"]] == ["pendingpending", "pendingpending"]
    docs("accept", made["id"], cwd=tmp_path)
    docs("pass", made["id"], "--to", "bob", "--next", "Check it", cwd=tmp_path)
    mine = docs("list", "--owner", "bob", cwd=tmp_path)["documents"]
    assert [document["id"] for document in mine] == [made["id"]]
    docs("accept", made["id"], "--as", "bob", cwd=tmp_path)
    done = docs("complete", made["id"], "--result", "4", cwd=tmp_path)
    assert (done["status"], done["interaction_count"], done["result"]) == ("completed", 4, "4")
    assert "Status: completed" in file_of(made, tmp_path).read_text(encoding="utf-8")
    assert json.loads(succeed("show", made["run"], "--json", cwd=tmp_path))["outcome"] == "completed"


def test_a_document_that_waits_for_its_owner_is_not_worked_on_by_resume(tmp_path: Path) -> None:
    made = new(tmp_path)
    done = ripstop("resume", cwd=tmp_path)
    assert (done.returncode, made["run"] in done.stderr) == (4, True), done.stderr
    assert docs("show", made["id"], cwd=tmp_path)["status"] == "pending"


@pytest.mark.req("S0-26")
def test_an_illegal_transition_is_refused_with_the_legal_ones_named(tmp_path: Path) -> None:
    made = new(tmp_path)
    before = file_of(made, tmp_path).read_bytes()
    for args in (("complete", made["id"]), ("accept", made["id"], "--as", "eve"), ("pass", "nowhere", "--to", "x")):
        done = ripstop("docs", *args, cwd=tmp_path)
        assert done.returncode == 2 and "Traceback" not in done.stderr
    refused = ripstop("docs", "complete", made["id"], cwd=tmp_path).stderr
    assert "pending→completed" in refused and "accept" in refused
    assert file_of(made, tmp_path).read_bytes() == before


@pytest.mark.req("S0-44", "S0-47")
def test_a_guard_that_terminates_says_so_and_the_run_can_go_on(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--max-interactions", "1")
    docs("accept", made["id"], cwd=tmp_path)
    done = ripstop("docs", "complete", made["id"], cwd=tmp_path)
    assert done.returncode == 3 and "It has had 1 interaction, which" in done.stderr
    why = succeed("why", made["run"], cwd=tmp_path)
    assert "interactions: limit 1" in why and f"ripstop resume {made['run']} --raise interactions=+1" in why
    ripstop("resume", made["run"], "--raise", "interactions=1", cwd=tmp_path)
    assert docs("show", made["id"], cwd=tmp_path)["status"] == "in_progress"
    assert docs("complete", made["id"], cwd=tmp_path)["status"] == "completed"


def test_an_edit_in_an_editor_is_read_back_or_refused_and_kept(tmp_path: Path) -> None:
    made = new(tmp_path)
    file = file_of(made, tmp_path)
    replace(file, "Status: pending", "Status: in_progress")
    assert docs("show", made["id"], cwd=tmp_path)["interaction_count"] == 1
    good = file.read_text(encoding="utf-8")
    assert "ann accepted it pending→in_progress" in good
    bad = good.replace("Status: in_progress", "Status: finished")
    file.write_text(bad, encoding="utf-8")
    age(file)
    listed = json.loads(ripstop("docs", "list", "--json", cwd=tmp_path).stdout)
    assert "line 2" in listed["problems"][0]["text"]
    assert file.read_text(encoding="utf-8") == good
    assert [path.read_text(encoding="utf-8") for path in file.parent.glob("*.refused-*")] == [bad]


def test_an_edit_of_a_finished_document_is_put_right_and_kept(tmp_path: Path) -> None:
    made = new(tmp_path)
    docs("terminate", made["id"], "--because", "not needed", cwd=tmp_path)
    file = file_of(made, tmp_path)
    good = file.read_text(encoding="utf-8")
    replace(file, "Status: terminated", "Status: pending")
    assert docs("show", made["id"], cwd=tmp_path)["status"] == "terminated"
    assert file.read_text(encoding="utf-8") == good and list(file.parent.glob("*.refused-*"))


def test_one_buffer_can_be_saved_twice_with_the_file_rewritten_between(tmp_path: Path) -> None:
    made = new(tmp_path)
    file = file_of(made, tmp_path)
    buffer = file.read_text(encoding="utf-8")
    time.sleep(1.1)  # the engine's own time in the document is another one
    for task in ("What is 2 + 3?", "What is 2 + 3? Show the steps."):
        file.write_text(buffer.replace("What is 2 + 2?", task), encoding="utf-8")
        listed = docs("list", cwd=tmp_path)
        assert not listed["problems"]
        assert task in file.read_text(encoding="utf-8") != buffer
    assert not list(file.parent.glob("*.refused-*"))


def test_undoing_in_an_editor_what_was_done_since_is_refused_and_kept(tmp_path: Path) -> None:
    made = new(tmp_path)
    file = file_of(made, tmp_path)
    before = file.read_text(encoding="utf-8")
    docs("accept", made["id"], cwd=tmp_path)
    good = file.read_text(encoding="utf-8")
    file.write_text(before, encoding="utf-8")
    listed = docs("list", cwd=tmp_path)
    assert "nothing new in it" in listed["problems"][0]["text"]
    assert file.read_text(encoding="utf-8") == good
    assert [path.read_text(encoding="utf-8") for path in file.parent.glob("*.refused-*")] == [before]
    assert docs("list", cwd=tmp_path)["problems"] == []


def test_an_edit_that_a_killed_process_left_behind_is_kept_beside_its_document(tmp_path: Path) -> None:
    made = new(tmp_path)
    file = file_of(made, tmp_path)
    left = file.parent / ".ripstop" / "replacing" / key_of(made["run"])
    left.write_text("by hand", encoding="utf-8")
    (problem,) = docs("list", cwd=tmp_path)["problems"]
    assert problem["file"] == file.name and f"{file.name}.refused-interrupted" in problem["text"]
    assert (file.parent / f"{file.name}.refused-interrupted").read_text(encoding="utf-8") == "by hand"
    assert docs("list", cwd=tmp_path)["problems"] == [] and not left.exists()


@pytest.mark.req("S0-19", "S0-31", "S0-64", "S0-65", "S0-66")
def test_a_foreign_document_is_taken_in_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / ".workflows"
    folder.mkdir()
    text = (
        "# Workflow: 订单_7\nStatus: in_progress\nCurrent_Owner: 小红\nPrevious_Owner: 小明\n"
        "Created_At: 2024-05-05 08:00:00\nUpdated_At: 2024-05-05 08:01:00\nPriority: high\n\n"
        "## Task\n打包订单\n\n## History\n- 2024-05-05 08:00:00 小明 创建 pending→pending\n"
        "- 2024-05-05 08:01:00 小明 转交 pending→in_progress\n\n## Next_Action\n小红发货\n"
    )
    (folder / "anything at all.md").write_text(text, encoding="utf-8")
    found = docs("show", "订单_7", cwd=tmp_path)
    assert (found["status"], found["current_owner"], len(found["history"])) == ("in_progress", "小红", 2)
    assert (folder / "anything at all.md").read_text(encoding="utf-8") == text
    done = docs("complete", "订单_7", cwd=tmp_path)
    assert done["status"] == "completed" and done["interaction_count"] == 2
    after = (folder / "anything at all.md").read_text(encoding="utf-8")
    assert "Priority: high\n" in after and "小红 完成任务 in_progress→completed" in after


def test_what_cannot_be_read_is_set_aside_and_stops_nobody(tmp_path: Path) -> None:
    made = new(tmp_path)
    folder = tmp_path / ".workflows"
    wrong = {
        "empty.md": b"",
        "prose.md": b"hello\n",
        "latin.md": b"# Workflow: caf\xe9\n",
        "nul.md": b"# Workflow: a\0\n",
    }
    for name, data in wrong.items():
        (folder / name).write_bytes(data)
        age(folder / name)
    listed = docs("list", cwd=tmp_path)
    assert [document["id"] for document in listed["documents"]] == [made["id"]]
    assert {problem["file"] for problem in listed["problems"]} == set(wrong)
    assert {path.name for path in (folder / "set-aside").glob("*.md")} == set(wrong)
    assert docs("list", cwd=tmp_path)["problems"] == []


def test_an_id_that_was_changed_is_put_right_and_makes_no_second_document(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--id", "one")
    replace(file_of(made, tmp_path), "# Workflow: one", "# Workflow: two")
    listed = docs("list", cwd=tmp_path)
    assert [document["id"] for document in listed["documents"]] == ["one"]
    assert "cannot be changed" in listed["problems"][0]["text"]


def test_an_id_that_was_changed_in_a_finished_document_is_put_right_and_kept(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--id", "one")
    docs("terminate", "one", cwd=tmp_path)
    file = file_of(made, tmp_path)
    good = file.read_text(encoding="utf-8")
    replace(file, "# Workflow: one", "# Workflow: two")
    listed = docs("list", cwd=tmp_path)
    assert [document["id"] for document in listed["documents"]] == ["one"]
    assert "final" in listed["problems"][0]["text"]
    assert file.read_text(encoding="utf-8") == good
    assert "# Workflow: two" in next(file.parent.glob("*.refused-*")).read_text(encoding="utf-8")


def test_another_document_may_take_the_name_of_a_finished_one(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--id", "one")
    docs("terminate", "one", cwd=tmp_path)
    text = "# Workflow: two\nStatus: pending\nCurrent_Owner: ann\n\n## Task\ny\n"
    file_of(made, tmp_path).write_text(text, encoding="utf-8")
    listed = docs("list", cwd=tmp_path)
    assert [(document["id"], document["task"]) for document in listed["documents"]] == [("two", "y")]
    assert listed["problems"] == []


@pytest.mark.parametrize("data", [b"garbage", b"", b"# Workflow: caf\xe9\n"])
def test_the_file_of_a_document_that_holds_none_is_put_right_and_kept(tmp_path: Path, data: bytes) -> None:
    active, finished = new(tmp_path), new(tmp_path)
    docs("terminate", finished["id"], cwd=tmp_path)
    texts = {file_of(made, tmp_path): file_of(made, tmp_path).read_bytes() for made in (active, finished)}
    for file in texts:
        file.write_bytes(data)
        age(file)
    listed = docs("list", cwd=tmp_path)
    assert {document["id"] for document in listed["documents"]} == {active["id"], finished["id"]}
    assert {problem["file"] for problem in listed["problems"]} == {file.name for file in texts}
    assert {file: file.read_bytes() for file in texts} == texts
    kept = [*(tmp_path / ".workflows").glob("*.refused-*"), *(tmp_path / ".workflows").glob("set-aside/*.md")]
    assert [path.read_bytes() for path in kept] == [data, data]
    assert docs("list", cwd=tmp_path)["problems"] == []


def test_an_id_that_was_changed_to_that_of_another_is_put_right_too(tmp_path: Path) -> None:
    made, other = new(tmp_path, "x", "ann", "--id", "one"), new(tmp_path, "y", "ann", "--id", "two")
    replace(file_of(made, tmp_path), "# Workflow: one", "# Workflow: two")
    listed = docs("list", cwd=tmp_path)
    assert {document["id"]: document["task"] for document in listed["documents"]} == {"one": "x", "two": "y"}
    assert "# Workflow: one" in file_of(made, tmp_path).read_text(encoding="utf-8")
    assert "# Workflow: two" in file_of(other, tmp_path).read_text(encoding="utf-8")


def test_a_copy_is_named_and_becomes_a_document_of_its_own_with_another_id(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--id", "one")
    copy = tmp_path / ".workflows" / "copy.md"
    shutil.copy(file_of(made, tmp_path), copy)
    listed = docs("list", cwd=tmp_path)
    assert "copy of" in listed["problems"][0]["text"] and listed["problems"][0]["file"] == "copy.md"
    replace(copy, "# Workflow: one", "# Workflow: two")
    assert {document["id"] for document in docs("list", cwd=tmp_path)["documents"]} == {"one", "two"}
    docs("accept", "one", cwd=tmp_path)
    assert "# Workflow: two" in copy.read_text(encoding="utf-8")


@pytest.mark.long
def test_one_odd_file_stops_nobody(tmp_path: Path) -> None:
    made = new(tmp_path)
    odd = new(tmp_path)
    file_of(odd, tmp_path).unlink()
    file_of(odd, tmp_path).mkdir()
    text = b"# Workflow: z\nStatus: pending\nCurrent_Owner: ann\n"
    for name in (b"a\tb.md", b"a\xff.md"):
        Path(os.fsdecode(os.fsencode(tmp_path / ".workflows") + b"/" + name)).write_bytes(text)
    assert docs("accept", made["id"], cwd=tmp_path)["status"] == "in_progress"
    listed = docs("list", cwd=tmp_path)
    assert {document["id"] for document in listed["documents"]} == {made["id"], odd["id"]}
    assert len(listed["problems"]) == 3


@pytest.mark.long
def test_looking_at_documents_lets_no_agent_work(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    model = script(folder, reply("complete", delay=60))
    watcher = watching(folder, model)
    try:
        made = new(folder, "Test it", "tester")
        until(lambda: "in_progress" in file_of(made, folder).read_text(encoding="utf-8"), "accepted")
    finally:
        watcher.kill()
        watcher.communicate()
    for _ in range(2):
        assert docs("list", cwd=folder)["documents"][0]["status"] == "in_progress"
    log = [json.loads(line) for line in succeed("log", made["run"], "--json", cwd=folder).splitlines()]
    assert not any(record.get("answer", {}).get("type") == "agent_replied" for record in log)


@pytest.mark.long
def test_an_id_is_taken_once_and_a_run_of_a_document_is_never_forked(tmp_path: Path) -> None:
    made = new(tmp_path, "first", "ann", "--id", "x")
    for named in ("x", " x ", "x\n", "\tx"):
        done = ripstop("docs", "new", "second", "--to", "bob", "--id", named, cwd=tmp_path)
        assert done.returncode == 2 and "already" in done.stderr
    assert len(list((tmp_path / ".workflows").glob("*.md"))) == 1
    forked = ripstop("fork", made["run"], "--at", "1", cwd=tmp_path)
    assert forked.returncode == 2 and "one file" in forked.stderr


def test_a_tab_in_an_id_is_a_blank(tmp_path: Path) -> None:
    made = new(tmp_path, "x", "ann", "--id", "a\tb")
    assert made["id"] == "a b" and "# Workflow: a b\n" in file_of(made, tmp_path).read_text(encoding="utf-8")
    replace(file_of(made, tmp_path), "# Workflow: a b", "# Workflow: a\tb")
    listed = docs("list", cwd=tmp_path)
    assert [document["id"] for document in listed["documents"]] == ["a b"] and listed["problems"] == []
    assert docs("accept", "a\tb", cwd=tmp_path)["status"] == "in_progress"


def test_a_cancelled_document_is_terminated(tmp_path: Path) -> None:
    made = new(tmp_path)
    assert "stopped, ripstop terminated it" in succeed("cancel", made["run"], cwd=tmp_path)
    assert "Status: terminated" in file_of(made, tmp_path).read_text(encoding="utf-8")


def test_a_document_whose_file_was_deleted_comes_back(tmp_path: Path) -> None:
    made = new(tmp_path)
    text = file_of(made, tmp_path).read_text(encoding="utf-8")
    file_of(made, tmp_path).unlink()
    assert [document["id"] for document in docs("list", cwd=tmp_path)["documents"]] == [made["id"]]
    assert file_of(made, tmp_path).read_text(encoding="utf-8") == text


def test_a_document_whose_file_was_renamed_stays_the_same_document(tmp_path: Path) -> None:
    made = new(tmp_path)
    file_of(made, tmp_path).rename(tmp_path / ".workflows" / "mine.md")
    assert docs("accept", made["id"], cwd=tmp_path)["file"] == "mine.md"
    assert [path.name for path in (tmp_path / ".workflows").glob("*.md")] == ["mine.md"]


def test_documents_are_gone_on_with_where_their_folder_was_moved_to(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    made = new(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    succeed("trust", "--yes", cwd=tmp_path / "there")
    assert docs("accept", made["id"], cwd=tmp_path / "there")["status"] == "in_progress"
    assert "Status: in_progress" in file_of(made, tmp_path / "there").read_text(encoding="utf-8")
    assert not (tmp_path / "here").exists()


@pytest.mark.long
@pytest.mark.req("S0-62", "S0-63")
def test_only_old_terminated_documents_are_cleaned_up(tmp_path: Path) -> None:
    kept, completed, gone = new(tmp_path), new(tmp_path), new(tmp_path)
    docs("accept", completed["id"], cwd=tmp_path)
    docs("complete", completed["id"], cwd=tmp_path)
    docs("terminate", gone["id"], cwd=tmp_path)
    assert docs("clean", cwd=tmp_path) == {"deleted": [], "old": [], "refused": []}
    time.sleep(1.1)
    would = docs("clean", "--older-than", "0", "--dry-run", cwd=tmp_path)
    assert [one["id"] for one in would["old"]] == [gone["id"]] and would["deleted"] == []
    assert file_of(gone, tmp_path).exists()
    docs("clean", "--older-than", "0", cwd=tmp_path)
    left = {document["id"] for document in docs("list", cwd=tmp_path)["documents"]}
    assert left == {kept["id"], completed["id"]} and not file_of(gone, tmp_path).exists()
    assert gone["run"] in succeed("runs", cwd=tmp_path)


def test_a_terminated_document_without_a_time_is_as_old_as_its_run(tmp_path: Path) -> None:
    (tmp_path / ".workflows").mkdir()
    text = "# Workflow: j\nStatus: terminated\nCurrent_Owner: ann\n\n## Task\nt\n"
    (tmp_path / ".workflows" / "a.md").write_text(text, encoding="utf-8")
    assert docs("clean", cwd=tmp_path) == {"deleted": [], "old": [], "refused": []}
    assert ripstop("docs", "clean", "--older-than", "nan", cwd=tmp_path).returncode == 2


# The inbox


MESSAGE = "# Message\nFrom: boss\nTo: ann\nTime: 2026-01-01 10:00:00\nType: {}\n\n{}\n"


def post(cwd: Path, agent: str, name: str, text: str) -> Path:
    folder = cwd / ".inbox" / agent
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.req("S0-43")
def test_messages_become_documents_are_told_to_them_or_ignored(tmp_path: Path) -> None:
    post(tmp_path, "ann", "a.md", MESSAGE.format("normal", "Please add 2 and 2."))
    post(tmp_path, "ann", "b.md", MESSAGE.format("normal", "Thank you!"))
    post(tmp_path, "ann", "c.md", "")
    inner = "### Workflow: w_1\nStatus: pending\nCurrent_Owner: ann\n\n### Task\nAdd\n"
    post(tmp_path, "ann", "d.md", MESSAGE.format("workflow", f"## Workflow Document\n{inner}"))
    listed = docs("inbox", cwd=tmp_path)
    assert len(listed) == 4 and sum(bool(one["problem"]) for one in listed) == 1
    handled = {one["file"]: one["became"] for one in docs("inbox", "ann", "--handle", cwd=tmp_path)}
    assert "courtesy" in handled["b.md"] and "set aside" in handled["c.md"] and "w_1" in handled["d.md"]
    tasks = {document["task"]: document["current_owner"] for document in docs("list", cwd=tmp_path)["documents"]}
    assert tasks == {"Please add 2 and 2.": "ann", "Add": "ann"}
    folder = tmp_path / ".inbox" / "ann"
    assert {path.name for path in (folder / "processed").iterdir()} == {"a.md", "b.md", "d.md"}
    assert {path.name for path in (folder / "set-aside").glob("*.md")} == {"c.md"}
    assert docs("inbox", cwd=tmp_path) == []


def test_a_message_that_should_bring_a_document_and_does_not_is_set_aside(tmp_path: Path) -> None:
    inner = "### Workflow w_1\nStatus: pending\nCurrent_Owner: ann\n\n### Task\nAdd\n"
    post(tmp_path, "ann", "a.md", MESSAGE.format("workflow", f"## Workflow Document\n{inner}"))
    post(tmp_path, "ann", "b.md", MESSAGE.format("workflow", "Here it comes"))
    assert "### Workflow: <id>" in docs("inbox", cwd=tmp_path)[0]["problem"]
    handled = docs("inbox", "--handle", cwd=tmp_path)
    assert all(one["became"].startswith("set aside") for one in handled)
    folder = tmp_path / ".inbox" / "ann"
    assert {path.name for path in (folder / "set-aside").glob("*.md")} == {"a.md", "b.md"}
    assert docs("list", cwd=tmp_path)["documents"] == []


def sent_in(cwd: Path) -> str:
    """A document that came in by a message of boss, accepted."""
    post(cwd, "ann", "a.md", MESSAGE.format("normal", "Please add 2 and 2."))
    docs("inbox", "--handle", cwd=cwd)
    (document,) = docs("list", cwd=cwd)["documents"]
    docs("accept", document["id"], cwd=cwd)
    return str(document["id"])


@pytest.mark.long
def test_whoever_sent_a_document_in_gets_one_message_when_it_is_finished(tmp_path: Path) -> None:
    named = sent_in(tmp_path)
    docs("complete", named, "--result", "It is 4.", cwd=tmp_path)
    (message,) = docs("inbox", "boss", cwd=tmp_path)
    assert (message["from"], message["to"], message["type"]) == ("ann", "boss", "workflow_reply")
    assert named in message["body"] and "It is 4." in message["body"]
    (handled,) = docs("inbox", "--handle", cwd=tmp_path)
    assert handled["became"] == f"ignored: {named} is completed"
    assert docs("inbox", cwd=tmp_path) == []


@pytest.mark.long
def test_replies_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "ripstop.toml").write_text("[docs]\nreplies = false\n", encoding="utf-8")
    docs("complete", sent_in(tmp_path), cwd=tmp_path)
    assert docs("inbox", cwd=tmp_path) == [] and not (tmp_path / ".inbox" / "boss").exists()


@pytest.mark.long
@pytest.mark.parametrize("place", ["documents.before_link", "documents.after_link"])
def test_a_reply_is_sent_once_if_the_process_dies_over_it(tmp_path: Path, place: str) -> None:
    named = sent_in(tmp_path)
    died = ripstop("docs", "complete", named, cwd=tmp_path, env={**os.environ, "RIPSTOP_FAILPOINT": place})
    assert died.returncode == -signal.SIGKILL
    (document,) = docs("list", cwd=tmp_path)["documents"]
    assert json.loads(succeed("show", document["run"], "--json", cwd=tmp_path))["outcome"] == "completed"
    assert len(docs("inbox", "boss", cwd=tmp_path)) == 1


@pytest.mark.long
@pytest.mark.req("S0-43", "S0-45")
def test_a_reply_to_a_finished_document_is_ignored(tmp_path: Path) -> None:
    made = new(tmp_path)
    docs("accept", made["id"], cwd=tmp_path)
    docs("complete", made["id"], cwd=tmp_path)
    post(tmp_path, "ann", "a.md", MESSAGE.format("workflow_reply", f"{made['id']}: [WORKFLOW_END]"))
    (handled,) = docs("inbox", "--handle", cwd=tmp_path)
    assert handled["became"].startswith("ignored")
    assert docs("show", made["id"], cwd=tmp_path)["interaction_count"] == 2


@pytest.mark.long
def test_a_reply_is_told_to_the_document_it_names_and_to_no_other(tmp_path: Path) -> None:
    new(tmp_path, "x", "ann", "--id", "job_1")
    new(tmp_path, "x", "ann", "--id", "job_12")
    post(tmp_path, "ann", "a.md", MESSAGE.format("workflow_reply", "about job_12: [WORKFLOW_END]"))
    docs("inbox", "--handle", cwd=tmp_path)
    status = {document["id"]: document["status"] for document in docs("list", cwd=tmp_path)["documents"]}
    assert status == {"job_1": "pending", "job_12": "terminated"}


# Agents


def folder_with_roles(tmp_path: Path) -> Path:
    folder = tmp_path / "office"
    shutil.copytree(HANDOFF, folder)
    return folder


@pytest.mark.req("S0-60")
def test_the_example_is_completed_by_its_three_agents(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    made = new(folder, "We need an add(a, b) function", "secretary")
    watched = docs("watch", "--once", "--model", "script:script.jsonl", cwd=folder)
    (document,) = watched["documents"]
    assert (document["id"], document["status"], document["interaction_count"]) == (made["id"], "completed", 10)
    assert [line["agent"] for line in document["history"][2:]] == [
        *("secretary", "secretary", "programmer", "programmer", "tester", "tester"),
        *("programmer", "programmer", "tester", "tester"),
    ]
    assert "return a + b" in (folder / "workspace/collab/calculator.py").read_text(encoding="utf-8")


def script(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"script:{path}"


def reply(action: str, delay: float = 0, **decisions: Any) -> dict[str, Any]:
    text = json.dumps({"content": "done", "decisions": {"action": action, "to": "", **decisions}})
    return {"agent": "tester", "reply": text, "delay": delay}


def watching(folder: Path, model: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "ripstop", "docs", "watch", "--model", model]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


def test_mail_that_cannot_be_put_away_stops_nobody(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    post(folder, "tester", "a\tb.md", "")
    post(folder, "tester", "c.md", "")
    (folder / ".inbox" / "tester" / "set-aside").write_text("in the way", encoding="utf-8")
    made = new(folder, "Test it", "tester")
    docs("watch", "--once", "--model", script(folder, reply("complete")), cwd=folder)
    assert docs("show", made["id"], cwd=folder)["status"] == "completed"


@pytest.mark.long
@pytest.mark.req("S0-52")
def test_a_watcher_notices_a_new_document_and_a_killed_one_is_gone_on_with(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    model = script(folder, reply("complete", delay=3.0, result="all well"))
    watcher = watching(folder, model)
    try:
        made = new(folder, "Test it", "tester")
        until(lambda: "in_progress" in file_of(made, folder).read_text(encoding="utf-8"), "accepted")
    finally:
        watcher.kill()
        watcher.communicate()
    again = docs("watch", "--once", "--model", model, cwd=folder)
    (document,) = again["documents"]
    assert (document["status"], document["result"], document["interaction_count"]) == ("completed", "all well", 2)


def test_a_document_stays_listed_after_an_edit_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = json.loads(command("docs", "new", "Add", "--to", "ann", "--id", "a", "--json").out)
    file = file_of(made, tmp_path)
    file.write_text("no document\n", encoding="utf-8")
    done = command("docs", "list")
    assert (
        "a         pending  ann    " in done.out and "(as before the last edit, which cannot be read) Add" in done.out
    )
    assert file.name in done.err and file.read_text(encoding="utf-8") == "no document\n", (
        "it may still be being written"
    )
    shown = command("docs", "show", "a")
    assert (shown.code, f"{file.name} cannot be read now" in shown.err) == (2, True), shown
    (listed,) = json.loads(command("docs", "list", "--json").out)["documents"]
    assert (listed["id"], listed["status"], bool(listed["unread"])) == ("a", "pending", True)
    age(file)
    (listed,) = json.loads(command("docs", "list", "--json").out)["documents"]
    assert (listed["id"], listed["unread"]) == ("a", "")


@pytest.mark.long
def test_a_watcher_puts_a_file_right_that_holds_no_document(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    wrong = {new(folder, "x", "a person", "--id", f"w{n}")["file"]: data for n, data in enumerate((b"x", b"", b"\xff"))}
    files = {folder / ".workflows" / name: data for name, data in wrong.items()}
    good = {file: file.read_bytes() for file in files}
    watcher = watching(folder, script(folder, {"agent": "nobody", "reply": "x"}))
    try:
        assert watcher.stderr is not None and "Watching" in watcher.stderr.readline()
        for file, data in files.items():
            file.write_bytes(data)
        # long before the sweep, which comes every 30 seconds
        until(lambda: all(f.exists() and f.read_bytes() == good[f] for f in files), "put right", seconds=20)
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=20)


def test_a_second_interruption_ends_a_watcher_at_once_with_the_same_code(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    made = new(folder, "Test it", "tester")
    watcher = watching(folder, script(folder, reply("complete", delay=60)))
    until(lambda: "in_progress" in file_of(made, folder).read_text(encoding="utf-8"), "accepted")
    watcher.send_signal(signal.SIGINT)
    assert watcher.stderr is not None
    assert any("stopping …" in line for line in watcher.stderr), "said while it still waits for its agent"
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=20)
    assert watcher.returncode == 128 + signal.SIGINT and "Traceback" not in said


def test_a_message_that_is_just_being_written_is_waited_for(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    watcher = watching(folder, script(folder, reply("complete", delay=60)))
    try:
        assert watcher.stderr is not None and "Watching" in watcher.stderr.readline()
        post(folder, "tester", "a.md", "")
        for _ in range(8):
            time.sleep(0.1)  # a slow writer, who is seen to write
            (folder / ".inbox" / "tester" / "a.md").touch()
        post(folder, "tester", "a.md", MESSAGE.format("normal", "Test add"))
        processed = folder / ".inbox" / "tester" / "processed" / "a.md"
        until(processed.exists, "handled")
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=20)
    assert [document["task"] for document in docs("list", cwd=folder)["documents"]] == ["Test add"]


def test_an_edit_while_an_agent_works_is_lost_on_neither_side(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    first, second = reply("complete", delay=2.0, result="tested add"), reply("complete", result="tested add and sub")
    watcher = watching(folder, script(folder, first, second))
    try:
        made = new(folder, "Test add", "tester")
        file = file_of(made, folder)
        until(lambda: "in_progress" in file.read_text(encoding="utf-8"), "accepted")
        replace(file, "Test add", "Test add and sub")
        until(lambda: "Status: completed" in file.read_text(encoding="utf-8"), "completed")
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=20)
    document = docs("show", made["id"], cwd=folder)
    assert (document["task"], document["result"]) == ("Test add and sub", "tested add and sub")
    log = [json.loads(line) for line in succeed("log", made["run"], "--json", cwd=folder).splitlines()]
    assert 'tested add\\"' in json.dumps([record for record in log if record["type"] == "answered"])


@pytest.mark.long
@pytest.mark.req("S0-1")
def test_an_agent_that_claims_completion_without_a_transition_leaves_the_document_alone(tmp_path: Path) -> None:
    folder = folder_with_roles(tmp_path)
    claims = [{"agent": "tester", "reply": "All tests pass. Status: completed."}] * 8
    made = new(folder, "Test it", "tester")
    watched = ripstop("docs", "watch", "--once", "--model", script(folder, *claims), cwd=folder)
    assert watched.returncode == 4, watched.stderr
    assert docs("show", made["id"], cwd=folder)["status"] == "in_progress"
    (question,) = json.loads(succeed("desk", "--json", cwd=folder))
    assert "has failed 3 times" in question["question"]


@pytest.mark.long
def test_a_documents_id_or_file_stands_for_its_run_where_one_only_looks(tmp_path: Path) -> None:
    made = new(tmp_path, "What is 2 + 2?", "ann", "--id", "sum of two")
    log = succeed("log", made["run"], cwd=tmp_path)
    for named in ("sum of two", made["file"], f".workflows/{made['file']}", str(file_of(made, tmp_path))):
        assert succeed("log", named, cwd=tmp_path) == log
        assert json.loads(succeed("show", named, "--json", cwd=tmp_path))["run"] == made["run"]
        assert succeed("why", f"{named}@1", cwd=tmp_path) == succeed("why", f"{made['run']}@1", cwd=tmp_path)
    missing = ripstop("log", "sum of three", cwd=tmp_path)
    assert (missing.returncode, "There is no run 'sum of three'" in missing.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bob\x1b[2J", "b\nob", "b" * 300])
def test_nobody_gets_a_document_under_a_name_that_cannot_be_shown(tmp_path: Path, name: str) -> None:
    made = new(tmp_path)
    docs("accept", made["id"], cwd=tmp_path)
    before = file_of(made, tmp_path).read_text(encoding="utf-8")
    for refused in (
        ripstop("docs", "pass", made["id"], "--to", name, cwd=tmp_path),
        ripstop("act", made["run"], "pass", "--as", "ann", "--field", f"to={name}", cwd=tmp_path),
        ripstop("act", made["run"], "terminate", "--as", name, cwd=tmp_path),
        ripstop("docs", "new", "More", "--to", name, cwd=tmp_path),
        ripstop("docs", "new", "More", "--to", "ann", "--from", name, cwd=tmp_path),
    ):
        assert refused.returncode == 2 and "name" in refused.stderr and "Traceback" not in refused.stderr
    assert file_of(made, tmp_path).read_text(encoding="utf-8") == before
    assert len(docs("list", cwd=tmp_path)["documents"]) == 1


def test_a_new_file_whose_owner_cannot_be_a_name_is_set_aside(tmp_path: Path) -> None:
    made = new(tmp_path)
    path = tmp_path / ".workflows" / "workflow_other.md"
    text = file_of(made, tmp_path).read_text(encoding="utf-8").replace(made["id"], "other")
    path.write_text(text.replace("Current_Owner: ann", "Current_Owner: ann\x1b[31m"), encoding="utf-8")
    age(path)
    listed = docs("list", cwd=tmp_path)
    assert [document["id"] for document in listed["documents"]] == [made["id"]]
    assert "U+001B" in listed["problems"][0]["text"] and not path.exists()
