"""The Python API says which argument is wrong and what it expects, before anything is made."""

import asyncio
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import ripstop
from ripstop import App, DeskQuery, Limits, RunQuery, UsageError
from ripstop.app.settings.settings_file import Settings

HAIKU = Path(__file__).parents[3] / "examples" / "haiku"
SCRIPT = f"script:{HAIKU / 'script.jsonl'}"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tools": [print]}, "tools: .*print.* is not a tool. Make the function one with @ripstop.tool"),
        ({"tools": print}, "tools must be a list"),
        ({"limits": {"calls": 3}}, r"limits must be ripstop.Limits\(.*not {'calls': 3}"),
        ({"limits": Limits(calls=-1)}, "limits.calls must be a whole number from 1"),
        ({"limits": Limits(calls=0)}, "limits.calls must be"),
        ({"limits": Limits(seconds=nan)}, "limits.seconds must be a number above 0 .* not nan"),
        ({"limits": Limits(money=inf)}, "limits.money must be"),
        ({"limits": Limits(tokens=1.5)}, "limits.tokens must be a whole number"),  # type: ignore[arg-type]  # wrong
        ({"limits": Limits(turns=True)}, "limits.turns must be a whole number"),
        ({"input": 3}, r"input must be a text \(str\), not 3"),
        ({"input": "\udc80"}, "input must be text that UTF-8 can write"),
        ({"key": 3}, "key must be"),
        ({"values": [1]}, "values must be a dict"),
        ({"values": {"n": 1}}, r"values\['n'\] must be a text"),
        ({"workspace": 3}, "workspace must be a path"),
        ({"answer": "yes"}, "answer must be a function"),
        ({"channels": {"chat": 3}}, r"channels\['chat'\] must be an async function"),
        ({"plugins": []}, "plugins must be ripstop.Plugins"),
        ({"settings": 3}, "settings must be a path"),
        ({"settings": "missing.toml"}, "There is no settings file"),
        ({"model": 3}, "model must be a text"),
        ({"workflow": 3}, "workflow must be a path"),
    ],
)
def test_a_wrong_argument_is_named_and_leaves_nothing_behind(
    wrong: dict[str, Any], said: str, empty_folder: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        ripstop.run_sync(**{"workflow": HAIKU, "model": SCRIPT, **wrong})
    assert list(empty_folder.iterdir()) == []


def test_an_app_that_is_not_open_says_how_to_open_it() -> None:
    app = App()
    for use in (lambda: app.engine, lambda: app.worker, lambda: asyncio.run(app.start(HAIKU, "rain"))):
        with pytest.raises(UsageError, match=r"not open\. Use it inside `async with App"):
            use()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        app.nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(UsageError, match="scope must be ALL, NOTHING"):
        App(scope="all")  # type: ignore[arg-type]  # wrong


def test_calls_of_an_open_app_name_what_they_expect() -> None:
    async def story() -> None:
        async with App(scope=None) as app:
            calls: list[tuple[Any, str]] = [
                (lambda: app.answer("bla"), r"its id 'RUN/NUMBER', not 'bla'"),
                (lambda: app.answer("r/\u00b2"), "RUN/NUMBER"),
                (lambda: app.answer(3), "question must be"),  # type: ignore[arg-type]  # wrong
                (lambda: app.answer("r/1", None), "words must be a text"),  # type: ignore[arg-type]  # wrong
                (lambda: app.answer("r/1", fields=["a"]), "fields must be a dict"),  # type: ignore[arg-type]  # wrong
                (lambda: app.answer("r/1", chioce="yes"), "An answer has no 'chioce'"),  # type: ignore[arg-type]  # wrong
                (lambda: app.send(3, "hello"), "run must be a run, or its id"),  # type: ignore[arg-type]  # wrong
                (lambda: app.send("r", b"hello"), "text must be a text"),  # type: ignore[arg-type]  # wrong
                (lambda: app.send("r", "hello", attachments=[b"x"]), "attachments must be"),  # type: ignore[list-item]  # wrong
                (lambda: app.cancel("r", by="ann\x1b"), "cannot be a name"),
                (lambda: app.desk("ann"), "query must be"),  # type: ignore[arg-type]  # wrong
                (lambda: app.runs("r"), "query must be"),  # type: ignore[arg-type]  # wrong
                (lambda: app.act("r", "pass", ["to"]), "fields must be a dict"),  # type: ignore[arg-type]  # wrong
                (lambda: app.resume("r", raises={"turns": "5"}), r"raises\['turns'\] must be a number"),  # type: ignore[dict-item]  # wrong
                (lambda: app.resume("r", raises=5), "raises must be a dict"),  # type: ignore[arg-type]  # wrong
                (lambda: app.fork("r", workspace=3), "workspace must be a path"),  # type: ignore[arg-type]  # wrong
                (lambda: app.fork("r", "3"), r"at must be a whole number \(int\) from 1, not '3'"),  # type: ignore[arg-type]  # wrong
                (lambda: app.fork("r", 3.0), "at must be a whole number .* not 3.0"),  # type: ignore[arg-type]  # wrong
                (lambda: app.fork("r", True), "at must be a whole number .* not True"),
                (lambda: app.fork("r", 0), "at must be a whole number"),
                (lambda: app.fork("r", to_resume="no"), "to_resume must be True or False"),  # type: ignore[arg-type]  # wrong
                (lambda: app.act("r", "pass", seen="3"), "seen must be a whole number"),  # type: ignore[arg-type]  # wrong
                (lambda: app.resume("r", accept_edits="no"), "accept_edits must be True or False, not 'no'"),  # type: ignore[arg-type]  # wrong
                (lambda: anext(aiter(app.follow("r", "x"))), "after must be a whole number .* not 'x'"),  # type: ignore[arg-type]  # wrong
                (lambda: app.wait("r"), "has no worker: it was opened with scope=None"),
            ]
            for call, said in calls:
                with pytest.raises(UsageError, match=said):
                    await call()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"statuses": ("nonsense",)},
            "there is no status 'nonsense'; there are: working, interrupted, .*completed",
        ),
        ({"statuses": "working"}, r"query.statuses must be a tuple of texts"),
        ({"styles": (3,)}, r"query.styles must be a text \(str\), not 3"),
        ({"since": "x"}, r"query.since must be a whole number \(int\) from 0, not 'x'"),
        ({"since": 1.5}, "query.since must be"),
        ({"parent": 3}, "query.parent must be a text"),
        ({"text": None}, "query.text must be a text"),
        ({"cursor": 3}, "query.cursor must be a text"),
        ({"size": "50"}, "query.size must be a whole number"),
    ],
)
def test_a_wrong_query_of_runs_is_named(wrong: dict[str, Any], said: str) -> None:
    async def story() -> None:
        async with App(scope=None) as app:
            with pytest.raises(UsageError, match=said):
                await app.runs(RunQuery(**wrong))

    asyncio.run(story())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"root": 3}, "query.root must be a text"),
        ({"to": 3}, "query.to must be a text"),
        ({"purpose": 3}, "query.purpose must be a text"),
        ({"kind": None}, "query.kind must be a text"),
        ({"size": 0}, "query.size must be a whole number"),
    ],
)
def test_a_wrong_query_of_the_desk_is_named(wrong: dict[str, Any], said: str) -> None:
    async def story() -> None:
        async with App(scope=None) as app:
            with pytest.raises(UsageError, match=said):
                await app.desk(DeskQuery(**wrong))

    asyncio.run(story())


