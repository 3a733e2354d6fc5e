"""Run a workflow from a script or a notebook, in one call."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.definitions.loading import find
from ripstop.definitions.reader import Environment
from ripstop.engine.engine import View
from ripstop.engine.messages import Deliver
from ripstop.engine.ports import NOTHING, DeskQuery, Question
from ripstop.history.waits import waits_for
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.run import Run
from ripstop.kernel.text_limits import shown
from ripstop.tools.toolbox import Tool

from . import arguments
from .application import App
from .plugins import Plugins
from .start import check_start

T = TypeVar("T")


class RunResult(Struct, frozen=True):
    """A run that is settled: it has ended, or waits for a person or a timer."""

    run: str
    """Its id."""
    status: str
    """How it ended, or `waiting` for what `waits_for` says."""
    because: str = ""
    result: Any = None
    """The result that it ended with, if it has one."""
    questions: tuple[Question, ...] = ()
    """What it and its children ask people."""
    view: View | None = None
    waits_for: tuple[str, ...] = ()
    """For what it and its children wait, each in a few words: answers, timers, tools that this process lacks."""

    def __repr__(self) -> str:
        """In a line: what a notebook shows. The view alone would be thousands of characters."""
        questions = f", questions={[f'{one.run_id}/{one.number}' for one in self.questions]}" if self.questions else ""
        because = f", because={shown(self.because)}" if self.because else ""
        waits = f", waits_for={shown(list(self.waits_for))}" if self.waits_for and not self.questions else ""
        told = f"run={self.run!r}, status={self.status!r}{because}, result={shown(self.result)}"
        return f"RunResult({told}{questions}{waits})"


def run_sync(
    workflow: str | Path,
    input: str = "",
    *,
    settings: Settings | str | Path | None = None,
    model: str = "",
    tools: Iterable[Tool] = (),
    channels: Mapping[str, Deliver] | None = None,
    plugins: Plugins | None = None,
    workspace: str | Path | None = None,
    values: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    key: str = "",
    answer: Callable[[Question], str] | None = None,
) -> RunResult:
    """Run a workflow until it has ended, or waits for a person or a timer.

    Also works where an event loop is running, as in a notebook: then in its own thread.

    Args:
        settings: As `App` takes them; left out: of the current folder.
        model: A model for all agents, as `--model` names it.
        key: With the same key, workflow and input it is the same run, also after the process that began it was killed:
            it is resumed, and calls that a model server refused are made again, with the `model` that is given now.
        answer: Answers a question in words. Left out, the run waits, and its questions are in the result.

    Raises:
        UsageError: It cannot be started as it is asked for.
        DefinitionError: The definition is wrong.
    """
    chosen = settings
    if model:
        if isinstance(settings, Settings):
            raise UsageError("model: name the model in the settings, or leave them out.")
        chosen = read_settings(arguments.settings_folder(settings), model=arguments.text("model", model))
    if answer is not None and not callable(answer):
        raise arguments.wrong("answer", "a function that takes a question and returns words", answer)
    named, goal = str(arguments.a_path("workflow", workflow)), arguments.text("input", input)

    async def go() -> RunResult:
        app = App(chosen, tools=tools, channels=channels, plugins=plugins, scope=NOTHING)
        # before there is a journal: a call that is wrong leaves nothing behind
        found = find(app.plugins.readers, named, Environment(goal=goal))
        checked = check_start(
            app.settings, app.plugins, app.trust, found, workspace=workspace, values=values, limits=limits, key=key
        )
        async with app:
            was_there = await app.engine.journal.run(checked.run_id) if key else None
            run = await app.start(checked, goal)
            if was_there and not run.ended:
                await app.retry(run, model=model)
            return await _result(app, run, answer)

    return in_loop(go)


async def _result(app: App, run: Run[Any], answer: Callable[[Question], str] | None) -> RunResult:
    """Once the run has ended, or has questions that nobody answers here."""
    view = await app.wait(run)
    while not view.run.ended:
        questions = await app.desk(DeskQuery(root=run.id))
        if not questions or answer is None:
            waits = await waits_for(app.engine, view)
            return RunResult(run.id, view.status, questions=tuple(questions), view=view, waits_for=waits)
        for question in questions:
            await app.answer(question, answer(question))
        view = await app.wait(run)
    return RunResult(run.id, view.status, view.run.ended.because, await app.result(run), view=view)


def in_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, whether or not an event loop is running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    with ThreadPoolExecutor(1, thread_name_prefix="ripstop") as pool:
        return pool.submit(lambda: asyncio.run(make())).result()
