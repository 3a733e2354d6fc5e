"""Lists of runs and of questions, as the journal keeps them: nothing is folded for them."""

from msgspec.structs import replace

from .ports import Clock, DeskQuery, Journal, Page, Question, RunInfo, RunQuery


class RunLists:
    journal: Journal
    clock: Clock

    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        return await self.journal.runs(query)

    async def family_line(self, run_id: str) -> list[RunInfo]:
        """A run, the one that started it, and so on up to the top."""
        found: list[RunInfo] = []
        at: str | None = run_id
        while at and all(info.run_id != at for info in found):
            info = await self.journal.run(at)
            if info is None:
                break
            found.append(info)
            at = info.parent
        return found

    async def descendants(self, run_id: str) -> list[RunInfo]:
        """The children of a run that belong to it, and theirs; the oldest first."""
        found: list[RunInfo] = []
        info = await self.journal.run(run_id)
        query = RunQuery(root=info.root if info else run_id, size=1000)
        while True:
            page = await self.journal.runs(query)
            found += [one for one in page.items if one.run_id.startswith(f"{run_id}.")]
            if not page.next:
                return found[::-1]
            query = replace(query, cursor=page.next)

    async def has_workers(self) -> bool:
        """Whether a worker of any process is at work on the journal. Without one, a run that is at work is not."""
        return any(alive for _, alive in await self.journal.workers(self.clock()))

    async def left_waiting(self) -> set[str]:
        """The runs that wait, but only for a worker to go on; none while one is alive."""
        return set() if await self.has_workers() else await self.journal.left_waiting(self.clock())

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]:
        """What waits for a person, over all runs."""
        return await self.journal.desk(query)
