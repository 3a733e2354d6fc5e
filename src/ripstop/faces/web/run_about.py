"""What the pages of a run say about it: how it is, what it spent, what is on record, and its family.

All of it comes from its outline, whose run is folded already, and from the lists of the journal.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.run import Run
from ripstop.kernel.style import Action, Picture, Style
from ripstop.runtime.outline import Outline
from ripstop.runtime.ports import DeskQuery, Question, RunInfo, RunQuery
from ripstop.runtime.telling import shown_seconds
from ripstop.views import shown_status

if TYPE_CHECKING:
    from .site import Site

MICROSECONDS = 1_000_000
MOST_KIN = 20
"""Children, forks or questions of a run that its page lists."""
SHORT_HASH = 12


class RunAbout(Struct, frozen=True):
    """A run as its pages show it."""

    info: RunInfo
    """With the status as people see it."""
    outline: Outline
    run: Run[Any]
    style: Style[Any]
    picture: Picture
    workflow: str
    """The name that its definition has; empty if it has none."""
    section: str
    """The list of its own that it is in: `conversations`, `documents`, or empty."""
    seconds: float
    """From its beginning to its last record or, while it has not ended, to now."""

    @property
    def elapsed(self) -> str:
        return shown_seconds(self.seconds)

    @property
    def at_work(self) -> str:
        """How long models, tools and children were at work; of a fork, with what it shares."""
        return shown_seconds(self.run.work.counted / MICROSECONDS)

    @property
    def can_be_cancelled(self) -> bool:
        return self.run.ended is None

    @property
    def can_be_forked(self) -> bool:
        return not self.style.unforkable

    @property
    def actions(self) -> tuple[Action, ...]:
        return self.style.actions(self.run)


class Kin(Struct, frozen=True):
    children: list[RunInfo]
    has_more_children: bool
    forks: list[RunInfo]
    questions: list[Question]
    """What the run and its descendants ask people now."""


async def about_run(site: "Site", run_id: str) -> RunAbout:
    """Raises `RunNotFound`, or the `JournalError` that says why the run cannot be read."""
    engine = site.engine
    outline = await site.outlines.of(run_id)
    info, run = await engine.journal.run(run_id), outline.run
    if info is None or run is None:
        raise RunNotFound(run_id)
    style = outline.style
    left = run_id in await engine.left_waiting()
    now = info.updated if run.ended else engine.clock()
    return RunAbout(
        info=replace(info, status=shown_status(info.status, await engine.has_workers(), left)),
        outline=outline,
        run=run,
        style=style,
        picture=style.picture(run),
        workflow=str(getattr(engine.definition(run), "name", "")),
        section=engine.kit(run).section,
        seconds=max(0, now - info.created) / MICROSECONDS,
    )


async def kin_of(site: "Site", info: RunInfo) -> Kin:
    journal, run_id = site.engine.journal, info.run_id
    children = await journal.runs(RunQuery(parent=run_id, size=MOST_KIN))
    asked = await journal.desk(DeskQuery(root=info.root, size=1000))
    mine = [one for one in asked.items if one.run_id == run_id or one.run_id.startswith(f"{run_id}.")]
    return Kin(children.items, bool(children.next), (await journal.forks(run_id))[:MOST_KIN], mine[:MOST_KIN])


class Spending(Struct, frozen=True):
    """What was spent of something, and the limit; 0 for none."""

    name: str
    value: float
    limit: float


def spending_of(about: RunAbout) -> list[Spending]:
    run, usage = about.run, about.run.spent.usage
    limits = run.limits
    spent = [
        Spending("turns", about.style.turns(run), limits.turns or 0),
        Spending("calls", run.spent.calls, limits.calls or 0),
        Spending("tokens", usage.counted_tokens, limits.tokens or 0),
        Spending("money", usage.counted_money, limits.money or 0),
    ]
    if limits.seconds:
        spent.append(Spending("seconds", run.work.counted / MICROSECONDS, limits.seconds))
    return spent


def shown_address(base_url: str) -> str:
    """A base URL without the parts that can hold a secret; empty if it cannot be read."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{host}{port}{parts.path}" if host else ""
