"""`new`, `modify` and `status`: the delivery project in the current folder. `resume` continues it, too."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ripstop.faces.cli.options import Options, WithLimits, limit_options, shared_options
from ripstop.faces.cli.run import goal_given, start_and_follow
from ripstop.faces.cli.terminal import can_ask, confirm, say, say_json
from ripstop.text.plurals import count

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings

    from .project import ProjectState
    from .project_runs import ModifyPlan, ProjectStatus

flow_option = click.option(
    "--flow", metavar="PATH", default="", help="A pipeline of your own. Default: the one the project was begun with."
)


@click.command(short_help="Start a delivery project in this folder.")
@click.argument("idea")
@click.option(
    "--flow",
    metavar="PATH",
    default="",
    help="A pipeline of your own. Default: the seven stages, in the language of the idea (English or Chinese).",
)
@limit_options
@shared_options
@click.pass_obj
def new(options: Options, idea: str, flow: str, with_limits: WithLimits) -> None:
    """Start a delivery project in this folder: from an idea to delivered, checked files.

    In a terminal you review the drafts as they come. Elsewhere the command ends with exit code 4 when a draft waits for
    you; answer it (`ripstop desk`) and run `ripstop resume`. Everything that is made is in .cowork/ and in this folder.

    \b
    Examples:
      ripstop new "a to-do list in the browser"
      ripstop --model openai:NAME new "a to-do list in the browser" --max-money 2
    """
    from ripstop.app.plugins import installed

    from .project import refuse_existing
    from .project_runs import ProjectFlow

    wanted = goal_given(idea, "IDEA", without="")
    refuse_existing(Path.cwd())
    chosen = ProjectFlow(installed(), flow, wanted)
    if chosen.pipeline.source and not flow and not options.as_json:
        say(f"The idea is in Chinese, so the flow {chosen.pipeline.name} is used; --flow names another.", err=True)
    settings, values = with_limits(options.settings()), {"mode": "new"}
    start_and_follow(options, settings, chosen.workflow, wanted, Path.cwd(), values, definition=chosen.pipeline)


@click.command(short_help="Restart a project at a stage.")
@click.option("--from", "stage", metavar="STAGE", help="prd, design, plan or coding; others in a flow of your own.")
@click.argument("change", required=False, default="")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--undo", is_flag=True, help="Put back what the last `modify` removed.")
@flow_option
@limit_options
@shared_options
@click.pass_obj
def modify(
    options: Options, stage: str | None, change: str, yes: bool, undo: bool, flow: str, with_limits: WithLimits
) -> None:
    """Restart the project in this folder at a stage, with CHANGE as what you want changed.

    What the stage and all later ones have made is removed and made again. It is listed first, and kept in
    .cowork/backups: --undo puts it back. Code files stay; the coding stage changes them.

    \b
    Examples:
      ripstop modify --from design "use one file only"
      ripstop modify --undo
    """
    from ripstop.app.plugins import installed
    from ripstop.app.stores import open_engine

    from .project import session_of
    from .project_runs import ProjectFlow, end_last_run, flow_of, plan_modify, refuse_without_inputs, with_last_model

    if undo:
        if stage or change:
            raise click.UsageError("Give either --undo or --from STAGE.")
        return _undo(options)
    if not stage:
        raise click.UsageError("Say where to restart: --from STAGE.")
    here, settings = Path.cwd(), with_limits(options.settings())

    async def look() -> tuple[str, "Settings"]:
        async with open_engine(settings, or_empty=True, to_act=True) as engine:
            named = flow or await flow_of(engine, here)
            return named, await with_last_model(engine, here, settings, options.base_url or "")

    named, settings = asyncio.run(look())
    chosen = ProjectFlow(installed(), named)
    plan = plan_modify(here, chosen.pipeline, stage)
    if not options.as_json:
        _show_plan(plan)
    refuse_without_inputs(chosen.pipeline, plan)
    if not yes:
        if options.as_json or not can_ask():
            raise click.UsageError("Nothing was changed. Add --yes to restart without being asked.")
        if not confirm("Restart there?"):
            return say("Nothing was changed.", err=True)
    values = {"mode": "modify", "stage": stage, **({"change": change} if change else {})}
    idea = session_of(here).idea

    async def end_the_one_before(app: "App") -> None:
        if cancelled := await end_last_run(app.engine, here, stage):
            say(f"{cancelled} is cancelled: the project is restarted.", err=True)

    start_and_follow(options, settings, chosen.workflow, idea, here, values, end_the_one_before, chosen.pipeline)


def _show_plan(plan: "ModifyPlan") -> None:
    for path in plan.removed:
        say(("removes  ", "yellow"), f".cowork/{path}", err=True)
    for path in plan.kept_code:
        say(("keeps    ", "dim"), path, err=True)
    for path in plan.missing_inputs:
        say(("missing  ", "red"), f".cowork/{path}, which {plan.stage} reads", err=True)
    say(("repeats  ", "green"), " → ".join(plan.rerun), err=True)


def _undo(options: Options) -> None:
    import msgspec

    from ripstop.app.stores import open_engine

    from .project_runs import LastRun, last_run, undo_modify

    async def look() -> LastRun:
        async with open_engine(options.settings(), or_empty=True, to_act=True) as engine:
            return await last_run(engine, Path.cwd())

    last = asyncio.run(look())
    if last.run_id and not last.has_ended:
        raise click.UsageError(f"{last.run_id} has not ended. End it first:  ripstop cancel {last.run_id}")
    done = undo_modify(Path.cwd(), frozenset({last.run_id}))
    if options.as_json:
        return say_json(msgspec.to_builtins(done))
    for path in done.restored:
        say(("restored  ", "green"), f".cowork/{path}")
    for path in done.removed:
        say(("removed   ", "yellow"), f".cowork/{path}")
    if done.kept_in:
        say((f"What was there before is kept in .cowork/backups/{done.kept_in}.", "dim"))
    return say("`ripstop status` shows how far the project is; `ripstop resume` continues it.")


@click.command(short_help="Show how far a project is.")
@flow_option
@shared_options
@click.pass_obj
def status(options: Options, flow: str) -> None:
    """Show how far the project in this folder is: stages, requirements, features, tasks, cost.

    \b
    Example:
      ripstop status
    """
    from ripstop.app.plugins import installed
    from ripstop.app.stores import open_engine

    from .project_runs import ProjectFlow, flow_of, project_status

    here = Path.cwd()

    async def look() -> "ProjectStatus":
        async with open_engine(options.settings(), or_empty=True) as engine:
            chosen = ProjectFlow(installed(), flow or await flow_of(engine, here))
            return await project_status(engine, here, chosen.pipeline)

    found = asyncio.run(look())
    if options.as_json:
        import msgspec

        return say_json(msgspec.to_builtins(found))
    return _show_status(found)


def _features(project: "ProjectState") -> str:
    done, all_of_them = project.features
    more = project.features_marked - done
    marked = f"; {more} more {'is' if more == 1 else 'are'} marked so, without completed tasks" if more else ""
    return f"{done}/{all_of_them} completed{marked}"


def _show_status(found: "ProjectStatus") -> None:
    from ripstop.faces.cli.blocks import show_parts
    from ripstop.faces.cli.terminal import console_for

    project, usage = found.project, found.usage
    show_parts(console_for(), (found.rail,))
    say()
    money = f", {usage.money:.4g} in money" if usage.money else ""
    spent = f"{count(found.calls, 'call')}, {usage.input_tokens:,} + {usage.output_tokens:,} tokens{money}"
    rows = [
        ("requirements", str(project.requirements)),
        ("features", _features(project)),
        ("components", str(project.components)),
        ("tasks", f"{project.tasks[0]}/{project.tasks[1]} completed"),
        ("code files", str(project.code_files)),
        ("cost so far", spent),
        ("run", f"{project.run}{f' ({found.run_status})' if found.run_status else ''}" if project.run else ""),
        ("restart", f"at {project.current_stage}: {project.restart_reason}" if project.restart_reason else ""),
        *(("missing", one) for one in project.missing),
        *(("changed", one) for one in project.changed),
        *(("problem", one) for one in project.problems),
        *(("waits", f"ripstop desk {one}") for one in found.waiting),
        ("next", f"ripstop resume {project.run}" if found.run_status == "interrupted" else ""),
    ]
    for name, text in rows:
        if text:
            say((f"{name:14}", "dim"), text)
