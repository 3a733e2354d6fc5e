"""`run` and `resume`: the commands that work."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from ripstop.faces.next_steps import in_commands
from ripstop.kernel.errors import JournalNotFound, UsageError
from ripstop.kernel.limits import RAISABLE

from .options import FolderPath, Options, WithLimits, allow_option, limit_options, pairs, shared_options
from .resume import NO_PROJECT, latest_at_limit, tell_missing_tools, tell_needs, with_needs, work_here
from .signals import resume_with, stop_requested
from .terminal import at_terminal, keep_working_without_readers, say, say_json
from .trust import with_consent, with_folders
from .words import GRACE, exit_code, summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripstop.app.application import App
    from ripstop.app.resume import ResumedRun
    from ripstop.app.settings.settings_file import Settings
    from ripstop.definitions.loading import Workflow
    from ripstop.engine.engine import Engine, View
    from ripstop.engine.worker import Worker

    from .screen import Screen

MAX_RAISE = 10**15
"""What a limit can be raised by, so that it can still be compared and shown."""


OWN_GOAL = ", or leave it out to use the workflow's initial_message"


class Followed(NamedTuple):
    """A run that a command follows."""

    run_id: str
    ended_before: bool = False
    """It has nothing to resume."""


@click.command(short_help="Run a workflow.")
@click.argument("workflow")
@click.option("--input", "given_goal", default=None, metavar="TEXT", help="The goal; replaces initial_message.")
@click.option("--workspace", type=FolderPath(), help="Where agents put their files.")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="Set a declared value; can be repeated.")
@click.option("--any-name", is_flag=True, help="The workflow need not have its folder's name.")
@limit_options
@allow_option
@shared_options
@click.pass_obj
def run(
    options: Options,
    workflow: str,
    given_goal: str | None,
    workspace: Path | None,
    values: tuple[str, ...],
    any_name: bool,
    with_limits: WithLimits,
) -> None:
    """Run a workflow: a file, a folder, or a name found in workflows/.

    A run has its style's limits where none is set: a graph has 200 calls and 1 h at work. Time at work is the time
    during which an agent, a tool or a child is called; waiting for a person does not count.

    \b
    Example:
      ripstop run examples/haiku --input "rain on a tent" --max-calls 20
    """
    from ripstop.app.plugins import installed
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment

    settings = with_limits(options.settings())
    goal = goal_given(given_goal)
    found = find(installed().readers, workflow, Environment(goal=goal, any_name=any_name))
    start_and_follow(options, settings, found, goal, workspace, pairs(values))


def start_and_follow(
    options: Options,
    settings: "Settings",
    workflow: "Workflow",
    goal: str,
    workspace: Path | None,
    values: dict[str, str],
    before: "Callable[[App], Awaitable[None]] | None" = None,
    definition: Any = None,
) -> NoReturn:
    """Start a run of a workflow, follow it, and end the process with the exit code that says how it went.

    Args:
        before: Done right before the run is started.
        definition: The workflow's, if it was decoded before.
    """
    from ripstop.app.plugins import installed
    from ripstop.app.start import check_start
    from ripstop.app.trust import Trust

    def follow() -> int:
        # before there is a journal: a command that is wrong leaves nothing behind
        checked = check_start(
            settings,
            installed(),
            Trust(settings),
            workflow,
            workspace=workspace,
            values=values,
            definition=definition,
        )

        async def start(app: "App") -> Followed:
            if before:
                await before(app)
            run = await app.start(checked, goal)
            tell_missing_tools(app, run)
            return Followed(run.id)

        return asyncio.run(follow_run(options, settings, start, create=True, is_new=True))

    sys.exit(with_consent(options, follow))


def goal_given(given: str | None, named: str = "--input", without: str = OWN_GOAL) -> str:
    """The goal that is given for a run; empty: the workflow's own. A script whose variable is empty means neither."""
    if given is None:
        return ""
    if not given.strip():
        raise click.UsageError(f"{named} is empty. Give a goal{without}.")
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise click.UsageError(f"{named} is not UTF-8 text.") from error
    return given


