"""`App` is the one door: what makes a run begin or continue is checked in it, and no face checks anything of it."""

import ast
import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ripstop
from ripstop import (
    NOTHING,
    App,
    Limits,
    NotTrusted,
    RunAlreadyStarted,
    RunHasEnded,
    RunNotFound,
    Tree,
    UntrustedFolder,
    UsageError,
    tool,
)
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.faces.cli.words import COLOURS
from ripstop.kernel.events import OUTCOMES, RunSettings
from ripstop.kernel.statuses import STATUSES

SOURCE = Path(ripstop.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
HAIKU = "examples/haiku"
SCRIPT = f"script:{HAIKU}/script.jsonl"
SETTINGS = Settings(models=Models(default=SCRIPT))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLES / "haiku", tmp_path / HAIKU)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Faces


def faces() -> Iterator[Path]:
    """The modules of faces, and those of styles that belong to one."""
    yield from (SOURCE / "faces").rglob("*.py")
    for room in (SOURCE / "styles").iterdir():
        for part in (*room.glob("cli*"), *room.glob("http*")):
            yield from part.rglob("*.py") if part.is_dir() else (part,)


def checks_of_app() -> set[str]:
    found = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in (SOURCE / "app").rglob("*.py"))
    functions = (node for nodes in found for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("check_")}


