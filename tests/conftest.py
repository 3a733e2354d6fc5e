"""Marks tests with the requirements they cover: `@pytest.mark.req("S1-67")`.

`pytest --requirements LIST` runs the tests and then prints which numbers of LIST (a text file in which
every requirement stands on a line of its own, `- S1-67 …`) carry a test, and which do not.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# no test depends on, or changes, what the user who runs it has set and agreed to; subprocesses inherit it
_HOME = tempfile.TemporaryDirectory(prefix="ripstop-tests-")
os.environ["XDG_CONFIG_HOME"], os.environ["XDG_STATE_HOME"] = f"{_HOME.name}/config", f"{_HOME.name}/state"
os.environ["XDG_CACHE_HOME"] = f"{_HOME.name}/cache"

# how long an example takes says something about the machine, not about the code
settings.register_profile("ripstop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ripstop")

_NUMBER = re.compile(r"^\s*[-*]?\s*(S\d-\d+)(?=[ei?]*\s)", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements", metavar="LIST", help="print which requirements of LIST no test covers")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "req(*numbers): the requirements that this test covers")
    path = config.getoption("--requirements")
    if path:
        config.pluginmanager.register(_Coverage(Path(path)))


class _Coverage:
    def __init__(self, path: Path) -> None:
        self._wanted = dict.fromkeys(_NUMBER.findall(path.read_text(encoding="utf-8")))
        self._covered: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._covered = {number for item in items for number in _numbers(item)}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        missing = [number for number in self._wanted if number not in self._covered]
        unknown = sorted(self._covered - self._wanted.keys())
        terminalreporter.section("requirements")
        terminalreporter.line(f"{len(self._wanted) - len(missing)} of {len(self._wanted)} have a test")
        if missing:
            terminalreporter.line("without a test: " + " ".join(missing))
        if unknown:
            terminalreporter.line("named by a test, but not in the list: " + " ".join(unknown))


def _numbers(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("req"):
        yield from mark.args
