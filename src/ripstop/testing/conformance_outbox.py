"""What every journal must do with commands that are not simply done: doubtful, superseded, parked, in a queue."""

import asyncio

from ripstop.engine.ports import ALL, NOTHING, Journal, Prefixed, Tree
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
)
from ripstop.kernel.errors import LeaseLost, NotNeeded
from ripstop.kernel.events import (
    Answered,
    Asked,
    CallRefused,
    Doubted,
    Ended,
    Heard,
    Repeated,
    RetryRequested,
    Withdrawn,
)

from .journal_entries import (
    LATER,
    NOW,
    OFFERS,
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

CHILD = StartRun(workflow="w")
LATE = Withdrawn(number=2, because="late")


def finished(to: int, run: str) -> Answered:
    return Answered(to=to, answer=RunFinished(run=run, outcome="completed"))


class OutboxConformance(JournalStories):
    @story
    async def test_holds_a_command_in_doubt_until_it_is_repeated(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id, begun=(2,)))
        ask = Asked(command=AskPerson(question="Did it?", purpose="ripstop:doubt", about=(2,)))
        await journal.append(scribe.entry("a", Doubted(to=2, evidence="gone"), ask, after=2, fence=(2, worker_id)))
        assert await claim(journal, worker_id, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None
        again = Answered(to=4, answer=PersonAnswered(choice="again"))
        await journal.append(scribe.entry("a", again, Repeated(number=2), after=4, at=LATER))
        (command,) = await claim(journal, worker_id, LATER)
        assert (command.number, command.attempt, command.doubtful) == (2, 2, False)

    @story
    async def test_leaves_a_repeated_command_to_the_worker_that_has_it(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", AskAgent(agent="ada"), worker_id=worker_id, begun=(2,)))
        soon = NOW + SECOND
        refused = CallRefused(to=2, reason="later", again=soon)
        await journal.append(scribe.entry("a", refused, after=2, fence=(2, worker_id)))
        assert len(await claim(journal, worker_id, soon)) == 1
        await journal.append(scribe.entry("a", RetryRequested(), Repeated(number=2), after=3, at=soon))
        assert await claim(journal, await journal.enrol(soon), soon) == []
        reply = Answered(to=2, answer=AgentReplied(text="hello"))
        await journal.append(scribe.entry("a", reply, after=5, at=soon, fence=(2, worker_id)))

    @story
    async def test_keeps_a_repeated_command_doubtful_that_a_worker_had_begun(
        self, journal: Journal, scribe: Scribe
    ) -> None:
        gone = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=gone, begun=(2,)))
        refused = CallRefused(to=2, reason="later", again=NOW)
        await journal.append(scribe.entry("a", refused, after=2, fence=(2, gone)))
        assert len(await claim(journal, gone)) == 1
        await journal.begin("a", 2, gone, 2, repeatable=False)
        await journal.leave(gone, NOW)
        await journal.append(scribe.entry("a", RetryRequested(), Repeated(number=2), after=3, at=LATER))
        (command,) = await claim(journal, await journal.enrol(LATER), LATER)
        assert (command.number, command.doubtful, command.unsafe) == (2, True, True)

    # Superseded

    @story
    async def test_drops_a_superseded_command_that_nobody_holds(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, after=2))
        assert await claim(journal, await journal.enrol(NOW), LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None

    @story
    async def test_tells_a_worker_what_is_not_needed_any_more(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL, worker_id=one))
        await journal.append(scribe.start("b", TOOL, worker_id=two))
        await journal.begin("a", 2, one, 1, repeatable=False)
        assert await journal.superseded(one) == []
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, after=3))
        assert await journal.superseded(one) == [("a", 2)]
        assert await journal.superseded(two) == []
        await refuses(NotNeeded, journal.begin("a", 2, one, 1, repeatable=True))
        await refuses(LeaseLost, journal.begin("a", 2, two, 1, repeatable=True))
        await journal.retry("a", 2, one, NOW)
        assert await claim(journal, two) == [], "it waits for the late answer of the one who has it"
        await journal.append(scribe.entry("a", answer(2), after=5, fence=(2, one)))
        assert await journal.superseded(one) == []
        await refuses(LeaseLost, journal.append(scribe.entry("a", answer(2), after=6, fence=(2, one))))
        await journal.append(scribe.entry("a", answer(3), after=6, fence=(3, one)))

    @story
    async def test_supersedes_what_is_held_when_the_run_ends(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", AskAgent(agent="ada"), TOOL, worker_id=worker_id, begun=(2,)))
        await journal.append(scribe.end("a", "stopped", after=3))
        assert sorted(await journal.superseded(worker_id)) == [("a", 2), ("a", 3)]
        reply = Answered(to=2, answer=AgentReplied(text="late"))
        await journal.append(scribe.entry("a", reply, after=5, fence=(2, worker_id)))
        assert await journal.superseded(worker_id) == [("a", 3)]

    @story
    async def test_reports_what_a_dead_worker_left_superseded(self, journal: Journal, scribe: Scribe) -> None:
        old = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=old, begun=(2,)))
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, after=2))
        new = await journal.enrol(LATER)
        (command,) = await claim(journal, new, LATER, offers=("",))
        assert (command.run_id, command.number, command.superseded, command.doubtful) == ("a", 2, True, True)
        await refuses(NotNeeded, journal.begin("a", 2, new, 2, repeatable=True))
        assert await journal.superseded(new) == [("a", 2)]
        await journal.append(scribe.entry("a", answer(2), after=4, fence=(2, new)))
        assert await journal.superseded(new) == []
        assert await claim(journal, new, LATER) == []

    @story
    async def test_has_no_doubt_about_a_superseded_command_that_was_not_begun(
        self, journal: Journal, scribe: Scribe
    ) -> None:
        old = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=old))
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, after=2))
        (command,) = await claim(journal, await journal.enrol(LATER), LATER, offers=("",))
        assert (command.number, command.superseded, command.doubtful) == (2, True, False)

    @story
    async def test_has_a_superseded_child_undone(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, CHILD))
        await journal.append(scribe.start("a.2", TOOL, parent=("a", 2)))
        assert await claimed(journal, worker_id, NOW) == [("a", 2), ("a", 3), ("a.2", 2)]
        await journal.park(task("a", 2), worker_id, NOW)  # and 3 is in hand
        three = Withdrawn(number=3, because="late")
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, three, after=3, at=NOW + SECOND))
        assert await journal.superseded(worker_id) == [("a", 3)]
        await journal.park(task("a", 3), worker_id, LATER)  # it did not know yet
        command, other = await claim(journal, worker_id, LATER)
        assert (command.number, command.superseded, command.woken) == (2, True, 0)
        assert (other.number, other.superseded, other.woken) == (3, True, 0), "parked for ever, and never undone"
        await journal.park(command, worker_id, LATER)  # the child is cancelled, and has not ended
        assert await claim(journal, worker_id, LATER) == []
        await journal.append(scribe.end("a.2", "stopped", after=2, at=LATER))
        await journal.append(scribe.entry("a.2", answer(2), after=4, at=LATER, fence=(2, worker_id)))
        (command,) = await claim(journal, worker_id, LATER)
        assert (command.number, command.superseded, command.woken) == (2, True, 1)
        await journal.append(scribe.entry("a", finished(2, "a.2"), after=6, at=LATER, fence=(2, worker_id)))
        await journal.append(scribe.entry("a", finished(3, "a.3"), after=7, at=LATER, fence=(3, worker_id)))
        assert await claim(journal, worker_id, LATER) == []

    # Parked until another run ends

    @story
    async def test_wakes_a_parked_parent_when_its_child_ends(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, worker_id=worker_id))
        await journal.begin("a", 2, worker_id, 1, repeatable=True)
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.park(task("a", 2), worker_id, NOW)
        assert await claim(journal, worker_id, LATER) == []
        await journal.append(scribe.end("a.2", at=LATER))
        assert await journal.next_due() == LATER
        (command,) = await claim(journal, worker_id, LATER)
        assert (command.run_id, command.number, command.attempt, command.doubtful, command.woken) == (
            "a",
            2,
            1,
            False,
            1,
        )

    @story
    async def test_knows_which_runs_wait_for_a_worker_alone(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("unstarted", CHILD))
        await journal.append(scribe.start("asks", AskPerson(question="?")))
        await journal.append(scribe.start("sleeps", SetTimer(name="t", after=60.0)))
        await journal.append(scribe.start("works", AskAgent(agent="ada")))
        await journal.append(scribe.start("aside", CHILD))
        await journal.set_aside("aside", "its style is not known")
        assert await journal.left_waiting(NOW) == {"unstarted"}
        worker_id = await journal.enrol(NOW)
        (command,) = [one for one in await claim(journal, worker_id, NOW) if one.run_id == "unstarted"]
        assert await journal.left_waiting(NOW) == {"unstarted"}, "whoever holds it may have died"
        await journal.append(scribe.start("unstarted.2", parent=("unstarted", 2)))
        await journal.park(command, worker_id, NOW)
        assert await journal.left_waiting(NOW) == set(), "its child is at work"
        await journal.append(scribe.end("unstarted.2", after=1, at=NOW))
        assert await journal.left_waiting(NOW) == {"unstarted"}, "its child has ended"
        assert await journal.left_waiting(NOW + 60 * SECOND) == {"unstarted", "sleeps"}

    @story
    async def test_does_not_park_a_parent_whose_child_ended_meanwhile(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, worker_id=worker_id))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.append(scribe.end("a.2", "failed"))
        assert await claim(journal, worker_id, LATER) == [], "it has it in hand"
        await journal.park(task("a", 2), worker_id, NOW + SECOND)
        assert await journal.next_due() == NOW + SECOND
        (command,) = await claim(journal, worker_id, LATER)
        assert (command.number, command.woken) == (2, 1)

    @story
    async def test_wakes_a_parent_once_for_each_end_of_its_child(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        named = StartRun(workflow="w", name="shared")
        for parent in ("a", "b"):
            await journal.append(scribe.start(parent, named, worker_id=worker_id))
            await journal.park(task(parent, 2), worker_id, NOW)
        await journal.append(scribe.start("shared", TOOL, parent=("a", 2)))
        await journal.append(scribe.entry("shared", answer(2), Ended(outcome="failed", because="x"), after=2))
        tasks = await claim(journal, worker_id, LATER)
        woken = [(command.run_id, command.woken, command.awaits) for command in tasks]
        assert woken == [("a", 1, "shared"), ("b", 1, "shared")]
        await journal.give_back("b", 2, worker_id)
        assert await claimed(journal, worker_id, LATER) == [("b", 2)]

    @story
    async def test_wakes_a_parent_only_when_all_its_grandchildren_ended(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, worker_id=worker_id))
        await journal.append(scribe.start("a.2", CHILD, parent=("a", 2), worker_id=worker_id))
        await journal.append(scribe.start("a.2.2", parent=("a.2", 2)))
        await journal.park(task("a", 2), worker_id, NOW)
        await journal.park(task("a.2", 2), worker_id, NOW)
        await journal.append(scribe.end("a.2", "stopped", after=2))
        assert await claimed(journal, worker_id, LATER) == [("a.2", 2)], "to cancel the grandchild"
        await journal.park(task("a.2", 2, superseded=True), worker_id, LATER)
        await journal.append(scribe.end("a.2.2", "stopped", at=LATER))
        assert await claimed(journal, worker_id, LATER) == [("a.2", 2)]
        late = scribe.entry("a.2", finished(2, "a.2.2"), after=4, at=LATER, fence=(2, worker_id))
        await journal.append(late)
        assert await claimed(journal, worker_id, LATER) == [("a", 2)]

    @story
    async def test_parks_a_call_until_its_question_is_answered(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        for ends, run in (("before", "a"), ("between", "b"), ("after", "c")):
            question = f"{run}.2.0abc"
            await journal.append(scribe.start(run, TOOL, worker_id=worker_id))
            await journal.append(scribe.start(question, AskPerson(question="May I?"), parent=(run, 2)))
            end = scribe.end(question, after=2)
            if ends == "before":
                await journal.append(end)
            await journal.await_run(run, 2, worker_id, question)
            if ends == "before":
                continue  # it has looked, and goes on at once
            if ends == "between":
                await journal.append(end)
            await journal.park(task(run, 2), worker_id, NOW)
            assert await claimed(journal, worker_id) == ([(run, 2)] if ends == "between" else [])
            if ends == "after":
                await journal.append(end)
                (command,) = await claim(journal, worker_id)
                assert command.awaits == question
                assert (command.run_id, command.number, command.attempt, command.woken) == (run, 2, 1, 1)
        for run in "abc":
            await journal.append(scribe.entry(run, answer(2), after=2, fence=(2, worker_id)))

    @story
    async def test_forgets_a_question_with_the_call_that_asked_it(self, journal: Journal, scribe: Scribe) -> None:
        worker_id, agent = await journal.enrol(NOW), AskAgent(agent="ada")
        await journal.append(scribe.start("a", agent, worker_id=worker_id, begun=(2,)))
        await journal.append(scribe.start("a.2.0abc", AskPerson(question="May I?"), parent=("a", 2)))
        await journal.await_run("a", 2, worker_id, "a.2.0abc")
        reply = Answered(to=2, answer=AgentReplied(text="done without"))
        step = scribe.entry(
            "a", reply, Asked(command=agent), after=2, fence=(2, worker_id), worker_id=worker_id, begun=(4,)
        )
        await journal.append(step)
        await journal.append(scribe.end("a.2.0abc", after=2))
        await journal.give_back("a", 4, worker_id)
        (command,) = await claim(journal, worker_id, LATER)
        assert (command.number, command.woken) == (4, 0), "the answer to the old question woke the next call"

    @story
    async def test_does_not_wake_what_is_in_doubt(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id, begun=(2,)))
        await journal.append(scribe.start("a.2.0abc", AskPerson(question="May I?"), parent=("a", 2)))
        await journal.await_run("a", 2, worker_id, "a.2.0abc")
        ask = Asked(command=AskPerson(question="Did it?", purpose="ripstop:doubt", about=(2,)))
        await journal.append(scribe.entry("a", Doubted(to=2, evidence="gone"), ask, after=2, fence=(2, worker_id)))
        await journal.append(scribe.end("a.2.0abc", after=2))
        assert await claim(journal, worker_id, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None

    # Messages

    @story
    async def test_gives_out_messages_of_a_channel_one_by_one(self, journal: Journal, scribe: Scribe) -> None:
        one, two, other = Say(text="1", channel="c"), Say(text="2", channel="c"), Say(text="3", channel="d")
        await journal.append(scribe.start("a", one, two, other, Say(text="in the transcript")))
        offers = ("", "channel:c", "channel:d")
        worker_id = await journal.enrol(NOW)
        assert await claim(journal, worker_id) == [], "it serves no channel"
        assert [command.number for command in await claim(journal, worker_id, offers=offers)] == [2, 4]
        assert await claim(journal, worker_id, LATER, offers=offers) == []
        await journal.append(scribe.entry("a", Answered(to=2, answer=Said()), after=5, fence=(2, worker_id)))
        assert [command.number for command in await claim(journal, worker_id, offers=offers)] == [3]
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="x"), after=6))
        await journal.give_back("a", 3, worker_id)
        tasks = await claim(journal, worker_id, offers=offers)
        assert [(command.number, command.superseded) for command in tasks] == [(3, False)], (
            "what was said is still delivered"
        )
        await journal.append(scribe.entry("a", Answered(to=3, answer=Said()), after=8, fence=(3, worker_id)))


