"""Boards: one whose MAIN asks the shop's owner, and one where a claim and the evidence for it differ.

Their scripts are for the first run only: reports name their iterations, and a later run begins where the first ended.
"""

from ripstop.app.application import App
from ripstop.faces.demo.world import MINUTE, DemoWorld, Scene, play, start
from ripstop.kernel.effects import Limits

TOKENS = 50_000
"""What the board may spend; its script gets to the limit just after the tester has claimed too much."""


async def poster(app: App, world: DemoWorld) -> None:
    """Whether prices are on the poster, only a person can say."""
    await play(app, world, world.runs["question"], "haibao", "haibao.first", "为社区面包节制作一张海报")


async def test_first(app: App, world: DemoWorld) -> None:
    """The tester claims a coverage of 92 %, and the file shows 78.4 %. Then tokens run out, and a person is asked."""
    run = await start(
        app,
        world,
        world.runs["board"],
        world.workflow("tdd"),
        "tdd.first",
        "the stamp card",
        limits=Limits(tokens=TOKENS),
    )
    await app.wait(run)


SCENES = (
    Scene(64 * MINUTE, poster),
    Scene(36 * MINUTE, test_first),
)
