"""A delivery project whose requirements a person has sent back twice; the third draft waits for its review."""

from ripstop.app.application import App
from ripstop.faces.demo.world import DAY, HOUR, DemoWorld, Scene, start

from .project_runs import ProjectFlow

IDEA = "a to-do list in the browser"


async def begin(app: App, world: DemoWorld) -> None:
    """The first draft is far too big."""
    world.project.mkdir(parents=True)
    flow = ProjectFlow(app.plugins).workflow.path
    run = await start(
        app, world, world.runs["review"], flow, "cowork", IDEA, values={"mode": "new"}, workspace=world.project
    )
    await app.wait(run)


async def first_feedback(app: App, world: DemoWorld) -> None:
    await _send_back(
        app,
        world,
        "Too big. Only what fits on one page: one list, no sharing, no reminders. And do not rely on green alone.",
        severity="major",
    )


async def second_feedback(app: App, world: DemoWorld) -> None:
    await _send_back(
        app,
        world,
        "Tasks must survive closing the tab, and say what happens at 1,000 tasks. 最新的任务要在最上面。",
        type="missing_requirement",
        severity="major",
    )


async def _send_back(app: App, world: DemoWorld, words: str, **fields: str) -> None:
    """Answer the review with feedback, and wait for the next draft."""
    run_id = world.runs["review"]
    (question,) = [one for one in await app.desk() if one.run_id == run_id]
    await app.answer(question, words, by="ann", choice="feedback", fields=fields)
    await app.wait(run_id)


SCENES = (
    Scene(DAY + 4 * HOUR, begin),
    Scene(DAY + 3 * HOUR, first_feedback),
    Scene(DAY + 2 * HOUR, second_feedback),
)