@click.command(short_help="Resume an interrupted or stopped run.")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--all", "everything", is_flag=True, help="Resume every interrupted run, side by side.")
@click.option(
    "--raise",
    "raises",
    multiple=True,
    metavar="LIMIT=+N",
    help=(
        f"Raise by N a limit that was reached: {', '.join(RAISABLE[:-1])} or {RAISABLE[-1]}; without RUN, of the "
        "latest run that reached one."
    ),
)
@click.option("--workspace", type=FolderPath(), metavar="DIR", help="Where its agents put their files.")
@click.option("--accept-edits", is_flag=True, help="Files whose changes stopped the run are right as they are.")
@allow_option
@shared_options
@click.pass_obj
def resume(
    options: Options,
    run_id: str | None,
    everything: bool,
    raises: tuple[str, ...],
    workspace: Path | None,
    accept_edits: bool,
) -> None:
    """Resume an interrupted run; without RUN, the project in this folder (`ripstop new`), or else the latest run that
    is interrupted, or else waits, or else has ended and can be resumed.

    A run that another one started is resumed with its whole family.

    This also resumes a run that a guard stopped. If it reached a limit, raise it with --raise. For a run that has ended
    otherwise, say how it ended and how to fork it. A run that stopped because files changed under it continues when
    they are as before, or with --accept-edits.

    With --model all its agents use that model from now on, whatever the definition says, and so does a call
    that was under way.

    A journal can come from somebody else. So a folder for files that it names, and you have not named for it before, is
    used only if you say so, here or with --workspace DIR; with another DIR, the run's files are there from now on.

    With --all the exit code is that of the worst: 1 before 3, 4 and 0.

    \b
    Examples:
      ripstop resume haiku-k3f9x
      ripstop resume haiku-k3f9x --model openai:NAME
      ripstop resume haiku-k3f9x --raise turns=+5
      ripstop resume --all
    """
    raised, model = _amounts(raises), options.other_model()
    if raised and everything:
        raise click.UsageError("--raise is for one run. Name it, or leave out --all.")
    if workspace and not run_id:
        raise click.UsageError("--workspace needs the RUN whose files are there.")
    if everything and run_id:
        raise click.UsageError("Give either RUN or --all.")
    if everything:
        from .resume import resume_all

        sys.exit(with_consent(options, lambda: asyncio.run(resume_all(options))))

    async def start(app: "App") -> Followed:
        return await _resumed(options, app, run_id, raised, model, workspace, accept_edits)

    sys.exit(with_consent(options, lambda: _resume_here(options, start, is_named=bool(run_id))))


def _resume_here(options: Options, start: "Callable[[App], Awaitable[Followed]]", is_named: bool) -> int:
    """Resume a run that is named, or the work that belongs to this folder."""
    from ripstop.app.plugins import installed

    is_project = not is_named and installed().project_in(Path.cwd()) is not None
    try:
        return asyncio.run(follow_run(options, options.settings(), start, create=is_project))
    except JournalNotFound as error:
        if is_named:
            raise
        how = '`ripstop new "IDEA"` starts a project, `ripstop run WORKFLOW` a run; --store names another journal.'
        raise UsageError(f"{NO_PROJECT}. {error} {how}") from error


async def _resumed(
    options: Options,
    app: "App",
    run_id: str | None,
    raised: dict[str, float],
    model: str,
    workspace: Path | None,
    accept_edits: bool,
) -> Followed:
    """Resume a run, or the latest that is unfinished; with a limit to raise, the latest that reached one."""
    found = run_id or await (latest_at_limit(app) if raised else work_here(app))

    async def resume() -> "ResumedRun":
        raises = raised or None  # without limits to raise, a guard's question is asked here
        return await app.resume(
            found,
            raises=raises,
            accept_edits=accept_edits,
            workspace=workspace,
            model=model,
            base_url=options.base_url or "",
        )

    resumed = await with_folders(options, app, resume, found)
    for note in resumed.notes:
        say(in_commands(note), err=True)
    root = await app.engine.root_of(found)  # the family continues as a whole, whichever of its runs is named
    is_over = resumed.ended_before and (root == found or (await app.look(root)).run.ended is not None)
    return Followed(found if is_over else root, is_over)


