"""What every journal must do with records: keep each step whole, in order, once, and give it back."""

import asyncio
import hashlib

from ripstop.engine.ports import Journal, JournalIdentity, JournalPlace, RunQuery, Tombstone
from ripstop.kernel.effects import AskPerson, Content, RunFinished, Said, Say, StartRun
from ripstop.kernel.errors import Conflict, JournalError, Unwritable, UsageError
from ripstop.kernel.events import Answered, Asked, Ended, Forked, Heard
from ripstop.kernel.style import Document

from .journal_entries import (
    CONTENT,
    DIGEST,
    LATER,
    NOW,
    SECOND,
    TOOL,
    JournalStories,
    Scribe,
    answer,
    claim,
    claimed,
    refuses,
    story,
    task,
)

# What every journal must know of itself: who it is, and how far it has come.


class IdentityConformance(JournalStories):
    @story
    async def test_has_no_identity_until_it_is_given_one(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.identity() == JournalIdentity()
        assert await journal.identify(JournalIdentity("a"), JournalIdentity()) == JournalIdentity("a")
        assert await journal.identity() == JournalIdentity("a")

    @story
    async def test_keeps_its_identity_from_one_who_does_not_know_it(self, journal: Journal, scribe: Scribe) -> None:
        await journal.identify(JournalIdentity("a"), JournalIdentity())
        assert await journal.identify(JournalIdentity("b"), JournalIdentity()) == JournalIdentity("a")
        assert await journal.identify(JournalIdentity("b", 5), JournalIdentity("a")) == JournalIdentity("b", 5)
        assert await journal.identity() == JournalIdentity("b", 5)

    @story
    async def test_says_how_far_it_has_come(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.place() == JournalPlace()
        await journal.append(scribe.start("a", TOOL))
        first = await journal.place()
        assert first.position and first.digest
        await journal.append(scribe.entry("a", answer(2), after=2))
        second = await journal.place()
        assert second.position > first.position and second.digest != first.digest
        assert (await journal.place(first.position)).digest == first.digest
        assert (await journal.place(second.position + 1)).digest == ""
        await journal.enrol(NOW)
        assert (await journal.place()).workers > second.workers

    @story
    async def test_says_by_one_hash_whether_any_run_has_another_record(self, journal: Journal, scribe: Scribe) -> None:
        seen = [await journal.heads()]
        for run_id in ("a", "b"):
            await journal.append(scribe.start(run_id, TOOL))
            seen.append(await journal.heads())
        await journal.append(scribe.entry("a", answer(2), after=2))
        seen.append(await journal.heads())
        assert len(set(seen)) == len(seen)
        await journal.enrol(NOW)
        assert await journal.heads() == seen[-1]

    @story
    async def test_knows_what_was_begun_and_not_answered(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id))
        assert await journal.begun("a") == ()
        await journal.begin("a", 2, worker_id, 1, repeatable=False)
        assert await journal.begun("a") == (2,)
        await journal.leave(worker_id, NOW)
        assert await journal.begun("a") == (2,)
        assert await journal.begun("nobody") == ()


# What every journal must do when runs are forgotten: keep all that others need, and say what is gone.


class MaintenanceConformance(JournalStories):
    @story
    async def test_is_in_a_file_that_exists_or_in_none(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        assert journal.path is None or journal.path.is_file()

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
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", StartRun(workflow="w"), worker_id=worker_id))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.append(scribe.end("a.2"))
        await refuses(UsageError, journal.forget(["a.2"], NOW))
        end = Answered(to=2, answer=RunFinished(run="a.2", outcome="completed"))
        await journal.append(scribe.entry("a", end, after=2, fence=(2, worker_id)))
        await journal.forget(["a.2"], NOW)
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="y"), after=3))
        await journal.forget(["a"], NOW)

    @story
    async def test_does_not_forget_a_run_whose_child_is_to_be_cancelled(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", StartRun(workflow="w"), worker_id=worker_id))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.park(task("a", 2), worker_id, NOW)
        await journal.append(scribe.end("a", "stopped", after=2))
        await refuses(UsageError, journal.forget(["a"], NOW))
        assert [command.superseded for command in await claim(journal, worker_id, LATER)] == [True]
        await journal.append(scribe.end("a.2", "stopped"))
        end = Answered(to=2, answer=RunFinished(run="a.2", outcome="stopped"))
        await journal.append(scribe.entry("a", end, after=4, fence=(2, worker_id)))
        await journal.forget(["a", "a.2"], NOW)

    @story
    async def test_does_not_forget_a_run_while_a_call_is_being_stopped(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id, begun=(2,)))
        await journal.append(scribe.end("a", "stopped", after=2))
        await refuses(UsageError, journal.forget(["a"], NOW))
        await journal.append(scribe.entry("a", answer(2), after=4, fence=(2, worker_id)))
        await journal.forget(["a"], NOW)

    @story
    async def test_does_not_forget_a_run_with_undelivered_messages(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", Say(text="x", channel="mail"), Say(text="y", channel="mail")))
        await journal.append(scribe.end("a", after=3))
        for number in (2, 3):
            refusal = await refuses(UsageError, journal.forget(["a"], NOW))
            await refuses(UsageError, journal.forget(["a"], NOW, dry_run=True))
            assert f"{4 - number} of its messages" in str(refusal) and "'channel:mail'" in str(refusal)
            worker_id = await journal.enrol(NOW)
            (message,) = await claim(journal, worker_id, LATER, offers=("channel:mail",))
            assert message.number == number
            said = Answered(to=number, answer=Said())
            await journal.append(scribe.entry("a", said, after=number + 3, fence=(number, worker_id)))
        await journal.forget(["a"], NOW, dry_run=True)
        assert (len(await journal.tombstones()), len((await journal.runs()).items)) == (0, 1)
        await journal.forget(["a"], NOW)
        assert len(await journal.tombstones()) == 1

    @story
    async def test_keeps_the_result_of_a_forgotten_child_for_its_parent(self, journal: Journal, scribe: Scribe) -> None:
        worker_id, result = await journal.enrol(NOW), b'{"plan": 1}'
        digest = hashlib.sha256(result).hexdigest()
        await journal.append(scribe.start("a", StartRun(workflow="w"), worker_id=worker_id))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        end = Ended(outcome="completed", because="x", result=digest)
        await journal.append(scribe.entry("a.2", Heard(text="x"), end, after=1, blobs={digest: result}))
        told = Answered(to=2, answer=RunFinished(run="a.2", outcome="completed", result=digest))
        await journal.append(scribe.entry("a", told, after=2, fence=(2, worker_id)))
        await journal.forget(["a.2"], NOW)
        assert await journal.blob(digest) == result
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="y"), after=3))
        await journal.forget(["a"], NOW)
        await refuses(JournalError, journal.blob(digest))
        await refuses(JournalError, journal.blob(DIGEST))


