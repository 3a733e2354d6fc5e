"""Opening a folder of documents for one command."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.cli.options import Options, without_tools
from ripstop.faces.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripstop.services.handoff.service import HandoffService
    from ripstop.services.handoff.view import Trouble

folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="Where .workflows/ and .inbox/ are. Default: here.",
)


def with_documents(
    options: Options,
    folder: Path,
    work: "Callable[[HandoffService], Awaitable[Any]]",
    named: str = "",
    create: bool = False,
) -> tuple[Any, list["Trouble"]]:
    """Do something with the documents of a folder; returns its result, and what is wrong with some files.

    With `create` a journal is made if there is none. So it is if there are files to take in, unless another than the
    default was named: that may have been a mistake. Where nobody has ever worked nothing is made: the document `named`
    does not exist, and without a name the result is an empty list.
    """
    from ripstop.app import App
    from ripstop.definitions.handoff.reader import read_rules
    from ripstop.kernel.errors import UsageError
    from ripstop.runtime.ports import NOTHING
    from ripstop.services.handoff.service import open_documents
    from ripstop.settings.settings_file import DEFAULT_STORE, store_path

    troubles: list[Trouble] = []
    settings = options.settings()
    rules = read_rules(folder)  # before a journal is made
    takes_in = _is_used(folder)
    create = create or (settings.store == DEFAULT_STORE and takes_in)
    if not create and not takes_in and settings.store == DEFAULT_STORE and not store_path(settings.store).exists():
        if named:
            raise UsageError(f"There is no document {named!r} in {folder.resolve()}; there are no documents here yet.")
        return [], []

    async def go() -> Any:
        # agents work under `docs watch`, not when a command only reads documents
        async with App(without_tools(settings), create=create, scope=NOTHING) as app:
            return await work(await open_documents(app, folder, troubles.append, rules))

    try:
        return asyncio.run(go()), troubles
    finally:
        for trouble in dict.fromkeys(troubles):
            say(f"{trouble.file}: {trouble.text}", err=True)


def _is_used(folder: Path) -> bool:
    """Whether there are documents or messages in a folder, or have been."""
    return any((folder / name).is_dir() for name in (".workflows", ".inbox"))