def _amounts(values: tuple[str, ...]) -> dict[str, float]:
    amounts: dict[str, float] = {}
    for name, text in pairs(values, "--raise").items():
        try:
            amounts[name] = float(text) if "." in text else int(text)
        except ValueError:
            raise click.UsageError(f"--raise {name}={text}: {text!r} is not a number.") from None
        if not 0 < amounts[name] <= MAX_RAISE:
            raise click.UsageError(f"--raise {name}={text}: expected a number above 0 and at most {MAX_RAISE}.")
    return amounts


async def follow_run(
    options: Options,
    settings: "Settings",
    start: "Callable[[App], Awaitable[Followed]]",
    create: bool = False,
    is_new: bool = False,
) -> int:
    """Open the journal, start or find a run, follow it, and say how it went.

    Args:
        create: Make the journal if it is missing.
        is_new: The command takes the limits of the run that it starts.
    """
    from ripstop.engine.ports import Tree
    from ripstop.history.runs import shown_status

    from .screen import Screen
    from .words import command_for

    interrupted = stop_requested()
    keep_working_without_readers()
    # the worker works on this run alone, so it is made when the run is known
    async with options.app(settings, create=create, scope=None) as app:
        screen = Screen(app, quiet=options.as_json)
        with screen.following():
            run_id, ended_before = await start(app)
            resume_with(f"{command_for(settings.store)} resume {run_id}")
            screen.begins(await app.engine.look(run_id), is_new=is_new, is_over=ended_before)
            async with app.working(Tree(run_id)) as worker:
                following = asyncio.ensure_future(_until_nothing_is_asked(options, app, screen, worker, run_id))
                waited: list[asyncio.Future[Any]] = [following, interrupted]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    view = following.result()
                else:
                    following.cancel()
                    await asyncio.wait([following])
                    screen.stopping()
                    await worker.stop(GRACE)
                    view = await app.engine.look(run_id)
                    if not view.run.ended:
                        screen.interrupted(run_id)
                        if options.as_json:
                            say_json({**await summary(app.engine, view), "outcome": "interrupted"})
                        return 128 + interrupted.result()
        result = await summary(app.engine, view)
        if ended_before:
            result = {**result, "resumed": False, "ways_on": _forks(app.engine, view)}
        if view.needs:
            result = {**with_needs(result, view), "outcome": shown_status(view.status, has_workers=False)}
        if options.as_json:
            say_json(result)
        else:
            screen.result(view, result)
            tell_needs(view)
    return exit_code(view.status)


async def _until_nothing_is_asked(
    options: Options, app: "App", screen: "Screen", worker: "Worker", run_id: str
) -> "View":
    """Follow a run until it is settled. On a terminal, ask the person there what it waits for, and follow it on."""
    from ripstop.engine.following import until_settled

    view = await until_settled(app.engine, worker, run_id)
    if not at_terminal(options.as_json):
        return view
    from .prompt_user import TerminalPrompts

    person = TerminalPrompts(app.engine, screen, run_id)
    while not view.run.ended and await person.ask():
        view = await until_settled(app.engine, worker, run_id)
    return view


def _forks(engine: "Engine", view: "View") -> list[str]:
    """How to start a new run from one that has ended and cannot be resumed, as commands."""
    run_id = view.run.id
    if engine.style(view.run).unforkable:
        return []
    # a run that failed is forked where its last call can be made again; of others a person chooses the record
    return [f"ripstop fork {run_id}" if view.status == "failed" else f"ripstop fork {run_id} --at N"]
