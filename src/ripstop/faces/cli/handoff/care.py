"""`ripstop docs clean`, `restore` and `guide`: looking after a folder of documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.cli.options import Options, number_type, shared_options
from ripstop.faces.cli.terminal import say, say_json, say_text

from .commands import docs
from .folder import folder_option, with_documents

if TYPE_CHECKING:
    from ripstop.services.handoff.service import HandoffService

__all__ = ["docs"]


@docs.command(short_help="Delete old terminated documents and refused edits.")
@click.option("--older-than", "days", type=number_type("docs", "keep_days"), metavar="DAYS", help="Default: 7 days.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@folder_option
@shared_options
@click.pass_obj
def clean(options: Options, folder: Path, days: float | None, dry_run: bool) -> None:
    """Delete the files of documents that were terminated long ago, and refused edits that were kept as long.

    The journal keeps all of them.

    \b
    Example:
      ripstop docs clean --older-than 30 --dry-run
    """
    from ripstop.kernel.counting import count

    age = options.settings().docs.keep_days if days is None else days

    async def work(documents: "HandoffService") -> Any:
        return await documents.clean(age, dry_run), await documents.clean_refused(age, dry_run)

    found, _ = with_documents(options, folder, work)
    old, refused = found or ([], [])
    if options.as_json:
        listed = [{"id": document.id, "file": document.file} for document in old]
        return say_json({"deleted": [] if dry_run else listed, "old": listed, "refused": refused})
    for document in old:
        say(f"{document.id}  {document.paper.updated}  {document.file}")
    for name in refused:
        say(name)
    verb = "would be deleted" if dry_run else "deleted"
    also = f" and {count(len(refused), 'refused edit')}" if refused else ""
    return say(f"{count(len(old), 'document')}{also} {verb}.")


@docs.command(short_help="Write back documents whose files are gone.")
@folder_option
@shared_options
@click.pass_obj
def restore(options: Options, folder: Path) -> None:
    """Write back, from the journal, the files of all documents that are not in the folder any more.

    Terminated documents that `docs clean` has deleted, or would delete, stay in the journal only.

    \b
    Example:
      ripstop docs restore
    """
    from ripstop.kernel.counting import count
    from ripstop.services.handoff.view import plain

    back, _ = with_documents(options, folder, lambda documents: documents.restore())
    if options.as_json:
        return say_json({"restored": [plain(document) for document in back]})
    for document in back:
        say(f"{document.id}  {document.paper.status}  {document.file}")
    return say(f"{count(len(back), 'document')} written back.")


@docs.command(short_help="Print instructions for an outside agent.")
@click.argument("agent", required=False, default="")
@folder_option
@shared_options
@click.pass_obj
def guide(options: Options, agent: str, folder: Path) -> None:
    """Print what an agent of another program must know: which fields it can edit, and which changes are legal.

    Put the text into its prompt. AGENT is the name that it has as an owner; with --folder, the text names the folder
    that the documents are in.

    \b
    Example:
      ripstop docs guide tester >> prompts/tester.md
    """
    from ripstop.services.handoff.guide import guide as text_for

    text = text_for(agent, "" if folder == Path() else f"{folder}/")
    return say_json({"guide": text}) if options.as_json else say_text(text.rstrip("\n"))
