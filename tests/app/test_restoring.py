"""A journal that was moved, copied or put back: its folders are mapped, and what may have happened is asked."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from ripstop import ALL, App, DeskQuery, ForeignJournal, Question, RunQuery, Settings, UsageError, tool
from ripstop.app.bulk_answers import answer_all
from ripstop.app.plugins import installed
from ripstop.app.restore import RestoredJournal, restore_journal
from ripstop.app.restoring import UnmappedFolders, mapped, put_in_place, read_map
from ripstop.app.settings.settings_file import Models, read_settings
from ripstop.app.stores import open_engine
from ripstop.engine.engine import Engine
from ripstop.faces.cli.main import cli
from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Asked
from ripstop.kernel.restoring import ASK, CONTINUE, END, HAPPENED
from ripstop.kernel.run import DOUBT, RESTORED
from ripstop.kernel.shown_calls import MOST_SHOWN
from tests.harness.foreign_folder import write_journal, write_project

PAID: list[int] = []
JOURNAL = Path(".ripstop/journal.db")


@tool("unsafe")
def pay(euros: int) -> str:
    "Pay an amount."
    PAID.append(euros)
    return "paid"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a journal of the user's in which a run waits for the tool `pay`."""
    PAID.clear()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    folder = tmp_path / "mine"
    model = write_project(folder)
    monkeypatch.chdir(folder)

    async def start() -> None:
        async with App(replace(settings(), models=Models(default=model)), scope=ALL) as app:
            await app.wait(await app.start("bill.yaml"))

    asyncio.run(start())
    return folder


def settings() -> Settings:
    return read_settings(Path.cwd())


def work() -> dict[str, int]:
    """Work until nothing is due; returns how many runs have which status."""

    async def story() -> dict[str, int]:
        async with App(settings(), tools=[pay], scope=ALL) as app:
            while (await app.engine.journal.next_due(offers=app.worker.offers)) is not None or app.worker.busy:
                await asyncio.sleep(0.01)
            return await app.engine.journal.counts()

    return asyncio.run(story())


def copied(to: Path) -> None:
    source, target = sqlite3.connect(JOURNAL), sqlite3.connect(to)
    source.backup(target)
    source.close()
    target.close()


def backed_up(to: Path) -> None:
    async def story() -> None:
        async with open_engine(settings()) as engine:
            await engine.journal.backup(to, engine.clock())

    asyncio.run(story())


def put_back(copy: Path) -> None:
    for part in JOURNAL.parent.glob("journal.db*"):
        part.unlink()
    shutil.copy(copy, JOURNAL)


def answer(purpose: str, choice: str, tool: str = "") -> int:
    async def story() -> int:
        async with open_engine(settings(), to_act=True) as engine:
            return len((await answer_all(engine, purpose, choice, tool=tool)).answered)

    return asyncio.run(story())


def test_a_backup_that_is_put_back_repeats_nothing(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    assert work() == {"completed": 1} and PAID == [9999]
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1} and PAID == [9999]
    assert answer(RESTORED, HAPPENED) == 1
    assert work() == {"completed": 1} and PAID == [9999]
    assert work() == {"completed": 1}, "it is asked about once"


def test_a_copy_that_nothing_of_ours_made_is_known_because_it_is_behind(mine: Path, tmp_path: Path) -> None:
    copied(tmp_path / "copy.db")
    assert work() == {"completed": 1} and PAID == [9999]
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1} and PAID == [9999]


def test_nothing_has_happened_since_and_the_call_is_made(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1}
    answer(RESTORED, CONTINUE)
    assert work() == {"completed": 1} and PAID == [9999]


async def asked(engine: Engine) -> AskPerson:
    """The question about a restored run."""
    (question,) = (await engine.desk(DeskQuery(purpose=RESTORED))).items
    return question.command


def test_the_question_shows_every_call_that_would_be_made_with_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    calls = {"calls": [{"tool": "pay", "args": {"euros": euros}} for euros in range(1, 8)]}
    (run,) = write_journal(JOURNAL.absolute(), tmp_path, tmp_path / "state", calls=calls)
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1}

    async def story() -> None:
        async with open_engine(settings()) as engine:
            ask = await asked(engine)
            assert ask.arguments is not None
            assert list(ask.arguments.values()) == [{"euros": euros} for euros in range(1, 8)]
            first, second, *_ = ask.arguments
            assert first.startswith(f"pay ({run}/") and second == "pay (in its turn, 1)"

    asyncio.run(story())