# What every journal must do with its workers: give each command to one of them, and fence out the others.


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
        worker_id = await journal.enrol(NOW)
        assert [task.run_id for task in await claim(journal, worker_id, LATER, room=2)] == ["c", "b"]
        assert await claimed(journal, worker_id, LATER) == [("a", 2)]

    @story
    async def test_scopes_a_worker_to_one_family_or_to_nothing(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, StartRun(workflow="w"), StartRun(workflow="p", name="plan:x")))
        await journal.append(scribe.start("a.3", TOOL, parent=("a", 3)))
        await journal.append(scribe.start("plan:x", TOOL, StartRun(workflow="q", name="deep"), parent=("a", 4)))
        await journal.append(scribe.start("deep", TOOL, parent=("plan:x", 3)))
        for run_id in ("ab", "a%", "b", "a-3"):
            await journal.append(scribe.start(run_id, TOOL, at=NOW - 1))
        worker_id = await journal.enrol(NOW)
        assert await claimed(journal, worker_id, scope=NOTHING) == []
        assert await journal.next_due(NOTHING, OFFERS) is None
        assert await journal.next_due(ALL, OFFERS) == NOW - 1
        assert await journal.next_due(Tree("a"), OFFERS) == NOW
        assert await journal.next_due(Tree("nobody"), OFFERS) is None
        assert await claimed(journal, worker_id, scope=Tree("nobody")) == []
        mine = await claimed(journal, worker_id, scope=Tree("a.3"))
        assert mine == [("a", 2), ("a", 3), ("a", 4), ("a.3", 2), ("plan:x", 2), ("plan:x", 3), ("deep", 2)]
        assert await journal.next_due(Tree("a"), OFFERS) is None
        assert await claimed(journal, worker_id, scope=Tree("b")) == [("b", 2)]
        assert {run for run, _ in await claimed(journal, worker_id)} == {"ab", "a%", "a-3"}

    @story
    async def test_scopes_a_worker_to_the_runs_under_a_name(self, journal: Journal, scribe: Scribe) -> None:
        for place, run_id in enumerate(("ab.1", "a", "a%.1", "A.1", "a.2", "a.1", "a.aside")):
            await journal.append(scribe.start(run_id, TOOL, at=NOW + place))
        await journal.set_aside("a.aside", "its style is not known")
        worker_id = await journal.enrol(NOW)
        assert await journal.next_due(Prefixed("a"), OFFERS) == NOW + 4
        assert await claimed(journal, worker_id, LATER, scope=Prefixed("a")) == [("a.2", 2), ("a.1", 2)]
        assert await journal.next_due(Prefixed("a"), OFFERS) is None

    @story
    async def test_leaves_what_the_appending_worker_took(self, journal: Journal, scribe: Scribe) -> None:
        one, two = await journal.enrol(NOW), await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=one, begun=(2,)))
        assert await claim(journal, two) == []
        assert await journal.next_due(ALL, OFFERS) is None
        await journal.append(scribe.entry("a", answer(2), after=2, fence=(2, one)))

    @story
    async def test_gives_nobody_what_is_settled_withdrawn_or_ended(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, TOOL, TOOL))
        await journal.append(scribe.entry("a", answer(2), Withdrawn(number=3, because="not needed"), after=4))
        worker_id = await journal.enrol(NOW)
        assert await claimed(journal, worker_id) == [("a", 4)]
        await journal.give_back("a", 4, worker_id)
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="stopped", because="y"), after=6))
        assert await claim(journal, worker_id, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None

    @story
    async def test_never_gives_out_a_timer_early(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", SetTimer(name="tea", after=180.5), worker_id=worker_id))
        due = NOW + 180_500_000
        assert await journal.next_due() == due
        assert await claim(journal, worker_id, due - 1) == []
        assert await claimed(journal, worker_id, due) == [("a", 2)]
        assert await claim(journal, worker_id, LATER) == []
        assert await journal.next_due() is None

    @story
    async def test_leaves_a_run_alone_that_is_set_aside(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL))
        await journal.append(scribe.start("b", TOOL, at=NOW + 1))
        await journal.set_aside("a", "its style is not known here")
        worker_id = await journal.enrol(NOW)
        info = await journal.run("a")
        assert info is not None and (info.status, info.set_aside) == ("set_aside", "its style is not known here")
        assert await journal.next_due(ALL, OFFERS) == NOW + 1, "it would be looked for without end"
        assert await claimed(journal, worker_id, LATER) == [("b", 2)]
        assert await journal.next_due(ALL, OFFERS) is None
        assert await journal.next_due(ALL, OFFERS, ["a"]) is None, "it has refused the run itself"
        assert await journal.claim(worker_id, LATER, 10, ALL, OFFERS, ["a"]) == []
        assert await journal.next_due(ALL, OFFERS, ["b"]) == NOW, "it may try what another has refused"
        (task,) = await journal.claim(worker_id, LATER, 10, ALL, OFFERS, ["b"])
        assert (task.run_id, task.number, task.set_aside) == ("a", 2, True)
        await journal.give_back("a", 2, worker_id)
        assert await claimed(journal, worker_id, LATER, scope=Tree("a")) == [("a", 2)], "it was asked for by name"
        await journal.give_back("a", 2, worker_id)
        await journal.set_aside("a", "")
        info = await journal.run("a")
        assert info is not None and (info.status, info.set_aside) == ("working", "")
        assert await claimed(journal, worker_id, LATER) == [("a", 2)]

    @story
    async def test_a_step_ends_that_a_run_is_set_aside(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, TOOL))
        worker_id = await journal.enrol(NOW)
        assert await claimed(journal, worker_id) == [("a", 2), ("a", 3)]
        await journal.set_aside("a", "not for another worker")
        await journal.append(scribe.entry("a", answer(2), after=3, fence=(2, worker_id)))
        info = await journal.run("a")
        assert info is not None and (info.status, info.set_aside) == ("working", ""), "who appends can work on it"

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
        await journal.append(scribe.start("a", TOOL, worker_id=old, begun=(2,)))
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
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL, worker_id=worker_id))
        first = scribe.entry("a", answer(2), after=3, fence=(2, worker_id))
        second = scribe.entry("a", answer(2), after=4, fence=(2, worker_id))
        done = await asyncio.gather(journal.append(first), journal.append(second), return_exceptions=True)
        assert [type(one) for one in done] == [type(None), LeaseLost]
        assert len(await journal.read("a")) == 4

    # Attempts

    @story
    async def test_makes_doubtful_only_what_was_begun(self, journal: Journal, scribe: Scribe) -> None:
        one = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, TOOL, worker_id=one, begun=(2,)))
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
        await journal.append(scribe.start("a", TOOL, worker_id=one))
        for _ in range(3):
            await journal.begin("a", 2, one, 4, repeatable=True)
        await journal.leave(one, NOW)
        (task,) = await claim(journal, await journal.enrol(NOW))
        assert task.attempt == 5

    @story
    async def test_gives_a_failed_attempt_out_again_at_its_time(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, worker_id=worker_id))
        await journal.begin("a", 2, worker_id, 1, repeatable=False)
        await journal.retry("a", 2, worker_id, NOW + SECOND)
        assert await journal.next_due(ALL, OFFERS) == NOW + SECOND
        assert await claim(journal, worker_id, NOW + SECOND - 1) == []
        (task,) = await claim(journal, worker_id, NOW + SECOND)
        assert (task.number, task.attempt, task.doubtful, task.unsafe) == (2, 2, False, False)
        await journal.retry("a", 2, worker_id + 1, NOW)
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
