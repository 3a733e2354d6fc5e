"""Starts runs of the demonstration under their own names, as `ripstop run` would."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ripstop.app import App
from ripstop.definitions.loading import find
from ripstop.definitions.reader import Environment
from ripstop.demonstration.demo_world import DemoWorld
from ripstop.kernel.effects import Limits
from ripstop.kernel.run import Run
from ripstop.runtime.engine import View


async def start(
    app: App,
    world: DemoWorld,
    run_id: str,
    workflow: Path,
    script: str,
    input: str = "",
    values: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    workspace: Path | None = None,
) -> Run[Any]:
    """Start a run whose agents say what a script says."""
    found = find(app.plugins.readers, str(workflow), Environment(goal=input))
    style = app.plugins.registry.kits[found.style].style
    definition = app.plugins.registry.load(found.style, found.content)
    given = style.arguments_from(definition, values or {})
    place = workspace or (None if style.workspace(definition) else world.workspace(run_id))
    return await app.launch(found, run_id, input, given, limits, place, model=world.script(script))


async def play(app: App, world: DemoWorld, run_id: str, workflow: str, script: str, input: str = "") -> View:
    """Start a run of one of the world's workflows, and wait until it has ended or waits for a person."""
    run = await start(app, world, run_id, world.workflow(workflow), script, input)
    return await app.wait(run)
