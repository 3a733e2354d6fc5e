"""A journal that its user has neither made nor agreed to can be looked at, and does nothing."""

import asyncio
import contextlib
import inspect
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop import ALL, NOTHING, App, ForeignJournal, UsageError, tool
from ripstop.app import journal_trust
from ripstop.app.journal_trust import READS, looked_at
from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.app.stores import open_engine
from ripstop.engine.ports import Journal, JournalIdentity, Scope
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.security.known_journals import KnownJournal, KnownJournals
from tests.harness.foreign_folder import at_home_of, write_journal, write_project

PAID: list[int] = []


@tool("unsafe")
def pay(euros: int) -> str:
    "Pay an amount."
    PAID.append(euros)
    return "paid"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an enemy's journal in it; the user has a state folder of their own."""
    PAID.clear()
    folder = tmp_path / "clone"
    write_journal(folder / ".ripstop" / "journal.db", folder, tmp_path / "enemy")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    monkeypatch.chdir(folder)
    return folder


def settings(**more: Any) -> Settings:
    return read_settings(Path.cwd(), **more)


async def idle(app: App) -> None:
    """Return when a worker has done all that it can do."""
    while (await app.engine.journal.next_due(offers=app.worker.offers)) is not None or app.worker.busy:
        await asyncio.sleep(0.01)


def work(chosen: Settings) -> None:
    async def story() -> None:
        async with App(chosen, tools=[pay], scope=ALL) as app:
            await idle(app)

    asyncio.run(story())


@pytest.mark.parametrize("scope", [ALL, NOTHING])
def test_no_worker_begins_on_a_foreign_journal(clone: Path, scope: Scope) -> None:
    async def story() -> None:
        async with App(settings(), tools=[pay], scope=scope):
            pass

    with pytest.raises(ForeignJournal) as refused:
        asyncio.run(story())
    assert PAID == []
    assert "neither made nor agreed to" in str(refused.value)
    assert any('pay  {"euros":9999}' in line for line in refused.value.shown)
    assert [step.action for step in refused.value.next_steps] == ["trust"]


ACTIONS: dict[str, Callable[[App, str], Awaitable[Any]]] = {
    "start": lambda app, run: app.start("bill.yaml"),
    "send": lambda app, run: app.engine.hear(run, "do it"),
    "answer": lambda app, run: app.answer(f"{run}/3", "yes"),
    "cancel": lambda app, run: app.cancel(run),
    "act": lambda app, run: app.engine.tell_fact(run, None),  # type: ignore[arg-type]
    "fork": lambda app, run: app.fork(run),
    "resume": lambda app, run: app.resume(run),
    "resume_all": lambda app, run: app.resume_all(),
    "take_up": lambda app, run: app.take_up(run),
    "use_workspace": lambda app, run: app.use_workspace(run, Path("elsewhere")),
    "put_back": lambda app, run: app.engine.put_back(run),
    "working": lambda app, run: app.working(ALL).__aenter__(),
    "serving": lambda app, run: app.serving().__aenter__(),
    "forget": lambda app, run: app.engine.journal.forget([run], 1),
}


@pytest.mark.parametrize("action", [name for name in ACTIONS if name not in ("answer", "act")])
def test_nothing_of_a_foreign_journal_can_be_changed(clone: Path, action: str) -> None:
    async def story() -> None:
        async with App(settings(), tools=[pay], scope=None) as app:
            before = await app.engine.journal.place()
            (info,) = (await app.runs()).items
            with pytest.raises(ForeignJournal):
                await ACTIONS[action](app, info.run_id)
            assert await app.engine.journal.place() == before
            with pytest.raises(ForeignJournal):
                app.webhooks()

    asyncio.run(story())
    assert PAID == [] and not (clone / "elsewhere").exists()


def test_every_open_call_is_shown_with_all_of_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_trust, "MOST_LOOKED_AT", 25)
    call = {"tool": "pay", "args": {"for": "x" * 5000, "to": "the enemy"}}
    enemy, runs = tmp_path / "enemy", 27
    write_journal(tmp_path / ".ripstop" / "journal.db", tmp_path, enemy, runs, {"calls": [call]})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    calls = [line for line in refused.value.shown if "  pay  " in line]
    assert len(calls) == 25 and all("the enemy" in line for line in calls)
    assert refused.value.shown[-1] == "Not looked at: 2 runs. What is open in them would be done, too."


def test_a_foreign_journal_can_be_looked_at(clone: Path) -> None:
    async def story() -> None:
        async with open_engine(settings()) as engine:
            (info,) = (await engine.runs()).items
            assert (await engine.look(info.run_id)).run.open
            assert (await engine.history(info.run_id)) and not await engine.journal.verify()
            assert (await engine.desk()).items == []
            with pytest.raises(ForeignJournal):
                await engine.cancel(info.run_id)

    asyncio.run(story())
    assert not KnownJournals().all()


def test_looking_at_a_store_by_its_name_does_not_agree_to_it(clone: Path) -> None:
    named = settings(store="sqlite:.ripstop/journal.db")

    async def story() -> None:
        async with open_engine(named) as engine:
            await engine.runs()
        async with App(named, scope=None, look_only=True) as app:
            await app.runs()

    asyncio.run(story())
    with pytest.raises(ForeignJournal):
        work(settings())


def test_what_the_user_agrees_to_works_until_it_is_another(clone: Path) -> None:
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()
    work(settings())
    assert PAID == [9999]
    work(settings())
    assert PAID == [9999]
    shutil.rmtree(clone / ".ripstop")
    write_journal(clone / ".ripstop" / "journal.db", clone, clone.parent / "enemy")
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == [9999]


