"""Saving a document's file again and again, alone and beside others. Real journal, real files, no pauses.

Nothing here waits for a second to pass: what happens in one second must end as what happens in several.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import NOTHING
from ripstop.kernel.effects import ToolReturned
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import HandoffDocument, read, write
from ripstop.styles.handoff.events import EditAccepted, EditFound, EditRefused
from ripstop.styles.handoff.service import HandoffService
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing import given
from ripstop.testing.scenarios import Given

TASK = "What is 2 + 2?"


class Desk:
    """A document in a folder, and people with editors before it."""

    def __init__(self, documents: HandoffService, file: Path, told: list[str]) -> None:
        self._documents = documents
        self._file = file
        self.told = told

    def opened(self) -> str:
        return self._file.read_text(encoding="utf-8")

    async def save(self, text: str) -> str:
        """What is said about a text that an editor has saved; nothing if it is merged without a remark."""
        self.told.clear()
        self._file.write_text(text, encoding="utf-8")
        await self._documents.reconcile()
        return "; ".join(self.told)

    @property
    def document(self) -> HandoffDocument:
        return read(self.opened())

    def refused(self) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self._file.parent.glob("*.refused-*")]


def at_desk(root: Path, work: Callable[[Desk], Awaitable[None]]) -> None:
    async def go() -> None:
        told: list[str] = []
        async with App(Settings(store=f"sqlite:{root / 'journal.db'}"), scope=NOTHING) as app:
            documents = HandoffService(app, root, lambda trouble: told.append(trouble.text))
            made = await documents.new(TASK, "ann", "boss")
            await work(Desk(documents, root / ".workflows" / made.file, told))

    asyncio.run(go())


@pytest.mark.req("S0-58")
def test_every_save_is_merged_if_the_file_was_read_before_it(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for task in ("Add 2 and 3.", "Subtract 1 from 9.", "Multiply.", "Add 2 and 3.", TASK):
            assert await desk.save(desk.opened().replace(desk.document.task, task)) == ""
            assert desk.document.task == task
        assert desk.refused() == []

    at_desk(tmp_path, work)


@pytest.mark.req("S0-58")
def test_a_second_editor_of_the_same_line_is_refused_and_kept(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for theirs, mine in (("Add 2 and 3.", "Add 2 and 4."), ("Divide.", "Square it.")):
            ann, bob, kept = desk.opened(), desk.opened(), len(desk.refused())
            before = desk.document.task
            assert await desk.save(ann.replace(before, theirs)) == ""
            stale = bob.replace(before, mine)
            assert "Task was changed meanwhile" in await desk.save(stale)
            assert desk.document.task == theirs
            assert stale in desk.refused() and len(desk.refused()) == kept + 1

    at_desk(tmp_path, work)


@pytest.mark.req("S0-58")
def test_two_editors_of_different_sections_are_merged(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        for number in range(3):
            ann, bob, before = desk.opened(), desk.opened(), desk.document
            assert await desk.save(ann.replace(before.task, f"Task {number}.")) == ""
            assert await desk.save(bob.replace(before.next_action, f"Next step {number}.")) == ""
            assert (desk.document.task, desk.document.next_action) == (f"Task {number}.", f"Next step {number}.")
        assert desk.refused() == []

    at_desk(tmp_path, work)


def test_an_earlier_text_of_the_same_second_is_refused_if_it_is_saved_as_it_was(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        before = desk.opened()
        assert await desk.save(before.replace(TASK, "Add 2 and 3.")) == ""
        assert "with nothing new in it" in await desk.save(before)
        assert desk.document.task == "Add 2 and 3." and desk.refused() == [before]

    at_desk(tmp_path, work)


# The same, for any order of two editors and with a clock that stands still


STYLE = HandoffStyle()
DONE = ToolReturned(value={"file": "f.md", "done": "written"})


def document() -> Given:
    arguments = {"owner": "ann", "creator": "boss"}
    return given(STYLE, Policy(), DONE, input=TASK, arguments=arguments)


def last_view(story: Given) -> tuple[int, HandoffDocument]:
    assert story.run is not None
    view: tuple[int, HandoffDocument] = story.run.state.views[-1]
    return view


@for_all(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12))
def test_of_two_editors_only_the_one_with_the_last_view_overwrites_a_line(saves: list[tuple[str, bool]]) -> None:
    story = document()
    buffers = dict.fromkeys("ab", write(last_view(story)[1]))
    for number, (editor, reads_before) in enumerate(saves):
        base, current = last_view(story)
        if reads_before:
            buffers[editor] = write(current)
        opened = read(buffers[editor])
        saved = write(opened.with_next_action(f"{editor} wants step {number}"))
        decided = story.when(EditFound(text=saved, base=base), after=0).decided[0]
        story.tell(DONE, after=0)
        is_stale = opened.next_action != current.next_action
        assert isinstance(decided, EditRefused if is_stale else EditAccepted)
        now = last_view(story)[1].next_action
        assert now == (current.next_action if is_stale else f"{editor} wants step {number}")