def test_a_run_in_a_query_is_named_by_its_id() -> None:
    async def story() -> None:
        async with App(Settings(model_for_all=SCRIPT), scope=None) as app:
            run: Any = await app.start(HAIKU, "rain")
            for field, ask in (
                ("root", lambda: app.desk(DeskQuery(root=run))),
                ("root", lambda: app.runs(RunQuery(root=run))),
                ("parent", lambda: app.runs(RunQuery(parent=run))),
            ):
                with pytest.raises(UsageError, match=f"query.{field} must be the id of a run .* here '{run.id}'"):
                    await ask()

    asyncio.run(story())


def test_a_journal_is_created_or_not_and_nothing_else() -> None:
    with pytest.raises(UsageError, match="create must be True or False, not 'no'"):
        App(create="no")  # type: ignore[arg-type]  # wrong


def test_an_app_that_was_closed_is_not_open() -> None:
    async def story() -> None:
        async with App(Settings(model_for_all=SCRIPT)) as app:
            run = await app.start(HAIKU, "rain")
            await app.wait(run)
        for use in (app.look, app.wait, app.result, app.cancel, app.fork, app.resume):
            with pytest.raises(UsageError, match="This app is not open"):
                await use(run)
        for ask in (app.runs, app.desk, app.work):
            with pytest.raises(UsageError, match="This app is not open"):
                await ask()
        with pytest.raises(UsageError, match="This app is not open"):
            app.follow(run)
        with pytest.raises(UsageError, match="Make another one"):
            async with app:
                pass

    asyncio.run(story())


def test_a_message_to_a_run_whose_style_never_listens_is_refused() -> None:
    async def story() -> None:
        async with App(Settings(model_for_all=SCRIPT), scope=None) as app:
            run = await app.start(HAIKU, "rain")
            with pytest.raises(UsageError, match=rf"{run.id} does not listen: no run of the style 'graph' does"):
                await app.send(run, "hello?")
            assert (await app.engine.look(run.id)).run.length == run.length, "nothing is recorded"

    asyncio.run(story())
