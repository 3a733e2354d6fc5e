"""A journal that its user has neither made nor agreed to can be looked at, and does nothing."""

import asyncio
import contextlib
import inspect
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from ripstop import ALL, NOTHING, App, ForeignJournal, RunQuery, UsageError, tool
from ripstop.app import journal_trust
from ripstop.app.journal_trust import READS, OpenWork, looked_at
from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.app.stores import open_engine
from ripstop.engine.ports import Journal, JournalIdentity, Scope
from ripstop.faces.cli.main import cli
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.file import file_at
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError
from ripstop.security.known_journals import KnownJournal, KnownJournals
from tests.harness.foreign_folder import DONE, PAYS, TOOLS, at_home_of, write_journal, write_project

JOURNAL = Path(".ripstop/journal.db")

PAYS_AND_DIES = """\
import os, shutil, signal
import ripstop


@ripstop.tool("unsafe")
def pay(euros: int) -> str:
    "Copy the journal as it is now if it is little; else pay, and be killed before that is on record."
    if euros < 10:
        shutil.copytree(".ripstop", "copy")
        return "paid"
    with open(os.environ["BANK"], "a") as bank:
        bank.write(f"{euros}\\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return "paid"
"""
TWICE = {"calls": [{"tool": "pay", "args": {"euros": 1}}, {"tool": "pay", "args": {"euros": 9999}}]}

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
    assert [step.action for step in refused.value.next_steps] == ["trust", "restore"]


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


def agreed() -> None:
    """The user agrees to the journal that is here."""
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()


async def identity(journal: Path = JOURNAL, new: JournalIdentity | None = None) -> JournalIdentity:
    """The identity of a journal, perhaps after it got another."""
    opened = SqliteJournal(journal, Codec(), create=False)
    if new is not None:
        await opened.identify(new, await opened.identity())
    found = await opened.identity()
    await opened.close()
    return found


class Versions(NamedTuple):
    """Two versions of a journal of one writer."""

    first: Path
    second: Path
    """It goes on where the first one ends, and would pay."""


@pytest.fixture(params=["nothing open", "a payment open"])
def versions(request: pytest.FixtureRequest, clone: Path, tmp_path: Path) -> Versions:
    """The first version is here, and the second one would be pulled."""
    writers, enemy = tmp_path / "writers.db", tmp_path / "enemy"
    found = Versions(tmp_path / "first.db", tmp_path / "second.db")
    for version, calls in zip(found, (DONE if request.param == "nothing open" else PAYS, PAYS), strict=True):
        write_journal(writers, clone, enemy, calls=calls)
        shutil.copyfile(writers, version)
    assert asyncio.run(identity(found.first)) == asyncio.run(identity(found.second)) != JournalIdentity()
    shutil.copyfile(found.first, JOURNAL)
    return found


def into_the_same_file(version: Path) -> None:
    shutil.copyfile(version, JOURNAL)


def as_another_file(version: Path) -> None:
    new = JOURNAL.with_name("new.db")
    shutil.copyfile(version, new)
    new.rename(JOURNAL)


@pytest.mark.parametrize("ship", [into_the_same_file, as_another_file])
@pytest.mark.parametrize("by", ["an answer", "its name"])
def test_a_consent_covers_nothing_that_the_writer_of_the_journal_adds_later(
    versions: Versions, ship: Callable[[Path], None], by: str
) -> None:
    old = asyncio.run(identity())
    if by == "an answer":
        agreed()
        work(settings())
    else:
        work(settings(store=f"sqlite:{JOURNAL}"))
    paid = list(PAID)
    work(settings())
    assert paid == PAID and KnownJournals().get(old.id) is None
    assert [one.id for one in KnownJournals().all()] == [asyncio.run(identity()).id]
    ship(versions.second)
    with pytest.raises(ForeignJournal, match="neither made nor agreed to") as refused:
        work(settings())
    assert paid == PAID and any('pay  {"euros":9999}' in line for line in refused.value.shown)


