"""W-40, W-42 and W-46: without script, by keyboard only, and in both languages."""

import re
import string
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ripstop.faces.demo.world import RUNS
from ripstop.faces.web.words import words
from ripstop.styles.handoff.demo import FLOUR
from tests.web.desk_server import DeskServer
from tests.web.every_page import REFUSED, desk_items, every_page
from tests.web.page_checks import TEXTS
from tests.web.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """A demonstration of this module's own: here things are decided."""
    server = DeskServer(tmp_path_factory.mktemp("world"), "--demo", "--as", "ann")
    yield server
    server.stop()


def item_of(server: DeskServer, run: str) -> str:
    """The address of what a run has on the desk."""
    kinds = ("review", "question", "doubt", "guard", "handoff", "stuck", "set_aside")
    pages = (server.sign_in().get(f"/desk?kind={kind}").text for kind in kinds)
    return next(item for page in pages for item in desk_items(page) if f"/{run}" in item.replace("%3A", ":"))


def pressed(page: "Page", button: str, form: str = "") -> str:
    """Press a button of a form; returns the notice of the page that follows."""
    with page.expect_navigation():
        page.locator(f"{form} {button}".strip()).locator("visible=true").and_(page.locator(":not(.sr)")).first.click()
    assert not page.locator(".failure").count(), page.locator("main").inner_text()
    return page.locator("#notice").inner_text() if page.locator("#notice").count() else ""


# W-40


def test_w40_every_page_is_complete_without_script(demo: DeskServer, visit, record_property: Any) -> None:
    window = visit(demo, java_script_enabled=False)
    pages = every_page(demo)
    for path in [*pages, *REFUSED]:
        page = window.open(path, 404 if path in REFUSED else 200)
        assert page.locator("main h1").count() == 1, path
        assert len(page.locator("main").inner_text()) > 40, path
        assert page.locator("main .newer").count() == 0 or page.locator(".newer").is_hidden(), path
        # whatever a script would do in its place leads somewhere
        for opener in ("a[data-why]", "[data-dialog]"):
            assert all(one.get_attribute("href") for one in page.locator(opener).all()), path
    record_property("w40_pages", len(pages) + len(REFUSED))


def test_w40_every_action_works_without_script(world: DeskServer, visit, record_property: Any) -> None:
    window = visit(world, by="tom", java_script_enabled=False)
    page: Page = window.page
    done = []

    def do(name: str, path: str, act: Callable[[], str], says: str = "") -> None:
        window.open(path)
        notice = act()
        assert says in notice, f"{name}: {notice!r}"
        done.append(name)

    def choose(value: str) -> str:
        page.locator(f"input[name=choice][value='{value}']").check()
        return pressed(page, "[data-sends]", ".decide")

    def feedback() -> str:
        page.locator(".decide textarea").first.fill("Name the file format.")
        return pressed(page, "button[value=feedback]", ".decide")

    def say() -> str:
        page.locator("textarea[name=text]").first.fill("Hello, this is Tom. 您好！")
        return pressed(page, ".primary", ".composer")

    def new_run() -> str:
        page.locator("a.b", has_text="workflows/haiku").first.click()
        page.locator("textarea[name=input]").fill("a cold oven")
        return pressed(page, "form[action='/runs'] .primary")

    def only_press(button: str, form: str = "") -> Callable[[], str]:
        return lambda: pressed(page, button, form)

    completed, limit = f"/runs/{RUNS['completed']}", f"/runs/{RUNS['limit']}"
    do("feedback", item_of(world, RUNS["review"]), feedback, "feedback")
    do("doubt", item_of(world, RUNS["doubt"]), lambda: choose("happened"), "You answered")
    do("guard", item_of(world, RUNS["guard"]), lambda: choose("stop"), "You answered")
    do("question", item_of(world, RUNS["unclear_document"]), lambda: choose("terminate"), "You answered")
    do("message", f"/chats/{RUNS['handoff']}", say)
    assert "this is Tom" in page.locator(".log").inner_text()
    do("give back", f"/chats/{RUNS['handoff']}", only_press("button", ".bar form"))
    do("take", f"/chats/{RUNS['ready']}", only_press("button", ".composer"))
    do("start", "/runs/new", new_run)
    do("fork", f"{completed}/fork?at=9", only_press(".primary", "form.form"), "Forked")
    do("compare", f"{completed}/compare", lambda: _followed(page, f"a[href$='/compare/{RUNS['fork']}']"))
    do("resume", limit, only_press(".primary", "form[action$='/resume']"))
    do("use a model", f"/runs/{RUNS['question']}", lambda: _used_again(page))
    do("cancel", f"/runs/{RUNS['stuck']}/cancel", only_press(".danger, .primary", "form.form"))
    do("document", f"/runs/{FLOUR}/act/accept?then=/documents/{FLOUR}", only_press(".primary", "form.form"))
    do("verify", "/health", only_press("form[action='/health/verify'] button"))
    do("look", "/look", only_press("form[action='/look'] .primary"), "Saved")
    do("find", "/runs", lambda: _found(page))
    do("sign out", "/look", only_press("form[action='/logout'] button"))
    assert "/login" in page.url
    record_property("w40_actions", done)


