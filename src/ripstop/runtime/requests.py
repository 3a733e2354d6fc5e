"""What a performer is given to perform a command: its words, put together from the records that it names."""

from functools import partial
from typing import Any

from ripstop.kernel.effects import AskAgent, CallTool, StartRun
from ripstop.kernel.run import Run

from .asking import ask_person
from .call_progress import CallProgress
from .engine import Engine
from .jobs import Job
from .performers import Request


def request_for(engine: Engine, job: Job, run: Run[Any], progress: CallProgress) -> Request:
    command, state = job.opened.command, job.opened.state
    style = engine.style(run)
    return Request(
        run_id=job.run_id,
        number=job.number,
        command=command,
        attempt=job.attempt,
        ordinal=job.opened.ordinal,
        settings=run.settings,
        prompt=style.render(state, command) if type(command) is AskAgent else None,
        arguments=style.arguments(state, command) if type(command) is CallTool else {},
        # one that is only undone was asked in a state that is not kept
        child=style.start_child(state, command) if type(command) is StartRun and not job.superseded else None,
        superseded=job.superseded,
        woken=job.woken,
        history=partial(engine.journal.read, job.run_id),
        ask=partial(ask_person, engine, job),
        progress=progress,
    )