def test_a_consent_that_was_not_used_ends_when_a_later_version_is_worked_on(versions: Versions) -> None:
    agreed()
    into_the_same_file(versions.second)
    agreed()
    work(settings())
    paid = list(PAID)
    into_the_same_file(versions.first)
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == paid != []


def test_a_process_that_dies_before_the_journal_has_its_new_id_does_not_ask_again(clone: Path) -> None:
    agreed()
    journal = SqliteJournal(JOURNAL, Codec(), create=False)
    place, file = asyncio.run(journal.place()), journal.file
    asyncio.run(journal.close())
    remembered = KnownJournal("a" * 32, str(clone / JOURNAL), place.position, place.digest, place.workers, file)
    KnownJournals().keep(remembered)  # as far as it came
    work(settings())
    assert PAID == [9999]
    assert [one.id for one in KnownJournals().all()] == [asyncio.run(identity()).id] != [remembered.id]


def test_processes_that_begin_at_once_agree_on_one_new_id(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "bank.py").write_text(TOOLS)
    bank = tmp_path / "bank.txt"
    agreed()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "BANK": str(bank)}
    command = [sys.executable, "-m", "ripstop", "--tools", "bank", "work", "--until-idle"]
    begun = [
        subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=300)[1] for process in begun]
    assert [process.returncode for process in begun] == [0, 0, 0], said
    assert bank.read_text() == "9999\n"
    assert [one.id for one in KnownJournals().all()] == [asyncio.run(identity()).id]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownJournal:
    """A journal that its user has made, in the current folder; how far it was seen before its last run was made."""
    PAID.clear()
    folder, state = tmp_path / "mine", tmp_path / "state"
    write_journal(folder / JOURNAL, folder, state, calls=DONE)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    monkeypatch.chdir(folder)
    (before,) = KnownJournals().all()
    write_journal(folder / JOURNAL, folder, state)
    assert KnownJournals().all() != [before]
    return before


def test_a_file_that_took_the_journals_place_and_has_more_than_was_seen_is_foreign(own: KnownJournal) -> None:
    KnownJournals().keep(own)
    as_another_file(JOURNAL)
    with pytest.raises(
        ForeignJournal, match="is another file, or was changed, and has other records than were seen"
    ) as refused:
        work(settings())
    refused.value.agree()
    work(settings())
    assert PAID == [] and KnownJournals().get(own.id) is None
    assert asyncio.run(purposes()) == ["ripstop:restored"], "it may be the user's own, put back by hand"
    work(settings())  # asked once


@pytest.mark.parametrize("case", ["more, in the same file", "as much", "as much, after a crash"])
def test_a_journal_with_other_runs_than_it_was_left_with_is_foreign(own: KnownJournal, case: str) -> None:
    """A new file can get the inode of one that was removed, and the last step can be kept."""
    (known,) = KnownJournals().all()
    if case == "more, in the same file":
        known = own
    else:
        as_another_file(JOURNAL)
        with contextlib.closing(sqlite3.connect(JOURNAL)) as db, db:  # as by one who recomputes the chain of that run
            db.execute("UPDATE runs SET head = zeroblob(32) WHERE last < (SELECT max(last) FROM runs)")
    KnownJournals().keep(replace(known, heads="") if case == "as much, after a crash" else known)
    with pytest.raises(ForeignJournal, match="has other records than were seen"):
        work(settings())
    assert PAID == []


def test_what_is_in_a_journal_is_noted_by_the_last_process_that_ends(own: KnownJournal) -> None:
    async def story() -> None:
        async with open_engine(settings(), to_act=True) as engine:
            (run,) = (await engine.runs(RunQuery(statuses=("working",)))).items
            async with open_engine(settings(), to_act=True):
                pass
            (known,) = KnownJournals().all()
            assert known.heads == "", "the other one still works on it"
            await engine.cancel(run.run_id)
            raise UsageError("an end as good as any")

    with pytest.raises(UsageError, match="as good as any"):
        asyncio.run(story())
    (known,) = KnownJournals().all()
    assert known.heads and known.heads != own.heads and known.position > own.position
    work(settings())


async def purposes() -> list[str]:
    """What people are asked about."""
    async with open_engine(settings()) as engine:
        return [one.command.purpose for one in (await engine.desk()).items]


