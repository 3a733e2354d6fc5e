"""Whether the user has made or agreed to a journal, and whether it is still where it was and as far as it was.

- A journal is the user's if the user's state folder knows its id (`security.known_journals`), at this path and not
  behind what was seen. One without runs is anybody's: it gets a new id, which is remembered before the journal has it.
- An id that somebody else has given is never known: a foreign journal gets a new one, too, when it is first worked on.
  So what its writer makes of it later is foreign again.
- Who has a copy of a journal has its id. So the last process that ends its work on it notes a hash over all its runs:
  with other runs it is foreign. After a crash more is expected, but not in another file that has taken its place. If
  its user agrees to such a journal, its runs are held: it may also be his own, put back by hand.
- Any other is *foreign*: it can be looked at, but nothing is written to it, so nothing of it is claimed, performed,
  delivered or answered, before its user agrees. A store that the user names (`--store`, `RIPSTOP_STORE`) is agreed to.
- A consent is for the journal as it was shown: one that has changed since is asked about again. Nobody can agree to one
  that is not as ripstop writes it, because what is shown of it is not all that is in it.
- A journal that has not come as far as it was seen, that says it is a copy, or whose original is still there, was
  restored: its runs are held before anything else happens (`app.restoring`), and it gets an id of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, json

from ripstop.engine.engine import Engine
from ripstop.engine.ports import PUT_BACK, Damage, Journal, JournalIdentity, JournalPlace, RunQuery
from ripstop.journals.sqlite.journal import SqliteJournal, damage_of
from ripstop.kernel.advice import VERIFY, Advice, NextStep
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import JournalError, JournalNotFound, RipstopError, UsageError
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.run import waits_for
from ripstop.kernel.style import arguments_for
from ripstop.security.consent import Consent
from ripstop.security.known_journals import JournalUse, KnownJournal, KnownJournals, agreement_id, new_id
from ripstop.text.plurals import count

from .trust import NotTrusted

log = logging.getLogger("ripstop.trust")

READS = frozenset(
    [
        "read",
        "since",
        "cursor",
        "follower",
        "blob",
        "latest",
        "identity",
        "place",
        "heads",
        "runs",
        "run",
        "counts",
        "forks",
        "desk",
        "desk_count",
        "document",
        "documents",
        "workers",
        "superseded",
        "held",
        "begun",
        "left_waiting",
        "next_due",
        "changed",
        "listen",
        "clock",
        "path",
        "tombstones",
        "tombstone",
        "backup",
        "verify",
        "check_run",
        "close",
    ]
)
"""What can be done with a journal without writing to it."""
USE_INTERVAL = 0.01
"""Seconds between two tries to begin, while another process notes that it was the last to work on the journal."""
MOST_LOOKED_AT = 1000
"""Runs of a foreign journal that are read for what is shown; the others are counted."""


UNREADABLE = (RipstopError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
"""What reading a run of a stranger's journal can raise."""


class OpenCall(Struct, frozen=True):
    """A command of a journal that would be performed, at once or in its turn."""

    run: str
    number: int
    """0: it waits for its turn in a reply of the run's agent."""
    what: str
    """The tool, or what else it is."""
    arguments: str = ""
    """As JSON, all of them; only of tools."""

    def __str__(self) -> str:
        where = f"{self.run}/{self.number}" if self.number else f"{self.run}, then"
        return f"{where}  {self.what}  {self.arguments}".rstrip()


class OpenWork(Struct, frozen=True):
    """What a journal would have done."""

    unfinished: int = 0
    """Runs that have not ended."""
    calls: tuple[OpenCall, ...] = ()
    """Tools first."""
    unread: tuple[str, ...] = ()
    """Of which runs that have not ended it is not known what is open, in sentences."""


async def open_work(engine: Engine) -> OpenWork:
    """What is open in a journal, as its user is asked about it. What cannot be read is said to be so."""
    counts = await engine.journal.counts()
    unfinished = sum(number for status, number in counts.items() if status not in OUTCOMES)
    statuses = tuple(status for status in counts if status not in OUTCOMES)
    page = await engine.runs(RunQuery(statuses=statuses, size=MOST_LOOKED_AT)) if statuses else None
    items = page.items if page else ()
    found: list[OpenCall] = []
    unread: list[str] = []
    for info in items:
        try:
            found += await _open_in(engine, info.run_id)
        except UNREADABLE as error:
            unread.append(f"{info.run_id} cannot be read ({type(error).__name__}).")
    found.sort(key=lambda one: not one.arguments)
    if unfinished > len(items):
        rest = count(unfinished - len(items), "run")
        unread.append(f"Not looked at: {rest}. What is open in them would be done, too.")
    return OpenWork(unfinished, tuple(found), tuple(unread))


