"""What every journal must do with its lists: runs and questions, filtered, and page by page."""

from ripstop.engine.ports import DeskQuery, Journal, RunQuery
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, PersonAnswered, Usage
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Ended, Forked, Heard, Withdrawn

from .journal_entries import LATER, NOW, SECOND, TOOL, JournalStories, Scribe, claim, refuses, story


async def ids(journal: Journal, query: RunQuery = RunQuery()) -> list[str]:
    return [info.run_id for info in (await journal.runs(query)).items]


async def desk(journal: Journal, query: DeskQuery = DeskQuery()) -> list[tuple[str, int]]:
    return [(question.run_id, question.number) for question in (await journal.desk(query)).items]


class ListConformance(JournalStories):
    @story
    async def test_lists_runs_with_where_they_are(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", AskAgent(agent="ada")))
        await journal.append(scribe.start("a.2", parent=("a", 2), at=NOW + 1, gist="cooking"))
        reply = Answered(to=2, answer=AgentReplied(text="x", usage=Usage(7, 5, 0.25)))
        await journal.append(scribe.entry("a", reply, after=2, at=NOW + 2))
        await journal.append(scribe.end("a", after=3, at=LATER))
        await journal.append(scribe.entry("f", Forked(run="a", at=3), after=3, fork=("a", 3), at=LATER))
        fork, child, top = (await journal.runs()).items
        assert (top.run_id, top.style, top.status, top.length) == ("a", "errands", "completed", 5)
        assert (top.created, top.updated, top.parent, top.root) == (NOW, LATER, None, "a")
        assert (top.tokens, top.money, top.fork_of, top.fork_at) == (12, 0.25, None, 0)
        assert (child.run_id, child.status, child.parent, child.root) == ("a.2", "stuck", "a", "a")
        assert child.gist == "cooking"
        assert (fork.run_id, fork.style, fork.fork_of, fork.fork_at, fork.root) == ("f", "errands", "a", 3, "f")
        assert (fork.tokens, fork.length) == (12, 4)
        assert await journal.run("a") == top
        assert await journal.run("nobody") is None
        assert await journal.forks("a") == [fork]
        assert await journal.forks("f") == []

    @story
    async def test_filters_runs_in_every_way(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", TOOL, gist="tea"))
        await journal.append(scribe.start("a.2", style="plans", parent=("a", 2), at=NOW + SECOND))
        await journal.append(scribe.start("a.2.2", AskPerson(question="?"), parent=("a.2", 2), at=NOW + 2 * SECOND))
        await journal.append(scribe.start("plan:x", TOOL, parent=("a", 9)))
        await journal.append(scribe.start("done"))
        await journal.append(scribe.end("done"))
        await journal.append(scribe.start("aside", TOOL, gist="green tea"))
        await journal.set_aside("aside", "its style is not known")
        for query, wanted in (
            (RunQuery(), ["aside", "done", "plan:x", "a.2.2", "a.2", "a"]),
            (RunQuery(statuses=("working",)), ["plan:x", "a"]),
            (RunQuery(statuses=("completed", "waiting")), ["done", "a.2.2"]),
            (RunQuery(statuses=("set_aside",)), ["aside"]),
            (RunQuery(statuses=("nothing",)), []),
            (RunQuery(styles=("plans",)), ["a.2"]),
            (RunQuery(styles=("plans", "other")), ["a.2"]),
            (RunQuery(text="tea"), ["aside", "a"]),
            (RunQuery(text=".2"), ["a.2.2", "a.2"]),
            (RunQuery(text="%"), []),
            (RunQuery(parent="a"), ["plan:x", "a.2"]),
            (RunQuery(parent="a", styles=("plans",)), ["a.2"]),
            (RunQuery(parent="a", text="plan"), ["plan:x"]),
            (RunQuery(parent="a", root="a"), ["a.2"]),
            (RunQuery(parent=""), ["aside", "done", "a"]),
            (RunQuery(parent="", text="tea", statuses=("working",)), ["a"]),
            (RunQuery(root="a"), ["a.2.2", "a.2", "a"]),
            (RunQuery(root="a", parent=""), ["a"]),
            (RunQuery(root="a", text="2.2"), ["a.2.2"]),
            (RunQuery(root="a", statuses=("waiting",)), ["a.2.2"]),
            (RunQuery(root="plan:x"), ["plan:x"]),
            (RunQuery(root="a.2"), []),
            (RunQuery(since=NOW + SECOND), ["a.2.2", "a.2"]),
            (RunQuery(since=NOW + SECOND, root="a", styles=("errands",)), ["a.2.2"]),
        ):
            assert await ids(journal, query) == wanted, query
            counts = await journal.counts(query)
            assert sum(counts.values()) == len(wanted), query
            assert counts.keys() == {info.status for info in (await journal.runs(query)).items}
        assert await journal.counts() == {"working": 2, "stuck": 1, "waiting": 1, "completed": 1, "set_aside": 1}

    @story
    async def test_gives_runs_page_by_page_while_new_ones_come(self, journal: Journal, scribe: Scribe) -> None:
        for number in range(7):
            await journal.append(scribe.start(f"r{number}", gist="even" if number % 2 == 0 else "odd"))
        for query, wanted in ((RunQuery(size=3), "6543210"), (RunQuery(size=3, text="even"), "6420")):
            found, cursor = [], ""
            while True:
                page = await journal.runs(RunQuery(size=query.size, text=query.text, cursor=cursor))
                assert len(page.items) <= 3
                found += [info.run_id for info in page.items]
                await journal.append(scribe.start(f"new{len(found)}{query.text}", gist=f"{query.text} new"))
                cursor = page.next
                if not cursor:
                    break
            assert found == [f"r{number}" for number in wanted]

    @story
    async def test_pages_through_one_family(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        for number in range(5):
            await journal.append(scribe.start(f"a.{number}", parent=("a", number)))
            await journal.append(scribe.start(f"b{number}"))
        first = await journal.runs(RunQuery(parent="a", size=2))
        second = await journal.runs(RunQuery(parent="a", size=2, cursor=first.next))
        third = await journal.runs(RunQuery(parent="a", size=2, cursor=second.next))
        pages = [[info.run_id for info in page.items] for page in (first, second, third)]
        assert pages == [["a.4", "a.3"], ["a.2", "a.1"], ["a.0"]]
        assert third.next == ""
        exact = await journal.runs(RunQuery(root="a", size=6))
        assert len(exact.items) == 6 and exact.next == ""

    @story
    async def test_refuses_bad_cursors_and_sizes_of_lists(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", AskPerson(question="?")))
        for cursor in ("x", "-1", "1e3", "9" * 40, "١", "1.2"):
            await refuses(UsageError, journal.runs(RunQuery(cursor=cursor)))
        for cursor in ("x", "1", "1.2", "1.2.", "1.2.x", "1.2.3.4", ".2.3", "-1.2.3", f"1.2.{'9' * 40}"):
            await refuses(UsageError, journal.desk(DeskQuery(cursor=cursor)))
        for size in (0, -1, 1001):
            await refuses(UsageError, journal.runs(RunQuery(size=size)))
            await refuses(UsageError, journal.desk(DeskQuery(size=size)))

    @story
    async def test_finds_nothing_by_half_a_character(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a"))
        for find in (lambda: journal.runs(RunQuery(text="\udcff")), lambda: journal.read("\udcff")):
            try:
                found = await find()
            except UsageError as error:
                assert "not valid text" in str(error)
            else:
                assert not getattr(found, "items", found)

    # People

    @story
    async def test_shows_open_questions_and_gives_them_to_no_worker(self, journal: Journal, scribe: Scribe) -> None:
        ask = AskPerson(question="Shall we?", choices={"yes": "", "no": "Nope"})
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("a", ask, worker_id=worker_id))
        await journal.append(scribe.start("b", AskPerson(question="And?"), at=NOW - 5))
        first, second = (await journal.desk()).items
        assert (first.run_id, first.number, first.at, first.command, first.style) == ("a", 2, NOW, ask, "errands")
        assert (second.run_id, second.number, second.at) == ("b", 2, NOW - 5)
        assert await journal.desk_count() == 2
        assert await claim(journal, worker_id, LATER) == []
        await journal.append(scribe.entry("a", Answered(to=2, answer=PersonAnswered(choice="yes")), after=2))
        await journal.append(scribe.entry("b", Heard(text="x"), Ended(outcome="stopped", because="y"), after=2))
        assert (await journal.desk()).items == []
        assert await journal.desk_count() == 0

    @story
    async def test_filters_questions_by_person_purpose_and_family(self, journal: Journal, scribe: Scribe) -> None:
        await journal.append(scribe.start("a", AskPerson(question="1"), AskPerson(question="2", to="ann")))
        await journal.append(scribe.start("a.9", AskPerson(question="3", to="bob", purpose="review"), parent=("a", 9)))
        await journal.append(scribe.start("b", AskPerson(question="4", to="ann", purpose="review")))
        await journal.append(scribe.start("ab", AskPerson(question="5", purpose="release")))
        for query, wanted in (
            (DeskQuery(), [("a", 2), ("a", 3), ("a.9", 2), ("b", 2), ("ab", 2)]),
            (DeskQuery(to="ann"), [("a", 2), ("a", 3), ("b", 2), ("ab", 2)]),
            (DeskQuery(to="bob"), [("a", 2), ("a.9", 2), ("ab", 2)]),
            (DeskQuery(to=""), [("a", 2), ("ab", 2)]),
            (DeskQuery(purpose="review"), [("a.9", 2), ("b", 2)]),
            (DeskQuery(purpose="review", to="ann"), [("b", 2)]),
            (DeskQuery(root="a"), [("a", 2), ("a", 3), ("a.9", 2)]),
            (DeskQuery(root="a", to="ann"), [("a", 2), ("a", 3)]),
            (DeskQuery(root="a.9"), []),
            (DeskQuery(kind="question", to="bob"), [("a", 2), ("a.9", 2), ("ab", 2)]),
            (DeskQuery(kind="review"), []),
        ):
            assert await desk(journal, query) == wanted, query

    @story
    async def test_gives_questions_page_by_page_with_those_of_forks(self, journal: Journal, scribe: Scribe) -> None:
        asks = (AskPerson(question="1"), AskPerson(question="2", purpose="p"), AskPerson(question="3"))
        await journal.append(scribe.start("a", *asks))
        for fork in ("f", "g"):  # they share the records, and so the places of their questions
            await journal.append(scribe.entry(fork, Forked(run="a", at=4), after=4, fork=("a", 4)))
        await journal.append(scribe.start("b", *asks))
        wanted = [*((run, number) for number in (2, 3, 4) for run in "afg"), *(("b", number) for number in (2, 3, 4))]
        for size in (1, 2, 3, 5, 11, 12):
            for purpose in ("", "p"):
                found, cursor = [], ""
                while True:
                    page = await journal.desk(DeskQuery(size=size, cursor=cursor, purpose=purpose))
                    assert len(page.items) <= size
                    found += [(question.run_id, question.number) for question in page.items]
                    cursor = page.next
                    if not cursor:
                        break
                assert found == [place for place in wanted if not purpose or place[1] == 3]

    @story
    async def test_takes_a_withdrawn_question_off_the_desk_though_held(self, journal: Journal, scribe: Scribe) -> None:
        worker_id = await journal.enrol(NOW)
        await journal.append(scribe.start("top"))
        await journal.append(scribe.start("top.9", AskPerson(question="?"), parent=("top", 9), surface=("top", 9)))
        assert [task.number for task in await claim(journal, worker_id)] == [2], "a worker shows it to the ancestor"
        assert await desk(journal) == [("top.9", 2)]
        withdrawn = Withdrawn(number=2, because="late")
        await journal.append(scribe.entry("top.9", Heard(text="x"), withdrawn, Asked(command=TOOL), after=2))
        assert await desk(journal) == []
        assert await journal.desk_count() == 0
