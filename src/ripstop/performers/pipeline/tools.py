"""The tools that only the pipeline style calls: they work on the project in the run's workspace.

All of them can be repeated: an attempt that was killed leaves files that the next one completes, and the value is the
same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripstop.performers.folder_locks import work_in_turn
from ripstop.performers.own_tools import OwnTool, arguments_of
from ripstop.performers.tools.context import workspace_of
from ripstop.runtime.performers import Performer, Request

from . import stages
from .store import CoworkFolder, project_locks

OPEN, BEGIN, WRITE = "cowork_open", "cowork_begin", "cowork_write"
CHECK, FINISH, CLOSE = "cowork_check", "cowork_finish", "cowork_close"

Work = Callable[[CoworkFolder], dict[str, Any]]


class Projects:
    """The projects that runs of this process work on."""

    def __init__(self) -> None:
        self._locks = project_locks()

    async def open(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.OpenCall)
        return await self._work(request, lambda folder: stages.open_project(folder, request.run_id, request.key, call))

    async def begin(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.BeginCall)
        return await self._work(request, lambda folder: stages.begin_stage(folder, call))

    async def write(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.DraftCall)
        return await self._work(request, lambda folder: stages.write_files(folder, request.run_id, call))

    async def check(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.ProductsCall)
        return await self._work(request, lambda folder: stages.check_stage(folder, call))

    async def finish(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.FinishCall)
        return await self._work(request, lambda folder: stages.finish_stage(folder, request.run_id, call))

    async def close(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, stages.CloseCall)

        def work(folder: CoworkFolder) -> dict[str, Any]:
            try:
                if folder.exists():
                    folder.log("", f"close: {call.outcome}")
            finally:
                self._locks.release(folder.project)
            return {"closed": True}

        return await self._work(request, work)

    async def _work(self, request: Request, work: Work) -> dict[str, Any]:
        project = Path(workspace_of(request))

        def work_locked(over: frozenset[str]) -> dict[str, Any]:
            folder = CoworkFolder(project)
            folder.prepare_locks()
            with self._locks.working(project, request.run_id, over):
                return work(folder)

        return await work_in_turn(request, work_locked)


def own_tools() -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    projects = Projects()
    calls = {
        OPEN: projects.open,
        BEGIN: projects.begin,
        WRITE: projects.write,
        CHECK: projects.check,
        FINISH: projects.finish,
        CLOSE: projects.close,
    }
    return {name: OwnTool(name, call) for name, call in calls.items()}
