"""W-7: what an agent, a tool, a person or a file says is shown as text, whatever it says, wherever it can be said.

Every page is opened in a real browser: no dialog, no request to another server, nothing that the content policy had to
stop, no error of a script, no element or address that no template writes, and no character that turns or hides others.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ripstop.engine.ports import RunQuery
from tests.faces.web.desk_browser import Desk
from tests.web.desk_server import DeskServer
from tests.web.filled_journals import line, write_spoken
from tests.web.hostile_texts import HEAVY, PLAIN, varied
from tests.web.hostile_world import Group, build, chat_of, grouped, workflows_of
from tests.web.waiting import wait_until
from tests.web.worlds import IDLE, World

SHORT, LONG = len(PLAIN), 2_000
TOGETHER = 60
"""Texts of one group; a page shows all of them."""
FEW = 2
"""Heavy texts of the short form: a line of a megabyte, and quotes inside quotes."""

WRONG = r"""() => {
  const wrong = [];
  const say = (what, element) => wrong.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
  const never = new Set(["IFRAME", "FRAME", "OBJECT", "EMBED", "BASE", "IMG", "PICTURE", "VIDEO", "AUDIO", "SOURCE",
    "STYLE", "MARQUEE", "MATH", "TEMPLATE", "SLOT", "XMP", "PLAINTEXT", "NOSCRIPT", "APPLET", "PORTAL", "DIALOG",
    "FOREIGNOBJECT", "IMAGE", "ANIMATE", "SET", "ANIMATETRANSFORM", "HANDLER"]);
  const addresses = ["href", "src", "action", "formaction", "xlink:href", "data", "poster", "background", "ping"];
  for (const element of document.querySelectorAll("*")) {
    const name = element.tagName.toUpperCase();
    if (never.has(name)) say("element", element);
    if (name === "SCRIPT" && !/^\/static\//.test(element.getAttribute("src") || "")) say("script", element);
    if (name === "META" && element.hasAttribute("http-equiv")) say("meta", element);
    if (name === "LINK" && !/^\/static\//.test(element.getAttribute("href") || "")) say("link", element);
    for (const { name: key, value } of element.attributes) {
      if (/^on|^style$|^srcdoc$|^is$|^slot$/i.test(key)) say(`attribute ${key}`, element);
      if (!addresses.includes(key.toLowerCase())) continue;
      let to;
      try { to = new URL(value, location.href); } catch { say("address", element); continue; }
      if (to.origin === location.origin) continue;
      const isLink = name === "A" && element.closest(".prose") && ["http:", "https:", "mailto:"].includes(to.protocol);
      if (!isLink || !/noopener/.test(element.rel) || !/noreferrer/.test(element.rel)) say("address", element);
    }
    if (name === "FORM" && new URL(element.getAttribute("action") || "", location.href).origin !== location.origin)
      say("form", element);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`twice: #${id}`);
  const acting = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029", hiding = "\\u200b\\ufeff\\u2060";
  const unseen = new RegExp(`[${acting}${hiding}\\u200e\\u200f\\u061c\\u202a-\\u202e\\u2066-\\u2069]`);
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const at = walk.currentNode;
    // what is edited is as it is, and a note says so
    if (unseen.test(at.data) && !at.parentElement.closest("textarea")) say("unseen", at.parentElement);
  }
  return wrong.slice(0, 20);
}"""


class Hostile:
    """A world full of hostile texts, and its server."""

    def __init__(self, world: World, server: DeskServer, groups: Sequence[Group]) -> None:
        self.server, self.groups = server, groups
        self.runs: dict[str, int] = world.tell(_runs)
        """Every run, with its number of records."""
        self.questions: dict[str, int] = world.tell(_questions)
        """The open question of every run that has one."""

    def run(self, kind: str, group: Group) -> str:
        return f"{kind}-{group.index}"


async def _runs(desk: Desk) -> dict[str, int]:
    found: dict[str, int] = {}
    page = await desk.engine.runs(RunQuery(size=1000))
    while True:
        found |= {info.run_id: info.length for info in page.items}
        if not page.next:
            return found
        page = await desk.engine.runs(RunQuery(size=1000, cursor=page.next))


async def _questions(desk: Desk) -> dict[str, int]:
    return {run: (await desk.open_questions(run) or [0])[0] for run in await _runs(desk)}


def open_hostile(folder: Path, groups: Sequence[Group]) -> Iterator[Hostile]:
    world = World(folder)
    build(world, groups)
    with world.served(kind=IDLE) as server:
        yield Hostile(world, server, groups)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    yield from open_hostile(tmp_path_factory.mktemp("hostile"), grouped(varied(SHORT), TOGETHER))


@pytest.fixture(scope="module")
def very_hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    yield from open_hostile(tmp_path_factory.mktemp("very"), grouped(varied(LONG), TOGETHER))


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    yield from open_hostile(tmp_path_factory.mktemp("heavy"), alone(HEAVY[:FEW]))


@pytest.fixture(scope="module")
def very_heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    yield from open_hostile(tmp_path_factory.mktemp("very-heavy"), alone(HEAVY))


def alone(texts: Sequence[str]) -> list[Group]:
    return [Group(index, (text,)) for index, text in enumerate(texts)]


def look(window: Any, path: str, status: int = 200) -> None:
    """Open a page, and see that it is as it should be."""
    page = window.open(path, status)
    assert page.evaluate(WRONG) == [], path


# Where texts are


Pages = Callable[[Hostile, Group], list[str]]


def on_the_desk(world: Hostile, group: Group) -> list[str]:
    runs = [world.run(kind, group) for kind in ("question", "fields", "guard", "project")]
    open_ = [f"/desk/{run}/{number}" for run in runs if (number := world.questions[run])]
    assert len(open_) >= 3, open_
    return [*open_, f"/desk/answered-{group.index}/3", f"/desk/aside-{group.index}", f"/desk/doubt-{group.index}/5"]


def under_review(world: Hostile, group: Group) -> list[str]:
    run = world.run("review", group)
    return [f"/desk/{run}/{world.questions[run]}?view={view}" for view in ("changes", "preview", "source")]


def timelines(world: Hostile, group: Group) -> list[str]:
    run = world.run("guard", group)
    seen = [f"/runs/{run}", f"/runs/{run}?see=records", f"/runs/{run}?see=trouble", f"/runs/{run}/drawing"]
    return [*seen, *(f"/runs/{world.run(kind, group)}?see=records" for kind in ("tools", "question", "doubt"))]


def records(world: Hostile, group: Group) -> list[str]:
    run = world.run("guard", group)
    return [
        *(f"/runs/{run}/{number}" for number in (1, 3, 4, 5)),
        f"/runs/{run}/{world.runs[run] - 1}/why",
        *(f"/runs/{world.run('tools', group)}/{number}" for number in (3, 4, world.runs[world.run("tools", group)])),
        f"/runs/{world.run('question', group)}/4",
        f"/runs/{world.run('answered', group)}/4",
    ]


def styles(world: Hostile, group: Group) -> list[str]:
    board, project = world.run("board", group), world.run("project", group)
    return [f"/runs/{board}", f"/runs/{board}?part=timeline", f"/runs/{project}", f"/runs/{project}?part=timeline"]


def conversations(world: Hostile, group: Group) -> list[str]:
    run = chat_of(group)
    return [f"/chats/{run}", f"/runs/{run}", f"/desk/{run}/{world.questions[run]}"]


def documents(world: Hostile, group: Group) -> list[str]:
    (run,) = [run for run in world.runs if run.endswith(f".paper{group.index}")]
    return [f"/documents/{run}", f"/documents/{run}?view=source", f"/runs/{run}?part=timeline&see=records"]


def forms(world: Hostile, group: Group) -> list[str]:
    run, other = world.run("guard", group), world.run("tools", group)
    return [f"/runs/{run}/fork", f"/runs/{run}/cancel", f"/runs/{run}/compare/{other}", f"/runs/{run}/compare"]


def files(world: Hostile, group: Group) -> list[str]:
    names = [quote(name, safe="") for name in workflows_of(group)]
    return [*(f"/workflows/{name}" for name in names), *(f"/runs/new?workflow={name}" for name in names)]


PLACES: tuple[Pages, ...] = (
    on_the_desk,
    under_review,
    timelines,
    records,
    styles,
    conversations,
    documents,
    forms,
    files,
)


def visit_all(world: Hostile, window: Any, places: Pages) -> int:
    count = 0
    for group in world.groups:
        for path in places(world, group):
            look(window, path)
            count += 1
    window.check()
    return count


@pytest.mark.parametrize("places", PLACES, ids=lambda places: places.__name__)
def test_w7_hostile_texts_are_only_text(hostile: Hostile, visit, record_property, places: Pages) -> None:
    record_property("pages", visit_all(hostile, visit(hostile.server), places))


@pytest.mark.soak
@pytest.mark.parametrize("places", PLACES, ids=lambda places: places.__name__)
def test_w7_two_thousand_hostile_texts_are_only_text(
    very_hostile: Hostile, visit, record_property, places: Pages
) -> None:
    record_property("texts", sum(len(group.texts) for group in very_hostile.groups))
    record_property("pages", visit_all(very_hostile, visit(very_hostile.server), places))


def lists(world: Hostile, window: Any) -> Iterator[str]:
    """All pages of all lists."""
    for first in ("/desk", "/runs?size=200", "/chats", "/documents", "/workflows"):
        path = first
        while path:
            yield path
            following = window.page.locator("a[rel=next]").first
            path = following.get_attribute("href") if following.count() else ""


def test_w7_lists_of_hostile_texts_are_only_text(hostile: Hostile, visit, record_property) -> None:
    window, count = visit(hostile.server), 0
    for path in lists(hostile, window):
        look(window, path)
        count += 1
    record_property("pages", count)
    window.check()


@pytest.mark.parametrize("places", [on_the_desk, under_review, conversations, records], ids=lambda one: one.__name__)
def test_w7_texts_of_a_megabyte_or_ten_thousand_levels_are_answered(
    heavy: Hostile, visit, record_property, places: Pages
) -> None:
    record_property("pages", visit_all(heavy, visit(heavy.server), places))


@pytest.mark.soak
@pytest.mark.parametrize("places", PLACES, ids=lambda places: places.__name__)
def test_w7_every_heavy_text_is_answered(very_heavy: Hostile, visit, record_property, places: Pages) -> None:
    """The slowest page is a figure of the report; the design wants it in two seconds."""
    slowest = 0.0
    window = visit(very_heavy.server)
    for group in very_heavy.groups:
        for path in places(very_heavy, group):
            look(window, path)
            slowest = max(slowest, window.page.evaluate("performance.getEntriesByType('navigation')[0].duration"))
    record_property("milliseconds of the slowest page", round(slowest))
    window.check()


# Where people and addresses speak

ADDRESSES = (
    *("/runs?q=", "/runs?status=", "/runs?before=", "/runs/", "/runs/new?workflow=", "/desk?kind=", "/desk?after="),
    *("/documents?q=", "/documents/", "/chats/", "/workflows/", "/login?next=", "/no-such-page/", "/desk/"),
)


def test_w7_hostile_names_of_people_are_only_text(hostile: Hostile, visit) -> None:
    names = [name for group in hostile.groups for name in group.names if "<" in name or '"' in name or "{" in name]
    for name in names[:4]:
        window = visit(hostile.server, by=name)
        for path in ("/desk", f"/chats/{chat_of(hostile.groups[0])}"):
            look(window, path)
        window.check()


def test_w7_hostile_addresses_are_only_text(hostile: Hostile, visit) -> None:
    window, person = visit(hostile.server), hostile.server.sign_in()
    for at, text in enumerate(PLAIN):
        path = ADDRESSES[at % len(ADDRESSES)] + quote(text, safe="")
        reply = person.get(path)
        assert reply.status in (200, 303, 404, 422), path
        assert re.fullmatch(r"(/[^/\\].*)?", reply.headers.get("location", "")), "it leads nowhere else"
        if at % 4 == 0:
            answer = window.page.goto(f"{hostile.server.address}{path}", wait_until="load")
            assert answer is not None and window.page.evaluate(WRONG) == [], path
    window.check()


def test_w7_a_notice_from_a_forged_cookie_is_only_text(hostile: Hostile, visit) -> None:
    window = visit(hostile.server)
    for text in PLAIN[::5]:
        value = text.encode("unicode_escape").decode("ascii").replace(";", ",")[:300]
        window.context.add_cookies([{"name": "ripstop_notice", "value": value, "url": hostile.server.address}])
        look(window, "/keys")
    window.check()


def test_w7_words_of_a_call_under_way_are_only_text(tmp_path: Path, visit) -> None:
    words = " ".join(text for text in PLAIN if "```" not in text)
    environment = write_spoken(tmp_path, [line("writer", words, 8.0, drafted=True), line("reviewer", "9", score=9)])
    server = DeskServer(tmp_path, "--as", "ann", environment=environment)
    try:
        form = {"workflow": "spoken", "input": "x"}
        started = server.sign_in().post("/runs", form, page="/runs/new?workflow=spoken")
        window = visit(server)
        page = window.open(started.headers["location"])
        wait_until(page, "() => document.querySelector('[data-stream]')?.textContent.includes('alert(1)')")
        assert page.evaluate(WRONG) == []
        wait_until(page, "() => document.querySelector('.sum .st.completed')")
        assert page.evaluate(WRONG) == []
        window.check()
    finally:
        server.stop()


def test_w7_what_is_shown_is_what_was_written(hostile: Hostile, visit) -> None:
    """Nothing is cleaned away: what can do nothing is shown as it is."""
    window = visit(hostile.server)
    for group in hostile.groups[:3]:
        run = hostile.run("question", group)
        shown = window.open(f"/runs/{run}/4").locator("pre").first.inner_text()
        for text in group.texts:
            assert text.isprintable() is False or text in shown, text