def test_a_copy_put_back_in_place_after_a_call_of_a_killed_worker_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied while a worker lives, so nothing but what is noted before a call shows that more has happened."""
    folder, state, bank = tmp_path / "mine", tmp_path / "state", tmp_path / "bank"
    write_journal(folder / JOURNAL, folder, state, calls=TWICE)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    monkeypatch.chdir(folder)
    Path("bank_tools.py").write_text(PAYS_AND_DIES, encoding="utf-8")
    command = [sys.executable, "-m", "ripstop", "--tools", "bank_tools", "work", "--until-idle"]
    done = subprocess.run(command, env={**os.environ, "BANK": str(bank)}, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert bank.read_text() == "9999\n"
    for name in ("journal.db", "journal.db-wal"):
        (JOURNAL.parent / name).write_bytes((Path("copy") / name).read_bytes())  # the same files
    JOURNAL.with_name("journal.db-shm").unlink(missing_ok=True)
    PAID.clear()
    work(settings())
    assert PAID == []
    assert asyncio.run(purposes()) == ["ripstop:restored"]


def test_an_app_can_open_a_journal_while_another_one_of_its_thread_closes_it(
    own: KnownJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that closes holds the lock of the last while it reads. Waiting for that lock would stop both for ever."""
    read_heads = SqliteJournal.heads

    async def story() -> None:
        closing, opening = asyncio.Event(), asyncio.Event()

        async def heads(journal: SqliteJournal) -> str:
            closing.set()
            await opening.wait()
            return await read_heads(journal)

        async def open_another() -> None:
            await closing.wait()
            asyncio.get_running_loop().call_soon(opening.set)
            async with App(settings(), scope=None):
                pass

        first = App(settings(), scope=None)
        await first.__aenter__()
        monkeypatch.setattr(SqliteJournal, "heads", heads)
        await asyncio.gather(first.__aexit__(None, None, None), open_another())

    apps = threading.Thread(target=asyncio.run, args=(story(),), daemon=True)
    apps.start()
    apps.join(60)
    assert not apps.is_alive()
    work(settings())  # and nobody takes it for somebody else's
    assert PAID == [9999]


def test_a_note_that_comes_after_the_end_does_not_undo_it(own: KnownJournal) -> None:
    async def story() -> tuple[KnownJournal, KnownJournal]:
        async with App(settings(), scope=None) as app:
            opened = app._opened
        (ended,) = KnownJournals().all()
        assert opened is not None
        await opened.note()
        (later,) = KnownJournals().all()
        return ended, later

    ended, later = asyncio.run(story())
    assert ended.heads and later == ended


def test_a_journal_that_was_moved_and_has_more_than_was_seen_is_foreign(own: KnownJournal, tmp_path: Path) -> None:
    KnownJournals().keep(own)
    as_another_file(JOURNAL)
    Path.cwd().rename(tmp_path / "elsewhere")
    os.chdir(tmp_path / "elsewhere")
    with pytest.raises(ForeignJournal, match="is another file, or was changed"):
        work(settings())
    assert PAID == []


@pytest.mark.parametrize("case", ["killed", "not ahead", "noted by an earlier version"])
def test_ones_own_journal_asks_nothing(own: KnownJournal, case: str) -> None:
    """It is ahead of the note in the same file, is another file with no more in it, or it is not known which it was."""
    if case == "killed":
        KnownJournals().keep(replace(own, heads=""))
    else:
        as_another_file(JOURNAL)
    if case == "noted by an earlier version":
        (note,) = (Path(os.environ["XDG_STATE_HOME"]) / "ripstop" / "journals").glob("*.json")
        kept = {
            key: value
            for key, value in msgspec.json.decode(msgspec.json.encode(own)).items()
            if key not in ("file", "heads")
        }
        note.write_bytes(msgspec.json.encode(kept))
    work(settings())
    assert PAID == [9999]


