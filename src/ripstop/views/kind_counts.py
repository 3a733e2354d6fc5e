"""How many questions of each kind wait for a person."""

import asyncio
from collections import Counter

from ripstop.kernel.questions import kind_of
from ripstop.runtime.engine import Engine
from ripstop.runtime.ports import MAX_PAGE, DeskQuery

KEPT_SECONDS = 2.0
"""For which a count is kept, unless the number of questions changes: every question has to be read for it."""


class KindCounts:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: tuple[float, int, dict[str, int]] | None = None

    async def now(self) -> dict[str, int] | None:
        """The number of open questions of each kind; `None` if there are more than one page can have."""
        journal, now = self._engine.journal, asyncio.get_running_loop().time()
        total = await journal.desk_count()
        if total > MAX_PAGE:
            return None
        if self._counted is None or self._counted[1] != total or now - self._counted[0] > KEPT_SECONDS:
            page = await journal.desk(DeskQuery(size=MAX_PAGE))
            self._counted = now, total, dict(Counter(kind_of(question.command) for question in page.items))
        return self._counted[2]
