"""What every journal must do, whatever it keeps its records in.

    class TestMyJournal(JournalConformance):
        def open(self, codec, folder):
            return MyJournal(folder / "journal", codec)

Then pytest finds the tests. They use only what `ripstop.runtime.ports.Journal` promises. `open` is
called once per test with a folder of its own; the journal it returns must be empty.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskPerson, SetTimer, StartRun
from ripstop.kernel.errors import Conflict, JournalError, LeaseLost, Unwritable
from ripstop.kernel.events import (
    Asked,
    Doubted,
    Ended,
    Forked,
    Heard,
    Repeated,
    Started,
    Withdrawn,
)
from ripstop.runtime.ports import Journal

from .journal_entries import CONTENT, DIGEST, LATER, NOW, SECOND, STARTED, TOOL, answer, entry, refuses, start


class JournalConformance:
    """Subclass it, and say how a journal is opened."""

    def open(self, codec: Codec, folder: Path) -> Journal:
        raise NotImplementedError

    def _with_journal(self, folder: Path, story: Callable[[Journal], Awaitable[None]]) -> None:
        async def tell() -> None:
            journal = self.open(Codec(), folder)
            try:
                await story(journal)
                assert await journal.verify() == [], "an honest journal is reported as damaged"
                for info in await journal.runs():
                    assert await journal.check_run(info.run_id) == [], "an honest run is reported as damaged"
            finally:
                await journal.close()

        asyncio.run(tell())

    # Records

    def test_gives_back_what_was_appended(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            first, second = start("a", TOOL), entry("a", answer(2, {"type": "asked"}), Heard(text="你好"), after=2)
            await journal.append(first)
            await journal.append(second)
            assert await journal.read("a") == [*first.records, *second.records]
            assert await journal.read("a", after=3) == [second.records[1]]
            assert await journal.read("a", after=4) == []
            assert await journal.read("nobody") == []

        self._with_journal(tmp_path, story)

    def test_takes_a_step_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a", TOOL))
            await refuses(Conflict, journal.append(entry("a", Heard(text="late"), Asked(command=TOOL), after=1)))
            assert len(await journal.read("a")) == 2
            holder = await journal.enrol(NOW)
            assert [task.number for task in await journal.claim(holder, NOW, 10)] == [2]

        self._with_journal(tmp_path, story)

    def test_refuses_to_append_where_somebody_else_did(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a"))
            await refuses(Conflict, journal.append(start("a")))
            await journal.append(entry("a", Heard(text="first"), after=1))
            await refuses(Conflict, journal.append(entry("a", Heard(text="second"), after=1)))
            await refuses(Conflict, journal.append(entry("a", Heard(text="hole"), after=7)))
            await refuses(Conflict, journal.append(entry("nobody", Heard(text="hello"), after=1)))
            assert [record.event for record in await journal.read("a")][1:] == [Heard(text="first")]
            assert await journal.read("nobody") == []

        self._with_journal(tmp_path, story)

    def test_lets_one_of_two_simultaneous_appends_win(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a"))
            both = [journal.append(entry("a", Heard(text=text), after=1)) for text in ("one", "two")]
            results = await asyncio.gather(*both, return_exceptions=True)
            assert [type(result) for result in results] == [type(None), Conflict]
            assert [record.event for record in await journal.read("a")][1:] == [Heard(text="one")]

        self._with_journal(tmp_path, story)

    def test_refuses_what_is_not_json_and_nobody_else_is_held_up(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a", TOOL))
            neighbour = journal.append(start("b"))
            for value in (object(), "half a character: \ud800"):
                try:
                    await journal.append(entry("a", answer(2, value), Heard(text="x"), after=2))
                except Unwritable as error:
                    assert "not JSON" in str(error)
                else:
                    raise AssertionError(f"{value!r} was taken")
            await neighbour
            assert len(await journal.read("a")) == 2
            await journal.append(entry("a", answer(2, "fine"), after=2))

        self._with_journal(tmp_path, story)

    def test_keeps_content_once_and_says_when_it_is_missing(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a"))
            await journal.append(start("b"))
            assert await journal.blob(DIGEST) == CONTENT
            await refuses(JournalError, journal.blob("0" * 64))

        self._with_journal(tmp_path, story)

    def test_lists_runs_with_where_they_stand(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a"))
            child = Started(style="errands", definition=DIGEST, parent=("a", 9))
            await journal.append(entry("a.9", child, at=NOW + 1))
            await journal.append(
                entry(
                    "a",
                    Heard(text="x"),
                    Ended(outcome="completed", because="done"),
                    after=1,
                    at=LATER,
                    status="completed",
                )
            )
            one, two = await journal.runs()
            assert (one.run_id, one.style, one.status, one.length) == ("a", "errands", "completed", 3)
            assert (one.created, one.updated, one.parent) == (NOW, LATER, None)
            assert (two.run_id, two.status, two.parent) == ("a.9", "working", "a")

        self._with_journal(tmp_path, story)

    def test_knows_the_latest_time_of_a_record_or_a_sign_of_life(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            assert await journal.latest() == 0
            await journal.append(start("a"))
            assert await journal.latest() == NOW
            holder = await journal.enrol(NOW + SECOND)
            assert await journal.latest() == NOW + SECOND
            assert await journal.heartbeat(holder, LATER)
            assert await journal.latest() == LATER
            await journal.append(entry("a", Heard(text="x"), after=1, at=LATER + SECOND))
            await journal.leave(holder)
            assert await journal.latest() == LATER + SECOND

        self._with_journal(tmp_path, story)

    def test_reads_what_a_fork_shares(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a", TOOL))
            await journal.append(entry("a", answer(2), Heard(text="mine"), after=2))
            await journal.append(entry("b", Forked(run="a", at=3), Heard(text="fork"), after=3, fork=("a", 3)))
            still_open = (await journal.read("a"))[1:2]
            await journal.append(entry("c", Forked(run="b", at=2), after=2, fork=("b", 2), inherited=still_open))
            await journal.append(entry("a", Heard(text="later"), after=4))
            await journal.append(entry("b", Heard(text="more"), after=5))
            shared = (await journal.read("a"))[:3]
            b = await journal.read("b")
            assert b[:3] == shared
            assert [type(record.event) for record in b[3:]] == [Forked, Heard, Heard]
            assert [record.number for record in b] == [1, 2, 3, 4, 5, 6]
            assert await journal.read("b", after=2) == b[2:]
            assert await journal.read("b", after=4) == b[4:]
            assert [record.event for record in await journal.read("c")] == [
                *(record.event for record in shared[:2]),
                Forked(run="b", at=2),
            ]
            await refuses(Conflict, journal.append(entry("b", Forked(run="a", at=3), after=3, fork=("a", 3))))
            styles = {info.run_id: info.style for info in await journal.runs()}
            assert styles == {"a": "errands", "b": "errands", "c": "errands"}

        self._with_journal(tmp_path, story)

    # Claiming

    def test_gives_a_due_command_to_one_worker_only(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            one, two = await journal.enrol(NOW), await journal.enrol(NOW)
            assert two > one
            await journal.append(start("a", TOOL, TOOL, TOOL))
            first = await journal.claim(one, NOW, 2)
            second = await journal.claim(two, NOW, 10)
            assert [(task.run_id, task.number, task.attempt, task.doubtful) for task in first] == [
                ("a", 2, 1, False),
                ("a", 3, 1, False),
            ]
            assert [task.number for task in second] == [4]
            assert await journal.claim(one, NOW, 10) == []

        self._with_journal(tmp_path, story)

    def test_can_be_held_to_one_run_and_its_children(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            for run_id in ("a", "a.2", "a%", "ab", "b"):
                await journal.append(start(run_id, TOOL))
            holder = await journal.enrol(NOW)
            assert [task.run_id for task in await journal.claim(holder, NOW, 10, "a")] == ["a", "a.2"]
            assert {task.run_id for task in await journal.claim(holder, NOW, 10)} == {"a%", "ab", "b"}

        self._with_journal(tmp_path, story)

    def test_leaves_what_the_appending_worker_took(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            one, two = await journal.enrol(NOW), await journal.enrol(NOW)
            await journal.append(start("a", TOOL, holder=one, begun=(2,)))
            assert await journal.claim(two, NOW, 10) == []
            assert await journal.next_due() is None
            await journal.append(entry("a", answer(2), after=2, fence=(2, one)))

        self._with_journal(tmp_path, story)

    def test_gives_nobody_what_is_settled_or_withdrawn_or_ended(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            await journal.append(start("a", TOOL, TOOL, TOOL))
            await journal.append(entry("a", answer(2), Withdrawn(number=3, because="not needed"), after=4))
            holder = await journal.enrol(NOW)
            assert [task.number for task in await journal.claim(holder, NOW, 10)] == [4]
            ended = Ended(outcome="stopped", because="y")
            await journal.append(entry("a", Heard(text="x"), ended, after=6, status="stopped"))
            await journal.leave(holder)
            assert await journal.claim(await journal.enrol(NOW), LATER, 10) == []

        self._with_journal(tmp_path, story)

    def test_never_gives_out_a_timer_early(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", SetTimer(name="tea", after=180.5), holder=holder))
            due = NOW + 180_500_000
            assert await journal.next_due() == due
            assert await journal.claim(holder, due - 1, 10) == []
            assert [task.number for task in await journal.claim(holder, due, 10)] == [2]
            assert await journal.claim(holder, LATER, 10) == []
            assert await journal.next_due() is None

        self._with_journal(tmp_path, story)

    # Leases and fences

    def test_takes_over_from_a_worker_whose_lease_ran_out(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            old, new = await journal.enrol(NOW), await journal.enrol(LATER)
            await journal.append(start("a", TOOL, TOOL))
            assert len(await journal.claim(old, NOW, 10)) == 2
            assert await journal.begin("a", 2, old) == 1
            taken = await journal.claim(new, LATER, 10)
            assert [(task.number, task.attempt, task.doubtful) for task in taken] == [(2, 2, True), (3, 1, False)]
            await refuses(LeaseLost, journal.append(entry("a", answer(2), after=3, fence=(2, old))))
            await refuses(LeaseLost, journal.begin("a", 3, old))
            assert len(await journal.read("a")) == 3
            assert not await journal.heartbeat(old, LATER)
            await journal.append(entry("a", answer(2), after=3, fence=(2, new)))

        self._with_journal(tmp_path, story)

    def test_knows_whether_a_worker_can_be_alive(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            assert not await journal.has_workers(NOW)
            first, second = await journal.enrol(NOW), await journal.enrol(NOW)
            await journal.leave(first)
            assert await journal.has_workers(NOW)
            await journal.leave(second)
            assert not await journal.has_workers(NOW)
            await journal.enrol(NOW)
            assert not await journal.has_workers(LATER)

        self._with_journal(tmp_path, story)

    def test_leaves_everything_to_a_worker_that_gives_signs_of_life(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            old, new = await journal.enrol(NOW), await journal.enrol(LATER)
            await journal.append(start("a", TOOL))
            await journal.claim(old, NOW, 10)
            assert await journal.heartbeat(old, LATER)
            assert await journal.claim(new, LATER, 10) == []
            await journal.append(entry("a", answer(2), after=2, fence=(2, old)))

        self._with_journal(tmp_path, story)

    def test_fences_out_an_answer_to_a_settled_command(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", TOOL, TOOL, holder=holder))
            await journal.append(entry("a", answer(2), after=3, fence=(2, holder)))
            await refuses(LeaseLost, journal.append(entry("a", answer(2), after=4, fence=(2, holder))))
            await refuses(LeaseLost, journal.append(entry("a", answer(3), after=4, fence=(3, holder + 1))))
            assert len(await journal.read("a")) == 4

        self._with_journal(tmp_path, story)

    def test_fences_out_an_answer_to_a_command_that_a_step_at_the_same_time_settles(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", TOOL, TOOL, holder=holder))
            first = entry("a", answer(2), after=3, fence=(2, holder))
            second = entry("a", answer(2), after=4, fence=(2, holder))
            done = await asyncio.gather(journal.append(first), journal.append(second), return_exceptions=True)
            assert [type(one) for one in done] == [type(None), LeaseLost]
            assert len(await journal.read("a")) == 4

        self._with_journal(tmp_path, story)

    def test_makes_doubtful_only_what_was_begun(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            one = await journal.enrol(NOW)
            await journal.append(start("a", TOOL, TOOL, holder=one, begun=(2,)))
            await journal.leave(one)
            two = await journal.enrol(NOW)
            tasks = await journal.claim(two, NOW, 10)
            assert [(task.number, task.attempt, task.doubtful) for task in tasks] == [(2, 2, True), (3, 1, False)]
            assert await journal.begin("a", 2, two) == 2
            await refuses(LeaseLost, journal.begin("a", 2, one))

        self._with_journal(tmp_path, story)

    # Giving back

    def test_gives_a_failed_attempt_out_again_at_its_time(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", TOOL, holder=holder))
            assert await journal.begin("a", 2, holder) == 1
            await journal.retry("a", 2, holder, NOW + SECOND)
            assert await journal.next_due() == NOW + SECOND
            assert await journal.claim(holder, NOW + SECOND - 1, 10) == []
            (task,) = await journal.claim(holder, NOW + SECOND, 10)
            assert (task.number, task.attempt, task.doubtful) == (2, 2, False)
            await journal.retry("a", 2, holder + 1, NOW)
            assert await journal.next_due() is None, "somebody else's retry changed it"

        self._with_journal(tmp_path, story)

    def test_holds_a_command_in_doubt_until_somebody_releases_it(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", TOOL, holder=holder, begun=(2,)))
            ask = Asked(command=AskPerson(question="Did it?"))
            await journal.append(entry("a", Doubted(to=2, evidence="gone"), ask, after=2, fence=(2, holder)))
            assert await journal.claim(holder, LATER, 10) == []
            assert await journal.next_due() is None
            await journal.append(entry("a", answer(4), Repeated(number=2, because="again"), after=4, at=LATER))
            (task,) = await journal.claim(holder, LATER, 10)
            assert (task.number, task.attempt, task.doubtful) == (2, 2, False)

        self._with_journal(tmp_path, story)

    def test_wakes_a_parked_parent_when_its_child_ends(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", StartRun(workflow="w"), holder=holder))
            await journal.begin("a", 2, holder)
            await journal.append(entry("a.2", Started(style="errands", definition=DIGEST, parent=("a", 2))))
            await journal.park("a", 2, holder)
            assert await journal.claim(holder, LATER, 10) == []
            end = Ended(outcome="completed", because="done")
            await journal.append(entry("a.2", Heard(text="x"), end, after=1, at=LATER, status="completed"))
            assert await journal.next_due() == LATER
            (task,) = await journal.claim(holder, LATER, 10)
            assert (task.run_id, task.number, task.attempt, task.doubtful) == ("a", 2, 1, False)

        self._with_journal(tmp_path, story)

    def test_does_not_park_a_parent_whose_child_has_ended(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            holder = await journal.enrol(NOW)
            await journal.append(start("a", StartRun(workflow="w"), holder=holder))
            started = Started(style="errands", definition=DIGEST, parent=("a", 2))
            end = Ended(outcome="failed", because="at once")
            await journal.append(entry("a.2", started, end, status="failed"))
            await journal.park("a", 2, holder)
            assert [task.number for task in await journal.claim(holder, LATER, 10)] == [2]

        self._with_journal(tmp_path, story)

    # People

    def test_shows_every_open_question_on_the_desk_and_no_worker_takes_one(self, tmp_path: Path) -> None:
        async def story(journal: Journal) -> None:
            ask = AskPerson(question="Shall we?", choices=("yes", "no"))
            holder = await journal.enrol(NOW)
            await journal.append(start("a", ask, holder=holder))
            await journal.append(entry("b", STARTED, Asked(command=AskPerson(question="And?")), at=NOW - 5))
            assert [(q.run_id, q.number, q.at) for q in await journal.desk()] == [("b", 2, NOW - 5), ("a", 2, NOW)]
            assert (await journal.desk())[1].command == ask
            assert await journal.claim(holder, LATER, 10) == []
            await journal.append(entry("a", answer(2), after=2))
            ended = Ended(outcome="stopped", because="y")
            await journal.append(entry("b", Heard(text="x"), ended, after=2, status="stopped"))
            assert await journal.desk() == []

        self._with_journal(tmp_path, story)
