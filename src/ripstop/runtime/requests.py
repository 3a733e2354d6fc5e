"""What a performer is given to perform a command: its words, put together from the records that it names."""

from collections.abc import Awaitable, Mapping
from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, PersonAnswered, StartRun
from ripstop.kernel.events import Record
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.style import Child

from .asking import ask_person
from .call_progress import CallProgress
from .engine import Engine
from .jobs import Job
from .performers import Request


class _Access(Struct, frozen=True):
    """`RunAccess` by way of the engine."""

    engine: Engine
    job: Job

    def history(self) -> Awaitable[list[Record]]:
        return self.engine.journal.read(self.job.run_id)

    def ask(self, key: str, question: AskPerson) -> Awaitable[PersonAnswered | None]:
        return ask_person(self.engine, self.job, key, question)

    def reread(self, run_id: str) -> Awaitable[bool]:
        return self.engine.reread(run_id)

    def is_over(self, run_id: str) -> Awaitable[bool]:
        return self.engine.is_over(run_id)


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
    return Request(  # CPython calls with more than 15 arguments by name much more slowly
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
        access=_Access(engine, job),
        progress=progress,
    )
