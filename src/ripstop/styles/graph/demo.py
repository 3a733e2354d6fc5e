"""Graphs: one that went well and its stricter fork, one with a child, and four that did not get to their end."""

import shutil

from ripstop.app.application import App
from ripstop.definitions.loading import find
from ripstop.definitions.reader import Environment
from ripstop.faces.demo.world import DAY, HOUR, MINUTE, DemoWorld, Scene, play
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered


async def poem(app: App, world: DemoWorld) -> None:
    await play(app, world, world.runs["poem"], "haiku", "haiku", "the first loaf of the morning")


async def broken_poem(app: App, world: DemoWorld) -> None:
    """The poet forgets the decisions, is asked again, and forgets them again."""
    await play(app, world, world.runs["failed"], "haiku", "haiku.broken", "rain on the market square")


async def newsletter(app: App, world: DemoWorld) -> None:
    """A run that starts another one: the verse of the newsletter is a haiku of its own."""
    await play(app, world, world.runs["family"], "newsletter", "newsletter", "the November newsletter")


async def translation(app: App, world: DemoWorld) -> None:
    """Two agents thank each other until a guard stops them."""
    await play(app, world, world.runs["stopped"], "translate", "translate", "the sign at the counter")


async def repeated_turns(app: App, world: DemoWorld) -> None:
    """Two agents go round in a circle; the guard asks a person."""
    await play(app, world, world.runs["guard"], "essay", "essay", "why people queue for bread")


async def debate(app: App, world: DemoWorld) -> None:
    """Ten turns are all that the debate gets."""
    await play(app, world, world.runs["limit"], "debate", "debate", "Should the bakery open on Sundays?")


async def completed_review(app: App, world: DemoWorld) -> None:
    await play(app, world, world.runs["completed"], "review", "review", "the release note for Crumb 2.0")


async def stricter_fork(app: App, world: DemoWorld) -> None:
    """The last review is decided again, by a workflow that is not content with an 8."""
    before, fork = world.runs["completed"], world.runs["fork"]
    stricter = find(app.plugins.readers, str(world.workflow("review-strict")), Environment())
    records = await app.engine.journal.read(before)
    last_review = next(
        record.number
        for record in reversed(records)
        if isinstance(record.event, Answered) and isinstance(record.event.answer, AgentReplied)
    )
    shutil.copytree(world.workspace(before), world.workspace(fork))
    await app.engine.fork(before, last_review, fork, stricter.content, workspace=str(world.workspace(fork)))
    await app.wait(fork)


SCENES = (
    Scene(3 * DAY, poem),
    Scene(DAY + HOUR, newsletter),
    Scene(9 * HOUR, broken_poem),
    Scene(8 * HOUR, translation),
    Scene(5 * HOUR, repeated_turns),
    Scene(3 * HOUR, debate),
    Scene(100 * MINUTE, completed_review),
    Scene(50 * MINUTE, stricter_fork),
)
