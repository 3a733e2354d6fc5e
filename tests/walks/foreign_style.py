"""A style that another package brings, found through an entry point as if it were installed."""

import asyncio
import os
from pathlib import Path

from ripstop.app.application import now
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.engine.engine import Engine
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import Command
from ripstop.kernel.registry import Registry
from ripstop.testing import ERRANDS, Errands
from tests.harness.own_journal import own

PLUGIN = """\
from ripstop.app.plugin import Plugin

PLUGIN = Plugin(name="errands", kits=("ripstop.testing:ERRANDS",), summary="Asks for what its definition lists.")
"""


def install(folder: Path) -> dict[str, str]:
    """Put the package into a folder; returns the environment in which it is installed."""
    packages = folder / "packages"
    about = packages / "errands-1.dist-info"
    about.mkdir(parents=True)
    (packages / "errand_plugin.py").write_text(PLUGIN, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: errands\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[ripstop.styles]\nerrands = errand_plugin:PLUGIN\n", encoding="utf-8")
    paths = filter(None, (str(packages), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def start(folder: Path, run: str, *commands: Command) -> None:
    """Start a run of that style in the journal of a folder, with nobody at work on it."""

    async def write() -> None:
        store = folder / ".ripstop" / "journal.db"
        store.parent.mkdir(exist_ok=True)
        registry = Registry((*Plugins(BUILT_IN).kits, ERRANDS))
        journal = SqliteJournal(store, registry.codec)
        definition = Errands(rounds=(commands,)).content()
        await Engine(journal, registry, now).start(run, "errands", definition)
        await journal.close()
        await own(store)

    asyncio.run(write())
