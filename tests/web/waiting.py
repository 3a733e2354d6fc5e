"""Waiting for a page. The browser's own `wait_for_function` needs `eval`, which the pages forbid."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE = 60.0
"""Seconds; a machine that does much else at the same time is slow."""


def wait_until(page: "Page", expression: str, given: Any = None) -> Any:
    """Wait until an expression of the page is true; returns its value."""
    return until(lambda: page.evaluate(expression, given), expression, lambda: page.wait_for_timeout(50))


def until(look: Callable[[], Any], what: str, pause: Callable[[], None] = lambda: time.sleep(0.05)) -> Any:
    """Wait until something is true; returns what it is."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, f"in {PATIENCE:g} s it never became true: {what}"
        pause()
    return found
