"""The Python API says which argument is wrong and what it expects, before anything is made."""

import asyncio
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import ripstop
from ripstop import App, Limits, UsageError
from ripstop.app.settings.settings_file import Settings

HAIKU = Path(__file__).parents[2] / "examples" / "haiku"
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
        app.nothing  # noqa: B018
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
                (lambda: app.answer("r/1", fields=["a"]), "fields must be a dict"),
                (lambda: app.answer("r/1", chioce="yes"), "An answer has no 'chioce'"),
                (lambda: app.send(3, "hello"), "run must be a run, or its id"),  # type: ignore[arg-type]  # wrong
                (lambda: app.send("r", b"hello"), "text must be a text"),  # type: ignore[arg-type]  # wrong
                (lambda: app.send("r", "hello", attachments=[b"x"]), "attachments must be"),  # type: ignore[list-item]  # wrong
                (lambda: app.cancel("r", by="ann\x1b"), "cannot be a name"),
                (lambda: app.desk("ann"), "query must be"),  # type: ignore[arg-type]  # wrong
                (lambda: app.wait("r"), "has no worker: it was opened with scope=None"),
            ]
            for call, said in calls:
                with pytest.raises(UsageError, match=said):
                    await call()

    asyncio.run(story())


def test_a_message_to_a_run_whose_style_never_listens_is_refused() -> None:
    async def story() -> None:
        async with App(Settings(model_for_all=SCRIPT), scope=None) as app:
            run = await app.start(HAIKU, "rain")
            with pytest.raises(UsageError, match=rf"{run.id} does not listen: no run of the style 'graph' does"):
                await app.send(run, "hello?")
            assert (await app.engine.look(run.id)).run.length == run.length, "nothing is recorded"

    asyncio.run(story())
