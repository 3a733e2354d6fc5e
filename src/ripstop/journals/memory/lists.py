"""The lists of a journal in memory: runs, questions, documents, steps."""

from ripstop.journals.pages import is_wanted_question, is_wanted_run, number_cursor, page_size, place_cursor
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.events import Asked
from ripstop.runtime.ports import DeskQuery, Moved, Page, Question, RunInfo, RunQuery, Tombstone

from .store import SUPERSEDED, Item, Store


class MemoryLists(Store):
    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        size, before = page_size(query.size), number_cursor(query.cursor)
        infos = ((stored.key, self._info(run_id)) for run_id, stored in reversed(self._runs.items()))
        found = [(key, info) for key, info in infos if is_wanted_run(query, info) and (not before or key < before)]
        page = found[:size]
        return Page([info for _, info in page], str(page[-1][0]) if len(found) > size else "")

    async def run(self, run_id: str) -> RunInfo | None:
        return self._info(run_id) if run_id in self._runs else None

    async def counts(self, query: RunQuery = RunQuery()) -> dict[str, int]:
        found: dict[str, int] = {}
        for info in map(self._info, self._runs):
            if is_wanted_run(query, info):
                found[info.status] = found.get(info.status, 0) + 1
        return found

    async def forks(self, run_id: str) -> list[RunInfo]:
        forks = (name for name, stored in self._runs.items() if stored.fork and stored.fork[0] == run_id)
        return [self._info(name) for name in forks]

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]:
        size, after = page_size(query.size), place_cursor(query.cursor)
        found: list[tuple[tuple[int, int, int], Question]] = []
        for run_id, stored in self._runs.items():
            for number, item in stored.outbox.items():
                place = (item.asked, number, stored.key)
                if _is_question(item) and query.root in ("", stored.root) and place > after:
                    question = self._question(run_id, number)
                    if is_wanted_question(query, question):
                        found.append((place, question))
        found.sort(key=lambda entry: entry[0])
        page = found[:size]
        more = ".".join(map(str, page[-1][0])) if len(found) > size else ""
        return Page([question for _, question in page], more)

    def _question(self, run_id: str, number: int) -> Question:
        record = self._read(run_id)[number - 1]
        assert isinstance(record.event, Asked) and isinstance(record.event.command, AskPerson)
        style = self._runs[run_id].style
        return Question(run_id=run_id, number=number, at=record.at, command=record.event.command, style=style)

    async def desk_count(self) -> int:
        return sum(_is_question(item) for stored in self._runs.values() for item in stored.outbox.values())

    async def document(self, collection: str, key: str) -> bytes | None:
        found = self._documents.get((collection, key))
        return found[0] if found else None

    async def documents(self, collection: str, cursor: str = "", size: int = 50) -> Page[tuple[str, bytes]]:
        size = page_size(size)
        keys = sorted(key for name, key in self._documents if name == collection and key > cursor)
        page = [(key, self._documents[collection, key][0]) for key in keys[:size]]
        return Page(page, keys[size - 1] if len(keys) > size else "")

    async def since(self, cursor: str = "", most: int = 100) -> list[Moved]:
        after, most = number_cursor(cursor), page_size(most)
        steps = sorted(
            (step.position, run_id, step)
            for run_id, stored in self._runs.items()
            for step in stored.steps
            if step.position > after
        )
        return [
            Moved(cursor=str(position), run_id=run_id, records=self._records(step))
            for position, run_id, step in steps[:most]
        ]

    async def cursor(self) -> str:
        return str(self._steps)

    async def follower(self, name: str) -> str:
        return self._followers.get(name, "")

    async def keep_follower(self, name: str, cursor: str) -> None:
        self._followers[name] = cursor

    async def tombstones(self) -> list[Tombstone]:
        return sorted(self._tombstones.values(), key=lambda tomb: (tomb.at, tomb.run_id))

    async def tombstone(self, run_id: str) -> Tombstone | None:
        return self._tombstones.get(run_id)


def _is_question(item: Item) -> bool:
    return item.waits == "person" and item.state != SUPERSEDED
