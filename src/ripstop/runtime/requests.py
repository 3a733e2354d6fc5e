"""What a performer is given to perform a command: its words, put together from the records that it names."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ripstop.kernel.effects import AskAgent, CallTool, StartRun
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.style import Child

from .asking import ask_person
from .call_progress import CallProgress
from .engine import Engine
from .jobs import Job
from .performers import Request


def request_for(engine: Engine, job: Job, run: Run[Any], progress: CallProgress) -> Request:
    opened, style = job.opened, engine.style(run)
    command, state = opened.command, opened.state
    prompt: Prompt | None = None
    arguments: Mapping[str, Any] = {}
    child: Child | None = None
    if type(command) is AskAgent:
        prompt = style.render(state, command)
    elif type(command) is CallTool:
        arguments = style.arguments(state, command)
    elif type(command) is StartRun and not job.superseded:  # one that is only undone was asked in a state not kept
        child = style.start_child(state, command)
    return Request(
        run_id=job.run_id,
        number=job.number,
        command=command,
        attempt=job.attempt,
        ordinal=opened.ordinal,
        settings=run.settings,
        prompt=prompt,
        arguments=arguments,
        child=child,
        superseded=job.superseded,
        repeated=job.doubtful,
        woken=job.woken,
        history=partial(engine.journal.read, job.run_id),
        ask=partial(ask_person, engine, job),
        progress=progress,
        reread=engine.reread,
        is_over=engine.is_over,
    )
