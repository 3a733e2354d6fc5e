"""W-41, W-43, W-44 and W-45: colours, names, sizes and themes of every page."""

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from ripstop.faces.demo.world import RUNS
from ripstop.faces.web.rendering import FOLDER
from tests.web.desk_server import DeskServer
from tests.web.every_page import REFUSED, every_page
from tests.web.page_checks import ACCESSIBILITY, CONTRAST, FOCUS, SIDEWAYS
from tests.web.pictures import LAYOUT, measure

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CSS = (FOLDER / "static" / "desk.css").read_text(encoding="utf-8")
TOKENS: dict[str, tuple[str, str]] = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", CSS)
}
GROUNDS = ("bg", "surface", "sunken", "hover", "selected", "grey", "add", "del")
STATES = ("blue", "violet", "cyan", "green", "amber", "brown", "red", "orange", "pink")
PAIRS = (
    *((text, ground, 4.5) for text in ("ink", "ink-2", "ink-3", "accent", *STATES) for ground in GROUNDS),
    *(("ink", ground, 4.5) for ground in ("add-2", "del-2")),
    *(("surface", ground, 4.5) for ground in ("ink", "violet")),
    # borders of fields, and the ring around what has the focus
    *(("control", ground, 3.0) for ground in ("bg", "surface", "sunken", "hover", "selected")),
    *(("accent", ground, 3.0) for ground in GROUNDS),
    *(("accent-solid", ground, 3.0) for ground in ("bg", "surface", "sunken")),
)
SMALL = ((390, 844), (320, 640), (320, 256))
"""A phone, the narrowest one, and a window of 1280 by 1024 at 400 %."""


# W-41


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_w41_every_pair_of_colours_can_be_told_apart(theme: int, record_property: Any) -> None:
    assert set(STATES) < TOKENS.keys()
    found = {(one, other): contrast(TOKENS[one][theme], TOKENS[other][theme]) for one, other, _ in PAIRS}
    too_low = [(one, other, found[one, other]) for one, other, least in PAIRS if found[one, other] < least]
    assert not too_low
    on_solid = contrast("#ffffff", TOKENS["accent-solid"][theme])
    assert on_solid >= 4.5, "the words of the main button"
    record_property("w41_pairs", len(PAIRS) + 1)
    record_property("w41_least", round(min(found.values()), 2))


def test_w41_every_page_has_names_labels_landmarks_targets_and_contrast(
    demo: DeskServer, visit, record_property: Any
) -> None:
    window, wrong = visit(demo), []
    least, texts, pages = 21.0, 0, [*every_page(demo), *REFUSED, "/login"]
    for path in pages:
        if path == "/login":
            window.context.clear_cookies()
        page = window.open(path, 404 if path in REFUSED else 200)
        wrong += [f"{path}: {one}" for one in page.evaluate(ACCESSIBILITY)]
        if page.evaluate("document.scrollingElement.scrollHeight > innerHeight"):
            wrong.append(f"{path}: the page scrolls, and not only its panes")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            found = page.evaluate(CONTRAST)
            least, texts = min(least, found["least"]), texts + found["count"]
            wrong += [f"{path} {theme}: {one}" for one in found["wrong"]]
    assert not wrong, "\n".join(wrong)
    record_property("w41_pages", len(pages))
    record_property("w41_texts", {"looked at": texts, "least contrast": least})
    window.check()


@pytest.mark.parametrize("path", ["/desk", "/runs", "/runs/{completed}", "/chats/{handoff}", "/look"])
def test_w41_the_focus_moves_in_the_order_of_the_page_and_is_seen(demo: DeskServer, visit, path: str) -> None:
    window = visit(demo)
    page = window.open(path.format_map(RUNS))
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip", "the first stop leads to the page"
    behind, hidden, covered = [], [], []
    for _ in range(40):
        page.evaluate("window.before = document.activeElement")
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUS)
        if at["is_over"]:
            break
        behind += [] if at["in_order"] else [at["shown"]]
        hidden += [] if at["is_ringed"] else [at["shown"]]
        covered += [] if at["is_on_top"] else [at["shown"]]
    assert (behind, hidden, covered) == ([], [], [])
    window.check()


# W-43