class RecordConformance(JournalStories):
    @story
    async def test_gives_back_what_was_appended(self, journal: Journal, scribe: Scribe) -> None:
        first = scribe.start("a", TOOL)
        second = scribe.entry("a", answer(2, {"type": "asked"}), Heard(text="你好"), after=2)
        await journal.append(first)
        await journal.append(second)
        assert await journal.read("a") == [*first.records, *second.records]
        assert await journal.read("a", after=3) == [second.records[1]]
        assert await journal.read("a", after=4) == []
        assert await journal.read("nobody") == []

    @story
    async def test_reads_any_window_of_a_run(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, TOOL))
        await journal.append(scribe.entry("a", answer(2), Heard(text="mine"), Heard(text="more"), after=3))
        await journal.append(scribe.entry("a", Heard(text="last"), after=6))
        # the fork leaves in the middle of a step, and its own first step is not alone
        await journal.append(scribe.entry("f", Forked(run="a", at=4), Heard(text="fork"), after=4, fork=("a", 4)))
        await journal.append(scribe.entry("f", Heard(text="fork"), after=6))
        for run_id in ("a", "f"):
            whole = await journal.read(run_id)
            assert [record.number for record in whole] == list(range(1, 8))
            for after in range(9):
                for before in (None, *range(9)):
                    for most in (None, 0, 1, 2, 8):
                        wanted = [
                            one for one in whole if after < one.number and (before is None or one.number < before)
                        ]
                        found = await journal.read(run_id, after, before, most)
                        assert found == wanted[:most], (run_id, after, before, most)

    @story
    async def test_takes_a_step_whole_or_not_at_all(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        document = Document("notes", "n", "x")
        late = scribe.entry("a", Heard(text="late"), Asked(command=TOOL), after=1, documents=(document,))
        await refuses(Conflict, journal.append(late))
        assert len(await journal.read("a")) == 2
        assert await journal.document("notes", "n") is None
        assert await claimed(journal, await journal.enrol(NOW)) == [("a", 2)]

    @story
    async def test_refuses_to_append_where_somebody_else_did(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        await refuses(Conflict, journal.append(scribe.start("a")))
        await journal.append(scribe.entry("a", Heard(text="first"), after=1))
        await refuses(Conflict, journal.append(scribe.entry("a", Heard(text="second"), after=1)))
        await refuses(Conflict, journal.append(scribe.entry("a", Heard(text="hole"), after=7)))
        await refuses(Conflict, journal.append(scribe.entry("nobody", Heard(text="hello"), after=1)))
        assert [record.event for record in await journal.read("a")][1:] == [Heard(text="first")]
        assert await journal.read("nobody") == []

    @story
    async def test_lets_one_of_two_simultaneous_appends_win(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        both = [journal.append(scribe.entry("a", Heard(text=text), after=1)) for text in ("one", "two")]
        results = await asyncio.gather(*both, return_exceptions=True)
        assert [type(result) for result in results] == [type(None), Conflict]
        assert [record.event for record in await journal.read("a")][1:] == [Heard(text="one")]

    @story
    async def test_refuses_what_is_not_json_without_holding_up_others(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        neighbour = journal.append(scribe.start("b"))
        for value in (object(), "half a character: \ud800"):
            try:
                await journal.append(scribe.entry("a", answer(2, value), Heard(text="x"), after=2))
            except Unwritable as error:
                assert "not JSON" in str(error)
            else:
                raise AssertionError(f"{value!r} was taken")
        await neighbour
        assert len(await journal.read("a")) == 2
        await journal.append(scribe.entry("a", answer(2, "fine"), after=2))

    @story
    async def test_keeps_content_once_and_says_when_it_is_missing(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        await journal.append(scribe.start("b"))
        assert await journal.blob(DIGEST) == CONTENT
        await refuses(JournalError, journal.blob("0" * 64))

    @story
    async def test_keeps_content_that_comes_with_a_later_step(self, journal: Journal, scribe: Scribe) -> None:
        picture = b"\x89PNG\x00\xff"
        digest = hashlib.sha256(picture).hexdigest()
        heard = Heard(text="see", attachments=(Content(hash=digest, name="a.png"),))
        await journal.append(scribe.start("a"))
        await journal.append(scribe.entry("a", heard, after=1, blobs={digest: picture}))
        assert await journal.blob(digest) == picture

    @story
    async def test_knows_the_latest_time_of_a_record_or_a_sign_of_life(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.latest() == 0
        await journal.append(scribe.start("a"))
        assert await journal.latest() == NOW
        worker_id = await journal.enrol(NOW + SECOND)
        assert await journal.latest() == NOW + SECOND
        assert await journal.heartbeat(worker_id, LATER)
        assert await journal.latest() == LATER
        await journal.append(scribe.entry("a", Heard(text="x"), after=1, at=LATER + SECOND))
        await journal.leave(worker_id, LATER)
        assert await journal.latest() == LATER + SECOND

    @story
    async def test_reads_what_a_fork_shares(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        await journal.append(scribe.entry("a", answer(2), Heard(text="mine"), after=2))
        await journal.append(scribe.entry("b", Forked(run="a", at=3), Heard(text="fork"), after=3, fork=("a", 3)))
        await journal.append(scribe.entry("c", Forked(run="b", at=2), after=2, fork=("b", 2)))
        await journal.append(scribe.entry("a", Heard(text="later"), after=4))
        await journal.append(scribe.entry("b", Heard(text="more"), after=5))
        shared = (await journal.read("a"))[:3]
        b = await journal.read("b")
        assert b[:3] == shared
        assert [type(record.event) for record in b[3:]] == [Forked, Heard, Heard]
        assert [record.number for record in b] == [1, 2, 3, 4, 5, 6]
        assert [record.event for record in await journal.read("c")] == [
            *(record.event for record in shared[:2]),
            Forked(run="b", at=2),
        ]
        await refuses(Conflict, journal.append(scribe.entry("b", Forked(run="a", at=3), after=3, fork=("a", 3))))
        assert {fork.run_id for fork in await journal.forks("a")} == {"b"}
        assert await claimed(journal, await journal.enrol(NOW)) == [("c", 2)], "what it shares and has open is its own"

    # Followers

    @story
    async def test_tells_followers_every_step_in_order(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.since() == []
        await journal.append(scribe.start("a", TOOL))
        await journal.append(scribe.start("b"))
        here = await journal.cursor()
        await journal.append(scribe.entry("a", answer(2), Heard(text="x"), after=2))
        await journal.append(scribe.entry("f", Forked(run="a", at=2), after=2, fork=("a", 2)))
        moved = await journal.since()
        assert [(one.run_id, [record.number for record in one.records]) for one in moved] == [
            ("a", [1, 2]),
            ("b", [1]),
            ("a", [3, 4]),
            ("f", [3]),
        ]
        assert moved[2].records == await journal.read("a", after=2)
        assert await journal.since(here) == moved[2:]
        assert await journal.since(most=3) == moved[:3]
        assert await journal.since(moved[2].cursor) == moved[3:]
        assert await journal.since(await journal.cursor()) == []

    @story
    async def test_keeps_a_place_for_each_follower(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.follower("web") == ""
        await journal.append(scribe.start("a"))
        await journal.keep_follower("web", await journal.cursor())
        await journal.append(scribe.start("b"))
        assert [one.run_id for one in await journal.since(await journal.follower("web"))] == ["b"]
        await journal.keep_follower("web", await journal.cursor())
        assert await journal.since(await journal.follower("web")) == []
        assert await journal.follower("other") == ""

    @story
    async def test_misses_no_step_after_runs_were_forgotten(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        await journal.append(scribe.start("gone"))
        await journal.append(scribe.end("gone"))
        here = await journal.cursor()
        await journal.forget(["gone"], NOW)
        assert await journal.since(here) == []
        await journal.append(scribe.start("b"))
        await journal.append(scribe.entry("a", Heard(text="x"), after=1))
        assert [one.run_id for one in await journal.since(here)] == ["b", "a"]

    # Documents

    @story
    async def test_writes_documents_with_the_step_that_changes_them(self, journal: Journal, scribe: Scribe) -> None:
        note = Document("notes", "n", {"b": 1, "a": [2, "你"]})
        await journal.append(scribe.start("a", documents=(note, Document("notes", "m", 1), Document("other", "n", 2))))
        assert await journal.document("notes", "n") == '{"a":[2,"你"],"b":1}'.encode()
        assert (await journal.documents("notes")).items == [("m", b"1"), ("n", '{"a":[2,"你"],"b":1}'.encode())]
        changed = (Document("notes", "n", "new"), Document("notes", "m", None))
        await journal.append(scribe.entry("a", Heard(text="x"), after=1, documents=changed))
        assert (await journal.documents("notes")).items == [("n", b'"new"')]
        assert await journal.document("notes", "m") is None
        assert await journal.document("other", "n") == b"2"
        assert (await journal.documents("nothing")).items == []

    @story
    async def test_gives_documents_page_by_page(self, journal: Journal, scribe: Scribe) -> None:
        keys = [f"k{number}" for number in range(7)]
        await journal.append(scribe.start("a", documents=tuple(Document("notes", key, key) for key in keys)))
        cursor, found = "", []
        for _ in range(4):
            page = await journal.documents("notes", cursor, 2)
            found.append([key for key, _ in page.items])
            cursor = page.next
        assert found == [["k0", "k1"], ["k2", "k3"], ["k4", "k5"], ["k6"]]
        assert cursor == ""
        await refuses(UsageError, journal.documents("notes", "", 0))

    @story
    async def test_refuses_a_cursor_that_it_never_gave(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", AskPerson(question="?")))
        for cursor in ("x", "-1", "1; DROP TABLE runs", "9" * 40, "١"):
            await refuses(UsageError, journal.since(cursor))
        await refuses(UsageError, journal.since("", 0))
