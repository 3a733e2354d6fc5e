"""`ripstop kb …`: what a knowledge base answers with."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Family, FolderPath, Options, shared_options
from ripstop.faces.cli.terminal import say, say_json, say_text
from ripstop.text.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripstop.tools.knowledge.folder import Skipped

MAX_PASSAGES = 50
"""Passages; a conversation gets fewer."""
PASSAGES = 5
NAMED_APART = 3
"""Files that are not searched for one reason; more are counted."""
LINES = 20
"""About files that are not searched."""


@click.group(cls=Family, short_help="Knowledge bases: what a question finds.")
@shared_options
def kb() -> None:
    """Knowledge bases: folders of Markdown and text files that conversations answer from.

    \b
    Example:
      ripstop kb search "How do I return shoes?" bots/shop
    """


@kb.command(short_help="Show the passages that a question finds.")
@click.argument("question")
@click.argument("config", required=False)
@click.option("--folder", type=FolderPath(), metavar="FOLDER", help="Default: that of the bot, else knowledge")
@click.option(
    "--most", type=click.IntRange(1, MAX_PASSAGES), metavar="N", help="Passages. Default: as the bot has it, else 5"
)
@shared_options
@click.pass_obj
def search(options: Options, question: str, config: str | None, folder: Path | None, most: int | None) -> None:
    """Show the passages that a question finds, the best first, with the file and heading of each.

    These are what a conversation would put into its prompt. Files that changed are read again first. With the CONFIG of
    a bot, it is the bot's knowledge base, and as many passages as the bot gets.

    \b
    Examples:
      ripstop kb search "How do I return shoes?" bots/shop
      ripstop kb search 怎么退货 --folder docs/faq --most 3 --json
    """
    from ripstop.tools.knowledge.index import search_knowledge

    if config and folder:
        raise click.UsageError("Give either CONFIG or --folder.")
    of_bot, passages = _knowledge_of(config) if config else (Path("knowledge"), PASSAGES)
    where = folder or of_bot
    found = search_knowledge(where, question, most or passages)
    if options.as_json:
        import msgspec

        return say_json(msgspec.to_builtins(found))
    _tell_skipped(found.skipped)
    for number, passage in enumerate(found.passages):
        if number:
            say()
        say((passage.source, "bold"))
        say_text(passage.text)
    if not found.passages:
        say(f"Nothing found in {count(found.files, 'file')} of {where}.", err=True)
    return None


def _tell_skipped(files: "Sequence[Skipped]") -> None:
    """Name the files that are not searched; many with one reason are one line."""
    by_reason: dict[str, list[str]] = {}
    for file in files:
        by_reason.setdefault(file.reason, []).append(file.path)
    lines = []
    for reason, paths in by_reason.items():
        if len(paths) > NAMED_APART:
            lines.append(f"{len(paths):,} files, such as {paths[0]}, are not searched: {reason}.")
        else:
            lines += [f"{path} is not searched: {reason}." for path in paths]
    for line in lines[:LINES]:
        say((line, "yellow"), err=True)
    if len(lines) > LINES:
        say((f"… and {len(lines) - LINES:,} more lines like these; --json has every file.", "yellow"), err=True)


def _knowledge_of(config: str) -> tuple[Path, int]:
    """The folder of a bot's knowledge base, and how many passages it gets. Raises `UsageError`."""
    from ripstop.app.plugins import installed
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment

    from ..bots import STYLE

    workflow = find(installed().readers, config, Environment(any_name=True))
    bot = installed().registry.load(STYLE, workflow.content) if workflow.style == STYLE else None
    if bot is None or not bot.knowledge:
        raise click.UsageError(f"{config} has no knowledge base. A bot names its folder: knowledge: FOLDER.")
    return Path(bot.knowledge), bot.passages
