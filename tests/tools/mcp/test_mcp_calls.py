"""Calls of tools of servers that behave: both eras of the protocol, with a server of the official SDK."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.performers import InDoubt, Kind, Refused, TryAgain
from ripstop.kernel.effects import Answer, AskPerson, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.kernel.shown_calls import digest_of_arguments
from ripstop.tools.mcp import connection as connections
from ripstop.tools.mcp.call import ServerCall
from ripstop.tools.mcp.servers import ServerSpec, ServerTools, ToolRule, list_tools
from tests.harness.mcp_servers import opening_addresses, shop
from tests.tools.mcp.served import SHOP, Desk, call, hostile, in_process, trusted

ORDER = PersonAnswered(choice="accept", fields={"size": "small", "number": 2})
ERAS = pytest.mark.parametrize("legacy", [False, True], ids=["2026", "2025"])


async def perform(tools: ServerTools, tool: str, desk: Desk | None = None, **arguments: Any) -> Answer | None:
    return await tools.perform(call(f"shop__{tool}", desk, **arguments))


@ERAS
def test_results_come_back_as_text_and_errors_as_the_agents_to_mend(tmp_path: Path, legacy: bool) -> None:
    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert await perform(tools, "price_of", article="ink") == ToolReturned(value="30")
            assert await perform(tools, "delete", article="ink") == ToolReturned(value="deleted")
            failed = await perform(tools, "price_of", article="nothing")
            assert isinstance(failed, Failed) and failed.fault == "agent"
            picture = await perform(tools, "picture")
            assert isinstance(picture, ToolReturned)
            assert picture.value.startswith("[image/png, 3,000 bytes, not shown]\nxxx")
            assert picture.value.endswith("[cut: it has 250,036 characters]") and len(picture.value) < 200_100

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())
    assert (tmp_path / "done").read_text() == "deleted ink r/9\n"  # with our key


@ERAS
def test_wrong_arguments_are_refused_before_anything_is_sent(tmp_path: Path, legacy: bool) -> None:
    async def story() -> None:
        listed = await list_tools(SHOP)
        async with trusted(SHOP, tmp_path, listed) as tools:
            with pytest.raises(Refused, match=r"'article' is a required property\. It takes: article") as refused:
                await perform(tools, "delete", artikel="ink")
            assert refused.value.fault == "agent"
            assert tools._servers["shop"]._connection is None

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())
    assert not (tmp_path / "done").exists()


def test_a_server_that_needs_input_parks_the_call_and_gets_the_answer(tmp_path: Path) -> None:
    desk = Desk([None, ORDER])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert await perform(tools, "order", desk, article="ink") is None
            assert await perform(tools, "order", desk, article="ink") == ToolReturned(value="ordered 2 small ink")

    with in_process(lambda: shop(tmp_path / "done")):
        asyncio.run(story())
    assert (tmp_path / "done").read_text() == "ordered 2 small ink\n"
    question = desk.asked[0]
    assert question.question == "The MCP server 'shop' asks, for the call of order: How shall I order ink?"
    assert {name: (one.type, one.allowed, one.required) for name, one in question.fields.items()} == {
        "size": ("one_of", ("small", "large"), True),
        "number": ("integer", (), True),
        "gift": ("boolean", (), False),
    }


def test_a_call_whose_state_is_lost_begins_again_and_is_done_once(tmp_path: Path) -> None:
    """A server's state dies with its process, and ours with our process; the answer of the person does not."""
    desk = Desk([None, ORDER])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert await perform(tools, "order", desk, article="ink") is None
            await tools.close()
            assert await perform(tools, "order", desk, article="ink") == ToolReturned(value="ordered 2 small ink")

    with in_process(lambda: shop(tmp_path / "done")):
        asyncio.run(story())
    assert (tmp_path / "done").read_text() == "ordered 2 small ink\n"
    assert len(desk.asked) == 2 and desk.asked[0] == desk.asked[1]


