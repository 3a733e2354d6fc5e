"""Conversations of the shop's bot: one that a person has to take over, two that are ready, and two that are closed."""

from ripstop.app.application import App
from ripstop.faces.demo.world import MINUTE, DemoWorld, Scene

from .chats import Chats, run_of

BOT = "shop"


async def kowalska(app: App, world: DemoWorld) -> None:
    await _talk(
        app,
        world,
        "4655",
        "S. Kowalska",
        "Good morning, this is S. Kowalska. Where can I change the delivery address of B-11760? I move on Thursday.",
    )


async def nudge(app: App, world: DemoWorld) -> None:
    """The first timer of the conversation before asks whether she is still there."""
    await _until_said(app, world.runs["closed"], messages=3)


async def close_idle(app: App, world: DemoWorld) -> None:
    """The second one closes it."""
    await _until_said(app, world.runs["closed"], messages=4)


async def okafor(app: App, world: DemoWorld) -> None:
    await _talk(
        app,
        world,
        "4662",
        "J. Okafor",
        "Okafor here. The oven timer of my Loaf 3 does not stop any more, it counts on below zero. Number 88-1042.",
        "That did it. Thank you, goodbye!",
    )


async def li_mei(app: App, world: DemoWorld) -> None:
    await _talk(
        app,
        world,
        "4711",
        "李梅",
        "你好，我上周买的面包机还没到，订单 A-20931。",
        "周五我不在家，而且我换号码了：138 0013 8000。能改成周六送吗？不行就转人工吧。",
    )


async def weber(app: App, world: DemoWorld) -> None:
    await _talk(
        app,
        world,
        "4698",
        "Tom Weber",
        "Hi! How far is C-30418? It is a birthday present, so I am curious.",
        "Nine days is fine. I am not at home on Wednesdays, by the way. Tom Weber.",
    )


async def wang_qiang(app: App, world: DemoWorld) -> None:
    await _talk(app, world, "4703", "王强", "我叫王强，想买一台二手的 Loaf 5，这个型号有保修吗？")


async def _talk(app: App, world: DemoWorld, session: str, customer: str, *messages: str) -> None:
    """Begin a session whose bot says what a script says, and send it messages, each after the answer to the last."""
    chats = Chats(app)
    known = await chats.bots.get(world.workflow(BOT))
    run_id = run_of(known.bot.name, session)
    model = world.script(f"{BOT}.{session}")
    place = world.workspace(f"{BOT}-{session}")
    given = {"session": session}
    await app.launch(known.workflow, run_id, given=given, workspace=place, pinned=known.pinned, model=model)
    for text in messages:
        await chats.tell(world.workflow(BOT), session, text, by=customer)
        await app.wait(run_id)


async def _until_said(app: App, run_id: str, messages: int) -> None:
    """Wait until the bot has said so many messages in all."""
    chats = Chats(app)
    async for _ in app.follow(run_id):
        if len((await chats.look(run_id)).messages) >= messages:
            return


SCENES = (
    Scene(130 * MINUTE, kowalska),
    Scene(108 * MINUTE, nudge),
    Scene(88 * MINUTE, close_idle),
    Scene(70 * MINUTE, okafor),
    Scene(44 * MINUTE, li_mei),
    Scene(9 * MINUTE, weber),
    Scene(6 * MINUTE, wang_qiang),
)
