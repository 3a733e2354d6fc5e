"""What performs the commands of an app's runs: a performer for each kind of them, and the worker that has them all."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ripstop.engine.children import ChildAnswers, Children
from ripstop.engine.messages import Messages
from ripstop.engine.performers import Performer, TimerPerformer
from ripstop.engine.ports import Scope
from ripstop.engine.rate_limit import RateLimit
from ripstop.engine.shared_pauses import SharedPauses
from ripstop.engine.sweeper import Admit
from ripstop.engine.worker import Worker
from ripstop.kernel.effects import AnswerChild, AskAgent, AskPerson, CallTool, Say, SetTimer, StartRun
from ripstop.kernel.outages import RetryPolicy
from ripstop.models.router import Agents
from ripstop.security.files import make_private_folder, state_folder

from .relocation import Relocated
from .start import prices_of

if TYPE_CHECKING:
    from .application import App


def make_agents(app: "App") -> Agents:
    """What calls models; to be closed when its worker has stopped."""
    models = app.settings.models
    return Agents(
        app.live,
        app.toolbox.specs,
        default_model=models.default,
        base_url=models.base_url or None,
        prices=prices_of(app.settings),
        roles={"strong": models.strong} if models.strong else {},
        timeout=models.timeout,
        check_address=app.trust.check,
        key_origins=app.trust.key_origins,
        windows=app.settings.windows,
    )


def make_worker(
    app: "App",
    agents: Agents,
    messages: Messages,
    scope: Scope,
    admit: Admit | None,
    patient: bool,
    before_effect: Callable[[], Awaitable[None]] | None,
) -> Worker:
    """A worker that has not started yet."""
    settings, engine, state = app.settings, app.engine, state_folder()
    performers: dict[type, Performer] = {
        AskAgent: agents,
        CallTool: Relocated(app.toolbox, app.places, app.folders),
        AskPerson: messages,
        Say: messages,
        SetTimer: TimerPerformer(),
        StartRun: Children(engine),
        AnswerChild: ChildAnswers(engine),
    }
    pauses = SharedPauses(state / "pauses", make_private_folder) if state else None
    return Worker(
        engine,
        performers,
        settings.concurrency,
        RetryPolicy(attempts=settings.attempts),
        settings.retries,
        rate_limit=RateLimit(settings.rate_limits, shared=pauses),
        scope=scope,
        admit=admit,
        patient=patient,
        before_effect=before_effect,
    )
