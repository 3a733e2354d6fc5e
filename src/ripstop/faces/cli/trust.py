"""`trust`: what this project names, and what you have agreed to; and the question that other commands ask before work.

The question is asked on a terminal only. Elsewhere it could not be answered, so the command ends with exit code 2.
"""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ripstop.faces.next_steps import in_commands

from .options import Options, shared_options
from .terminal import can_ask, confirm, say, say_json

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.app.trust import NotTrusted
    from ripstop.kernel.style import EndpointUse
    from ripstop.security.consent import Consent

    from .options import Options

T = TypeVar("T")

# Asking for what a journal wants and its user has not allowed yet.


async def with_folders(options: "Options", app: "App", work: "Callable[[], Awaitable[T]]", run_id: str = "") -> "T":
    """Do the work; on a terminal, ask the user about a folder that the journal names, and begin again.

    Args:
        run_id: The run that the user has named; empty: the one that the folder's run belongs to.
    """
    from ripstop.kernel.errors import UntrustedFolder

    while True:
        try:
            return await work()
        except UntrustedFolder as error:
            if options.as_json or not can_ask():
                raise
            info = await app.engine.journal.run(error.run_id)
            run = (await app.engine.look(run_id or (info.root if info else error.run_id))).run
            agents = app.engine.uses(run).agents
            say(f"This journal may come from somebody else. The run {run.id} would use", err=True)
            say(f"  files in  {error.folder}", err=True)
            say(f"  model     {run.settings.model}  {run.settings.base_url}", err=True)
            for agent in agents:
                say(f"  agent     {agent.name}: {', '.join(agent.tools) or 'no tools'}", err=True)
            if not confirm("Let it use these files?"):
                raise
            app.folders.remember(Path(str(error.folder)))


DECLINED = 1


def with_consent(options: Options, work: Callable[[], int]) -> int:
    """Do the work; if it is refused for want of a consent, ask for it and begin again. Returns the exit code.

    A journal that is refused is asked about where all commands are run.
    """
    from ripstop.app.journal_trust import ForeignJournal
    from ripstop.app.trust import NotTrusted

    while True:
        try:
            return work()
        except NotTrusted as refusal:
            if isinstance(refusal, ForeignJournal) or options.as_json or not agrees_to([refusal]):
                raise
            refusal.agree()


def agree_or_warn(options: Options, settings: "Settings", named: str) -> None:
    """Ask for consent to the URLs that a workflow's tools call; where nobody can be asked, or agrees, warn.

    Only calls of these tools fail without it, so the others need not wait for it.
    """
    from ripstop.app.trust import Trust, private_addresses, unset_secrets
    from ripstop.security.consent import Consents

    uses, trusted = endpoints_of_workflow(named) or (), Trust(settings)
    refusals = trusted.unagreed_endpoints(uses)
    if refusals and not options.as_json and agrees_to(refusals):
        Consents().remember([refusal.named for refusal in refusals])
        refusals = []
    told = [in_commands(refusal.message) for refusal in refusals]
    warnings = [one.replace("trust CONFIG", f"trust {shlex.quote(named)}") for one in told]
    for origin, private in private_addresses(uses, trusted.endpoints).items():
        if not any(f"--allow {origin}" in one for one in warnings):
            warnings.append(private)
    for warning in (*warnings, *unset_secrets(uses)):
        say(f"warning: {warning}", err=True)


def agrees_to(refusals: "Sequence[NotTrusted]") -> bool:
    """Show what the user would agree to, and ask; false where nobody can be asked."""
    if not can_ask():
        return False
    for refusal in refusals:
        say(refusal.said, err=True)
        for line in refusal.shown:
            say(f"  {line}", err=True)
    return confirm("Do you agree?")