def _followed(page: "Page", link: str) -> str:
    page.locator(link).first.click()
    page.wait_for_load_state()
    return ""


def _used_again(page: "Page") -> str:
    assert page.locator("input[name=model]").input_value()
    return pressed(page, "form[action$='/use'] button")


def _found(page: "Page") -> str:
    page.locator("input[type=search]").fill("haiku")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_url("**q=haiku**")
    assert all("haiku" in one for one in page.locator(".c-id a").all_inner_texts())
    return ""


# W-42


def press_all(page: "Page", *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused(page: "Page") -> str:
    return str(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))


def tab_to(page: "Page", selector: str) -> None:
    """Press Tab until something has the focus."""
    for _ in range(120):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached; the focus is on {focused(page)}")


def test_w42_a_person_goes_from_the_runs_to_the_desk_and_answers_by_keyboard_only(world: DeskServer, visit) -> None:
    window = visit(world, by="bob")
    page: Page = window.open("/runs")
    press_all(page, "g", "d")
    page.wait_for_url("**/desk")
    wanted = item_of(world, RUNS["question"])
    page.keyboard.press("j")
    for key in [*["k"] * 12, *["j"] * 12]:
        if wanted in focused(page):
            break
        page.keyboard.press(key)
    assert wanted in focused(page), focused(page)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{wanted}**")
    tab_to(page, ".decide input[name=choice], .decide textarea")
    if page.evaluate("document.activeElement.type") == "radio":
        page.keyboard.press("Space")
    tab_to(page, ".decide textarea, .decide input[name=text]")
    page.keyboard.type("写明价格 (jkgd?)")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#notice")
    assert page.evaluate("document.activeElement.id") == "notice", "the focus is on what happened"
    answered = world.sign_in("bob").get(wanted).text
    assert "写明价格 (jkgd?)" in answered and "bob" in answered
    window.check()


def test_w42_a_run_is_read_by_keyboard_only(world: DeskServer, visit) -> None:
    window = visit(world)
    page: Page = window.open(f"/runs/{RUNS['completed']}?see=turns")
    press_all(page, "]", "]")
    assert page.evaluate("document.activeElement.id") == "t2"
    page.keyboard.press("w")
    page.wait_for_selector("#t2 .whys .cond")
    page.keyboard.press("x")
    page.wait_for_selector("#t2 .records li[id]")
    page.keyboard.press("[")
    assert page.evaluate("document.activeElement.id") == "t1"
    page.keyboard.press("f")
    page.wait_for_url("**/fork?at=*")
    window.open(f"/runs/{RUNS['completed']}")
    page.keyboard.press("u")
    page.wait_for_url("**/runs")
    page.keyboard.press("/")
    page.keyboard.type("debate")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=debate**")
    press_all(page, "Escape", "j", "o")
    page.wait_for_url(f"**/runs/{RUNS['limit']}")
    page.keyboard.press("?")
    page.wait_for_url("**/keys")
    window.check()


def test_w42_letters_in_a_field_are_only_letters(world: DeskServer, visit) -> None:
    window = visit(world)
    page: Page = window.open(item_of(world, RUNS["review"]))
    posted = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    place, field = page.url, page.locator(".decide textarea").first
    field.click()
    page.keyboard.type("pass jkgd? gd /nuceov[]wxflPF\ngr")
    assert field.input_value() == "pass jkgd? gd /nuceov[]wxflPF\ngr"
    assert page.url == place and posted == []
    field.fill("")
    window.check()


