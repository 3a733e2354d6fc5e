"""Takes pictures of the web desk from its demonstration.

    python -m tests.web.pictures [FOLDER]           every page, in two sizes and two themes, and those of the README
    python -m tests.web.pictures --layout           where the parts of pages are, into layout.json (W-45)

Pictures depend on the fonts and the browser of the machine; the tests compare where things are, not their pixels.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ripstop.faces.demo.world import RUNS
from tests.web.conftest import CHROMIUM, FLAGS
from tests.web.desk_server import DeskServer
from tests.web.every_page import every_page
from tests.web.small_png import small_png

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]
FOR_README = ROOT / "docs" / "pictures"
LAYOUT = Path(__file__).with_name("layout.json")
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
THEMES = ("light", "dark")
MOST_BYTES = 200 * 1024
"""Of a picture of the README."""
PATIENCE = 120
"""Seconds for the demonstration to have a run in the middle of its work."""
LAID_OUT = ("/desk", "/runs", "/runs/{completed}", "/runs/{board}", "/chats/{handoff}", "/documents/{document}")
"""Pages whose layout is compared."""
PARTS = (
    ".side",
    ".tabbar",
    ".main",
    ".bar",
    ".list",
    ".pane",
    ".decide",
    ".lead",
    ".aside",
    ".talk",
    ".panel",
    ".tools",
)
MEASURE = """(parts) => Object.fromEntries(parts.flatMap((part) => {
  const one = document.querySelector(part), box = one?.checkVisibility() && one.getBoundingClientRect();
  if (!box) return [];
  // on a phone a page is as long as what it says, and that has times in it
  const sizes = innerWidth > 760 ? [box.left, box.width, box.top, box.height] : [box.left, box.width];
  return [[part, sizes.map(Math.round)]];
}))"""


def window(browser: "Browser", server: DeskServer, size: str, theme: str) -> "BrowserContext":
    """A browser window of this size, signed in."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, locale="en-GB")  # type: ignore[arg-type]
    name, _, value = server.sign_in().cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": server.address}])
    return context


def measure(browser: "Browser", server: DeskServer) -> dict[str, dict[str, list[int]]]:
    """Where the parts of some pages are: left, width and, on a wide screen, top and height."""
    found = {}
    for size in SIZES:
        context = window(browser, server, size, "light")
        page = context.new_page()
        for path in LAID_OUT:
            page.goto(server.address + path.format_map(RUNS))
            found[f"{size} {path}"] = page.evaluate(MEASURE, PARTS)
        context.close()
    return found


def _keep_layout(version: str, pages: dict[str, dict[str, list[int]]]) -> None:
    """Write it so that a difference is a line for each page."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(parts)}" for name, parts in pages.items())
    LAYOUT.write_text(f'{{\n "browser": "{version}",\n "pages": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


def take_all(browser: "Browser", server: DeskServer, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    paths, taken = [*every_page(server), "/nowhere"], 0
    for size in SIZES:
        for theme in THEMES:
            context = window(browser, server, size, theme)
            page = context.new_page()
            for path in paths:
                page.goto(server.address + path)
                name = re.sub(r"[^A-Za-z0-9]+", "-", path.replace("%3A", "-")).strip("-")
                page.screenshot(path=folder / f"{name}.{size}.{theme}.png")
                taken += 1
            context.close()
    return taken


def take_for_readme(browser: "Browser", server: DeskServer, folder: Path = FOR_README) -> dict[str, int]:
    """The two pictures of the README; returns their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    page = window(browser, server, "wide", "light").new_page()
    page.goto(f"{server.address}/desk/{RUNS['review']}")
    pictures = {"desk": page.screenshot()}
    _open_run_at_work(page, server)
    pictures["run"] = page.screenshot()
    sizes = {}
    for name, picture in pictures.items():
        small = small_png(picture)
        assert len(small) <= MOST_BYTES, f"{name}.png has {len(small)} bytes"
        (folder / f"{name}.png").write_bytes(small)
        sizes[name] = len(small)
    return sizes


def _open_run_at_work(page: "Page", server: DeskServer) -> None:
    """Open a run that has some turns behind it and an agent in the middle of a sentence."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        page.goto(f"{server.address}/runs?status=working")
        link = page.locator(".c-id a").first
        if link.count():
            page.goto(server.address + (link.get_attribute("href") or ""))
            page.wait_for_timeout(1500)
            said = "[...document.querySelectorAll('[data-stream]')].map((box) => box.textContent.length)[0] || 0"
            if page.locator("li.turn").count() >= 5 and page.evaluate(said) > 120:
                return
        page.wait_for_timeout(500)
    raise TimeoutError("no run of the demonstration was in the middle of its work")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.web.pictures")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "pictures")
    parser.add_argument("--layout", action="store_true", help="only write layout.json")
    given = parser.parse_args(arguments)
    if CHROMIUM is None:
        sys.exit("No browser was found. Install one, such as: sudo apt-get install chromium fonts-inter fonts-noto-cjk")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        server = DeskServer(Path(place), "--demo", "--as", "ann")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            if given.layout:
                _keep_layout(browser.version.partition(".")[0], measure(browser, server))
                return
            sizes = take_for_readme(browser, server)
            print("docs/pictures:", ", ".join(f"{name}.png {size:,} bytes" for name, size in sizes.items()))
            print(f"{take_all(browser, server, given.folder)} pictures in {given.folder}")
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