@click.command(short_help="Agree to a journal, and to what this project names.")
@click.argument("named", metavar="[RUN|CONFIG|JOURNAL]", required=False)
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--list", "do_list", is_flag=True, help="List everything that you have agreed to.")
@click.option("--revoke", "do_revoke", is_flag=True, help="Take back what you have agreed to in this folder.")
@shared_options
@click.pass_obj
def trust(options: Options, named: str | None, yes: bool, do_list: bool, do_revoke: bool) -> None:
    """Show which addresses, modules of tools and MCP servers this project names, and agree to them.

    An address in the project's ripstop.toml, or in the journal of a RUN that somebody else began, gets no prompt and
    no key before you have agreed to it. A Python module under [tools] is not imported before that, and a server under
    [mcp] not started; `ripstop tools trust SERVER` also shows its tools. The consent is for this folder, and for this
    very address, module or server.

    A journal that you have not made, such as the .ripstop/journal.db of a folder that you have cloned, can be looked
    at, but nothing in it is performed or answered before you have agreed to it. `trust` shows what would be done: every
    call of a tool that is open or waits for its turn, with its arguments. After that its agents go on. What its writer
    adds later is asked about again. JOURNAL names another one by its file.

    With a CONFIG (a workflow whose tools call URLs) it shows every origin that they call, with the secrets of your
    environment that it would get. A consent does not cover private addresses: allow those in your own settings
    (`[http] allow`), or with `--allow` where you run it.

    `--list` and `--revoke` also cover the folders that you have let the runs of a journal write to
    (`--workspace`, or a yes to `ripstop resume`), and the journals that you have made or agreed to.

    \b
    Examples:
      ripstop trust
      ripstop trust haiku-k3f9x
      ripstop trust bots/shop
      ripstop trust other/.ripstop/journal.db
      ripstop trust --list
      ripstop trust --revoke
    """
    from ripstop.security.consent import Consents

    consents = Consents()
    if do_list or do_revoke:
        here = _project()
        found = [one for one in consents.all() if do_list or one.project == here]
        journals = _known_journals("" if do_list else here)
        if do_list:
            return _list(options, [*found, *journals.values()])
        consents.revoke(found)
        _forget_journals(journals)
        found += journals.values()
        return _show(options, found, "revoked", "Nothing was revoked: you have agreed to nothing in this folder.")
    refusals = _refusals(options, named)
    wanted = [refusal.named for refusal in refusals]
    if wanted and not yes and (options.as_json or not can_ask()):
        for line in (line for refusal in refusals for line in refusal.shown):
            say(f"  {line}", err=True)
        raise click.UsageError(f"{refusals[0].said} Agree on a terminal, or with --yes.")
    if wanted and not yes and not agrees_to(refusals):
        say("Nothing was agreed to.", err=True)
        sys.exit(DECLINED)
    for refusal in refusals:
        if yes and not options.as_json:  # else it was shown with the question
            for line in refusal.shown:
                say(f"  {line}", err=True)
        _agree(refusal)
    if not wanted and not options.as_json:
        return _show_known(options, [one for one in consents.all() if one.project == _project()], named)
    _show(options, wanted, "agreed", "")
    return _warn_of_private(options, named)


def _agree(refusal: "NotTrusted") -> None:
    """Raises `UsageError` if that could not be remembered when this command has ended."""
    from ripstop.app.journal_trust import ForeignJournal

    refusal.agree()
    if isinstance(refusal, ForeignJournal) and not refusal.is_remembered:
        raise click.UsageError(
            f"It cannot be remembered that you agree to {refusal.named.content}: your state folder cannot be "
            "written to. Change the permissions there, or name the journal with every command: --store sqlite:PATH."
        )


def _known_journals(project: str) -> "dict[str, Consent]":
    """The journals that the user has made or agreed to in a project's folder, by their ids; empty: in all."""
    from ripstop.security.consent import Consent
    from ripstop.security.known_journals import KnownJournals

    found = {}
    for one in KnownJournals().all():
        if project in ("", one.project):
            found[one.id] = Consent("journal", one.path, one.project)
    return found


def _forget_journals(ids: "Iterable[str]") -> None:
    from ripstop.security.known_journals import KnownJournals

    for id in ids:
        KnownJournals().forget(id)


def _show_known(options: Options, agreed: "list[Consent]", named: str | None) -> None:
    """There is nothing to agree to: show what the user has agreed to before."""
    if agreed:
        say("There is nothing new to agree to. In this folder you have agreed to:")
    _show(options, agreed, "agreed", "This project names nothing that you would have to agree to.")
    _warn_of_private(options, named)


def _warn_of_private(options: Options, named: str | None) -> None:
    """Say which addresses of a workflow need more than a consent."""
    from ripstop.app.trust import Trust, private_addresses

    uses = endpoints_of_workflow(named) or ()
    for private in private_addresses(uses, Trust(options.settings()).endpoints).values():
        say(private, err=True)


def _project() -> str:
    from pathlib import Path

    return str(Path.cwd().resolve())