def test_what_is_noted_is_the_file_that_is_worked_on_and_not_the_one_that_took_its_place(own: KnownJournal) -> None:
    other = JOURNAL.with_name("other.db")
    shutil.copyfile(JOURNAL, other)

    async def story() -> None:
        async with open_engine(settings(), to_act=True) as engine:
            (run,) = (await engine.runs(RunQuery(statuses=("working",)))).items
            other.rename(JOURNAL)
            with pytest.raises(JournalError, match="was replaced"):
                await engine.cancel(run.run_id)

    asyncio.run(story())
    (known,) = KnownJournals().all()
    assert known.file == own.file != file_at(JOURNAL) and known.position > own.position


def test_what_waits_for_its_turn_is_shown_and_that_agents_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"calls": [{"tool": "pay", "args": {"euros": euros}} for euros in (1, 2, 3)]}
    (run,) = write_journal(tmp_path / JOURNAL, tmp_path, tmp_path / "enemy", calls=calls)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    ended, go_on, first, *then, _timer = refused.value.shown
    assert ended == "Runs in it that have not ended: 1."
    assert "so is whatever their agents ask for after that" in go_on
    assert first.endswith('  pay  {"euros":1}')
    assert then == [f'{run}, then  pay  {{"euros":{euros}}}' for euros in (2, 3)]


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


@pytest.mark.parametrize("by", ["own settings", "project", "--store"])
def test_a_relative_store_leads_nowhere_else_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    project, precious = tmp_path / "project", tmp_path / "precious"
    for folder in (project, precious):
        folder.mkdir()
    (project / "data").symlink_to(project / "inside" if by == "project" else precious)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    monkeypatch.chdir(project)
    named: dict[str, str] = {}
    if by == "--store":
        named["store"] = "sqlite:data/j.db"
    else:
        file = (project if by == "project" else tmp_path / "config" / "ripstop") / "ripstop.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('store = "sqlite:data/j.db"', encoding="utf-8")
    if by == "--store":
        work(settings(**named))
        assert (precious / "j.db").exists()
    else:
        with pytest.raises(UsageError, match=r"data is a symbolic link .* name it: --store"):
            work(settings())
        assert not list(precious.iterdir()) and not (project / "inside").exists()


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
    asyncio.run(identity(new=JournalIdentity()))
    with pytest.raises(ForeignJournal, match="earlier version") as refused:
        work(settings())
    assert asyncio.run(identity()).id == ""
    refused.value.agree()
    work(settings())
    assert len(asyncio.run(identity()).id) == 32 and PAID == [9999]
    work(settings())


def crafted(statements: str) -> None:
    """The journal as somebody has changed it who recomputes what can be recomputed."""
    with contextlib.closing(sqlite3.connect(JOURNAL)) as db, db:
        db.executescript(f"PRAGMA foreign_keys = OFF; {statements}")


HIGHEST_KEY = f"""
UPDATE runs SET key = {2**63 - 1}; UPDATE records SET run = {2**63 - 1};
UPDATE outbox SET run = {2**63 - 1}; UPDATE blob_uses SET run = {2**63 - 1};
"""
BELOW_ZERO = """
UPDATE runs SET last = last - 1000; UPDATE records SET position = position - 1000, before = before - 1000;
UPDATE outbox SET record = record - 1000; UPDATE total SET runs = 0, position = 0;
DELETE FROM identity; DELETE FROM workers; DELETE FROM sqlite_sequence;
"""


@pytest.mark.parametrize("statements", [HIGHEST_KEY, BELOW_ZERO, HIGHEST_KEY + BELOW_ZERO])
def test_a_journal_that_only_looks_empty_is_foreign(clone: Path, statements: str) -> None:
    crafted(statements)
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    assert any('pay  {"euros":9999}' in line for line in refused.value.shown)
    with pytest.raises(UsageError, match="not as ripstop writes a journal"):
        refused.value.agree()
    assert PAID == [] and KnownJournals().all() == []


