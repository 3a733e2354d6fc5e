"""A project that was sent back is restarted from a browser: what is removed is listed first, and it happens once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import RunQuery
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.events import RunSettings
from tests.faces.web.desk_browser import Desk, a_desk
from tests.walks.delivery import deliver, lines, meta, write_script

INTENT = {"intent": "r" * 22}


@pytest.fixture(scope="module")
def sent_back(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a project whose check asked to begin again at the design, and its run."""
    folder = tmp_path_factory.mktemp("sent-back")
    call = {"tool": "goto_stage", "args": {"stage": "design", "reason": "the store has no limit"}}
    replies = [one for one in lines() if one["agent"] != "check"]
    replies += [{"agent": "check", "reply": "", "calls": [call]}, {"agent": "check", "reply": "Go back."}]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, result = deliver(write_script(folder, replies))
    assert (code, result["outcome"]) == (5, "restart")
    return folder, result["run"]


def tell(folder: Path, story: Callable[[Desk], Awaitable[None]], look_only: bool = False) -> None:
    async def main() -> None:
        async with App(Settings(store=f"sqlite:{folder / '.ripstop' / 'journal.db'}"), scope=None) as app:
            await story(Desk(app, look_only))

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        asyncio.run(main())


async def runs(desk: Desk) -> set[str]:
    return {info.run_id for info in (await desk.engine.runs(RunQuery())).items}


def test_the_page_lists_what_a_restart_removes_and_changes_nothing(sent_back: tuple[Path, str]) -> None:
    folder, run = sent_back

    async def story(desk: Desk) -> None:
        page = await desk.ann.get(f"/runs/{run}")
        assert f'href="/runs/{run}/restart?stage=design"' in page.html
        before = sorted(path for path in (folder / ".cowork").rglob("*") if path.is_file())
        page = await desk.ann.get(f"/runs/{run}/restart?stage=design")
        assert page.status == 200
        for path in ("artifacts/design_draft.md", "data/design_spec.json", "data/implementation_plan.json"):
            assert f".cowork/{path}" in page.text
        assert ".cowork/artifacts/prd_draft.md" not in page.text and "index.html" in page.text
        assert "design → plan → coding → check → delivery" in page.text
        assert sorted(path for path in (folder / ".cowork").rglob("*") if path.is_file()) == before

    tell(folder, story)


def test_every_project_that_has_ended_can_be_restarted_at_a_stage_of_choice(sent_back: tuple[Path, str]) -> None:
    folder, run = sent_back

    async def story(desk: Desk) -> None:
        assert f'href="/runs/{run}/restart"' in (await desk.ann.get(f"/runs/{run}")).html
        page = await desk.ann.get(f"/runs/{run}/restart")
        assert page.status == 200
        for stage in ("prd", "design", "plan", "coding"):
            assert f'href="/runs/{run}/restart?stage={stage}"' in page.html
            assert (await desk.ann.get(f"/runs/{run}/restart?stage={stage}")).status == 200
        assert "stage=check" not in page.html

    tell(folder, story)


def test_a_project_at_work_and_a_run_without_one_offer_no_restart(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_desk(tmp_path) as desk:
            await desk.project("at-work-aaaaa")
            await desk.ask("note-aaaaa")
            for run in ("at-work-aaaaa", "note-aaaaa"):
                assert "/restart" not in (await desk.ann.get(f"/runs/{run}")).html
                assert (await desk.ann.get(f"/runs/{run}/restart")).status == 422

    asyncio.run(story())


@pytest.mark.parametrize("stage", ["check", "nowhere", "", "<b>"])
def test_a_stage_that_cannot_be_restarted_is_refused(sent_back: tuple[Path, str], stage: str) -> None:
    folder, run = sent_back

    async def story(desk: Desk) -> None:
        before = await runs(desk)
        page = await desk.ann.post(f"/runs/{run}/restart", {"stage": stage})
        assert page.status == 422 and "Unknown stage" in page.text and "prd, design, plan, coding" in page.text
        assert "Unknown stage '<b>'" not in page.html
        assert await runs(desk) == before

    tell(folder, story)


def test_a_stage_whose_input_is_missing_is_refused(sent_back: tuple[Path, str]) -> None:
    folder, run = sent_back
    needed = folder / ".cowork/data/requirements.json"
    kept = needed.read_bytes()

    async def story(desk: Desk) -> None:
        before = await runs(desk)
        page = await desk.ann.post(f"/runs/{run}/restart", {"stage": "design", "intent": "m" * 22})
        assert page.status == 422 and "cannot begin without .cowork/data/requirements.json" in page.text
        assert await runs(desk) == before

    needed.unlink()
    try:
        tell(folder, story)
    finally:
        needed.write_bytes(kept)


def test_a_desk_that_only_looks_restarts_nothing(sent_back: tuple[Path, str]) -> None:
    folder, run = sent_back

    async def story(desk: Desk) -> None:
        assert "/restart?" not in (await desk.ann.get(f"/runs/{run}")).html
        before = await runs(desk)
        assert (await desk.ann.post(f"/runs/{run}/restart", {"stage": "design"})).status == 403
        assert await runs(desk) == before

    tell(folder, story, look_only=True)


def test_a_form_that_is_sent_twice_restarts_the_project_once(sent_back: tuple[Path, str]) -> None:
    folder, run = sent_back

    async def story(desk: Desk) -> None:
        before = await runs(desk)
        form = {"stage": "design", "text": "one file only", **INTENT}
        pages = [await desk.ann.post(f"/runs/{run}/restart", form) for _ in range(2)]
        assert [page.status for page in pages] == [303, 303]
        (name,) = await runs(desk) - before
        assert {page.to for page in pages} == {f"/runs/{name}"}
        started = (await desk.engine.look(name)).run.started
        assert started.arguments == {"mode": "modify", "stage": "design", "change": "one file only"}
        assert Path(started.settings.workspace) == folder
        assert started.settings.model_for_all.startswith("script:"), "as the run before"

    tell(folder, story)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert meta()["current_stage"], "what is removed is removed when the run is worked on"


def test_a_run_whose_project_is_gone_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_desk(tmp_path) as desk:
            await desk.ask("note-aaaaa")
            page = await desk.ann.get("/runs/note-aaaaa/restart?stage=design")
            assert page.status == 422 and "There is no project in" in page.text

    asyncio.run(story())


def test_nothing_is_read_in_a_folder_that_the_user_has_not_agreed_to(
    sent_back: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = sent_back

    async def story() -> None:
        async with a_desk(tmp_path) as desk:
            await desk.ask("note-aaaaa", AskPerson(question="?"), settings=RunSettings(workspace=str(folder)))
            for page in (
                await desk.ann.get("/runs/note-aaaaa/restart?stage=design"),
                await desk.ann.post("/runs/note-aaaaa/restart", {"stage": "design"}),
            ):
                assert page.status == 422 and "Only a person at the server's terminal" in page.text
                assert "design_draft.md" not in page.text

    asyncio.run(story())
