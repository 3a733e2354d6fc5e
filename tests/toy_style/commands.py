"""`ripstop chores RUN`: the style's own command."""

import asyncio
import json
from typing import Any

import click

from ripstop import UsageError, open_engine

from .style import COLLECTION


@click.command(short_help="Show what is done of a list of chores.")
@click.argument("run_id", metavar="RUN")
@click.pass_obj
def chores(options: Any, run_id: str) -> None:
    """Show what is done of a list of chores, from the document that the run keeps."""

    async def look() -> bytes | None:
        async with open_engine(options.settings()) as engine:
            return await engine.journal.document(COLLECTION, run_id)

    body = asyncio.run(look())
    if body is None:
        raise UsageError(f"There are no chores of a run {run_id!r}.")
    document = json.loads(body)
    click.echo(f"{document['name']}, round {document['round']}: {len(document['done'])} of {len(document['chores'])}")