@ERAS
def test_an_answer_that_the_form_does_not_take_is_asked_for_again(tmp_path: Path, legacy: bool) -> None:
    too_many = PersonAnswered(choice="accept", fields={"size": "large", "number": 11})
    desk = Desk([too_many, ORDER])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert await perform(tools, "order", desk, article="ink") == ToolReturned(value="ordered 2 small ink")

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())
    assert "The last answer was not valid: ['number']: 11 is greater" in desk.asked[1].question


@ERAS
def test_a_person_can_decline(tmp_path: Path, legacy: bool) -> None:
    desk = Desk([PersonAnswered(choice="decline")])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert isinstance(await perform(tools, "order", desk, article="ink"), Failed)

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())
    assert not (tmp_path / "done").exists()


def test_an_older_server_waits_in_the_middle_of_the_call_and_its_time_does_not_run(tmp_path: Path) -> None:
    limits: list[float | None] = []

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:

            class Watching(Desk):
                async def ask(self, key: str, question: AskPerson) -> PersonAnswered | None:
                    connection = tools._servers["shop"]._connection
                    assert connection is not None and isinstance(connection._caller, ServerCall)
                    assert connection._caller._limit is not None
                    limits.append(connection._caller._limit.when())
                    return await super().ask(key, question)

            answer = await perform(tools, "order", Watching([None, None, ORDER]), article="ink")
            assert answer == ToolReturned(value="ordered 2 small ink")

    with in_process(lambda: shop(tmp_path / "done"), legacy=True):
        asyncio.run(story())
    assert limits == [None] * 3


def test_an_older_server_gets_one_call_at_a_time_so_that_its_questions_are_known_to_belong_to_one(
    tmp_path: Path,
) -> None:
    first, second = Desk([None, ORDER]), Desk([PersonAnswered(choice="decline")])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            both = await asyncio.gather(
                perform(tools, "order", first, article="ink"), perform(tools, "order", second, article="paper")
            )
            assert both[0] == ToolReturned(value="ordered 2 small ink") and isinstance(both[1], Failed)

    with in_process(lambda: shop(tmp_path / "done"), legacy=True):
        asyncio.run(story())
    assert {one.question[-4:] for one in first.asked} == {"ink?"} and "paper?" in second.asked[0].question


def test_an_address_to_open_is_a_text_on_the_desk(tmp_path: Path) -> None:
    desk = Desk([None, PersonAnswered(choice="accept")])

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            assert await perform(tools, "pay", desk) is None
            (tmp_path / "done").unlink()  # the server has forgotten that it asked
            assert await perform(tools, "pay", desk) == ToolReturned(value="paid")

    with in_process(lambda: opening_addresses(tmp_path / "done"), legacy=True):
        asyncio.run(story())
    assert "Sign in.\nhttps://bank.example/in" in desk.asked[0].question and not desk.asked[0].fields


@ERAS
def test_a_server_sees_the_workspace_of_the_run_and_nothing_else(tmp_path: Path, legacy: bool) -> None:
    workspace = tmp_path / "files of the run"

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            settings = RunSettings(workspace=str(workspace))
            answer = await tools.perform(call("shop__where", settings=settings))
            assert answer == ToolReturned(value=workspace.as_uri())

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())


@ERAS
def test_a_server_cannot_use_our_models(tmp_path: Path, legacy: bool) -> None:
    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            with pytest.raises(Refused, match="did not declare the sampling capability"):
                await perform(tools, "think")

    with in_process(lambda: shop(tmp_path / "done"), legacy):
        asyncio.run(story())


def test_a_tool_that_needs_approval_is_called_only_after_a_person_agreed(tmp_path: Path) -> None:
    careful = ServerSpec(name="shop", command=("in this process",), rules={"delete": ToolRule(approve=True)})
    desk = Desk([None, PersonAnswered(choice="approve"), PersonAnswered(choice="reject", text="too old", by="ann")])

    async def story() -> None:
        async with trusted(careful, tmp_path) as tools:
            assert await perform(tools, "delete", desk, article="ink") is None
            assert not (tmp_path / "done").exists()
            assert await perform(tools, "delete", desk, article="ink") == ToolReturned(value="deleted")
            with pytest.raises(Refused, match="ann did not approve the call of shop__delete: too old") as refused:
                await perform(tools, "delete", desk, article="paper")
            assert refused.value.fault == "person"

    with in_process(lambda: shop(tmp_path / "done")):
        asyncio.run(story())
    assert (tmp_path / "done").read_text() == "deleted ink r/9\n"
    question = desk.asked[0]
    assert question.question == "buyer wants to call shop__delete with the arguments that are shown. May it?"
    assert question.arguments == {"article": "ink"} and question.shown == digest_of_arguments({"article": "ink"})