def test_w42_no_single_key_sends_a_form(world: DeskServer, visit) -> None:
    window = visit(world)
    path = item_of(world, RUNS["review"])
    page: Page = window.page
    posted = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    keys = [
        *string.ascii_letters,
        *string.digits,
        *string.punctuation,
        "Enter",
        "Space",
        "Escape",
        "Backspace",
        "Delete",
    ]
    window.open(path)
    page.route("**/*", lambda route: route.fulfill(status=204))  # no key leads away
    for key in keys:
        page.keyboard.press(key)
        page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Shift+P")
    assert "Shift+P" in focused(page), "the key moves the focus to the button and no further"
    assert posted == []
    window.check()


def test_w42_keys_can_be_turned_off(world: DeskServer, visit) -> None:
    window = visit(world, by="cleo")
    page: Page = window.open("/look")
    page.locator("input[name=keys][value=off]").check()
    page.locator("form[action='/look'] .primary").click()
    page.wait_for_selector("#notice")
    page = window.open("/desk")
    place = page.url
    press_all(page, "j", "?", "n", "g", "r", "/", "o")
    page.wait_for_timeout(300)
    assert page.url == place and page.evaluate("document.activeElement === document.body")
    assert not any(one.is_visible() for one in page.locator(".keys").all()), "no key is offered"
    window.check()


# W-46


def pattern(text: str) -> re.Pattern[str]:
    """A text of the interface, with anything in its gaps."""
    pieces = re.split(r"\{\w+\}", " ".join(text.split()))
    return re.compile(".{1,80}".join(map(re.escape, pieces)))


def interface_patterns(language: str) -> list[tuple[str, re.Pattern[str]]]:
    """The texts of this language that say something; units of time are the same everywhere."""
    found = {key: text for key, text in words(language).items() if not key.startswith("ago.")}
    fixed = {key: re.sub(r"\{\w+\}", "", text) for key, text in found.items()}
    return [(key, pattern(text)) for key, text in found.items() if re.search(r"[^\W\d]{3}|[一-鿿]{2}", fixed[key])]


def test_w46_a_chinese_page_has_no_english_words_of_the_interface(
    demo: DeskServer, visit, record_property: Any
) -> None:
    window, found = visit(demo, locale="zh-CN"), []
    english, chinese = interface_patterns("en"), interface_patterns("zh")
    pages, texts = [*every_page(demo), *REFUSED], 0
    for path in pages:
        page = window.open(path, 404 if path in REFUSED else 200)
        assert page.evaluate("document.documentElement.lang") == "zh-Hans"
        said = page.evaluate(TEXTS)
        texts += len(said)
        doubtful = [text for text in said if not any(one.fullmatch(text) for _, one in chinese)]
        found += [f"{path}: {text!r} is {key}" for text in doubtful for key, one in english if one.fullmatch(text)]
    assert not found, "\n".join(dict.fromkeys(found))
    record_property("w46_texts", {"pages": len(pages), "texts": texts})
    window.check()


def test_w46_both_languages_fill_in_the_same(record_property: Any) -> None:
    both = {key: (words("en").get(key, ""), words("zh").get(key, "")) for key in (*words("en"), *words("zh"))}
    for key, (english, chinese) in both.items():
        assert english.strip() and chinese.strip(), key
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
    record_property("w46_words", len(both))


def test_w46_a_run_in_chinese_from_its_start_to_its_end(world: DeskServer, visit) -> None:
    window = visit(world, by="李娜", locale="zh-CN")
    page: Page = window.open("/runs/new?workflow=haiku")
    page.locator("textarea[name=input]").fill("清晨的第一炉面包，别忘了“火候”。")
    page.locator("form[action='/runs'] .primary").click()
    page.wait_for_selector(".sum h1")
    run = page.locator(".sum h1").inner_text()
    page.wait_for_selector(".sum .completed")
    assert page.locator(".sum .completed").inner_text().strip() == "已完成"
    page = window.open(f"/runs/{run}/1")
    assert "清晨的第一炉面包，别忘了“火候”。" in page.locator("main").inner_text()
    page = window.open(f"/runs/{run}?q=第")
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    page = window.open("/runs?q=haiku")
    assert run in page.locator(".c-id a").all_inner_texts()
    page.locator(".c-id a", has_text=run).click()
    wait_until(page, "document.querySelector('.sum h1') !== null")
    window.check()