async def _open_in(engine: Engine, run_id: str) -> list[OpenCall]:
    run = (await engine.look(run_id)).run
    style, found = engine.style(run), []
    for number, opened in run.open.items():
        command = opened.command
        if isinstance(command, CallTool):
            found.append(_call(run_id, number, command.tool, arguments_for(style, opened.state, command)))
        elif waits_for(command) != "person":
            found.append(OpenCall(run_id, number, type(command).__name__))
    return found + [_call(run_id, 0, one.tool, one.arguments or {}) for one in style.waiting_calls(run.state)]


def _call(run_id: str, number: int, tool: str, arguments: dict[str, Any]) -> OpenCall:
    return OpenCall(run_id, number, tool, json.encode(arguments).decode())


class ForeignJournal(NotTrusted):
    """Raised before anything is done with a journal that its user has neither made nor agreed to."""

    def __init__(
        self,
        agreed: KnownJournal,
        said: str,
        work: OpenWork,
        damage: Callable[[], list[Damage]],
        own: str = "",
    ) -> None:
        """Args:
        damage: Finds what is wrong with the journal, when its user is about to agree to it.
        own: What to do if it is the user's own, from elsewhere.
        """
        consent = Consent("journal", agreed.path, agreed.project)
        look = Advice("It can be looked at. See what is open in it and ", _AGREE, ", or name it with --store.", own)
        super().__init__(consent, said, look)
        self.work = work
        """What would be done."""
        self._agreed = agreed
        self._damage = damage

    @property
    def shown(self) -> tuple[str, ...]:
        work = self.work
        lines = [f"Runs in it that have not ended: {work.unfinished}."]
        if work.unfinished:
            lines.append(_GO_ON)
        return (*lines, *map(str, work.calls), *work.unread)

    def agree(self) -> None:
        """Remember that the user agrees. Raises `UsageError` if the journal is not as ripstop writes it."""
        _check_sound(self._agreed.path, self._damage())
        KnownJournals().keep(self._agreed)

    @property
    def is_remembered(self) -> bool:
        """Whether other processes know that the user has agreed."""
        return KnownJournals().is_kept(self._agreed.id)


def _check_sound(path: str, damage: list[Damage]) -> None:
    if damage:
        where = f"{damage[0].run_id or 'journal'}@{damage[0].number}: {damage[0].text}"
        said = f"{path} is not as ripstop writes a journal ({where}), so there may be more in it than is shown. "
        rest = ". Nothing was agreed to. Name it with --store if you want to work on it all the same."
        raise UsageError(Advice(said, VERIFY, rest))


_GO_ON = (
    "If you agree, they go on: what is listed here is done, and so is whatever their agents ask for after that, with "
    "the tools, the keys and the model that you work with."
)
_AGREE = NextStep("trust", "agree to it", "agree with `{}`")


class Judgement(Struct, frozen=True):
    identity: JournalIdentity
    gets_new_id: bool = False
    """It is empty, or somebody else's: the user's state folder must not know it by the id that it has."""
    foreign: str = ""
    """Why it is not the user's; empty: it is."""
    restored: str = ""
    """Why more may have happened than is on record; empty: nothing has."""
    moved_from: str = ""
    """Where it was before; empty: here."""
    agreement: str = ""
    """The id under which its user's consent to it, as it is now, would be kept; empty: none is needed."""


