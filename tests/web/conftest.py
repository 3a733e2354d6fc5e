"""One demonstration with its server, and one browser, for all tests of a process.

The browser is the system's chromium; without one these tests are skipped, and `make test-web` says how to get it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.desk_server import DeskServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)


REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (e) => console.error(`CSP ${e.violatedDirective} ${e.blockedURI}`));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.web)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """A desk with one of everything. Tests that decide something there leave the rest alone."""
    server = DeskServer(tmp_path_factory.mktemp("demo"), "--demo", "--as", "ann")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install it with: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


class Watched:
    """A page, and everything that must not happen on it."""

    def __init__(self, context: "BrowserContext", server: DeskServer) -> None:
        self.context = context
        self.server = server
        self.page: Page = context.new_page()
        self.trouble: list[str] = []
        self.outside: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._requested)
        self.page.add_init_script(REPORT_VIOLATIONS)

    def _said(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.trouble.append(message.text)

    def _asked(self, dialog: Any) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.server.address, "data:", "about:", "blob:")):
            self.outside.append(request.url)

    def open(self, path: str, status: int = 200) -> "Page":
        answer = self.page.goto(f"{self.server.address}{path}", wait_until="load")
        assert answer is not None and answer.status == status, f"{path}: {answer and answer.status}"
        return self.page

    def check(self) -> None:
        """Nothing went wrong, nothing left this server."""
        assert self.trouble == [] and self.outside == []


@pytest.fixture
def visit(browser: "Browser") -> Any:
    """Opens a browser window on a server, signed in under a name: `visit(server, by="ann", **context)`."""
    contexts = []

    def open_window(server: DeskServer, by: str = "ann", **options: Any) -> Watched:
        person = server.sign_in(by)
        name, _, value = person.cookie.partition("=")
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", **options})
        contexts.append(context)
        context.add_cookies(
            [{"name": name, "value": value, "url": server.address, "httpOnly": True, "sameSite": "Strict"}]
        )
        return Watched(context, server)

    yield open_window
    for context in contexts:
        context.close()