def test_a_journal_that_changes_after_the_question_is_asked_about_again(clone: Path) -> None:
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    shutil.rmtree(clone / ".ripstop")
    write_journal(clone / ".ripstop" / "journal.db", clone, clone.parent / "enemy", runs=2)
    refused.value.agree()
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == []


def test_a_consent_covers_every_run_and_not_only_the_last_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is exchanged after the question: its last step is the same, an earlier run is another."""
    journal, enemy = tmp_path / ".ripstop" / "journal.db", tmp_path / "enemy"
    PAID.clear()
    first, _ = write_journal(journal, tmp_path, enemy, runs=2)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()
    with contextlib.closing(sqlite3.connect(journal)) as db, db:  # as by one who recomputes the chain of that run
        db.execute("UPDATE runs SET head = zeroblob(32) WHERE id = ?", (first,))
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == []


@pytest.mark.parametrize("by", ["--store", "RIPSTOP_STORE", "own settings", "a program"])
def test_a_store_that_the_user_names_is_agreed_to(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    store = f"sqlite:{clone}/.ripstop/journal.db"
    if by == "--store":
        chosen = settings(store="sqlite:.ripstop/journal.db")
    elif by == "RIPSTOP_STORE":
        monkeypatch.setenv("RIPSTOP_STORE", "sqlite:.ripstop/journal.db")
        chosen = settings()
    elif by == "own settings":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        (tmp_path / "config" / "ripstop").mkdir(parents=True)
        (tmp_path / "config" / "ripstop" / "ripstop.toml").write_text(f'store = "{store}"')
        chosen = settings()
    else:
        chosen = Settings(store=store)
    work(chosen)
    assert PAID == [9999]


@pytest.mark.parametrize("store", ["sqlite:.ripstop/journal.db", "sqlite:./data/j.db"])
def test_a_store_that_a_project_names_is_not(clone: Path, store: str) -> None:
    shutil.copytree(clone / ".ripstop", clone / "data")
    (clone / "data" / "journal.db").rename(clone / "data" / "j.db")
    (clone / "ripstop.toml").write_text(f'store = "{store}"')
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == []


def test_a_relative_store_of_the_users_own_file_names_no_journal(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "ripstop").mkdir(parents=True)
    (tmp_path / "config" / "ripstop" / "ripstop.toml").write_text('store = "sqlite:.ripstop/journal.db"')
    with pytest.raises(ForeignJournal):
        work(settings())


def test_what_a_process_makes_is_its_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PAID.clear()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    model = write_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    chosen = settings(model=model)

    async def story() -> None:
        async with App(chosen, tools=[pay]) as app:
            await app.wait(await app.start("bill.yaml"))

    asyncio.run(story())
    work(settings())
    assert PAID == [9999]
    (known,) = KnownJournals().all()
    assert known.path == str(tmp_path / "mine" / ".ripstop" / "journal.db") and known.position and known.digest
    with at_home_of(tmp_path / "other"), pytest.raises(ForeignJournal):
        work(settings())


def test_a_journal_without_an_id_gets_one_once_its_user_agrees(clone: Path) -> None:
    async def identity(new: JournalIdentity | None = None) -> JournalIdentity:
        journal = SqliteJournal(".ripstop/journal.db", Codec(), create=False)
        if new is not None:
            await journal.identify(new, await journal.identity())
        found = await journal.identity()
        await journal.close()
        return found

    asyncio.run(identity(JournalIdentity()))
    with pytest.raises(ForeignJournal, match="earlier version") as refused:
        work(settings())
    assert asyncio.run(identity()).id == ""
    refused.value.agree()
    work(settings())
    assert len(asyncio.run(identity()).id) == 32 and PAID == [9999]
    work(settings())


@pytest.mark.parametrize("id", ["../../../etc/passwd", "A" * 32, "", "known\n", "0" * 31])
def test_an_id_that_is_none_of_ours_is_not_looked_for(tmp_path: Path, id: str) -> None:
    known = KnownJournals(tmp_path)
    assert known.get(id) is None


def test_one_known_file_is_not_taken_for_another(tmp_path: Path) -> None:
    known, id, other = KnownJournals(tmp_path), "a" * 32, "b" * 32
    known.keep(KnownJournal(id, "/x"))
    (tmp_path / "journals" / f"{id}.json").rename(tmp_path / "journals" / f"{other}.json")
    assert known.get(other) is None
    (tmp_path / "journals" / f"{other}.json").chmod(0o666)
    with pytest.raises(UsageError, match="can be written by other users"):
        known.get(other)


def test_without_a_home_a_journal_is_known_while_the_process_lives(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME")
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()
    work(settings())
    assert PAID == [9999]


def test_a_journal_that_is_looked_at_has_every_way_to_read_and_none_to_write() -> None:
    methods = {name for name, _ in inspect.getmembers(Journal) if not name.startswith("_")}
    assert methods >= READS
    writes = {"append", "identify", "keep_follower", "enrol", "heartbeat", "leave", "claim", "begin", "retry"}
    assert methods - READS == {*writes, "give_back", "await_run", "park", "set_aside", "forget"}
    refusal = ForeignJournal(KnownJournal("a" * 32, "/x"), "No.")
    journal = looked_at(MemoryJournal(Codec()), refusal)
    for name in methods - READS:
        with pytest.raises(ForeignJournal):
            getattr(journal, name)
