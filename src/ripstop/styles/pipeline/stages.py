"""What a run does with a project, stage by stage: open it, begin, write, check, finish, close.

Everything here can be repeated after a kill at any moment: files are written in an order in which the last one says
that the others are complete, and a repeat finds what is there. The caller holds the project's lock.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Performer, Refused, Request
from ripstop.tools.shared_folder import parts_of, work_in_turn
from ripstop.tools.style_tools import OwnTool, arguments_of
from ripstop.tools.toolbox import workspace_of

from .backups import back_up_and_remove
from .checks import Findings, find, output_problems
from .code_files import MAX_LISTED, NO_CODE, list_files
from .data_files import BY_PATH, CODE, FEATURES, FEEDBACK, REQUIREMENTS, Session, document_of, invalid, load, save
from .items import mark_state, new_mark
from .models import CompletionMark, InvalidData
from .reports import DELIVERY_REPORT, ReportCall, add_feedback, latest_feedback, report_text
from .store import ARTIFACTS, COWORK, DATA, CoworkFolder, as_data, missing_file, project_locks

MAX_INPUT = 60_000
"""Characters of an input that a stage is given."""
MAX_FILES = 500
"""Files of the project that a stage is told."""
MAX_RUNS = 1000
"""Runs of one project that it remembers."""
IDEA = "artifacts/idea.md"
INITIALIZED = "Project already initialized"


class StageCall(Struct, frozen=True, kw_only=True):
    name: str
    products: tuple[str, ...] = ()
    kind: str = "work"
    writes_code: bool = False

    @property
    def all_products(self) -> tuple[str, ...]:
        code = (CODE.path,) if self.writes_code else ()
        return tuple(dict.fromkeys((*self.products, *code)))


class OpenCall(Struct, frozen=True, kw_only=True):
    stages: tuple[StageCall, ...]
    restartable: tuple[str, ...] = ()
    mode: Literal["new", "continue", "modify"]
    stage: str = ""
    idea: str = ""
    flow: str = ""


class BeginCall(Struct, frozen=True, kw_only=True):
    stage: str
    inputs: tuple[str, ...] = ()
    may_miss: bool = False
    """Whether the stage can do without an input that is not there."""
    files: bool = False


class DraftCall(Struct, frozen=True, kw_only=True):
    stage: str
    files: dict[str, str] = {}
    expected: dict[str, str] = {}
    """What files should have in them. One that is not there is written; one that a person has edited is returned."""
    reset: tuple[str, ...] = ()
    feedback: dict[str, Any] | None = None


class ProductsCall(Struct, frozen=True, kw_only=True):
    stage: str
    outputs: tuple[str, ...] = ()
    kind: str = "work"
    writes_code: bool = False
    code_before: dict[str, str] = {}


class FinishCall(Struct, frozen=True, kw_only=True):
    stage: str
    products: tuple[str, ...] = ()
    writes_code: bool = False
    report: ReportCall | None = None
    is_finished: bool = True
    """Whether the stage is marked as finished. One that asks for a restart is not."""


class CloseCall(Struct, frozen=True, kw_only=True):
    outcome: str = ""


# Opening


def open_project(folder: CoworkFolder, run_id: str, key: str, call: OpenCall) -> dict[str, Any]:
    names = [stage.name for stage in call.stages]
    if call.stage and call.stage not in names:
        raise Refused(f"Unknown stage {call.stage!r}; expected one of: {', '.join(names)}.", "ours")
    if call.mode == "new" and not _is_new(folder, run_id):
        raise Refused(f"{INITIALIZED}: there is a {COWORK} folder in {str(folder.project)!r}.")
    folder.prepare()
    session = Session(folder)
    start = names.index(call.stage) if call.stage else 0
    removed: list[str] = []
    kept_code: list[str] = []
    if call.mode == "modify":
        doomed = products_from(call.stages, start)
        backup = back_up_and_remove(folder, session, run_id, key, names[start], doomed)
        removed, kept_code = sorted(backup.files), backup.kept_code
    marks = _marks(folder, session, call.stages, start)
    idea = call.idea or session.meta.idea or _idea(folder)
    session.change(
        names[start],
        current_stage=names[start],
        restart_reason=None,
        run=run_id,
        runs=list(dict.fromkeys((*session.meta.runs, run_id)))[-MAX_RUNS:],
        flow=_relative(call.flow, folder.project),
        idea=idea,
        stages=names,
        restartable=call.restartable,
        completed=marks,
    )
    completed = [name for name in names if name in marks]
    return {"completed": completed, "idea": idea, "removed": removed, "kept_code": kept_code}


def _relative(flow: str, project: Path) -> str:
    """A path in the project stays true when the project is moved."""
    path, root = Path(flow), project.resolve()
    return str(path.relative_to(root)) if flow and path.is_relative_to(root) else flow


def _is_new(folder: CoworkFolder, run_id: str) -> bool:
    if not folder.exists():
        return True
    session = Session(folder)
    return session.meta.run == run_id if session.is_there else not (folder.names(ARTIFACTS) or folder.names(DATA))


def products_from(stages: tuple[StageCall, ...], start: int) -> list[str]:
    """The products of a stage and all later ones, but those that an earlier one has made."""
    earlier = {path for stage in stages[:start] for path in stage.all_products}
    later = dict.fromkeys(path for stage in stages[start:] for path in stage.all_products)
    return [path for path in later if path not in earlier]


def _marks(
    folder: CoworkFolder, session: Session, stages: tuple[StageCall, ...], start: int
) -> dict[str, CompletionMark]:
    """The marks of the stages before `start`, which count as finished with their products as they are now.

    Somebody else's project has none, and a person may have edited a product; both was said before the run began.
    """
    names = {stage.name for stage in stages}
    found = {name: mark for name, mark in session.meta.completed.items() if name not in names}
    logged = folder.logged_hashes()
    for stage in stages[:start]:
        mark = session.meta.completed.get(stage.name)
        state = mark_state(folder, mark, logged) if mark else None
        is_same = mark is not None and state is not None and not (state.missing or state.changed)
        found[stage.name] = mark if mark is not None and is_same else new_mark(folder, stage.all_products)
    return found


def _idea(folder: CoworkFolder) -> str:
    return folder.text(IDEA) if folder.read(IDEA) is not None else ""


# Beginning


def begin_stage(folder: CoworkFolder, call: BeginCall) -> dict[str, Any]:
    missing = [path for path in call.inputs if folder.read(path) is None] if call.may_miss else []
    inputs = {path: _input(folder, path, call.inputs) for path in call.inputs if path not in missing}
    listing = list_files(folder.project).files if call.files else []
    Session(folder).change(call.stage, current_stage=call.stage)
    return {
        "inputs": inputs,
        "missing": missing,
        "feedback": latest_feedback(folder),
        "files": msgspec.to_builtins(listing[:MAX_FILES]),
        "more_files": max(0, min(len(listing), MAX_LISTED) - MAX_FILES),
    }


def _input(folder: CoworkFolder, path: str, inputs: tuple[str, ...]) -> str:
    data = folder.read(path)
    file = BY_PATH.get(path)
    if data is None:
        # the original system takes a feature list that is not there for an empty one
        if file is FEATURES and REQUIREMENTS.path in inputs and folder.read(REQUIREMENTS.path) is not None:
            return '{"features": []}'
        raise missing_file(path)
    if file is not None:
        load(folder, file)
    text = folder.text(path)
    if len(text) <= MAX_INPUT:
        return text
    return f"{text[:MAX_INPUT]}\n… (cut here: {len(text):,} characters, the first {MAX_INPUT:,} are shown)"


# Writing


def write_files(folder: CoworkFolder, run_id: str, call: DraftCall) -> dict[str, Any]:
    texts = {path: _checked(path, text) for path, text in call.files.items()}
    for path in call.reset:
        _check_path(path)
    for path in call.reset:
        if path not in texts:
            folder.remove(path, call.stage)
    edited: dict[str, str] = {}
    for path, text in call.expected.items():
        _check_path(path)
        if folder.read(path) is None:
            texts[path] = as_data(path, text)
        elif (now_there := folder.text(path)) != text:
            edited[path] = now_there
    written = {path: folder.write(path, data, call.stage) for path, data in texts.items()}
    if call.feedback:
        given = {"stage": call.stage, **call.feedback}
        # the record with the words, because the command is another one when the run was resumed
        add_feedback(folder, f"{run_id}/{given.pop('record')}", given)
    removed = [path for path in call.reset if path not in texts]
    return {"written": written, "removed": removed, **({"edited": edited} if edited else {})}


def _check_path(path: str) -> None:
    parts = parts_of(path)
    if len(parts) < 2 or parts[0] not in (ARTIFACTS, DATA):
        raise Refused(f"{path!r} is not a file in {ARTIFACTS}/ or {DATA}/, so no stage can write it.", "definition")


def _checked(path: str, text: str) -> bytes:
    """A text that may be written: data must be valid."""
    _check_path(path)
    data = as_data(path, text)
    if path in BY_PATH:
        try:
            document_of(BY_PATH[path], data)
        except InvalidData as error:
            raise invalid(path, error) from error
    return data


# Checking


def check_stage(folder: CoworkFolder, call: ProductsCall) -> dict[str, Any]:
    found = find(folder)
    needs_code = call.writes_code or call.kind == "delivery"
    problems = output_problems(folder, call.outputs, found, needs_code)
    changed = [one.path for one in found.code.files if call.code_before.get(one.path) != one.sha256]
    return {"problems": problems, "facts": {**found.facts, "changed_files": changed}}


# Finishing


def finish_stage(folder: CoworkFolder, run_id: str, call: FinishCall) -> dict[str, Any]:
    products = StageCall(name=call.stage, products=call.products, writes_code=call.writes_code).all_products
    if call.writes_code:
        _write_code_metadata(folder, find(folder), call.stage)
    if call.report:
        _write_report(folder, run_id, call.report, call.stage)
    session = Session(folder)
    mark = new_mark(folder, products)
    if not call.is_finished:
        return {"products": mark.products}
    known = session.meta.completed.get(call.stage)
    if known is None or known.products != mark.products:
        session.change(call.stage, completed={**session.meta.completed, call.stage: mark})
    return {"products": mark.products}


def _write_code_metadata(folder: CoworkFolder, found: Findings, stage: str) -> None:
    try:
        document = load(folder, CODE)
    except Refused:  # only the engine writes it, and everything in it is found again
        document = document_of(CODE, None)
    known: Mapping[str, dict[str, Any]] = {
        entry.path: raw for entry, raw in zip(document.entries, document.raw, strict=True)
    }
    files = [{**known.get(one.path, {}), **msgspec.to_builtins(one)} for one in found.code.files]
    if files != document.raw or not document.is_there:
        document.raw[:] = files
        save(folder, document, stage)


def _write_report(folder: CoworkFolder, run_id: str, report: ReportCall, stage: str) -> None:
    _check_path(report.path)
    found = find(folder)
    if report.path == DELIVERY_REPORT and not found.code.count:
        raise Refused(f"{NO_CODE} in {str(folder.project)!r}, so there is no report.")
    text = report_text(report, found, load(folder, FEEDBACK).entries, run_id)
    folder.write(report.path, as_data(report.path, text), stage, "report")


# The tools that only the pipeline style calls: they work on the project in the run's workspace.
#
# All of them can be repeated: an attempt that was killed leaves files that the next one completes, and the value is the
# same.


OPEN, BEGIN, WRITE = "cowork_open", "cowork_begin", "cowork_write"
CHECK, FINISH, CLOSE = "cowork_check", "cowork_finish", "cowork_close"

Work = Callable[[CoworkFolder], dict[str, Any]]


class Projects:
    """The projects that runs of this process work on."""

    def __init__(self) -> None:
        self._locks = project_locks()

    async def open(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, OpenCall)
        return await self._work(request, lambda folder: open_project(folder, request.run_id, request.key, call))

    async def begin(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, BeginCall)
        return await self._work(request, lambda folder: begin_stage(folder, call))

    async def write(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, DraftCall)
        return await self._work(request, lambda folder: write_files(folder, request.run_id, call))

    async def check(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, ProductsCall)
        return await self._work(request, lambda folder: check_stage(folder, call))

    async def finish(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, FinishCall)
        return await self._work(request, lambda folder: finish_stage(folder, request.run_id, call))

    async def close(self, request: Request) -> dict[str, Any]:
        call = arguments_of(request, CloseCall)

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
