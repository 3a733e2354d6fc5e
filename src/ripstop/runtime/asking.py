"""Asking a person in the middle of a command: a child run of the style `question`, whose end makes the command due.

A question is known by a key, so performing the command again does not ask again. The command's row awaits the question
before it is asked: however quickly the person answers, the wake-up is not lost.
"""

import hashlib
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound
from ripstop.kernel.question_style import NAME

from .definitions import digest_of
from .engine import Engine
from .jobs import Job
from .performers import Refused
from .ports import MAX_PAGE, RunQuery

_encode = msgspec.json.Encoder(order="deterministic").encode


async def withdraw_questions(engine: Engine, job: Job) -> None:
    """Cancel the questions of a command that is no longer needed."""
    query = RunQuery(parent=job.run_id, size=MAX_PAGE)
    while True:
        page = await engine.runs(query)
        for info in page.items:
            if info.style == NAME and info.run_id.startswith(f"{job.run_id}.{job.number}."):
                with suppress(RunHasEnded, RunNotFound):
                    await engine.cancel(info.run_id, because=f"{job.run_id} does not need the answer any more")
        if not page.next:
            return
        query = replace(query, cursor=page.next)


async def ask_person(engine: Engine, job: Job, key: str, question: AskPerson) -> PersonAnswered | None:
    """The answer, or `None` if there is none yet. Raises `Refused` if the question was withdrawn."""
    name = f"{job.run_id}.{job.number}.{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    await engine.journal.await_run(job.run_id, job.number, job.holder, name)
    try:
        run = (await engine.look(name)).run
    except RunNotFound:
        asker = await engine.current(job.run_id)
        try:
            run = await engine.start(
                name,
                NAME,
                _encode(question),
                parent=(job.run_id, job.number),
                surface=asker.started.surface,
                depth=asker.started.depth + 1,
            )
        except RunAlreadyStarted:
            run = (await engine.look(name)).run
    if run.ended is None:
        return None
    if not run.ended.result:
        raise Refused(f"The question was not answered: {run.ended.because}.", fault="person")
    body = await engine.journal.blob(run.ended.result)
    assert digest_of(body) == run.ended.result
    return msgspec.json.decode(body, type=PersonAnswered, strict=False)
