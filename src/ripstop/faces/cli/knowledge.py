"""`ripstop kb …`: what a knowledge base answers with."""

from pathlib import Path

import click

from ripstop.kernel.counting import count

from .options import Family, FolderPath, Options, shared_options
from .terminal import say, say_json, say_text

MOST = 50
"""Passages; a conversation gets fewer."""


@click.group(cls=Family, short_help="Knowledge bases: what a question finds.")
@shared_options
def kb() -> None:
    """Knowledge bases: folders of Markdown and text files that conversations answer from.

    \b
    Example:
      ripstop kb search "How do I return shoes?" --folder knowledge
    """


@kb.command(short_help="Show the passages that a question finds.")
@click.argument("question")
@click.option("--folder", type=FolderPath(), default=Path("knowledge"), metavar="FOLDER", help="Default: knowledge")
@click.option("--most", type=click.IntRange(1, MOST), default=5, metavar="N", help="Passages to show. Default: 5")
@shared_options
@click.pass_obj
def search(options: Options, question: str, folder: Path, most: int) -> None:
    """Show the passages that a question finds, the best first, with the file and heading of each.

    These are what a conversation would put into its prompt. Files that changed are read again first.

    \b
    Examples:
      ripstop kb search "How do I return shoes?"
      ripstop kb search 怎么退货 --folder docs/faq --most 3 --json
    """
    from ripstop.services.knowledge import search_knowledge

    found = search_knowledge(folder, question, most)
    if options.as_json:
        import msgspec

        return say_json(msgspec.to_builtins(found))
    for skipped in found.skipped:
        say((f"{skipped.path} is not searched: {skipped.reason}.", "yellow"), err=True)
    for number, passage in enumerate(found.passages):
        if number:
            say()
        say((passage.source, "bold"))
        say_text(passage.text)
    if not found.passages:
        say(f"Nothing found in {count(found.files, 'file')} of {folder}.", err=True)
    return None