def called(path: Path) -> set[str]:
    """The last names of all that a module calls or hands on."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - own
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_no_face_makes_a_check_of_the_app_but_that_of_a_start() -> None:
    checks = checks_of_app()
    assert {"check_start", "check_usable", "check_folders", "check_models", "check_tools"} <= checks
    found = {str(path.relative_to(SOURCE)): called(path) & checks - {"check_start"} for path in faces()}
    assert len(found) > 50
    assert {path: names for path, names in found.items() if names} == {}


# Resuming


async def stopped(app: App) -> str:
    """A run that a limit has stopped."""
    run = await app.start(HAIKU, limits=Limits(calls=1))
    assert (await app.wait(run)).status == "limit"
    return run.id


def test_a_run_that_a_limit_stopped_is_resumed_with_a_higher_limit(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS) as app:
            run_id = await stopped(app)
            with pytest.raises(UsageError, match="calls"):
                await app.resume(run_id)
            resumed = await app.resume(run_id, raises={"calls": 9}, by="ann")
            assert (resumed.run.limits.calls, resumed.notes, resumed.ended_before) == (10, (), False)
            assert (await app.wait(run_id)).status == "completed"

    asyncio.run(story())


def test_a_run_that_has_ended_for_good_is_left_as_it_is(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS) as app:
            view = await app.wait(await app.start(HAIKU))
            resumed = await app.resume(view.run, model=SCRIPT)
            assert (resumed.ended_before, resumed.run.length) == (True, view.run.length)
            with pytest.raises(RunHasEnded):
                await app.resume(view.run, raises={"calls": 1})

    asyncio.run(story())


def test_an_interrupted_run_is_resumed_with_another_model_in_its_own_folder(project: Path) -> None:
    other = project / "other.jsonl"
    shutil.copy(project / HAIKU / "script.jsonl", other)

    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(HAIKU)
        async with App(SETTINGS, scope=None) as app:
            with pytest.raises(UsageError, match="There is no script 'gone'"):
                await app.resume(run, model="script:gone")
            resumed = await app.resume(run.id, model=f"script:{other}", workspace="files")
            settings = resumed.run.settings
            assert (settings.model_for_all, settings.workspace) == (f"script:{other}", str(project / "files"))
            async with app.working(Tree(run.id)):
                assert (await app.wait(run)).status == "completed"

    asyncio.run(story())


def test_what_a_journal_names_is_refused_with_all_that_a_face_needs_to_ask(project: Path) -> None:
    content = ripstop.find(HAIKU).content
    foreign = RunSettings(model="openai:m", base_url="https://evil.example/v1", workspace=str(project / "theirs"))

    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            await app.engine.start("foreign-1", "graph", content, settings=foreign)
            with pytest.raises(UntrustedFolder) as folder:
                await app.resume("foreign-1")
            assert (folder.value.run_id, str(folder.value.folder)) == ("foreign-1", str(project / "theirs"))
            app.folders.remember(project / "theirs")
            with pytest.raises(NotTrusted, match=r"evil\.example") as address:
                await app.resume("foreign-1")
            assert (address.value.named.kind, address.value.named.content) == ("address", "https://evil.example/v1")
            with pytest.raises(NotTrusted):
                await app.fork("foreign-1")
            assert (await app.resume("foreign-1", model=SCRIPT)).run.id == "foreign-1"

    asyncio.run(story())


def test_resuming_says_which_tools_this_process_does_not_have(project: Path) -> None:
    @tool
    def pay(amount: int) -> str:
        return "paid"

    (project / "shop.yaml").write_text(SHOP, encoding="utf-8")

    async def story() -> None:
        async with App(SETTINGS, tools=[pay], scope=None) as app:
            run = await app.start("shop.yaml")
            assert (await app.resume(run)).notes == ()
        async with App(SETTINGS, scope=None) as app:
            (note,) = (await app.resume(run)).notes
            assert note.startswith("This process does not have the tool 'pay': calls wait for one that has.")

    asyncio.run(story())


# Forking and acting


def test_a_fork_with_a_key_is_made_once(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS) as app:
            view = await app.wait(await app.start(HAIKU))
            first, second = await asyncio.gather(*(app.fork(view.run, 3, key="again") for _ in range(2)))
            third = await app.fork(view.run.id, 3, workflow=HAIKU)
            assert first.id == second.id != third.id
            assert [(await app.wait(one)).status for one in (first, third)] == ["completed"] * 2
            assert (await app.look(view.run)).run.length == view.run.length
            assert {info.run_id for info in (await app.runs()).items} == {view.run.id, first.id, third.id}
            with pytest.raises(RunNotFound):
                await app.fork("nothing")

    asyncio.run(story())


def test_a_key_that_was_used_for_another_fork_is_refused(project: Path) -> None:
    shutil.copytree(project / HAIKU, project / "other")
    (project / "other/workflow.yaml").write_text(
        (project / HAIKU / "workflow.yaml").read_text(encoding="utf-8").replace("name: haiku", "name: other"),
        encoding="utf-8",
    )

    async def story() -> None:
        async with App(SETTINGS) as app:
            first, second = [(await app.wait(await app.start(HAIKU))).run for _ in range(2)]
            fork = await app.fork(first, 6, key="fk")
            for at, workflow in ((8, None), (6, "other")):
                with pytest.raises(RunAlreadyStarted, match=f"'{fork.id}' exists already for the key 'fk'"):
                    await app.fork(first, at, workflow=workflow, key="fk")
            assert (await app.fork(first, key="fk")).id == (await app.fork(first, 6, key="fk")).id == fork.id
            assert (await app.fork(second, 6, key="fk")).id != fork.id, "the key of another run"
            assert len((await app.runs()).items) == 4

    asyncio.run(story())


def test_errors_that_say_what_to_do_have_it_as_data(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS) as app:
            run = await app.start(HAIKU, "rain", key="k")
            with pytest.raises(RunAlreadyStarted, match="Choose another key, or resume that one") as exists:
                await app.start(HAIKU, "snow", key="k")
            assert [(step.action, step.subject) for step in exists.value.next_steps] == [("resume", run.id)]
            await app.wait(run)
            with pytest.raises(RunHasEnded, match="Fork it to continue") as ended:
                await app.cancel(run)
            assert [(step.action, step.subject) for step in ended.value.next_steps] == [("fork", run.id)]
            stopped = await app.start(HAIKU, limits=Limits(calls=1))
            await app.wait(stopped)
            with pytest.raises(RunHasEnded, match="Resume it to continue") as saved:
                await app.cancel(stopped)
            assert [(step.action, step.subject) for step in saved.value.next_steps] == [("resume", stopped.id)]

    asyncio.run(story())


def test_a_fork_that_is_to_be_resumed_need_not_be_usable_yet(project: Path) -> None:
    script = project / "gone.jsonl"
    shutil.copy(project / HAIKU / "script.jsonl", script)

    async def story() -> None:
        async with App(SETTINGS) as app:
            view = await app.wait(await app.start(HAIKU, model=f"script:{script}"))
            script.unlink()
            with pytest.raises(UsageError, match=r"There is no script .*gone\.jsonl"):
                await app.fork(view.run, 3)
        async with App(SETTINGS, scope=None) as app:
            fork = await app.fork(view.run, 3, to_resume=True)
            await app.resume(fork, model=SCRIPT)
            async with app.working(Tree(fork.id)):
                assert (await app.wait(fork)).status == "completed"

    asyncio.run(story())


def test_runs_have_the_statuses_that_people_see(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(HAIKU)

            async def found(*statuses: str) -> list[tuple[str, str]]:
                page = await app.runs(ripstop.RunQuery(statuses=statuses))
                return [(info.run_id, info.status) for info in page.items]

            assert await found("interrupted") == await found() == [(run.id, "interrupted")]
            assert await found("working", "waiting") == []
            async with app.working(NOTHING):  # a worker is there, though it leaves this run alone
                assert await found("working", "completed") == [(run.id, "working")]
                assert await found("interrupted") == []

    asyncio.run(story())


def test_every_status_has_a_colour_and_a_word_and_is_known_of_every_outcome() -> None:
    words = json.loads((SOURCE / "faces/web/words/en.json").read_text(encoding="utf-8"))
    assert {*STATUSES} == {*COLOURS} == {*OUTCOMES, *STATUSES}
    assert {one for one in STATUSES if f"status.{one}" not in words} == set()


def test_acting_says_what_is_possible_and_minds_what_was_seen(project: Path) -> None:
    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(HAIKU)
            with pytest.raises(UsageError, match=r"'pass' is not possible with .*; nothing can be done with it now"):
                await app.act(run, "pass", {"to": "bob"}, by="ann")
            with pytest.raises(UsageError, match="has changed since you looked at it"):
                await app.act(run, "pass", by="ann", seen=run.length - 1)

    asyncio.run(story())


def test_the_result_of_a_run_is_shown_in_a_line(project: Path) -> None:
    done = ripstop.run_sync(HAIKU, settings=SETTINGS)
    assert repr(done).startswith(f"RunResult(run='{done.run}', status='completed', because='judge → END: approved'")
    assert len(repr(done)) < 300


SHOP = """\
name: shop
initial_message: pay
agents:
  - { name: ann, type: ask, tools: [pay] }
states:
  - name: work
    agent: ann
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Go."
"""
