"""`graph`: a picture of a workflow, or of a run with the path it took."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import Options, resolve_run, shared_options
from .terminal import say, say_json, say_text

if TYPE_CHECKING:
    from ripstop.app.settings.settings_file import Settings
    from ripstop.text.diagrams.diagram import Diagram


@click.command(short_help="Draw a workflow, or the path of a run.")
@click.argument("what", metavar="PATH|RUN")
@click.option(
    "--format",
    "format",
    type=click.Choice(["mermaid", "svg", "dot"]),
    help="Default: what the name of FILE asks for, else mermaid.",
)
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write it here, not to stdout."
)
@shared_options
@click.pass_obj
def graph(options: Options, what: str, format: str | None, output: Path | None) -> None:
    """Draw a workflow (a file, a folder, or a name found in workflows/), or a run with the path it took.

    A hand-off document (its file, its id, or its run) is drawn with its owners, and a folder with roles/ or .workflows/
    as the rules that its documents follow.

    \b
    Examples:
      ripstop graph examples/haiku --output haiku.svg
      ripstop graph haiku-k3f9x --format mermaid
      ripstop graph .workflows/workflow_task_20261116_093000.md --output task.svg
    """
    from ripstop.kernel.errors import UsageError
    from ripstop.text.diagrams.formats import FORMATS

    chosen = format or (_format_of(output) if output else "mermaid")
    text = FORMATS[chosen](_diagram(options.settings(), what))
    if output:
        try:
            output.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}.") from error
    if options.as_json:
        return say_json({"format": chosen, "text": text})
    if output:
        return say(f"{output} is written ({chosen}).", err=True)
    return say_text(text)


def _format_of(output: Path) -> str:
    from ripstop.text.diagrams.formats import FORMATS, SUFFIXES

    try:
        return SUFFIXES[output.suffix.lower()]
    except KeyError:
        suffixes, formats = ", ".join(SUFFIXES), ", ".join(FORMATS)
        raise click.UsageError(
            f"The name {output.name!r} has no known suffix. Use one of {suffixes}, or give --format ({formats})."
        ) from None


def _diagram(settings: "Settings", what: str) -> "Diagram":
    """A file of a style's own or a workflow of that name comes first, then a run."""
    from ripstop.app.plugins import installed
    from ripstop.app.settings.settings_file import store_path
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment
    from ripstop.kernel.errors import RunNotFound, UsageError

    plugins = installed()
    for service in plugins.services:
        drawn = service.draw(Path(what))
        if drawn:
            return drawn
    try:
        # a drawing needs no goal, so that none is given is not a mistake here
        workflow = find(plugins.readers, what, Environment(goal=what, any_name=True))
    except UsageError as no_workflow:
        if store_path(settings.store).is_file():
            try:
                return asyncio.run(_of_run(settings, what))
            except RunNotFound:
                pass
        raise UsageError(
            f"{no_workflow} Nor is there a run {what!r} in {settings.store}; `ripstop runs` lists the runs."
        ) from None
    kit = plugins.registry.kits[workflow.style]
    if kit.draw_definition is None:
        raise UsageError(f"The style {kit.name!r} does not draw its definitions.")
    return kit.draw_definition(plugins.registry.load(workflow.style, workflow.content))  # type: ignore[no-any-return]


async def _of_run(settings: "Settings", named: str) -> "Diagram":
    from ripstop.app.stores import open_engine
    from ripstop.history.timeline import timeline
    from ripstop.kernel.errors import UsageError
    from ripstop.text.diagrams.diagram import Chapter

    async with open_engine(settings) as engine:
        entries = await timeline(engine, await resolve_run(engine, named))
        run = entries[-1].run
        chapters = [Chapter(told.record.event, told.before, told.run) for told in entries]
        draw = engine.kit(run).draw_run
        if draw is None:
            raise UsageError(f"The style {run.started.style!r} does not draw its runs.")
        return draw(engine.definition(run), chapters)  # type: ignore[no-any-return]
