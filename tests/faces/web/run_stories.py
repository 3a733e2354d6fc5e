"""Runs to look at with a browser, and what a test reads from their pages."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec

from ripstop.kernel.events import Answered, RunSettings
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from tests.faces.web.desk_browser import Desk, Page, a_desk
from tests.styles.loops import says

EVIL = "<script>alert(1)</script>\u202eevil\x00\"'><img src=x onerror=alert(2)>"
KEY = "sk-live-4f9aQ7x2Lm8Zt3Rb6Yc1"
Story = Callable[[Desk], Awaitable[None]]


def tell(folder: Path, story: Story, **options: Any) -> None:
    async def main() -> None:
        async with a_desk(folder, **options) as desk:
            await story(desk)

    asyncio.run(main())


def turns(page: Page) -> list[int]:
    return [int(number) for number in re.findall(r'<li class="turn" id="t(\d+)"', page.html)]


def records(page: Page) -> list[int]:
    return [int(number) for number in re.findall(r'<li class="rec[^"]*" id="r(\d+)"', page.html)]


def tabs(page: Page) -> list[str]:
    found = re.search(r'<nav class="tabs".*?</nav>', page.html, re.DOTALL)
    return re.findall(r"part=(\w+)", found[0]) if found else []


def open_tab(page: Page) -> str:
    found = re.search(r'part=(\w+)" aria-current="true"', page.html)
    return found[1] if found else ""


def neighbour(page: Page, rel: str) -> str:
    """The address of the window before or after."""
    found = re.search(rf'class="earlier" rel="{rel}" href="([^"]*)"', page.html)
    return found[1].replace("&amp;", "&") if found else ""


class Nodes(HTMLParser):
    """Counts elements, and notes what must not be in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.headings = 0
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count += 1
        self.headings += tag == "h1"
        names = [name for name, _ in attrs]
        if tag in ("img", "iframe") or any(name.startswith("on") or name == "style" for name in names):
            self.bad.append(f"{tag} {names}")
        if tag == "script" and not any(name == "src" for name in names):
            self.bad.append("inline script")


def nodes(page: Page) -> Nodes:
    found = Nodes()
    found.feed(page.html)
    return found


GRAPH = Graph(
    name="review",
    start="write",
    agents=(Agent("writer"), Agent("reviewer")),
    states=(
        State(
            "write",
            "writer",
            "Write {{initial_message}}. Decide drafted.",
            (Transition("score", "drafted"), Transition("write")),
        ),
        State("score", "reviewer", "Score.", (Transition(END, "score >= 8 AND NOT blocking"), Transition("write"))),
    ),
    guards={"patience": 0},
    max_turns=10_000,
)


async def review(desk: Desk, run: str, *scores: int, **options: Any) -> None:
    await desk.engine.start(run, "graph", msgspec.json.encode(GRAPH), "a note", **options)
    for score in scores:
        await desk.lead(run, says("Here is the draft.", drafted=True), says("Not yet.", score=score, blocking=False))


async def long_run(desk: Desk, run: str, turns: int, settings: RunSettings = RunSettings()) -> None:
    """A run of so many turns, three records each."""
    told = await desk.engine.start(run, "graph", msgspec.json.encode(GRAPH), "a note", settings=settings)
    for turn in range(1, turns + 1):
        said = says(f"This is turn {turn}.", drafted=True) if turn % 2 else says(f"This is turn {turn}.", score=1)
        told, _ = await desk.engine.tell(run, Answered(to=max(told.open), answer=said))
