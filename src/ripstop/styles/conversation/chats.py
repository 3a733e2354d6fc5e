"""Sessions: found or started, told what their users say, and shown.

One session is one run, `chat:<workflow>:<session>`. A configuration that has changed is a new definition of the same
run, in place, before the message.
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from ripstop.app.application import App
from ripstop.app.start import with_models_of
from ripstop.engine.engine import View
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import RunAlreadyStarted, RunNotFound, UsageError
from ripstop.kernel.events import Heard
from ripstop.kernel.folding import KNOWN_MESSAGES, heard_at
from ripstop.kernel.questions import checked_name
from ripstop.kernel.run import Run
from ripstop.kernel.text_limits import LONGEST_MESSAGE, is_message, shown, whole_characters

from .bots import STYLE, Bots, KnownBot
from .folding import DESK_CHANNEL
from .plan_questions import withdraw_older_questions
from .session_view import SessionView, view_of
from .state import SessionState
from .view import SESSIONS

# Names of sessions, and the ids of the runs that they are.
#
# A run's id is `chat:<workflow>:<session>`. A dot in it would make it look like the id of a child, so everything but a
# few safe characters is percent-encoded; two names never become one id.


MAX_SESSION_NAME = 128
PREFIX = "chat:"
SAFE = "@+="


def checked_session(name: str) -> str:
    """A session's name. Raises `UsageError`."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_SESSION_NAME:
        raise UsageError(f"A session needs a name of 1 to {MAX_SESSION_NAME} characters, not {shown(name)}.")
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name) or name != name.strip():
        raise UsageError(f"The name of a session must be plain text without control characters, not {shown(name)}.")
    return name


@lru_cache(maxsize=10_000)
def run_of(workflow: str, session: str) -> str:
    """The id of a session's run. Raises `UsageError`."""
    return f"{PREFIX}{_encoded(workflow)}:{_encoded(checked_session(session))}"


def session_of(run_id: str) -> tuple[str, str] | None:
    """(workflow, session) of a run's id; none if it is not a session's."""
    if not run_id.startswith(PREFIX):
        return None
    workflow, colon, session = run_id.removeprefix(PREFIX).partition(":")
    return (unquote(workflow), unquote(session)) if colon else None


def _encoded(text: str) -> str:
    return quote(text, safe=SAFE).replace(".", "%2E")


MOST_VARIABLES = 100
LONGEST_VARIABLE = 2_000