class JournalTrust:
    """What is known of one journal, and what is remembered of it."""

    def __init__(self, journal: SqliteJournal, path: Path, is_named: bool, codec: Codec) -> None:
        """`is_named`: the user has named this very store, and so agrees to it."""
        self._journal = journal
        self._here = str(path.resolve())
        self._is_named = is_named
        self._codec = codec
        self._known = KnownJournals()
        self._id = ""
        """Once it is settled that the journal is the user's."""
        self._writing = asyncio.Lock()
        self._next_note: asyncio.Future[None] | None = None
        """The note that has not begun yet, which calls share until it begins."""
        self._use: JournalUse | None = None
        """Between `settle` and `end`."""

    async def judge(self) -> Judgement:
        """Say what the journal is. Nothing is changed. Raises `UsageError` if the state folder cannot be trusted."""
        journal, identity = self._journal, await self._journal.identity()
        # what is known first: a process at work can note a place that is further than one read before
        known = self._known.get(identity.id)
        place = await journal.place()
        if known is None and await journal.is_empty():
            return Judgement(identity, gets_new_id=True)
        foreign, moved_from = "", ""
        restored = _COPY if identity.copied else ""
        exchanged = known is not None and await self._is_exchanged(known, place)
        if known is None:
            foreign = _UNKNOWN if identity.id else _NAMELESS
        elif known.path != self._here and not _same_file(known.path, self._here):
            original = await self._is_there(known.path, identity.id)
            foreign = (_COPIED if original else _EXCHANGED if exchanged else _MOVED).format(known.path)
            moved_from = "" if original or exchanged else known.path
            restored = restored or (_TWIN.format(known.path) if original else "")
        elif exchanged and known:
            foreign = _EXCHANGED.format(known.path)
        if exchanged:
            restored = restored or _REPLACED
        if known and not restored and await self._is_behind(known, place):
            restored = _BEHIND
        agreement = self._agreement(identity, await journal.heads()) if foreign or restored else ""
        if self._is_named or self._known.consent(agreement):
            foreign = ""
        if foreign and (await journal.identity() != identity or self._known.get(identity.id) != known):
            return await self.judge()  # another process of the user works on it meanwhile
        return Judgement(identity, known is None or exchanged, foreign, restored, moved_from, agreement)

    def refusal(self, found: Judgement, work: OpenWork = OpenWork()) -> ForeignJournal:
        """The error with which acting on a foreign journal is refused, and with which its user can agree."""
        agreed = KnownJournal(found.agreement, self._here)
        said = found.foreign or f"was restored. {found.restored}"
        damage = partial(damage_of, Path(self._here), self._codec)
        said = f"{self._here} {said} Nothing in it is performed or answered."
        return ForeignJournal(agreed, said, work, damage, "" if found.restored or found.moved_from else _OWN)

    async def settle(self, found: Judgement, hold: Callable[[JournalIdentity, str], Awaitable[None]], now: int) -> None:
        """Know the journal from now on. What may have happened since it was copied is held first.

        Raises `UsageError` if its user has agreed to it, and it is not as ripstop writes it.
        """
        identity = found.identity
        if found.gets_new_id and found.agreement and not self._is_named:  # it may have been exchanged since
            _check_sound(self._here, await self._journal.verify())
        if found.restored:
            if not identity.copied:  # from now on, whatever happens to this process
                identity = await self._journal.identify(JournalIdentity(identity.id, now), identity)
            if identity.copied:
                await hold(identity, found.restored)
        if found.gets_new_id or identity.copied:
            self._id = await self._renamed(identity, is_put_back=bool(found.restored))
            if (was := self._known.get(identity.id)) and was.path == self._here:
                self._forget(was.id)  # what was here before is not here any more
            await self._forget_former()
        else:
            self._id = identity.id
        use = self._known.use(self._id)
        while not use.begin():  # noqa: ASYNC110  (another process sets no event)
            await asyncio.sleep(USE_INTERVAL)
        self._use = use
        self._keep(self._id, await self._journal.place())  # from now on there can be more in it
        if not self._is_named and not self._known.is_kept(self._id):
            log.warning(
                "It cannot be remembered that %s is yours: your state folder cannot be written to. The next command "
                "takes it for somebody else's. Change the permissions there, or name the journal with --store.",
                self._here,
            )
        if found.agreement:
            self._forget(found.agreement)

    async def note(self) -> None:
        """Remember how far the journal has come at least now."""
        if self._next_note is None:
            self._next_note = asyncio.ensure_future(self._note())
        await asyncio.shield(self._next_note)

    async def _note(self) -> None:
        async with self._writing:
            self._next_note = None
            if self._use and self._known.get(self._id):
                self._keep(self._id, await self._journal.place())

    async def end(self) -> None:
        """Note what is in the journal, if no other process works on it. Nothing more may be written to it."""
        async with self._writing:
            use, self._use = self._use, None
            try:
                if use and self._known.get(self._id):
                    heads = await self._journal.heads() if use.is_last() else ""
                    self._keep(self._id, await self._journal.place(), heads)
            finally:
                if use:
                    use.end()

    async def _renamed(self, identity: JournalIdentity, is_put_back: bool) -> str:
        """Give the journal an id of its own, which is remembered before the journal has it."""
        new = JournalIdentity(f"{PUT_BACK if is_put_back else ''}{new_id()}")
        self._keep(new.id, await self._journal.place())
        now = await self._journal.identify(new, identity)
        if now != new:  # another process was quicker
            self._forget(new.id)
        return now.id

    async def _forget_former(self) -> None:
        """Forget other ids that this very file has had, and consents to what was here that were never used."""
        place = await self._journal.place()
        for one in self._known.all():
            if one.path == self._here and one.id != self._id:
                had = one.file == self._journal.file and not await self._is_behind(one, place)
                if one.is_consent or had:
                    self._forget(one.id)

    def _forget(self, id: str) -> None:
        with suppress(UsageError):  # what cannot be removed can do no more than it could
            self._known.forget(id)

    def _keep(self, id: str, place: JournalPlace, heads: str = "") -> None:
        """Note a place, unless another process has noted one of the same file that is further."""
        file = self._journal.file
        seen = KnownJournal(id, self._here, place.position, place.digest, place.workers, file, heads)
        if self._known.get(id) != seen:
            self._known.keep(seen, partial(_is_newer, seen))

    def _agreement(self, identity: JournalIdentity, heads: str) -> str:
        return agreement_id(identity.id, identity.copied, self._here, heads)

    async def _is_exchanged(self, known: KnownJournal, place: JournalPlace) -> bool:
        """Whether it has other runs than the journal that was seen, and is not just an older copy of it. After a crash
        that cannot be told in the file that was seen; and in another one, not even that it has the same."""
        if _has_less(place, known):
            return False
        if known.heads:
            return await self._journal.heads() != known.heads
        return known.file not in (None, self._journal.file)

    async def _is_behind(self, known: KnownJournal, place: JournalPlace) -> bool:
        if _has_less(place, known):
            return True
        return bool(known.position) and (await self._journal.place(known.position)).digest != known.digest

    async def _is_there(self, path: str, id: str) -> bool:
        """Whether the journal of this id is still at another path."""
        try:
            other = SqliteJournal(path, self._codec, create=False)
        except (JournalError, JournalNotFound):
            return False
        try:
            return (await other.identity()).id == id
        except JournalError:
            return False
        finally:
            await other.close()


