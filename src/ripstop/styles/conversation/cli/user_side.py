"""The user's side of a session: which bot, which session, and what has to be checked before it goes on."""

import secrets
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.options import Options
from ripstop.faces.cli.resume import tell_missing
from ripstop.faces.cli.terminal import say
from ripstop.faces.cli.words import command_for

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.kernel.run import Run

    from ..chats import Chats

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
LENGTH = 10


class UserSide:
    """What the command line says about one side of a conversation."""

    def __init__(self, options: Options, config: str, session: str, by: str, variables: dict[str, str]) -> None:
        self.options = options
        self.config = config
        self.is_unnamed = not session
        self.session = session or new_session()
        self.by = by
        self.variables = variables
        self.chats: Chats
        self.run_id = ""

    async def prepare(self, app: "App") -> "Run[Any] | None":
        """Check what can be checked before anything is said; returns the session's run, if it was begun before."""
        from ripstop.kernel.errors import RunForgotten, RunNotFound, UsageError

        from ..chats import Chats, run_of

        options = self.options
        app.attach(Path.cwd())
        self.chats = Chats(app)
        known = await self.chats.bots.get(self.config)
        self.run_id = run_of(known.bot.name, self.session)
        tell_missing(app, (tool for tool in known.own_tools if not app.toolbox.has(tool)))
        try:
            run = (await app.engine.look(self.run_id)).run
        except RunForgotten as gone:
            raise UsageError(f"{gone} Choose another --session.") from gone
        except RunNotFound:
            return None
        await take_up(options, app, run)
        if self.variables:
            say(f"warning: The session {self.session!r} was begun before, so --set changes nothing.", err=True)
        return run

    async def tell(self, text: str, id: str = "") -> int:
        """Send a message; returns the number of the record with it."""
        name = id or secrets.token_hex(16)
        run = await self.chats.tell(self.config, self.session, text, by=self.by, id=name, variables=self.variables)
        return await self.chats.heard_at(run.id, name)

    def again(self, settings: "Settings") -> str:
        """The command that continues this session."""
        return (
            f"{command_for(settings.store)} chat {shlex.quote(self.config)} --session {shlex.quote(self.session)}"
            f"{f' --by {shlex.quote(self.by)}' if self.by else ''}{same_options(self.options)}"
        )


def same_options(options: Options) -> str:
    """The options that a command needs again to work on a session: its tools, and the addresses that they can call."""
    given = [("--tools", one) for one in options.tool_modules] + [("--allow", one) for one in options.allow]
    return "".join(f" {name} {shlex.quote(value)}" for name, value in given)


async def take_up(options: Options, app: "App", run: "Run[Any]") -> None:
    """Prepare a session that was begun before for work in this process, and give it the model of the options."""
    from ripstop.faces.cli.trust import with_folders

    take_up = partial(app.take_up, run, model=options.model or "", base_url=options.base_url or "")
    await with_folders(options, app, take_up, run.id)


def new_session() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def check_before_journal(settings: "Settings", config: str) -> None:
    """Refuse a command that is wrong before there is a journal: it leaves nothing behind.

    Raises `UsageError` or `DefinitionError`.
    """
    from ripstop.app.plugins import installed
    from ripstop.app.settings.settings_file import store_path
    from ripstop.app.start import check_start
    from ripstop.app.trust import Trust
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment

    from ..bots import check_is_bot

    workflow = find(installed().readers, config, Environment(any_name=True))
    check_is_bot(config, workflow.style)
    if store_path(settings.store).exists():
        return
    check_start(settings, installed(), Trust(settings), workflow)
