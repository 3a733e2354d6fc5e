"""Hand-off documents: one that agents completed, one that an agent could not follow, and those of people."""

import time

from ripstop.app.application import App
from ripstop.faces.demo.world import DAY, EVERYONE, HOUR, DemoWorld, Scene, start

SIGN, TILL, OVEN, BOXES, FLOUR = "task-z3v6h", "task-g2m8y", "task-k8d3w", "task-n5t9q", "task-b4r7c"
"""The runs of documents that only people work on."""


async def menu_card(app: App, world: DemoWorld) -> None:
    """From the copywriter to the designer, back, and on to its end."""
    task = "A card for the soup days, in English and Chinese"
    await _new(app, world, world.runs["document"], "soup-card", task, "ann", script="menu-card")


async def allergens(app: App, world: DemoWorld) -> None:
    """The tester never says what becomes of the document, so a person is asked."""
    task = "Compare the allergen labels in the window with the blue folder"
    await _new(app, world, world.runs["unclear_document"], "allergens", task, "bob", owner="tester", script="allergens")


async def documents_of_people(app: App, world: DemoWorld) -> None:
    await _new(app, world, SIGN, "side-entrance", "A larger sign for the side entrance", "ann", owner="bob")
    await _new(app, world, TILL, "till", "Count the till of Saturday and write down what differs", "ann", owner="tom")
    await app.act(TILL, "accept", {}, by="tom")
    cold = "The lower deck of oven 2 is 15 degrees too cold. Have it looked at."
    await _new(app, world, OVEN, "oven-2", cold, "tom", owner="bob")
    await _new(app, world, BOXES, "圣诞礼盒", "圣诞礼盒：选一种纸盒，要能放一个大面包和一罐果酱", "ann", owner="李娜")


async def documents_go_on(app: App, world: DemoWorld) -> None:
    await app.act(SIGN, "terminate", {"message": "The landlord does not allow it."}, by="ann")
    result = "4.20 too much: one walnut loaf was rung up as rye. Corrected."
    await app.act(TILL, "complete", {"result": result}, by="tom")
    await app.act(OVEN, "accept", {"message": "The fitter comes on Wednesday at two."}, by="bob")
    await app.act(BOXES, "accept", {}, by="李娜")
    told = {"to": "王芳", "next_action": "比较两家的报价：牛皮纸盒和白卡纸盒，各 300 个", "message": "样品在前台。"}
    await app.act(BOXES, "pass", told, by="李娜")
    flour = "Order rye flour for December: 40 sacks from the Lindgren mill"
    await _new(app, world, FLOUR, "rye-flour", flour, "ann", owner="tom")


async def _new(
    app: App,
    world: DemoWorld,
    run_id: str,
    title: str,
    task: str,
    creator: str,
    owner: str = "",
    script: str = EVERYONE,
) -> None:
    """Begin a document in the world's folder, and wait until its agents have done what they can."""
    values = {"owner": owner, "creator": creator, "title": title, "utc_offset": str(time.localtime().tm_gmtoff)}
    run = await start(app, world, run_id, world.folder, script, task, values, workspace=world.folder / "workspace")
    await app.wait(run)


SCENES = (
    Scene(2 * DAY, menu_card),
    Scene(2 * DAY - 2 * HOUR, documents_of_people),
    Scene(6 * HOUR, allergens),
    Scene(4 * HOUR, documents_go_on),
)
