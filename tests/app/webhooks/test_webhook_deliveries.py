"""Other systems are told what happens: signed, in order for each run, and again until they take it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.settings.settings_file import Settings
from ripstop.app.settings.tables import Webhook
from ripstop.app.webhooks import sending
from ripstop.app.webhooks import service as follower
from ripstop.app.webhooks.service import WebhookService, following
from ripstop.engine.clock import system_time
from ripstop.kernel.effects import Say
from ripstop.kernel.errors import UsageError
from ripstop.security.consent import Consents, EndpointConsents
from tests.app.webhooks.receiver import SECRET, Receiver, a_receiver, in_a_loop
from tests.app.webhooks.telling_style import REGISTRY, NamedErrands, speaking
from tests.engine.world import World
from tests.engine.world import a_world as any_world


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    monkeypatch.setattr(follower, "FIRST_PAUSE", 0.02)


@asynccontextmanager
async def a_world(tmp_path: Path) -> AsyncIterator[World]:
    async with any_world(tmp_path / "j.db", registry=REGISTRY) as world:
        yield world


@asynccontextmanager
async def telling(
    world: World, *receivers: Receiver, project: tuple[str, ...] = (), allow: tuple[str, ...] = (), **hook: Any
) -> AsyncIterator[WebhookService]:
    hooks = {f"crm{n or ''}": Webhook(one.url, "CRM_SECRET", **hook) for n, one in enumerate(receivers)}
    settings = Settings(webhooks=hooks, project_webhooks=project)
    consents = EndpointConsents(allow, consents=Consents(world.journal.path.parent / "consents"))
    async with following(world.engine, settings, consents) as service:
        yield service
        assert service.failure is None


@in_a_loop
async def test_a_delivery_says_what_happened_when_and_where(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver, telling(world, receiver):
        before = system_time()
        await start(world, "chat:shop:王.1", speaking("Hello!"))
        await receiver.until(lambda one: len(one.got) == 4)
    status, progress, message, end = receiver.got
    assert [one.id for one in receiver.got] == [
        "chat:shop:%E7%8E%8B%2E1/2",
        "chat:shop:%E7%8E%8B%2E1/2/2",
        "chat:shop:%E7%8E%8B%2E1/3",
        "chat:shop:%E7%8E%8B%2E1/4",
    ]
    assert message.body["type"] == "errands.message"
    assert message.body["data"] == {"run": "chat:shop:王.1", "number": 3, "workflow": "shop", "text": "Hello!"}
    assert message.body["timestamp"].endswith("Z") and message.headers["content-type"] == "application/json"
    assert message.target == "/hook?from=ripstop"
    assert abs(int(message.headers["webhook-timestamp"]) - before // 1_000_000) < 60
    assert (status.body["type"], progress.body["type"]) == ("errands.status", "errands.progress")
    assert end.body["data"]["outcome"] == "completed"


async def start(world: World, run_id: str, definition: NamedErrands) -> None:
    await world.engine.start(run_id, "errands", definition.content())


@in_a_loop
async def test_a_message_about_another_record_has_its_words(tmp_path: Path) -> None:
    echo = NamedErrands(rounds=((Say(text="Hello"),), (Say(about=6),)), outcome="", listens=True)
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        async with telling(world, receiver, kinds=("message",)):
            await start(world, "r", echo)
            await receiver.until(lambda one: len(one.got) == 2)
            await world.engine.hear("r", "你好")
            await receiver.until(lambda one: len(one.got) == 3)
    assert [one.text for one in receiver.got] == ["Hello", "", "你好"]


@in_a_loop
async def test_only_the_wanted_workflows_and_kinds_are_told(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        async with telling(world, receiver, workflows=("bank", "shop"), kinds=("message",)):
            await start(world, "a", speaking("no", name="other"))
            await start(world, "b", speaking("yes", name="bank"))
            await start(world, "c", speaking("yes too"))
            await receiver.until(lambda one: len(one.got) == 2)
            await asyncio.sleep(0.05)
    assert sorted(one.text for one in receiver.got) == ["yes", "yes too"]


@in_a_loop
async def test_what_fails_comes_again_with_the_same_id_and_in_order(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        failures = iter([500, 302, 0, 429, 404, 503, 0, 201, 400, 0, 0])
        receiver.reply = lambda received: next(failures, 200) or 200
        async with telling(world, receiver, kinds=("message",)):
            await start(world, "r", speaking(*(f"m{n}" for n in range(5))))
            await receiver.until(lambda one: len(one.got) == 5)
    assert [one.text for one in receiver.got] == [f"m{n}" for n in range(5)]
    assert len(receiver.tried) == 5 + 6
    assert len({one.id for one in receiver.tried}) == 5


@in_a_loop
async def test_a_receiver_says_how_long_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver, telling(world, receiver) as service:
        receiver.reply = lambda received: (503, "Retry-After: 77\r\n")
        with caplog.at_level(logging.WARNING):
            await start(world, "r", speaking("x"))
            await receiver.until(lambda one: one.tried and "77.0 s" in caplog.text)
            assert not service.busy  # it waits: `ripstop work --until-idle` does not wait for it
    assert len(receiver.tried) == 1


@in_a_loop
async def test_one_slow_webhook_does_not_stop_another(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as slow, a_receiver() as quick:
        slow.delay = 100.0
        async with telling(world, slow, quick, kinds=("message",)):
            await start(world, "a", speaking("one", "two"))
            await quick.until(lambda one: len(one.got) == 2)
            assert slow.got == []


@in_a_loop
async def test_one_run_that_is_refused_does_not_stop_another(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        receiver.reply = lambda received: 500 if received.body["data"]["run"] == "bad" else 200
        async with telling(world, receiver, kinds=("message",)):
            pass
        await start(world, "bad", speaking("x", "z"))
        await start(world, "good", speaking("y"))
        async with telling(world, receiver, kinds=("message",)):
            await receiver.until(lambda one: one.got and len(one.tried) > 3)
    assert [one.text for one in receiver.got] == ["y"] and "z" not in [one.text for one in receiver.tried]


@in_a_loop
async def test_an_attempt_that_takes_too_long_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIME_LIMIT", 0.1)
    async with a_world(tmp_path) as world, a_receiver() as receiver, telling(world, receiver, kinds=("message",)):
        receiver.delay = 5.0
        await start(world, "r", speaking("x"))
        await receiver.until(lambda one: len(one.tried) == 2)
        receiver.delay = 0.0
        await receiver.until(lambda one: one.got)


@in_a_loop
async def test_a_receiver_that_is_gone_gets_nothing_until_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        receiver.reply = lambda received: 410
        async with telling(world, receiver) as service:
            await start(world, "r", speaking("x"))
            await receiver.until(lambda one: one.tried and "wants no more" in caplog.text)
            assert service.failure is None
        receiver.reply = lambda received: 200
        tried = len(receiver.tried)
        async with telling(world, receiver):
            await receiver.until(lambda one: len(one.got) == 4)
    assert tried == 1


@in_a_loop
async def test_a_new_webhook_begins_with_what_happens_from_now_on(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        await start(world, "before", speaking("old"))
        async with telling(world, receiver, kinds=("message",)):
            await start(world, "after", speaking("new"))
            await receiver.until(lambda one: one.got)
    assert [one.text for one in receiver.got] == ["new"]


@in_a_loop
async def test_what_happened_while_no_process_delivered_is_delivered_later(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        async with telling(world, receiver, kinds=("message",)):
            pass
        for number in range(150):
            await start(world, f"r{number}", speaking(f"m{number}"))
        async with telling(world, receiver, kinds=("message",)):
            await receiver.until(lambda one: len(set(one.ids())) == 150)
        async with telling(world, receiver, kinds=("message",)):
            await start(world, "last", speaking("last"))
            await receiver.until(lambda one: one.got[-1].text == "last")
    assert len({one.id for one in receiver.got}) == 151


@in_a_loop
async def test_a_style_that_fails_is_left_out_for_that_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver, telling(world, receiver) as service:
        await start(world, "r", speaking("x", outcome="", listens=True))
        await world.engine.cancel("r", because="break")
        await start(world, "s", speaking("y"))
        await receiver.until(lambda one: any(got.text == "y" for got in one.got))
        assert service.failure is None
    assert "a bug of the style" in caplog.text


@pytest.mark.parametrize("allowed", [False, True])
@in_a_loop
async def test_a_project_reaches_private_addresses_only_if_the_user_allows_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, allowed: bool
) -> None:
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        allow = (f"http://127.0.0.1:{receiver.port}",) if allowed else ()
        async with telling(world, receiver, project=("crm",), allow=allow, kinds=("message",)):
            await start(world, "r", speaking("x"))
            await receiver.until(lambda one: one.got or "not a public address" in caplog.text)
    assert len(receiver.tried) == int(allowed)


@pytest.mark.parametrize("value", ["", "s3cr3t", "whsec_", "whsec_!!!!", "whsec_c2hvcnQ="])
@in_a_loop
async def test_a_webhook_without_a_usable_secret_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CRM_SECRET", value)
    async with a_world(tmp_path) as world, a_receiver() as receiver:
        with pytest.raises(UsageError, match="CRM_SECRET") as refused:
            async with telling(world, receiver):
                pass
    assert not value or value not in str(refused.value).replace("whsec_ and", "").replace("whsec_$", "")