def test_hints_count_only_if_the_user_believes_them(tmp_path: Path) -> None:
    def kinds(tools: ServerTools) -> dict[str, tuple[Kind, bool]]:
        server = tools._servers["shop"]
        cards = [server.pinned[name] for name in ("price_of", "stock", "delete")]
        return {card.tool: (server.spec.kind(card), server.spec.needs_approval(card)) for card in cards}

    async def story() -> None:
        listed = await list_tools(SHOP)
        async with trusted(SHOP, tmp_path / "1", listed) as tools:
            assert set(kinds(tools).values()) == {(Kind.UNSAFE, False)}
            assert tools.kind(call("shop__stock").command) is Kind.UNSAFE
        believed = ServerSpec(name="shop", command=("x",), hints=True)
        async with trusted(believed, tmp_path / "2", listed) as tools:
            assert kinds(tools) == {
                "price_of": (Kind.PURE, False),
                "stock": (Kind.KEYED, False),
                "delete": (Kind.UNSAFE, True),
            }
        rules = {"price_of": ToolRule(kind=Kind.UNSAFE), "delete": ToolRule(kind=Kind.KEYED, approve=False)}
        async with trusted(
            ServerSpec(name="shop", command=("x",), hints=True, rules=rules), tmp_path / "3", listed
        ) as tools:
            assert kinds(tools)["price_of"][0] is Kind.UNSAFE and kinds(tools)["delete"] == (Kind.KEYED, False)

    with in_process(lambda: shop(tmp_path / "done")):
        asyncio.run(story())


@pytest.mark.parametrize(("kind", "raised"), [(Kind.PURE, TryAgain), (Kind.KEYED, InDoubt), (Kind.UNSAFE, InDoubt)])
def test_a_call_that_breaks_off_is_in_doubt_unless_it_can_be_repeated(
    tmp_path: Path, kind: Kind, raised: type[Exception]
) -> None:
    dying = hostile("dies")
    spec = ServerSpec(name="h", command=dying.command, rules={"echo": ToolRule(kind=kind)})

    async def story() -> None:
        async with trusted(spec, tmp_path) as tools:
            with pytest.raises(raised, match="h__echo: I do not feel well"):
                await tools.perform(call("h__echo", text="hello"))

    asyncio.run(story())


def test_a_server_that_died_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")

    async def story() -> None:
        async with trusted(hostile("dies", str(count)), tmp_path) as tools:
            for _ in range(2):
                with pytest.raises(InDoubt):
                    await tools.perform(call("h__echo", text="hello"))

    asyncio.run(story())
    assert count.read_text() == "2"


def test_a_connection_that_nobody_uses_is_closed_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections.Connection.__init__, "__defaults__", (0.05,))

    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            for _ in range(2):
                assert await perform(tools, "price_of", article="ink") == ToolReturned(value="30")
                connection = tools._servers["shop"]._connection
                assert connection is not None and connection._owner is not None
                await connection._owner

    with in_process(lambda: shop(tmp_path / "done")):
        asyncio.run(story())


def test_a_call_that_is_cut_off_leaves_the_connection_usable(tmp_path: Path) -> None:
    async def story() -> None:
        async with trusted(SHOP, tmp_path) as tools:
            asked = Desk()
            cut_off = asyncio.create_task(perform(tools, "order", asked, article="ink"))
            while not asked.asked:  # it waits for a person in the middle of the call
                await asyncio.sleep(0.01)
            cut_off.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cut_off
            before = tools._servers["shop"]._connection
            assert await perform(tools, "price_of", article="ink") == ToolReturned(value="30")
            assert tools._servers["shop"]._connection is before

    with in_process(lambda: shop(tmp_path / "done"), legacy=True):
        asyncio.run(story())
    assert not (tmp_path / "done").exists()