def test_a_restored_run_does_not_simply_continue_with_calls_that_cannot_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    calls = {"calls": [{"tool": "pay", "args": {"euros": 1, "for": "x" * MOST_SHOWN}}]}
    write_journal(JOURNAL.absolute(), tmp_path, tmp_path / "state", calls=calls)
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1}

    async def story() -> None:
        async with open_engine(settings()) as engine:
            ask = await asked(engine)
            assert list(ask.choices) == [HAPPENED, ASK, END] and ask.arguments is None
            assert "too many to be shown" in ask.question

    asyncio.run(story())
    with pytest.raises(UsageError):
        answer(RESTORED, CONTINUE)


def test_a_fork_from_before_the_restore_makes_no_call_without_a_word(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    assert work() == {"completed": 1} and PAID == [9999]
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1}

    async def fork() -> None:
        async with App(settings(), tools=[pay], scope=None) as app:
            (info,) = (await app.runs()).items
            records = await app.engine.history(info.run_id)
            asked_at = next(record.number for record, _ in records if isinstance(record.event, Asked))
            await app.fork(info.run_id, at=asked_at)

    asyncio.run(fork())
    work()
    assert PAID == [9999]
    assert answer(DOUBT, AGAIN) == 1
    work()
    assert PAID == [9999, 9999]


