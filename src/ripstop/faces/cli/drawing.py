"""`graph`: a picture of a workflow, or of a run with the path it took."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import Options, shared_options
from .terminal import say, say_json, say_text

if TYPE_CHECKING:
    from ripstop.drawings.diagram import Diagram
    from ripstop.kernel.run import Run
    from ripstop.runtime.engine import Engine
    from ripstop.settings.settings_file import Settings


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

    A hand-off document (its file, or its run) is drawn with its owners, and a folder with roles/ or .workflows/ as the
    rules that its documents follow.

    \b
    Examples:
      ripstop graph examples/haiku --output haiku.svg
      ripstop graph haiku-k3f9x --format mermaid
      ripstop graph .workflows/workflow_task_20261116_093000.md --output task.svg
    """
    from ripstop.drawings.formats import FORMATS
    from ripstop.kernel.errors import UsageError

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
    from ripstop.drawings.formats import FORMATS, SUFFIXES

    try:
        return SUFFIXES[output.suffix.lower()]
    except KeyError:
        suffixes, formats = ", ".join(SUFFIXES), ", ".join(FORMATS)
        raise click.UsageError(
            f"The name {output.name!r} tells no format. End it with one of {suffixes}, or give --format ({formats})."
        ) from None


def _diagram(settings: "Settings", what: str) -> "Diagram":
    """A document or a workflow of that name comes first, then a run."""
    from ripstop.definitions.loading import find, load
    from ripstop.drawings.graph import of_graph
    from ripstop.kernel.errors import RunNotFound, UsageError
    from ripstop.settings.settings_file import store_path

    document = _handoff(Path(what))
    if document:
        return document
    try:
        workflow = find(what, goal=what, any_name=True)  # a drawing needs no goal, so an absent one is no mistake here
    except UsageError as no_workflow:
        if store_path(settings.store).is_file():
            try:
                return asyncio.run(_of_run(settings, what))
            except RunNotFound:
                pass
        raise UsageError(
            f"{no_workflow} Nor is there a run {what!r} in {settings.store}; `ripstop runs` lists the runs."
        ) from None
    return of_graph(load(workflow.style, workflow.content))


def _handoff(path: Path) -> "Diagram | None":
    """A document's file, or a folder of documents; nothing if it is neither."""
    from ripstop.drawings.handoff import of_file, of_rules
    from ripstop.kernel.errors import UsageError

    if path.suffix.lower() == ".md" and path.is_file():
        try:
            return of_file(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
    if (path / "workflow.yaml").is_file() or not any((path / name).is_dir() for name in ("roles", ".workflows")):
        return None
    return of_rules(sorted(role.stem for role in (path / "roles").glob("*.md")))


async def _of_run(settings: "Settings", run_id: str) -> "Diagram":
    from ripstop.app import open_engine
    from ripstop.drawings.diagram import Journey
    from ripstop.drawings.runs import Chapter, of_run
    from ripstop.runtime.timeline import path, timeline

    async with open_engine(settings) as engine:
        story = await timeline(engine, run_id)
        view = await engine.look(run_id)
        chapters = [
            Chapter(_where(engine, told.before), told.before.state, told.record.event, told.run.state)
            for told in story
            if told.before is not None
        ]
        ended = view.run.ended
        journey = Journey(run_id, view.status, ended.because if ended else "", ended=bool(ended))
        return of_run(view.run.started.style, engine.definition(view.run), chapters, path(engine, story), journey)


def _where(engine: "Engine", run: "Run[Any]") -> str:
    return engine.style(run).picture(run).where
