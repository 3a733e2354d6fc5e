"""A style that has drafts reviewed: feedback leads to the next draft, an edit to one more look, a pass to the end."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ripstop.app.application import now
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.engine.engine import Engine
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import AskPerson, Field, PersonAnswered
from ripstop.kernel.events import Event, Record, Started
from ripstop.kernel.registry import Registry
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Settled, Style, StyleKit, StyleView
from tests.harness.own_journal import own

REVIEW = AskPerson(
    question="Review the draft.",
    purpose="review.prd",
    title="artifacts/prd_draft.md",
    choices={"pass": "It is good", "edit": "Edit it", "feedback": "Say what to change"},
    other="feedback",
    empty="pass",
    edit="edit",
    fields={
        "type": Field(type="one_of", allowed=("build_error", "quality_issue", "missing_requirement", "suggestion")),
        "severity": Field(type="one_of", allowed=("critical", "major", "minor")),
    },
)


class Drafts(Struct, frozen=True):
    texts: tuple[str, ...]
    to: str = ""


class Drafted(Event, tag="drafts.drafted", frozen=True):
    text: str


class DraftState(Struct, frozen=True):
    definition: Drafts
    next: int = 0


class DraftView(StyleView[DraftState]):
    def document(self, record: Record) -> str:
        return record.event.text if isinstance(record.event, Drafted) else super().document(record)


class DraftStyle(Style[DraftState]):
    name = "drafts"
    view = DraftView()

    def begin(self, definition: Drafts, started: Started) -> DraftState:
        return DraftState(definition)

    def evolve(self, state: DraftState, number: int, event: Event) -> DraftState:
        return replace(state, next=state.next + 1) if isinstance(event, Drafted) else state

    def decide(self, step: Step[DraftState], news: News) -> None:
        to, texts = step.state.definition.to, step.state.definition.texts
        match news:
            case Settled(answer=PersonAnswered(choice="pass")):
                step.end("completed", "it was passed")
            case Settled(answer=PersonAnswered(choice="edit")):
                step.ask_unguarded(replace(REVIEW, document=step.run.length, to=to))
            case Started() | Settled():
                step.record(Drafted(text=texts[min(step.state.next, len(texts) - 1)]))
                step.ask_unguarded(replace(REVIEW, document=step.run.length, to=to))


KIT = StyleKit(style=DraftStyle(), definition=Drafts, events=(Drafted,))
PLUGIN = Plugin(name="drafts", kits=("tests.faces.cli.review_style:KIT",), summary="Has drafts reviewed.")


def install(folder: Path) -> dict[str, str]:
    """The environment in which the style is installed, from a folder for its package."""
    about = folder / "packages" / "drafts-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: drafts\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[ripstop.styles]\ndrafts = tests.faces.cli.review_style:PLUGIN\n")
    root = Path(__file__).parents[3]
    paths = filter(None, (str(about.parent), os.environ.get("PYTHONPATH", ""), str(root)))
    return {"PYTHONPATH": os.pathsep.join(paths)}


def start(folder: Path, run: str, drafts: Drafts) -> None:
    """Start a run in the journal of a folder, with nobody at work on it."""

    async def write() -> None:
        import msgspec

        store = folder / ".ripstop" / "journal.db"
        store.parent.mkdir(exist_ok=True, mode=0o700)
        registry = Registry((*Plugins(BUILT_IN).kits, KIT))
        journal = SqliteJournal(store, registry.codec)
        await Engine(journal, registry, now).start(run, "drafts", msgspec.json.encode(drafts))
        await journal.close()
        await own(store)

    asyncio.run(write())
