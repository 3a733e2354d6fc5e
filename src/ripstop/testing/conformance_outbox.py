"""What every journal must do with commands that are not simply done: doubtful, superseded, parked, in a queue."""

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
from ripstop.kernel.events import Answered, Asked, Doubted, Ended, Heard, Repeated, Withdrawn
from ripstop.runtime.ports import ALL, Journal

from .conformance_story import JournalStories, claim, claimed, story
from .journal_entries import LATER, NOW, OFFERS, SECOND, TOOL, Scribe, answer, refuses, task

CHILD = StartRun(workflow="w")
LATE = Withdrawn(number=2, because="late")


def finished(to: int, run: str) -> Answered:
    return Answered(to=to, answer=RunFinished(run=run, outcome="completed"))


class OutboxConformance(JournalStories):
    @story
    async def test_holds_a_command_in_doubt_until_it_is_repeated(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=holder, begun=(2,)))
        ask = Asked(command=AskPerson(question="Did it?", purpose="ripstop:doubt", about=(2,)))
        await journal.append(scribe.entry("a", Doubted(to=2, evidence="gone"), ask, after=2, fence=(2, holder)))
        assert await claim(journal, holder, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None
        again = Answered(to=4, answer=PersonAnswered(choice="again"))
        await journal.append(scribe.entry("a", again, Repeated(number=2), after=4, at=LATER))
        (command,) = await claim(journal, holder, LATER)
        assert (command.number, command.attempt, command.doubtful) == (2, 2, False)

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
        await journal.append(scribe.start("a", TOOL, TOOL, holder=one))
        await journal.append(scribe.start("b", TOOL, holder=two))
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
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", AskAgent(agent="ada"), TOOL, holder=holder, begun=(2,)))
        await journal.append(scribe.end("a", "stopped", after=3))
        assert sorted(await journal.superseded(holder)) == [("a", 2), ("a", 3)]
        reply = Answered(to=2, answer=AgentReplied(text="late"))
        await journal.append(scribe.entry("a", reply, after=5, fence=(2, holder)))
        assert await journal.superseded(holder) == [("a", 3)]

    @story
    async def test_reports_what_a_dead_worker_left_superseded(self, journal: Journal, scribe: Scribe) -> None:
        old = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=old, begun=(2,)))
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
        await journal.append(scribe.start("a", TOOL, holder=old))
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, after=2))
        (command,) = await claim(journal, await journal.enrol(LATER), LATER, offers=("",))
        assert (command.number, command.superseded, command.doubtful) == (2, True, False)

    @story
    async def test_has_a_superseded_child_undone(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, CHILD))
        await journal.append(scribe.start("a.2", TOOL, parent=("a", 2)))
        assert await claimed(journal, holder, NOW) == [("a", 2), ("a", 3), ("a.2", 2)]
        await journal.park(task("a", 2), holder, NOW)  # and 3 is in hand
        three = Withdrawn(number=3, because="late")
        await journal.append(scribe.entry("a", Heard(text="x"), LATE, three, after=3, at=NOW + SECOND))
        assert await journal.superseded(holder) == [("a", 3)]
        await journal.park(task("a", 3), holder, LATER)  # it did not know yet
        command, other = await claim(journal, holder, LATER)
        assert (command.number, command.superseded, command.woken) == (2, True, 0)
        assert (other.number, other.superseded, other.woken) == (3, True, 0), "parked for ever, and never undone"
        await journal.park(command, holder, LATER)  # the child is cancelled, and has not ended
        assert await claim(journal, holder, LATER) == []
        await journal.append(scribe.end("a.2", "stopped", after=2, at=LATER))
        await journal.append(scribe.entry("a.2", answer(2), after=4, at=LATER, fence=(2, holder)))
        (command,) = await claim(journal, holder, LATER)
        assert (command.number, command.superseded, command.woken) == (2, True, 1)
        await journal.append(scribe.entry("a", finished(2, "a.2"), after=6, at=LATER, fence=(2, holder)))
        await journal.append(scribe.entry("a", finished(3, "a.3"), after=7, at=LATER, fence=(3, holder)))
        assert await claim(journal, holder, LATER) == []

    # Parked until another run ends

    @story
    async def test_wakes_a_parked_parent_when_its_child_ends(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, holder=holder))
        await journal.begin("a", 2, holder, 1, repeatable=True)
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.park(task("a", 2), holder, NOW)
        assert await claim(journal, holder, LATER) == []
        await journal.append(scribe.end("a.2", at=LATER))
        assert await journal.next_due() == LATER
        (command,) = await claim(journal, holder, LATER)
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
        holder = await journal.enrol(NOW)
        (command,) = [one for one in await claim(journal, holder, NOW) if one.run_id == "unstarted"]
        assert await journal.left_waiting(NOW) == {"unstarted"}, "whoever holds it may have died"
        await journal.append(scribe.start("unstarted.2", parent=("unstarted", 2)))
        await journal.park(command, holder, NOW)
        assert await journal.left_waiting(NOW) == set(), "its child is at work"
        await journal.append(scribe.end("unstarted.2", after=1, at=NOW))
        assert await journal.left_waiting(NOW) == {"unstarted"}, "its child has ended"
        assert await journal.left_waiting(NOW + 60 * SECOND) == {"unstarted", "sleeps"}

    @story
    async def test_does_not_park_a_parent_whose_child_ended_meanwhile(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, holder=holder))
        await journal.append(scribe.start("a.2", parent=("a", 2)))
        await journal.append(scribe.end("a.2", "failed"))
        assert await claim(journal, holder, LATER) == [], "it has it in hand"
        await journal.park(task("a", 2), holder, NOW + SECOND)
        assert await journal.next_due() == NOW + SECOND
        (command,) = await claim(journal, holder, LATER)
        assert (command.number, command.woken) == (2, 1)

    @story
    async def test_wakes_a_parent_once_for_each_end_of_its_child(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        named = StartRun(workflow="w", name="shared")
        for parent in ("a", "b"):
            await journal.append(scribe.start(parent, named, holder=holder))
            await journal.park(task(parent, 2), holder, NOW)
        await journal.append(scribe.start("shared", TOOL, parent=("a", 2)))
        await journal.append(scribe.entry("shared", answer(2), Ended(outcome="failed", because="x"), after=2))
        tasks = await claim(journal, holder, LATER)
        woken = [(command.run_id, command.woken, command.awaits) for command in tasks]
        assert woken == [("a", 1, "shared"), ("b", 1, "shared")]
        await journal.give_back("b", 2, holder)
        assert await claimed(journal, holder, LATER) == [("b", 2)]

    @story
    async def test_wakes_a_parent_only_when_all_its_grandchildren_ended(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", CHILD, holder=holder))
        await journal.append(scribe.start("a.2", CHILD, parent=("a", 2), holder=holder))
        await journal.append(scribe.start("a.2.2", parent=("a.2", 2)))
        await journal.park(task("a", 2), holder, NOW)
        await journal.park(task("a.2", 2), holder, NOW)
        await journal.append(scribe.end("a.2", "stopped", after=2))
        assert await claimed(journal, holder, LATER) == [("a.2", 2)], "to cancel the grandchild"
        await journal.park(task("a.2", 2, superseded=True), holder, LATER)
        await journal.append(scribe.end("a.2.2", "stopped", at=LATER))
        assert await claimed(journal, holder, LATER) == [("a.2", 2)]
        late = scribe.entry("a.2", finished(2, "a.2.2"), after=4, at=LATER, fence=(2, holder))
        await journal.append(late)
        assert await claimed(journal, holder, LATER) == [("a", 2)]

    @story
    async def test_parks_a_call_until_its_question_is_answered(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        for ends, run in (("before", "a"), ("between", "b"), ("after", "c")):
            question = f"{run}.2.0abc"
            await journal.append(scribe.start(run, TOOL, holder=holder))
            await journal.append(scribe.start(question, AskPerson(question="May I?"), parent=(run, 2)))
            end = scribe.end(question, after=2)
            if ends == "before":
                await journal.append(end)
            await journal.await_run(run, 2, holder, question)
            if ends == "before":
                continue  # it has looked, and goes on at once
            if ends == "between":
                await journal.append(end)
            await journal.park(task(run, 2), holder, NOW)
            assert await claimed(journal, holder) == ([(run, 2)] if ends == "between" else [])
            if ends == "after":
                await journal.append(end)
                (command,) = await claim(journal, holder)
                assert command.awaits == question
                assert (command.run_id, command.number, command.attempt, command.woken) == (run, 2, 1, 1)
        for run in "abc":
            await journal.append(scribe.entry(run, answer(2), after=2, fence=(2, holder)))

    @story
    async def test_forgets_a_question_with_the_call_that_asked_it(self, journal: Journal, scribe: Scribe) -> None:
        holder, agent = await journal.enrol(NOW), AskAgent(agent="ada")
        await journal.append(scribe.start("a", agent, holder=holder, begun=(2,)))
        await journal.append(scribe.start("a.2.0abc", AskPerson(question="May I?"), parent=("a", 2)))
        await journal.await_run("a", 2, holder, "a.2.0abc")
        reply = Answered(to=2, answer=AgentReplied(text="done without"))
        step = scribe.entry("a", reply, Asked(command=agent), after=2, fence=(2, holder), holder=holder, begun=(4,))
        await journal.append(step)
        await journal.append(scribe.end("a.2.0abc", after=2))
        await journal.give_back("a", 4, holder)
        (command,) = await claim(journal, holder, LATER)
        assert (command.number, command.woken) == (4, 0), "the answer to the old question woke the next call"

    @story
    async def test_does_not_wake_what_is_in_doubt(self, journal: Journal, scribe: Scribe) -> None:
        holder = await journal.enrol(NOW)
        await journal.append(scribe.start("a", TOOL, holder=holder, begun=(2,)))
        await journal.append(scribe.start("a.2.0abc", AskPerson(question="May I?"), parent=("a", 2)))
        await journal.await_run("a", 2, holder, "a.2.0abc")
        ask = Asked(command=AskPerson(question="Did it?", purpose="ripstop:doubt", about=(2,)))
        await journal.append(scribe.entry("a", Doubted(to=2, evidence="gone"), ask, after=2, fence=(2, holder)))
        await journal.append(scribe.end("a.2.0abc", after=2))
        assert await claim(journal, holder, LATER) == []
        assert await journal.next_due(ALL, OFFERS) is None

    # Messages

    @story
    async def test_gives_out_messages_of_a_channel_one_by_one(self, journal: Journal, scribe: Scribe) -> None:
        one, two, other = Say(text="1", channel="c"), Say(text="2", channel="c"), Say(text="3", channel="d")
        await journal.append(scribe.start("a", one, two, other, Say(text="in the transcript")))
        offers = ("", "channel:c", "channel:d")
        holder = await journal.enrol(NOW)
        assert await claim(journal, holder) == [], "it serves no channel"
        assert [command.number for command in await claim(journal, holder, offers=offers)] == [2, 4]
        assert await claim(journal, holder, LATER, offers=offers) == []
        await journal.append(scribe.entry("a", Answered(to=2, answer=Said()), after=5, fence=(2, holder)))
        assert [command.number for command in await claim(journal, holder, offers=offers)] == [3]
        await journal.append(scribe.entry("a", Heard(text="x"), Ended(outcome="completed", because="x"), after=6))
        await journal.give_back("a", 3, holder)
        tasks = await claim(journal, holder, offers=offers)
        assert [(command.number, command.superseded) for command in tasks] == [(3, False)], (
            "what was said is still delivered"
        )
        await journal.append(scribe.entry("a", Answered(to=3, answer=Said()), after=8, fence=(3, holder)))