def test_each_call_is_asked_about_and_answered_by_its_tool(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    work()
    with pytest.raises(UsageError, match=r"None of them is about a call of 'mail'. They are about: pay."):
        answer(RESTORED, ASK, tool="mail")
    assert answer(RESTORED, ASK, tool="pay") == 1
    assert work() == {"waiting": 1} and PAID == []
    with pytest.raises(UsageError, match=r"They are about: pay\."):
        answer(DOUBT, "go on", tool="mail")
    assert answer(DOUBT, "go on", tool="pay") == 1
    assert work() == {"completed": 1} and PAID == [9999]
    with pytest.raises(UsageError):
        backed_up(tmp_path / "copy.db")


def test_looking_at_a_backup_changes_nothing_in_it(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    before = (tmp_path / "copy.db").read_bytes()

    async def look() -> None:
        async with open_engine(Settings(store=f"sqlite:{tmp_path}/copy.db")) as engine:
            (info,) = (await engine.runs()).items
            assert not (await engine.look(info.run_id)).run.held
            with pytest.raises(ForeignJournal, match="was restored"):
                await engine.cancel(info.run_id)

    asyncio.run(look())
    assert (tmp_path / "copy.db").read_bytes() == before


def test_a_moved_project_is_asked_about_once_and_finds_its_folders(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    with pytest.raises(ForeignJournal, match="was at") as refused:
        work()
    refused.value.agree()
    assert work() == {"completed": 1} and PAID == [9999], "nothing was lost, so nothing is held"

    async def workspace() -> str:
        async with open_engine(settings()) as engine:
            (info,) = (await engine.runs()).items
            return (await engine.look(info.run_id)).run.settings.workspace

    assert asyncio.run(workspace()).startswith(str(tmp_path / "moved"))
    work()


def test_a_copied_project_does_not_do_again_what_the_original_does(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(mine, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    with pytest.raises(ForeignJournal, match="is a copy of your journal") as refused:
        work()
    refused.value.agree()
    assert work() == {"waiting": 1}
    monkeypatch.chdir(mine)
    assert work() == {"completed": 1} and PAID == [9999], "the original goes on"


def test_restoring_elsewhere_maps_folders_or_says_which_are_missing(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up(tmp_path / "copy.db")
    work()
    write_project(tmp_path / "new")
    monkeypatch.chdir(tmp_path / "new")

    def restore(*pairs: str) -> RestoredJournal:
        return asyncio.run(restore_journal(settings(), installed(), tmp_path / "copy.db", read_map(pairs)))

    with pytest.raises(UnmappedFolders) as missing:
        restore()
    assert missing.value.folders == {mine: 1} and not JOURNAL.exists()
    done = restore(f"{mine}={tmp_path / 'new'}")
    assert (done.held, done.mapped, done.kept) == (1, 1, None)
    answer(RESTORED, HAPPENED)
    assert work() == {"completed": 1} and PAID == [9999]
    again = restore(f"{mine}={tmp_path / 'new'}")
    assert again.kept == JOURNAL.with_name("journal.db.replaced-1") and again.kept.exists()


def test_runs_are_not_mapped_to_a_folder_that_is_not_there(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    before = JOURNAL.stat().st_ino
    with pytest.raises(UsageError, match="There is no folder"):
        asyncio.run(restore_journal(settings(), installed(), tmp_path / "copy.db", {mine: tmp_path / "mistyped"}))
    assert JOURNAL.stat().st_ino == before


def test_nothing_is_put_in_the_place_of_a_journal_at_work(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")

    async def story() -> None:
        async with App(settings(), scope=ALL) as app:
            with pytest.raises(UsageError, match="at work"):
                await restore_journal(settings(), installed(), tmp_path / "copy.db", {})
            assert (await app.runs(RunQuery())).items and await app.desk(DeskQuery()) == []

    asyncio.run(story())


def test_what_is_left_of_a_journal_that_is_gone_is_no_part_of_the_new_one(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    work()
    JOURNAL.unlink()
    left = [JOURNAL.with_name(f"journal.db{suffix}") for suffix in ("-journal", "-wal", "-shm")]
    for part in left:
        part.write_bytes(b"left")
    assert put_in_place(tmp_path / "copy.db", JOURNAL, 1) is None
    assert not any(part.exists() for part in left)
    assert [one.read_bytes() for one in sorted(JOURNAL.parent.glob("journal.db.replaced-1*"))] == [b"left"] * 3


def test_paths_are_mapped_by_whole_folders() -> None:
    folders = read_map(["/a=/x", "/a/b=/y"])
    assert mapped("/a/b/c", folders) == "/y/c" and mapped("/a/c", folders) == "/x/c"
    assert mapped("/ab", folders) == "/ab" and mapped("", folders) == ""
    for wrong in ("a=b", "/a", "=/b", "/a="):
        with pytest.raises(UsageError):
            read_map([wrong])


def test_an_answer_that_fits_no_such_question_is_refused_also_where_none_is_open(mine: Path) -> None:
    with pytest.raises(UsageError, match=r"'happned' is not an answer to them. Expected one of: happened, ask, "):
        answer(RESTORED, "happned")
    done = CliRunner().invoke(cli, ["answer", "--all", "restored"])
    assert (
        done.exit_code == 2 and "The answer is missing. Expected one of: happened, ask, continue, end." in done.output
    )


def test_one_answer_that_lets_calls_be_made_shows_all_of_them_whole(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    assert work() == {"waiting": 1}
    done = CliRunner().invoke(cli, ["answer", "--all", "restored", "continue"])
    assert done.exit_code == 0, done.output
    shown, answered = done.output.split("Answered 1 question: continue.")
    assert '{"euros":9999}' in shown and "pay" in shown and "Answered" not in shown and answered


def test_who_does_not_agree_to_the_calls_that_are_shown_answers_nothing(mine: Path, tmp_path: Path) -> None:
    backed_up(tmp_path / "copy.db")
    put_back(tmp_path / "copy.db")
    work()
    seen: list[str] = []

    async def story() -> None:
        async def refuse(questions: list[Question]) -> bool:
            seen.extend(question.run_id for question in questions)
            return False

        async with open_engine(settings(), to_act=True) as engine:
            assert (await answer_all(engine, RESTORED, CONTINUE, agree=refuse)).answered == ()
            assert (await answer_all(engine, RESTORED, HAPPENED, agree=refuse)).answered, "it lets none be made"

    asyncio.run(story())
    assert len(seen) == 1 and PAID == []


def test_a_backup_that_is_not_there_is_not_taken_for_a_journal_to_be_made(mine: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["restore", str(tmp_path / "nofile.db")])
    assert done.exit_code == 2 and f"There is no backup at {tmp_path / 'nofile.db'}." in done.output
    assert "ripstop run" not in done.output


def test_a_run_that_begins_again_after_a_restore_has_other_keys(mine: Path, tmp_path: Path) -> None:
    keys: list[str] = []

    @tool("keyed")
    def pay(euros: int, key: str) -> str:
        "Pay an amount."
        keys.append(key)
        return "paid"

    async def order() -> str:
        chosen = replace(settings(), models=Models(default=f"script:{mine / 'script.jsonl'}"))
        async with App(chosen, tools=[pay], scope=ALL) as app:
            run = await app.start("bill.yaml", key="order 7")
            await app.wait(run.id)
            return run.id

    backed_up(tmp_path / "copy.db")
    lost = asyncio.run(order())
    put_back(tmp_path / "copy.db")
    assert asyncio.run(order()) == lost
    ours = [key for key in keys if key.startswith(f"{lost}/")]
    assert len(ours) == 2 and ours[0] != ours[1], "the other side cannot take one for the other"


def test_a_file_that_is_no_backup_is_refused_without_naming_the_store(tmp_path: Path) -> None:
    (tmp_path / "notdb").write_text("Dear diary, " * 50, encoding="utf-8")
    settings = Settings(store=f"sqlite:{tmp_path / 'j.db'}")
    with pytest.raises(JournalError, match=r"is not an SQLite database\. Name another file\. Nothing was") as refused:
        asyncio.run(restore_journal(settings, installed(), tmp_path / "notdb", {}))
    assert "--store" not in str(refused.value)