def test_w43_no_page_scrolls_sideways_on_small_screens(demo: DeskServer, visit, record_property: Any) -> None:
    window, wrong = visit(demo, has_touch=True), []
    pages = [*every_page(demo), *REFUSED]
    for path in pages:
        page = window.open(path, 404 if path in REFUSED else 200)
        for width, height in SMALL:
            page.set_viewport_size({"width": width, "height": height})
            wrong += [f"{path} {width}×{height}: {one}" for one in page.evaluate(SIDEWAYS)]
    assert not wrong, "\n".join(wrong)
    record_property("w43_pages", len(pages))
    window.check()


# W-44


def test_w44_light_and_dark_follow_the_system_and_the_choice(demo: DeskServer, visit) -> None:
    window = visit(demo, color_scheme="dark")
    ground = "getComputedStyle(document.querySelector('.main')).backgroundColor"
    page = window.open("/desk")
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(22, 23, 26)")
    window.context.add_cookies([{"name": "ripstop_theme", "value": "dark", "url": demo.address}])
    assert window.open("/desk").evaluate(ground) == dark
    page.emulate_media(color_scheme="dark")
    window.context.add_cookies([{"name": "ripstop_theme", "value": "light", "url": demo.address}])
    assert window.open("/desk").evaluate(ground) == light
    window.check()


def test_w44_forced_colours_keep_what_is_chosen_and_what_can_be_pressed(demo: DeskServer, visit) -> None:
    window = visit(demo, forced_colors="active")
    page = window.open("/desk")
    assert page.evaluate("matchMedia('(forced-colors: active)').matches")
    outlined = "one => getComputedStyle(one).outlineStyle"
    for chosen in (".item[aria-current]", ".nav[aria-current]", ".chip[aria-current]"):
        assert page.locator(chosen).first.evaluate(outlined) == "solid", chosen
    for pressed in (".b.primary", ".chip"):
        assert page.locator(pressed).first.evaluate("one => parseFloat(getComputedStyle(one).borderTopWidth)") >= 1
    assert page.locator("ins").first.evaluate("one => getComputedStyle(one).textDecorationLine") == "underline"
    page.locator(".decide textarea").first.focus()
    assert page.locator(".decide textarea").first.evaluate(outlined) == "solid"
    window.check()


def test_w44_nothing_moves_where_motion_is_not_wanted(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open("/desk")
    turning = "document.querySelectorAll('.working .i, .stream').length"
    running = "document.getAnimations().filter((one) => one.playState === 'running').length"
    page.evaluate("document.querySelector('h1').classList.add('working')")
    page.evaluate("document.querySelector('h1').append(document.querySelector('svg.i').cloneNode(true))")
    assert page.evaluate(turning) > 0 and page.evaluate(running) > 0, "there is something that turns"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(running) == 0
    window.check()


@pytest.mark.parametrize("path", ["/runs/{completed}", "/runs/{completed}/2", "/desk/{review}"])
def test_w44_a_printed_page_has_its_content_and_no_buttons(demo: DeskServer, visit, path: str) -> None:
    window = visit(demo, color_scheme="dark")
    page = window.open(path.format_map(RUNS))
    page.emulate_media(media="print")
    assert page.locator("main h1").first.is_visible()
    for away in (".side", ".tabbar", ".bar .b", ".decide", ".tools"):
        assert all(not one.is_visible() for one in page.locator(away).all()), away
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "light"
    assert page.pdf().startswith(b"%PDF")
    window.check()


# W-45


def fonts_are_there() -> bool:
    try:
        families = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return "Inter" in families and "Noto Sans CJK SC" in families


def test_w45_the_parts_of_pages_are_where_they_were(demo: DeskServer, browser: "Browser") -> None:
    kept = json.loads(LAYOUT.read_text(encoding="utf-8"))
    if not fonts_are_there():
        pytest.skip(
            "the layout was taken with other fonts; install them with: apt-get install fonts-inter fonts-noto-cjk"
        )
    if browser.version.partition(".")[0] != kept["browser"]:
        pytest.skip(f"the layout was taken with version {kept['browser']} of the browser")
    moved = []
    for page, parts in measure(browser, demo).items():
        for part, box in kept["pages"][page].items():
            now = parts.get(part)
            if now is None or any(abs(a - b) > 2 for a, b in zip(box, now, strict=True)):
                moved.append(f"{page} {part}: {box} is {now}")
    assert not moved, "\n".join([*moved, "If that is meant: python -m tests.web.pictures --layout"])