_UNKNOWN = "is a journal that you have neither made nor agreed to: it may have come with the folder."
_NAMELESS = "is a journal of an earlier version, which does not say whose it is: it may have come with the folder."
_OWN = Advice(
    " If it is a copy of your own, from another machine or from before, move it away and ",
    NextStep("restore", "restore it", "put it back with `{}`"),
    ": then it is asked what may have happened since.",
)
_MOVED = "is your journal that was at {} before."
_EXCHANGED = "has the id of your journal {}, but is another file, or was changed, and has other records than were seen."
_COPIED = "is a copy of your journal at {}, which is still there."
_COPY = "It is a copy, from a backup."
_TWIN = "It is a copy of {}, which is still there."
_REPLACED = "It is not as it was left: it can have been put back from a copy."
_BEHIND = "It has not come as far as it was seen before: it was put back from a copy."


def _has_less(place: JournalPlace, known: KnownJournal) -> bool:
    return place.position < known.position or place.workers < known.workers


def _is_newer(seen: KnownJournal, known: KnownJournal) -> bool:
    """Whether no other process has noted meanwhile that the same file is further."""
    is_same = (known.path, known.file) == (seen.path, seen.file)
    return not is_same or (seen.position, seen.workers) >= (known.position, known.workers)


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


class LookedAt:
    """A journal that can be looked at: everything that would write to it raises."""

    def __init__(self, journal: Journal, refusal: ForeignJournal) -> None:
        self._journal = journal
        self._refusal = refusal

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise self._refusal
        return getattr(self._journal, name)


def looked_at(journal: Journal, refusal: ForeignJournal) -> Journal:
    return cast(Journal, LookedAt(journal, refusal))