@pytest.mark.parametrize("left", ["documents", "followers"])
def test_a_journal_without_runs_that_has_anything_else_is_foreign(clone: Path, left: str) -> None:
    tables = ("runs", "records", "outbox", "blobs", "blob_uses", "documents", "workers", "sqlite_sequence", "identity")
    emptied = " ".join(f"DELETE FROM {table};" for table in tables)
    row = {"documents": "('plan_cache', 'shop', '{}', 1, 1)", "followers": "('hook', '1')"}[left]
    crafted(f"{emptied} UPDATE total SET runs = 0, position = 0; INSERT INTO {left} VALUES {row};")
    with pytest.raises(ForeignJournal):
        work(settings())


def test_a_run_with_the_highest_key_is_in_every_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_journal(tmp_path / JOURNAL, tmp_path, tmp_path / "enemy", calls=DONE)
    (hidden,) = write_journal(tmp_path / JOURNAL, tmp_path, tmp_path / "enemy")
    monkeypatch.chdir(tmp_path)
    rows = " ".join(f"UPDATE {one} SET run = {2**63 - 1} WHERE run = 2;" for one in ("records", "outbox", "blob_uses"))
    crafted(f"UPDATE runs SET key = {2**63 - 1} WHERE key = 2; {rows}")

    async def story() -> None:
        async with open_engine(settings()) as engine:
            assert hidden in [info.run_id for info in (await engine.runs()).items]
            assert sum((await engine.journal.counts()).values()) == 2
            assert "list of runs" in (await engine.journal.verify())[0].text

    asyncio.run(story())


def test_no_journal_can_have_the_id_of_a_consent(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()
    (consent,) = KnownJournals().all()
    shutil.rmtree(clone / ".ripstop")
    write_journal(clone / JOURNAL, clone, tmp_path / "enemy", runs=2)
    asyncio.run(identity(new=JournalIdentity(consent.id)))
    with pytest.raises(ForeignJournal):
        work(settings())
    assert PAID == []


def test_nobody_can_agree_to_a_journal_that_is_not_as_ripstop_writes_it(clone: Path) -> None:
    crafted("DELETE FROM outbox;")
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    with pytest.raises(UsageError, match="may be more in it than is shown"):
        refused.value.agree()
    assert KnownJournals().all() == []


def test_a_journal_that_is_spoilt_after_the_consent_is_not_worked_on(clone: Path) -> None:
    with pytest.raises(ForeignJournal) as refused:
        work(settings())
    refused.value.agree()
    crafted("INSERT INTO documents VALUES ('plan_cache', 'shop', '{}', 99, 1);")
    with pytest.raises(UsageError, match="not as ripstop writes a journal"):
        work(settings())
    assert PAID == []


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
    agreed()
    work(settings())
    assert PAID == [9999]


def test_where_nothing_can_be_remembered_nobody_is_told_that_it_is(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    said = CliRunner().invoke(cli, ["trust", "--yes"])
    assert said.exit_code == 2 and "agreed" not in said.stdout
    assert "cannot be remembered that you agree" in said.output and "--store sqlite:PATH" in said.output
    for chosen, warned in ((settings(), True), (settings(store="sqlite:.ripstop/journal.db"), False)):
        caplog.clear()
        work(chosen)
        assert any("The next command takes it for somebody else's" in one for one in caplog.messages) == warned


def test_what_is_known_only_while_the_process_lives_is_no_later_version(
    versions: Versions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))  # nothing can be written there
    agreed()
    work(settings())
    work(settings())
    paid = list(PAID)
    into_the_same_file(versions.second)
    with pytest.raises(ForeignJournal):
        work(settings())
    assert paid == PAID


def test_a_journal_that_is_looked_at_has_every_way_to_read_and_none_to_write() -> None:
    methods = {name for name, _ in inspect.getmembers(Journal) if not name.startswith("_")}
    assert methods >= READS
    writes = {"append", "identify", "keep_follower", "enrol", "heartbeat", "leave", "claim", "begin", "retry"}
    assert methods - READS == {*writes, "give_back", "await_run", "park", "set_aside", "forget"}
    refusal = ForeignJournal(KnownJournal("a" * 32, "/x"), "No.", OpenWork(), list)
    journal = looked_at(MemoryJournal(Codec()), refusal)
    for name in methods - READS:
        with pytest.raises(ForeignJournal):
            getattr(journal, name)
