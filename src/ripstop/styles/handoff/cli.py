"""`ripstop docs …`: hand-off documents, for people and for other programs."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.cli.options import Family, Options, number_type, shared_options, watch_limit_options, without_tools
from ripstop.faces.cli.terminal import say, say_json, say_text
from ripstop.faces.cli.words import EXIT, WAITING
from ripstop.faces.cli.work import drain_option
from ripstop.faces.next_steps import in_commands

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .document_view import DocumentView, FolderWarning
    from .service import HandoffService


# Opening a folder of documents for one command.


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
) -> tuple[Any, list["FolderWarning"]]:
    """Do something with the documents of a folder; returns its result, and what is wrong with some files.

    With `create` a journal is made if there is none. So it is if there are files to take in, unless another than the
    default was named: that may have been a mistake. Where nobody has ever worked nothing is made: the document `named`
    does not exist, and without a name the result is an empty list.
    """
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import DEFAULT_STORE, store_path
    from ripstop.engine.ports import NOTHING
    from ripstop.kernel.errors import UsageError

    from .reader import read_rules
    from .service import open_documents

    warnings: list[FolderWarning] = []
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
            return await work(await open_documents(app, folder, warnings.append, rules))

    try:
        return asyncio.run(go()), warnings
    finally:
        for warning in dict.fromkeys(warnings):
            say(f"{warning.file}: {in_commands(warning.text)}", err=True)


def _is_used(folder: Path) -> bool:
    """Whether there are documents or messages in a folder, or have been."""
    return any((folder / name).is_dir() for name in (".workflows", ".inbox"))


STATUSES = ("pending", "in_progress", "completed", "terminated")

_as = click.option(
    "--as", "by", default="", metavar="NAME", help="Whose name the history records. Default: the document's owner."
)
_message = click.option("-m", "--message", default="", metavar="TEXT", help="What to say with it.")
_next = click.option("--next", "next_action", default="", metavar="TEXT", help="What should be done next.")


@click.group(cls=Family, short_help="Hand-off documents: tasks that go from owner to owner.")
@shared_options
def docs() -> None:
    """Hand-off documents: Markdown files in .workflows/ that go from owner to owner.

    People, agents and other programs may all work on them: with these commands, or by editing the files.

    \b
    Example:
      ripstop docs new "Write add(a, b)" --to programmer
      ripstop docs list
      ripstop docs watch
    """


@docs.command(short_help="Make a document for somebody.")
@click.argument("task")
@click.option("--to", "owner", metavar="NAME", help="Who should do it. Default: the folder's first role.")
@click.option("--from", "creator", default="", metavar="NAME", help="Who asks for it. Default: you.")
@click.option(
    "--type", "kind", default="task", metavar="WORD", help="What kind of task it is; part of the file's name."
)
@click.option("--id", "named", default="", metavar="ID", help="Its id. Default: type and time.")
@click.option("--until", "conditions", multiple=True, metavar="TEXT", help="When it ends; can be repeated.")
@click.option(
    "--max-interactions",
    type=number_type("docs", "max_interactions"),
    help="How often it may change hands. Default: as handoff.yaml or [docs] says, or 10.",
)
@_next
@folder_option
@shared_options
@click.pass_obj
def new(options: Options, /, task: str, folder: Path, owner: str | None, creator: str, **given: Any) -> None:
    """Make a document and give it to somebody: to the role that handoff.yaml names first, if you name nobody.

    \b
    Example:
      ripstop docs new "Write add(a, b) and test it" --to programmer --type code
    """
    if not task.strip() or (owner is not None and not owner.strip()):
        raise click.UsageError("A document needs a task and an owner: ripstop docs new TASK --to NAME.")
    from getpass import getuser

    _plain_text(task, owner or "", creator, given["kind"], given["named"], given["next_action"], *given["conditions"])
    by = creator or getuser()
    document, _ = with_documents(options, folder, lambda docs: docs.new(task, owner or "", by, **given), create=True)
    _show_one(options, document, f"{document.id}  {document.content.status}, for {document.content.owner}")


def _plain_text(*texts: str) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{text!r} is not UTF-8 text.") from None


def _show_one(options: Options, document: "DocumentView", line: str) -> None:
    from .document_view import plain

    if options.as_json:
        say_json(plain(document))
    else:
        say(f"{line}  ", (document.file, "dim"))


@docs.command("list", short_help="List the documents.")
@click.option("--owner", default="", metavar="NAME", help="Only those that belong to NAME.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status.")
@folder_option
@shared_options
@click.pass_obj
def list_(options: Options, folder: Path, owner: str, status: str | None) -> None:
    """List the documents: what is to be done, by whom, and how far it is.

    Files that are new are taken in, edits are read back, and what cannot be read is set aside, each with a message.

    \b
    Example:
      ripstop docs list --owner programmer
    """
    from .document_view import plain
    from .reader import role_files
    from .service import unknown_owners

    found, warnings = with_documents(options, folder, lambda docs: docs.reconcile(with_unread=True))
    unknown = unknown_owners(found, [path.stem for path in role_files(folder)])
    shown = [d for d in found if owner in ("", d.content.owner) and status in (None, d.content.status)]
    shown.sort(key=lambda document: (document.content.created, document.id))
    if options.as_json:
        listed = {
            "documents": [plain(document) for document in shown],
            "problems": [
                {"file": warning.file, "text": in_commands(warning.text)} for warning in (*warnings, *unknown)
            ],
        }
        return say_json(listed)
    if not shown:
        if found:
            return say(f"No documents match ({len(found)} in this folder).")
        hint = "" if warnings else ' Make one:  ripstop docs new "TASK" --to NAME'
        return say(f"No documents here.{hint}")
    from .cli_watch import say_outages, show_documents

    show_documents(shown)
    say_outages(shown)
    for warning in unknown:
        say((warning.text, "yellow"), err=True)
    refused = sum(len(document.refused) for document in shown)
    if refused:
        kept = "1 refused edit is" if refused == 1 else f"{refused} refused edits are"
        how = "`docs show` names them, `docs clean` deletes old ones"
        say((f"{kept} kept in {folder / '.workflows'}: {how}", "dim"), err=True)
    return None


@docs.command(short_help="Show a document.")
@click.argument("document")
@folder_option
@shared_options
@click.pass_obj
def show(options: Options, document: str, folder: Path) -> None:
    """Show a document as it is now. DOCUMENT is its id or its file.

    \b
    Example:
      ripstop docs show task_20261116_093000 --json
    """
    from .document_view import plain, text_of

    async def look(documents: "HandoffService") -> Any:
        found = await documents.find(document)
        return found, await documents.state(found.run)

    (found, run), _ = with_documents(options, folder, look, named=document)
    if options.as_json:
        return say_json(plain(found, run))
    say_text(text_of(found).rstrip("\n"))
    for odd in found.oddities:
        say((f"odd: {odd}", "yellow"), err=True)
    for name in found.refused:
        say((f"a refused edit is kept: {folder / '.workflows' / name}", "yellow"), err=True)
    return say((f"closer: ripstop log {found.run}   ·   ripstop why {found.run}", "dim"), err=True)


def _act(options: Options, folder: Path, named: str, action: str, by: str, **given: str) -> None:
    """Have a transition made, and say what the document has become."""
    _plain_text(named, by, *given.values())

    async def act(documents: "HandoffService") -> Any:
        found = await documents.find(named)
        asked = "assign" if action == "pass" and found.content.status == "pending" else action
        moved = await documents.act(found, asked, by or found.content.owner, **given)
        return moved, await documents.state(moved.run)

    (document, run), _ = with_documents(options, folder, act, named=named)
    content = document.content
    whose = "" if content.status in ("completed", "terminated") else f", with {content.owner}"
    _show_one(options, document, f"{document.id}  {content.status}{whose}")
    for question in document.questions:
        say(f"A person is asked: {question}", err=True)
        say("  ripstop desk", err=True)
    if document.questions:
        sys.exit(WAITING)
    if run.verdict is not None and action != "terminate":
        say(f"A guard terminated it: {run.verdict.text}", err=True)
        sys.exit(EXIT["stopped"])


@docs.command(short_help="Accept a document and start to work on it.")
@click.argument("document")
@_as
@folder_option
@shared_options
@click.pass_obj
def accept(options: Options, document: str, by: str, folder: Path) -> None:
    """Accept a pending document: its owner works on it now, and the history says that the owner accepted it.

    \b
    Example:
      ripstop docs accept task_20261116_093000 --as programmer
    """
    _act(options, folder, document, "accept", by)


@docs.command("pass", short_help="Hand a document to somebody else.")
@click.argument("document")
@click.option("--to", required=True, metavar="NAME", help="Who takes over.")
@_as
@_message
@_next
@click.option("--result", default="", metavar="TEXT", help="The result so far.")
@folder_option
@shared_options
@click.pass_obj
def pass_(options: Options, /, document: str, folder: Path, by: str, **given: str) -> None:
    """Hand a document that is in progress to somebody else; a pending one is assigned to them.

    The history records it as done by the document's owner, unless --as names somebody else. Only the owner may hand
    over what is in progress; anybody may assign what is pending, so give your own name there.

    \b
    Example:
      ripstop docs pass task_20261116_093000 --to tester --next "Test add(2, 2)"
    """
    _act(options, folder, document, "pass", by, **given)


@docs.command(short_help="Complete a document.")
@click.argument("document")
@_as
@_message
@click.option("--result", default="", metavar="TEXT", help="The result.")
@folder_option
@shared_options
@click.pass_obj
def complete(options: Options, /, document: str, folder: Path, by: str, **given: str) -> None:
    """Complete a document that is in progress. Only its owner may, and the history says that the owner did.

    \b
    Example:
      ripstop docs complete task_20261116_093000 --result "2 + 2 = 4"
    """
    _act(options, folder, document, "complete", by, **given)


@docs.command(short_help="Terminate a document that is not finished.")
@click.argument("document")
@_as
@click.option("--because", "message", default="", metavar="TEXT", help="Why.")
@folder_option
@shared_options
@click.pass_obj
def terminate(options: Options, document: str, folder: Path, by: str, message: str) -> None:
    """Terminate a document that is not finished.

    The history records it as done by the document's owner, unless --as names somebody else. Anybody may, so give
    your own name.

    \b
    Example:
      ripstop docs terminate task_20261116_093000 --because "nobody needs it any more"
    """
    _act(options, folder, document, "terminate", by, message=message)


@docs.command(short_help="Show the messages in the inboxes.")
@click.argument("agent", required=False, default="")
@click.option("--handle", "do_handle", is_flag=True, help="Do what they ask for, and put them away.")
@folder_option
@shared_options
@click.pass_obj
def inbox(options: Options, agent: str, folder: Path, do_handle: bool) -> None:
    """Show the messages in .inbox/, of one AGENT or of all.

    \b
    Example:
      ripstop docs inbox secretary --handle
    """
    from .inbox import Inbox, messages, plain_message

    async def look(documents: "HandoffService") -> Any:
        found = await messages(documents, agent)
        if not do_handle:
            return [(received, "") for received in found]
        if found:
            await documents.reconcile()  # a message can be about a document that was not looked at yet
        inbox = Inbox(documents)
        return [(received, (await inbox.handle(received))[0]) for received in found]

    found, _ = with_documents(options, folder, look)
    if options.as_json:
        listed = [{**plain_message(received), "became": became} for received, became in found]
        return say_json(listed)
    if not found:
        return say("No messages.")
    from ripstop.faces.cli.words import first_line

    for received, became in found:
        said = plain_message(received)
        who = f"{said['from']} → {received.agent}" if said["from"] else received.agent
        what = (
            f"{received.file}: {said['problem']}"
            if said["problem"]
            else first_line(said["document"] or said["body"], 80)
        )
        say(f"{who}  {said['type']}  {what}")
        if became:
            say(f"    {became}")
    return None


@docs.command(short_help="Let agents work on the documents they own.")
@click.option("--once", is_flag=True, help="Stop when nothing is left to do.")
@click.option("--role", "only", multiple=True, metavar="NAME", help="Only this role; can be repeated.")
@drain_option
@watch_limit_options
@folder_option
@shared_options
@click.pass_obj
def watch(
    options: Options, folder: Path, once: bool, only: tuple[str, ...], most: dict[str, float], drain: float
) -> None:
    """Let agents work on the documents they own: workflows first, the inbox second.

    A role is a file roles/NAME.md that says how it works; `models` in handoff.yaml, or [docs.models] in ripstop.toml,
    may give it its own model. The command continues until it is interrupted (Ctrl-C loses nothing), or, with --once,
    until nothing is left to do; then the exit code is 4 if a person is asked (ripstop desk), and 3 if a guard stopped
    something. The first signal lets calls under way finish (--drain); a second one ends the process at once.

    --max-… is what all agents together may spend while this command runs. It stops as soon as that is spent, with
    exit code 3; a call that is under way then is cancelled, and made again by the next watch.

    \b
    Example:
      ripstop docs watch --once --model script:script.jsonl --max-calls 50
    """
    from ripstop.faces.cli.trust import with_consent

    from .cli_watch import watch_documents

    sys.exit(with_consent(options, lambda: asyncio.run(watch_documents(options, folder, once, only, most, drain))))


# `ripstop docs clean`, `restore` and `guide`: looking after a folder of documents.


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
    from ripstop.text.plurals import count

    age = options.settings().docs.keep_days if days is None else days

    async def work(documents: "HandoffService") -> Any:
        return await documents.clean(age, dry_run), await documents.clean_refused(age, dry_run)

    found, _ = with_documents(options, folder, work)
    old, refused = found or ([], [])
    if options.as_json:
        listed = [{"id": document.id, "file": document.file} for document in old]
        return say_json({"deleted": [] if dry_run else listed, "old": listed, "refused": refused})
    for document in old:
        say(f"{document.id}  {document.content.updated}  {document.file}")
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
    from ripstop.text.plurals import count

    from .document_view import plain

    back, _ = with_documents(options, folder, lambda documents: documents.restore())
    if options.as_json:
        return say_json({"restored": [plain(document) for document in back]})
    for document in back:
        say(f"{document.id}  {document.content.status}  {document.file}")
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
    from .guide import guide as text_for

    text = text_for(agent, "" if folder == Path() else f"{folder}/")
    return say_json({"guide": text}) if options.as_json else say_text(text.rstrip("\n"))
