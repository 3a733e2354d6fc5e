"""What every journal must do when runs are forgotten: keep all that others need, and say what is gone."""

import hashlib

from ripstop.kernel.effects import RunFinished, Said, Say, StartRun
from ripstop.kernel.errors import Conflict, JournalError, UsageError
from ripstop.kernel.events import Answered, Ended, Forked, Heard
from ripstop.kernel.style import Document
from ripstop.runtime.ports import Journal, RunQuery, Tombstone

from .conformance_story import JournalStories, claim, story
from .journal_entries import CONTENT, DIGEST, LATER, NOW, TOOL, Scribe, answer, refuses, task


class CareConformance(JournalStories):
    @story
    async def test_forgets_an_ended_run_and_nothing_of_others(self, journal: Journal, scribe: Scribe) -> None:
        note, other = Document("notes", "n", 1), Document("notes", "m", 2)
        await journal.append(scribe.start("gone", documents=(note,)))
        await journal.append(scribe.start("stays", TOOL, documents=(other,)))
        await journal.append(scribe.end("gone"))
        kept = await journal.read("stays")
        await journal.forget(["gone"], LATER)
        assert await journal.read("gone") == []
        assert await journal.run("gone") is None
        assert [info.run_id for info in (await journal.runs(RunQuery())).items] == ["stays"]
        assert await journal.counts() == {"working": 1}
        assert (await journal.documents("notes")).items == [("m", b"2")]
        assert await journal.read("stays") == kept
        assert await journal.blob(DIGEST) == CONTENT, "others use it"
        assert await journal.tombstones() == [Tombstone(run_id="gone", at=LATER, status="completed", length=3)]
        await journal.append(scribe.entry("stays", answer(2), after=2))

    @story
    async def test_never_uses_the_id_of_a_forgotten_run_again(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        await journal.append(scribe.end("a"))
        await journal.forget(["a", "a"], NOW)
        await refuses(Conflict, journal.append(scribe.start("a")))
        await refuses(Conflict, journal.append(scribe.entry("a", Heard(text="x"), after=3)))
        await refuses(Conflict, journal.append(scribe.entry("f", Forked(run="a", at=3), after=3, fork=("a", 3))))
        await refuses(UsageError, journal.forget(["a"], NOW))
        assert len(await journal.tombstones()) == 1
        assert (await journal.runs()).items == []

    @story
    async def test_has_a_tombstone_for_each_forgotten_run_and_no_other(self, journal: Journal, scribe: Scribe) -> None:
        for run_id in ("a", "b", "stays"):
            await journal.append(scribe.start(run_id))
            await journal.append(scribe.end(run_id))
        assert await journal.tombstone("a") is None
        await journal.forget(["b", "a"], LATER)
        for run_id in ("a", "b"):
            assert await journal.tombstone(run_id) == Tombstone(run_id=run_id, at=LATER, status="completed", length=3)
        assert await journal.tombstone("stays") is None
        assert await journal.tombstone("nobody") is None

    @story
    async def test_forgets_only_runs_that_have_ended(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("done"))
        await journal.append(scribe.end("done"))
        await journal.append(scribe.start("works", TOOL))
        await refuses(UsageError, journal.forget(["nobody"], NOW))
        await refuses(UsageError, journal.forget(["done", "works"], NOW))
        assert len(await journal.read("done")) == 3, "all of them, or none"
        assert await journal.tombstones() == []

    @story
    async def test_does_not_forget_a_run_that_forks_share(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        await journal.append(scribe.end("a"))
        await journal.append(scribe.entry("f", Forked(run="a", at=2), after=2, fork=("a", 2)))
        await journal.append(scribe.entry("f", Heard(text="x"), Ended(outcome="stopped", because="y"), after=3))
        await journal.append(scribe.entry("g", Forked(run="f", at=3), after=3, fork=("f", 3)))
        await refuses(UsageError, journal.forget(["a"], NOW))
        await refuses(UsageError, journal.forget(["a", "f"], NOW))
        assert len(await journal.read("g")) == 4
        await journal.append(scribe.entry("g", Heard(text="x"), Ended(outcome="stopped", because="y"), after=4))
        await journal.forget(["g"], NOW)
        assert len(await journal.read("f")) == 5, "the records of the others are untouched"
        await journal.forget(["a", "f"], NOW)
        assert (await journal.runs()).items == []

    @story
    async def test_does_not_forget_a_run_that_another_awaits(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", StartRun(workflow="w"), holder=holder))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.append(scribe.end("a.2"))
        await refuses(UsageError, journal.forget(["a.2"], NOW))
        end = Answered(to=2, answer=RunFinished(run="a.2", outcome="completed"))
        await journal.append(scribe.entry("a", end, after=2, fence=(2, holder)))
        await journal.forget(["a.2"], NOW)
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="y"), after=3))
        await journal.forget(["a"], NOW)

    @story
    async def test_does_not_forget_a_run_whose_child_is_to_be_cancelled(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", StartRun(workflow="w"), holder=holder))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.park(task("a", 2), holder, NOW)
        await journal.append(scribe.end("a", "stopped", after=2))
        await refuses(UsageError, journal.forget(["a"], NOW))
        assert [command.superseded for command in await claim(journal, holder, LATER)] == [True]
        await journal.append(scribe.end("a.2", "stopped"))
        end = Answered(to=2, answer=RunFinished(run="a.2", outcome="stopped"))
        await journal.append(scribe.entry("a", end, after=4, fence=(2, holder)))
        await journal.forget(["a", "a.2"], NOW)

    @story
    async def test_does_not_forget_a_run_while_a_call_is_being_stopped(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=holder, begun=(2,)))
        await journal.append(scribe.end("a", "stopped", after=2))
        await refuses(UsageError, journal.forget(["a"], NOW))
        await journal.append(scribe.entry("a", answer(2), after=4, fence=(2, holder)))
        await journal.forget(["a"], NOW)

    @story
    async def test_does_not_forget_a_run_with_undelivered_messages(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", Say(text="x", channel="mail"), Say(text="y", channel="mail")))
        await journal.append(scribe.end("a", after=3))
        for number in (2, 3):
            refusal = await refuses(UsageError, journal.forget(["a"], NOW))
            await refuses(UsageError, journal.forget(["a"], NOW, dry_run=True))
            assert f"{4 - number} of its messages" in str(refusal) and "'channel:mail'" in str(refusal)
            holder = await journal.enrol(NOW)
            (message,) = await claim(journal, holder, LATER, offers=("channel:mail",))
            assert message.number == number
            said = Answered(to=number, answer=Said())
            await journal.append(scribe.entry("a", said, after=number + 3, fence=(number, holder)))
        await journal.forget(["a"], NOW, dry_run=True)
        assert (len(await journal.tombstones()), len((await journal.runs()).items)) == (0, 1)
        await journal.forget(["a"], NOW)
        assert len(await journal.tombstones()) == 1

    @story
    async def test_keeps_the_result_of_a_forgotten_child_for_its_parent(self, journal: Journal, scribe: Scribe) -> None:
        holder, result = await journal.enrol(NOW), b'{"plan": 1}'
        digest = hashlib.sha256(result).hexdigest()
        await journal.append(scribe.start("a", StartRun(workflow="w"), holder=holder))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        end = Ended(outcome="completed", because="x", result=digest)
        await journal.append(scribe.entry("a.2", Heard(text="x"), end, after=1, blobs={digest: result}))
        told = Answered(to=2, answer=RunFinished(run="a.2", outcome="completed", result=digest))
        await journal.append(scribe.entry("a", told, after=2, fence=(2, holder)))
        await journal.forget(["a.2"], NOW)
        assert await journal.blob(digest) == result
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="y"), after=3))
        await journal.forget(["a"], NOW)
        await refuses(JournalError, journal.blob(digest))
        await refuses(JournalError, journal.blob(DIGEST))
