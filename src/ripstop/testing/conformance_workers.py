"""What every journal must do with its workers: give each command to one of them, and fence out the others."""

import asyncio

from ripstop.kernel.effects import SetTimer, StartRun
from ripstop.kernel.errors import LeaseLost
from ripstop.kernel.events import Ended, Heard, Withdrawn
from ripstop.runtime.ports import ALL, NOTHING, Journal, Prefixed, Tree

from .conformance_story import JournalStories, claim, claimed, story
from .journal_entries import LATER, NOW, OFFERS, SECOND, TOOL, Scribe, answer, refuses


class WorkerConformance(JournalStories):
    # Claiming

    @story
    async def test_gives_a_due_command_to_one_worker_only(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        assert two > one
        await journal.append(scribe.start("a", TOOL, TOOL, TOOL))
        first = await claim(journal, one, room=2)
        second = await claim(journal, two)
        assert [(task.run_id, task.number, task.attempt, task.doubtful) for task in first] == [
            ("a", 2, 1, False),
            ("a", 3, 1, False),
        ]
        assert [task.number for task in second] == [4]
        assert await claim(journal, one) == []

    @story
    async def test_gives_a_command_only_to_a_worker_that_offers_it(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, SetTimer(name="tea", after=5)))
        others = ("", "tool:saw", "tool", "tool:hamme", "tool:hammer2", "channel:hammer")
        assert await claim(journal, one, offers=others) == []
        assert await journal.next_due(ALL, others) == NOW + 5 * SECOND, "what it cannot do is not due for it"
        assert await claim(journal, one, offers=()) == []
        assert await journal.next_due(ALL, ()) is None
        assert await journal.next_due(ALL, OFFERS) == NOW
        assert [task.number for task in await claim(journal, two)] == [2], "nobody holds it"

    @story
    async def test_gives_out_what_is_due_first_across_offers(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, at=NOW + 2))
        await journal.append(scribe.start("b", SetTimer(name="t", after=0.0), at=NOW + 1))
        await journal.append(scribe.start("c", TOOL, at=NOW))
        holder = await journal.enrol(NOW)
        assert [task.run_id for task in await claim(journal, holder, LATER, room=2)] == ["c", "b"]
        assert await claimed(journal, holder, LATER) == [("a", 2)]

    @story
    async def test_scopes_a_worker_to_one_family_or_to_nothing(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, StartRun(workflow="w"), StartRun(workflow="p", name="plan:x")))
        await journal.append(scribe.start("a.3", TOOL, parent=("a", 3)))
        await journal.append(scribe.start("plan:x", TOOL, StartRun(workflow="q", name="deep"), parent=("a", 4)))
        await journal.append(scribe.start("deep", TOOL, parent=("plan:x", 3)))
        for run_id in ("ab", "a%", "b", "a-3"):
            await journal.append(scribe.start(run_id, TOOL, at=NOW - 1))
        holder = await journal.enrol(NOW)
        assert await claimed(journal, holder, scope=NOTHING) == []
        assert await journal.next_due(NOTHING, OFFERS) is None
        assert await journal.next_due(ALL, OFFERS) == NOW - 1
        assert await journal.next_due(Tree("a"), OFFERS) == NOW
        assert await journal.next_due(Tree("nobody"), OFFERS) is None
        assert await claimed(journal, holder, scope=Tree("nobody")) == []
        mine = await claimed(journal, holder, scope=Tree("a.3"))
        assert mine == [("a", 2), ("a", 3), ("a", 4), ("a.3", 2), ("plan:x", 2), ("plan:x", 3), ("deep", 2)]
        assert await journal.next_due(Tree("a"), OFFERS) is None
        assert await claimed(journal, holder, scope=Tree("b")) == [("b", 2)]
        assert {run for run, _ in await claimed(journal, holder)} == {"ab", "a%", "a-3"}

    @story
    async def test_scopes_a_worker_to_the_runs_under_a_name(self, journal: Journal, scribe: Scribe) -> None:
        for place, run_id in enumerate(("ab.1", "a", "a%.1", "A.1", "a.2", "a.1", "a.aside")):
            await journal.append(scribe.start(run_id, TOOL, at=NOW + place))
        await journal.set_aside("a.aside", "its style is not known")
        holder = await journal.enrol(NOW)
        assert await journal.next_due(Prefixed("a"), OFFERS) == NOW + 4
        assert await claimed(journal, holder, LATER, scope=Prefixed("a")) == [("a.2", 2), ("a.1", 2)]
        assert await journal.next_due(Prefixed("a"), OFFERS) is None

    @story
    async def test_leaves_what_the_appending_worker_took(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=one, begun=(2,)))
        assert await claim(journal, two) == []
        assert await journal.next_due(ALL, OFFERS) is None
        await journal.append(scribe.entry("a", answer(2), after=2, fence=(2, one)))

    @story
    async def test_gives_nobody_what_is_settled_withdrawn_or_ended(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, TOOL, TOOL))
        await journal.append(scribe.entry("a", answer(2), Withdrawn(number=3, because="not needed"), after=4))
        holder = await journal.enrol(NOW)
        assert await claimed(journal, holder) == [("a", 4)]
        await journal.give_back("a", 4, holder)
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="stopped", because="y"), after=6))
        assert await claim(journal, holder, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None

    @story
    async def test_never_gives_out_a_timer_early(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", SetTimer(name="tea", after=180.5), holder=holder))
        due = NOW + 180_500_000
        assert await journal.next_due() == due
        assert await claim(journal, holder, due - 1) == []
        assert await claimed(journal, holder, due) == [("a", 2)]
        assert await claim(journal, holder, LATER) == []
        assert await journal.next_due() is None

    @story
    async def test_leaves_a_run_alone_that_is_set_aside(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        await journal.append(scribe.start("b", TOOL, at=NOW + 1))
        await journal.set_aside("a", "its style is not known here")
        holder = await journal.enrol(NOW)
        info = await journal.run("a")
        assert info is not None and (info.status, info.set_aside) == ("set_aside", "its style is not known here")
        assert await journal.next_due(ALL, OFFERS) == NOW + 1, "it would be looked for without end"
        assert await claimed(journal, holder, LATER) == [("b", 2)]
        assert await journal.next_due(ALL, OFFERS) is None
        assert await claimed(journal, holder, LATER, scope=Tree("a")) == [("a", 2)], "it was asked for by name"
        await journal.give_back("a", 2, holder)
        await journal.set_aside("a", "")
        info = await journal.run("a")
        assert info is not None and (info.status, info.set_aside) == ("working", "")
        assert await claimed(journal, holder, LATER) == [("a", 2)]

    # Leases and fences

    @story
    async def test_takes_over_from_a_worker_whose_lease_ran_out(self, journal: Journal, scribe: Scribe) -> None:
        old, new = await journal.enrol(NOW), await journal.enrol(LATER)
        await journal.append(scribe.start("a", TOOL, TOOL))
        assert len(await claim(journal, old)) == 2
        await journal.begin("a", 2, old, 1, repeatable=True)
        taken = await claim(journal, new, LATER)
        assert [(task.number, task.attempt, task.doubtful) for task in taken] == [(2, 2, True), (3, 1, False)]
        await refuses(LeaseLost, journal.append(scribe.entry("a", answer(2), after=3, fence=(2, old))))
        await refuses(LeaseLost, journal.begin("a", 3, old, 1, repeatable=True))
        assert len(await journal.read("a")) == 3
        assert not await journal.heartbeat(old, LATER)
        await journal.append(scribe.entry("a", answer(2), after=3, fence=(2, new)))

    @story
    async def test_gives_nothing_to_a_worker_that_is_taken_for_dead(self, journal: Journal, scribe: Scribe) -> None:
        old, new = await journal.enrol(NOW), await journal.enrol(LATER)
        await claim(journal, new, LATER)
        # it does not know yet; what it takes now would be held for ever
        await journal.append(scribe.start("a", TOOL, holder=old, begun=(2,)))
        await journal.append(scribe.start("b", TOOL))
        assert await claim(journal, old, LATER) == []
        await refuses(LeaseLost, journal.begin("a", 2, old, 1, repeatable=True))
        taken = await claim(journal, new, LATER)
        assert [(task.run_id, task.attempt, task.doubtful) for task in taken] == [("a", 1, False), ("b", 1, False)]

    @story
    async def test_knows_which_workers_can_be_alive(self, journal: Journal, scribe: Scribe) -> None:
        assert await journal.workers(NOW) == []
        first, second = await journal.enrol(NOW), await journal.enrol(NOW)
        assert sorted(await journal.workers(NOW)) == [(first, True), (second, True)]
        await journal.leave(first, NOW)
        assert await journal.workers(NOW) == [(second, True)]
        assert await journal.workers(LATER) == [(second, False)]
        assert await journal.heartbeat(second, LATER)
        assert await journal.workers(LATER) == [(second, True)]
        await journal.leave(second, LATER)
        assert await journal.workers(LATER) == []
        assert await journal.enrol(LATER) > second

    @story
    async def test_leaves_everything_to_a_worker_that_gives_signs_of_life(
        self, journal: Journal, scribe: Scribe
    ) -> None:
        old, new = await journal.enrol(NOW), await journal.enrol(LATER)
        await journal.append(scribe.start("a", TOOL))
        await claim(journal, old)
        assert await journal.heartbeat(old, LATER)
        assert await claim(journal, new, LATER) == []
        await journal.append(scribe.entry("a", answer(2), after=2, fence=(2, old)))

    @story
    async def test_takes_only_one_of_two_answers_in_one_commit(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL, holder=holder))
        first = scribe.entry("a", answer(2), after=3, fence=(2, holder))
        second = scribe.entry("a", answer(2), after=4, fence=(2, holder))
        done = await asyncio.gather(journal.append(first), journal.append(second), return_exceptions=True)
        assert [type(one) for one in done] == [type(None), LeaseLost]
        assert len(await journal.read("a")) == 4

    # Attempts

    @story
    async def test_makes_doubtful_only_what_was_begun(self, journal: Journal, scribe: Scribe) -> None:
        one = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL, holder=one, begun=(2,)))
        await journal.leave(one, NOW)
        two = await journal.enrol(NOW)
        tasks = await claim(journal, two)
        assert [(task.number, task.attempt, task.doubtful) for task in tasks] == [(2, 2, True), (3, 1, False)]
        assert not any(task.unsafe for task in tasks)
        await journal.begin("a", 2, two, 2, repeatable=True)
        await refuses(LeaseLost, journal.begin("a", 2, one, 1, repeatable=True))

    @story
    async def test_remembers_that_what_was_begun_is_unsafe(self, journal: Journal, scribe: Scribe) -> None:
        one = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL))
        await claim(journal, one)
        await journal.begin("a", 2, one, 1, repeatable=False)
        await journal.begin("a", 3, one, 1, repeatable=True)
        await journal.leave(one, NOW)
        tasks = await claim(journal, await journal.enrol(NOW))
        assert [(task.number, task.doubtful, task.unsafe) for task in tasks] == [(2, True, True), (3, True, False)]

    @story
    async def test_begins_an_attempt_again_without_counting_it_twice(self, journal: Journal, scribe: Scribe) -> None:
        one = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=one))
        for _ in range(3):
            await journal.begin("a", 2, one, 4, repeatable=True)
        await journal.leave(one, NOW)
        (task,) = await claim(journal, await journal.enrol(NOW))
        assert task.attempt == 5

    @story
    async def test_gives_a_failed_attempt_out_again_at_its_time(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=holder))
        await journal.begin("a", 2, holder, 1, repeatable=False)
        await journal.retry("a", 2, holder, NOW + SECOND)
        assert await journal.next_due(ALL, OFFERS) == NOW + SECOND
        assert await claim(journal, holder, NOW + SECOND - 1) == []
        (task,) = await claim(journal, holder, NOW + SECOND)
        assert (task.number, task.attempt, task.doubtful, task.unsafe) == (2, 2, False, False)
        await journal.retry("a", 2, holder + 1, NOW)
        assert await journal.next_due(ALL, OFFERS) is None, "somebody else's retry changed it"

    @story
    async def test_gives_back_what_was_not_begun(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL))
        await claim(journal, one)
        await journal.give_back("a", 2, two)
        assert await claim(journal, two) == [], "only its holder can give it back"
        await journal.give_back("a", 2, one)
        assert await journal.next_due(ALL, OFFERS) == NOW
        (task,) = await claim(journal, two)
        assert (task.attempt, task.doubtful) == (1, False)