class Chats:
    """The sessions of an open `App`."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.bots = Bots(app)
        self._checked: dict[str, KnownBot] = {}
        """By name, the bots as they were when older questions about their plans were withdrawn."""

    async def open(
        self, workflow: str | Path, session: str, *, variables: Mapping[str, str] | None = None, channel: str = ""
    ) -> Run[Any]:
        """The run of a session, started if it is new, with the configuration as it is now.

        Raises `UsageError` or `DefinitionError`.
        """
        known = await self.bots.get(workflow)
        await self._withdraw_older_questions(known)
        run_id = run_of(known.bot.name, session)
        run = await self._found(run_id)
        if run is None:
            run = await self._start(known, run_id, session, _checked(variables or {}), channel)
        if run.ended:
            raise UsageError(
                Advice(
                    f"The session {session!r} has ended ({run.ended.outcome}: {run.ended.because}). ",
                    NextStep("resume", "Resume it", "Resume it with `{}`", run_id),
                    ", or begin another session.",
                )
            )
        if run.definition != known.digest:
            run = await self._redefine(run, known)
        return run

    async def tell(
        self,
        workflow: str | Path,
        session: str,
        text: str,
        *,
        by: str = "",
        id: str = "",
        variables: Mapping[str, str] | None = None,
        channel: str = "",
    ) -> Run[Any]:
        """Send a user's message to a session. With the same `id` it is heard once.

        Raises `UsageError` (`MessageIdUsed` for the id of another message) or `DefinitionError`.
        """
        words = checked_message(text)
        checked_name(by)  # before anything is recorded
        run = await self.open(workflow, session, variables=variables, channel=channel)
        return await self.app.engine.hear(run.id, words, by=by, id=id)

    async def speak(self, run_id: str, text: str, by: str) -> Run[Any]:
        """Answer a user as the person at the desk. Raises `UsageError` unless this person has the conversation."""
        state = await self._state(run_id)
        if state.status != "transferred":
            first = NextStep("act", "Take it over first", "Take it over first: `{}`", f"{run_id} take")
            raise UsageError(Advice("The bot has this conversation. ", first, "."))
        if state.taken_by != by:
            if state.taken_by:
                take = NextStep("act", "Take it over", "Take it over with `{}`", f"{run_id} take")
                raise UsageError(Advice(f"{state.taken_by} has this conversation. ", take, "."))
            await self.take(run_id, by)
        return await self.app.engine.hear(run_id, checked_message(text), by=by, channel=DESK_CHANNEL)

    async def take(self, run_id: str, by: str) -> Run[Any]:
        """Take a conversation over, from the bot or from another person."""
        await self._state(run_id)
        if not by:
            raise UsageError("Say who takes the conversation over: --by NAME.")
        return await self.app.act(run_id, "take", by=by)

    async def release(self, run_id: str, by: str) -> Run[Any]:
        """Give a conversation back to the bot. Raises `UsageError` if no person has it."""
        state = await self._state(run_id)
        if not state.desk:
            raise UsageError("No person has this conversation, so it cannot be given back.")
        return await self.app.engine.answer(run_id, state.desk, choice="release", by=by)

    async def look(self, run_id: str, after: int = 0) -> SessionView:
        """A session as it is now, with what was said and done after a record. Raises `RunNotFound`."""
        view = await self.app.engine.look(run_id)
        _check_style(view)
        return await view_of(self.app.engine, view, after)

    async def heard_at(self, run_id: str, id: str) -> int:
        """The record of the message with this id; 0 if it was not heard."""
        run = await self.app.engine.current(run_id)
        number = heard_at(run, id)
        if number or len(run.known_messages) < KNOWN_MESSAGES:
            return number
        records = await self.app.engine.journal.read(run_id)  # it may be older than what the run remembers
        found = (one.number for one in reversed(records) if isinstance(one.event, Heard) and one.event.id == id)
        return next(found, 0)

    async def sessions(self, workflow: str = "", cursor: str = "", size: int = 50) -> tuple[list[dict[str, Any]], str]:
        """A page of the documents `sessions`, and the cursor of the next page; empty if it was the last one."""
        page = await self.app.engine.journal.documents(SESSIONS, cursor, size)
        found = [msgspec.json.decode(body) for _, body in page.items]
        return [one for one in found if not workflow or one.get("workflow_id") == workflow], page.next

    async def replan(self, workflow: str | Path, model: str = "", base_url: str = "") -> Run[Any]:
        """Ask for a new plan of a configuration as it is now. Every session uses it once it is made.

        Args:
            model: Empty: the one that made the last plan; likewise `base_url`, its address.
        """
        known = await self.bots.get(workflow)
        before = await self._found(msgspec.structs.replace(known.bot, generation=1).plan_name)
        newest = 1
        async for generation, run in self.bots.plans(known.bot):
            newest, before = generation, run
        bot = msgspec.structs.replace(known.bot, generation=newest + 1)
        content = msgspec.json.encode(bot, order="deterministic")
        workflow_of_plan = msgspec.structs.replace(known.workflow, style="planning", content=content)
        settings = with_models_of(self.app.settings, before, model, base_url) if before else None
        run = await self.app.launch(workflow_of_plan, bot.plan_name, model=model, settings=settings)
        await withdraw_older_questions(self.app.engine, bot)
        self.bots.forget()
        return run

    async def _withdraw_older_questions(self, known: KnownBot) -> None:
        """Once whenever a bot was read again: not for every message."""
        if self._checked.get(known.bot.name) is not known:
            self._checked[known.bot.name] = known
            await withdraw_older_questions(self.app.engine, known.bot)

    async def _found(self, run_id: str) -> Run[Any] | None:
        try:
            return await self.app.engine.current(run_id)
        except RunNotFound:
            return None

    async def _start(
        self, known: KnownBot, run_id: str, session: str, variables: dict[str, str], channel: str
    ) -> Run[Any]:
        given: dict[str, Any] = {"session": checked_session(session)}
        if variables:
            given["variables"] = variables
        if channel:
            given["channel"] = channel
        try:
            return await self.app.launch(known.workflow, run_id, given=given, pinned=known.pinned, definition=known.bot)
        except RunAlreadyStarted:  # by another process, or another message, a moment ago
            return (await self.app.engine.look(run_id)).run

    async def _redefine(self, run: Run[Any], known: KnownBot) -> Run[Any]:
        pinned = known.pinned
        return await self.app.engine.redefine(run.id, known.workflow.content, pinned.content, pinned.definitions)

    async def _state(self, run_id: str) -> SessionState:
        view = await self.app.engine.look(run_id)
        _check_style(view)
        state: SessionState = view.run.state
        return state


def checked_message(text: str) -> str:
    """What a user says. Raises `UsageError`."""
    if not isinstance(text, str) or not is_message(text):
        if not isinstance(text, str) or not text.strip():
            raise UsageError("A message must not be empty.")
        raise UsageError(f"A message has at most {LONGEST_MESSAGE:,} characters, not {len(text):,}.")
    return whole_characters(text)


def _checked(variables: Mapping[str, str]) -> dict[str, str]:
    if len(variables) > MOST_VARIABLES:
        raise UsageError(f"A session has at most {MOST_VARIABLES} variables, not {len(variables)}.")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str) or len(name) > 80 or len(value) > LONGEST_VARIABLE:
            raise UsageError(f"The variable {shown(name)} must be a text of at most {LONGEST_VARIABLE:,} characters.")
    return {whole_characters(name): whole_characters(value) for name, value in variables.items()}


def _check_style(view: View) -> None:
    if view.run.started.style != STYLE:
        raise UsageError(f"{view.run.id} is a run of the style {view.run.started.style!r}, not a session of a bot.")