def _refusals(options: Options, named: str | None) -> "list[NotTrusted]":
    """What would be refused in this folder: address, tools and webhooks of the settings, and of a run or a workflow its
    address and its endpoints."""
    from ripstop.app.trust import NotTrusted, Trust

    settings = options.settings()
    if named and _is_journal(named):
        return asyncio.run(_foreign(settings, named))
    trusted = Trust(settings)
    addresses, endpoints = [(settings.models.base_url, "")], endpoints_of_workflow(named)
    if named and endpoints is None:
        address, endpoints = asyncio.run(_recorded(settings, named))
        addresses.append((address, named))
    refusals: dict[Consent, NotTrusted] = {}
    for address, whose in addresses:
        try:
            trusted.check(address, whose)
        except NotTrusted as refusal:
            refusals.setdefault(refusal.named, refusal)
    tools = [*trusted.unagreed_tools(options.tool_modules), *trusted.unagreed_servers().values()]
    webhooks = trusted.unagreed_webhooks()
    webhooks += [] if named else asyncio.run(_foreign(settings))
    return [*refusals.values(), *tools, *webhooks, *trusted.unagreed_endpoints(endpoints or ())]


def _is_journal(named: str) -> bool:
    """Whether this is the file of a journal, and not a workflow or a run."""
    path = Path(named.removeprefix("sqlite:"))
    if not path.is_file():
        return named.startswith("sqlite:")
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


async def _foreign(settings: "Settings", named: str = "") -> "list[NotTrusted]":
    """The refusal of a journal that the user has neither made nor agreed to; of the settings, or one that is named."""
    from msgspec.structs import replace

    from ripstop.app.plugins import installed
    from ripstop.app.stores import closing, open_journal, trusted_engine
    from ripstop.engine.clock import ProcessClock

    store = f"sqlite:{named.removeprefix('sqlite:')}" if named else settings.store
    chosen = replace(settings, store=store, store_named=False if named else settings.store_named)
    journal = open_journal(chosen, create=False, or_empty=not named)
    async with closing(journal):
        opened = await trusted_engine(journal, chosen, installed(), ProcessClock())
        return [opened.refusal] if opened.refusal else []


def endpoints_of_workflow(named: str | None) -> "Sequence[EndpointUse] | None":
    """The URLs that a workflow's tools call; none if it is not a workflow, but a run. Raises `UsageError`."""
    from pathlib import Path

    from ripstop.app.plugins import installed
    from ripstop.app.start import FAMILY, pin_family
    from ripstop.definitions.loading import FOLDER, find

    if not named or _is_journal(named) or not (Path(named).exists() or (Path(FOLDER) / named).exists()):
        return None
    return pin_family(installed(), find(installed().readers, named, FAMILY)).endpoints


async def _recorded(settings: "Settings", run_id: str) -> "tuple[str, Sequence[EndpointUse]]":
    """The address of a run's model, and the URLs that its tools call."""
    from ripstop.app.stores import open_engine

    async with open_engine(settings) as engine:
        run = (await engine.look(run_id)).run
        return run.settings.base_url, engine.uses(run).endpoints


def _list(options: Options, agreed: "list[Consent]") -> None:
    """Show what the user has agreed to and, apart from that, what this project names."""
    settings = options.settings()
    refusals = _refusals(options, None)
    if options.as_json:
        return say_json({"agreed": _plain(agreed), "not_agreed": _plain([refusal.named for refusal in refusals])})
    _show(options, agreed, "agreed", "You have not agreed to anything yet.")
    for refusal in refusals:
        say(f"{refusal.said}  Agree:  ripstop trust")
    named = [settings.models.base_url] if settings.address_from else []
    named += settings.tools.modules if settings.tools_from else ()
    named += settings.project_servers
    named += [settings.webhooks[name].url for name in settings.project_webhooks]
    if not refusals and named:
        file = settings.address_from or settings.tools_from or "This project's ripstop.toml"
        say(f"{file} names {', '.join(named)}, which you have agreed to.")
    elif not refusals:
        say("This project names no address and no tools.")
    return None


def _plain(items: "list[Consent]") -> list[dict[str, str]]:
    from msgspec import to_builtins

    return [to_builtins(one) for one in items]


def _show(options: Options, items: "list[Consent]", what: str, nothing: str) -> None:
    """Print what was agreed or revoked; `nothing`: what to say if there are none."""
    if options.as_json:
        return say_json({what: _plain(items)})
    if not items:
        return say(nothing)
    for one in items:
        say(f"{what}  {one.kind}  {one.content}  ", (one.journal or one.project, "dim"))
    return None
