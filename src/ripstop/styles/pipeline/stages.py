"""The tools that only the pipeline style calls: they open a project, and begin, check and finish its stages.

- Everything can be repeated after a kill at any moment: files are written in an order in which the last one says that
  the others are complete, a repeat finds what is there, and its answer is the same.
- A tool works on the project in the run's workspace, and holds the project's lock meanwhile.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ripstop.engine.performers import Performer, Refused, Request, TryAgain
from ripstop.tools.shared_folder import opened, parts_of, read_file, work_in_turn
from ripstop.tools.snapshots.run_files import DifferingFile, FileChanges, RunFiles
from ripstop.tools.style_tools import typed_tool
from ripstop.tools.toolbox import workspace_of
from ripstop.tools.workspace_tools import run_files

from .backups import back_up_and_remove
from .calls import (
    BEGIN,
    CHECK,
    CLOSE,
    FINISH,
    NO_CODE,
    OPEN,
    SHOW,
    WRITE,
    BeginStageCall,
    BegunStage,
    CheckedStage,
    CheckStageCall,
    ClosedProject,
    CloseProjectCall,
    FinishedStage,
    FinishStageCall,
    ListedFile,
    OpenedProject,
    OpenProjectCall,
    ProjectAnswer,
    ProjectFacts,
    ReportCall,
    ShowCodeCall,
    ShownCode,
    StageProducts,
    WriteFilesCall,
    WrittenFiles,
    text_hash,
)
from .checks import Findings, find, output_problems
from .code_differences import difference_of
from .code_files import changed_code, is_code, list_code, list_files, possible_code
from .data_files import BY_PATH, CODE, FEATURES, FEEDBACK, REQUIREMENTS, Session, document_of, invalid, load, save
from .definition import DELIVERY_REPORT
from .items import mark_state, new_mark, relink
from .models import CodeFile, CompletionMark, InvalidData
from .reports import add_feedback, feedback_for, report_text
from .store import ARTIFACTS, COWORK, DATA, LOGS, CoworkFolder, as_data, missing_file, project_locks, sha_of

MAX_INPUT = 60_000
"""Characters of an input that a stage is given."""
MAX_ALSO = 20_000
"""Characters of what an earlier stage has made, if it is not an input."""
MAX_FILES = 200
"""Files of the project that a stage is told, and files of the list of code that it is given."""
MAX_RUNS = 1000
"""Runs of one project that it remembers."""
MAX_COMPARED = 1_000_000
"""Bytes of a file that is compared line by line."""
MAX_WHOLE = 1_200_000
"""Characters of a whole difference that is kept."""
CHANGES = "_changes.diff"
IDEA = "artifacts/idea.md"
INITIALIZED = "Project already initialized"
logger = logging.getLogger(__name__)


# Opening


def open_project(folder: CoworkFolder, run_id: str, key: str, call: OpenProjectCall) -> OpenedProject:
    names = [stage.name for stage in call.stages]
    if call.stage not in names:
        raise Refused(f"Unknown stage {call.stage!r}; expected one of: {', '.join(names)}.", "ours")
    if call.mode == "new" and not _is_new(folder, run_id):
        raise Refused(f"{INITIALIZED}: there is a {COWORK} folder in {str(folder.project)!r}.")
    folder.prepare()
    session = Session(folder)
    start = names.index(call.stage)
    removed: list[str] = []
    kept_code: list[str] = []
    if call.mode == "modify":
        doomed = products_from(call.stages, start)
        backup = back_up_and_remove(folder, session, run_id, key, call.stage, doomed)
        removed, kept_code = sorted(backup.files), backup.kept_code
        relink(folder, doomed)
    marks = _marks(folder, session, call.stages, start)
    idea = call.idea or session.meta.idea or _idea(folder)
    code_before = _code_before(folder, session)
    change, code_at_change = _change(folder, session, call)
    code_at_start = None if code_at_change == code_before else code_at_change
    session.change(
        call.stage,
        current_stage=call.stage,
        restart_reason=None,
        run=run_id,
        runs=list(dict.fromkeys((*session.meta.runs, run_id)))[-MAX_RUNS:],
        flow=_relative(call.flow, folder.project),
        idea=idea,
        stages=names,
        restartable=call.restartable,
        completed=marks,
        code_before=code_before,
        change=change,
        code_at_change=code_at_change,
    )
    completed = tuple(name for name in names if name in marks)
    return OpenedProject(completed, idea, tuple(removed), tuple(kept_code), code_before, code_at_start, change)


def _relative(flow: str, project: Path) -> str:
    """A path in the project stays true when the project is moved."""
    path, root = Path(flow), project.resolve()
    return str(path.relative_to(root)) if flow and path.is_relative_to(root) else flow


def _is_new(folder: CoworkFolder, run_id: str) -> bool:
    if not folder.exists():
        return True
    session = Session(folder)
    return session.meta.run == run_id if session.is_there else not (folder.names(ARTIFACTS) or folder.names(DATA))


def products_from(stages: tuple[StageProducts, ...], start: int) -> list[str]:
    """The products of a stage and all later ones, but those that an earlier one has made."""
    earlier = {path for stage in stages[:start] for path in _all_products(stage)}
    later = dict.fromkeys(path for stage in stages[start:] for path in _all_products(stage))
    return [path for path in later if path not in earlier]


def _all_products(stage: StageProducts | FinishStageCall) -> tuple[str, ...]:
    code = (CODE.path,) if stage.writes_code else ()
    return tuple(dict.fromkeys((*stage.products, *code)))


def _code_before(folder: CoworkFolder, session: Session) -> dict[str, str]:
    """The code when the work on this delivery began, however many runs that takes; after a delivery, the code now."""
    if session.meta.code_before is None or _is_delivered(session):
        return possible_code(folder.project)
    return session.meta.code_before


def _is_delivered(session: Session) -> bool:
    return bool(session.meta.stages) and session.meta.stages[-1] in session.meta.completed


def _change(folder: CoworkFolder, session: Session, call: OpenProjectCall) -> tuple[str | None, dict[str, str] | None]:
    """The change that is wanted, and the code when it was asked for. It outlives the run that it was asked of.

    Other words take its place. Where its own words go on, perhaps with the reason of a restart behind them, it is the
    same one; but after a delivery a change is asked for anew.
    """
    before, code = session.meta.change, session.meta.code_at_change
    wanted = before if call.change is None else call.change or _with_reason(before or "", session.meta.restart_reason)
    if wanted is None:
        return None, None
    goes_on = before is not None and before in wanted and not (call.mode == "modify" and _is_delivered(session))
    return wanted, code if goes_on and code is not None else possible_code(folder.project)


def _with_reason(wanted: str, reason: str | None) -> str:
    """What is wanted where a stage has asked for a restart and a person has not said anything else."""
    if not reason or reason in wanted:
        return wanted
    return f"{wanted}\n\nWhy a restart was asked for: {reason}" if wanted else reason


def _marks(
    folder: CoworkFolder, session: Session, stages: tuple[StageProducts, ...], start: int
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
        found[stage.name] = mark if mark is not None and is_same else new_mark(folder, _all_products(stage))
    return found


def _idea(folder: CoworkFolder) -> str:
    return folder.text(IDEA) if folder.read(IDEA) is not None else ""


# Beginning


def begin_stage(folder: CoworkFolder, call: BeginStageCall, files: RunFiles | None = None) -> BegunStage:
    """Read what a stage works with; done again before each prompt, so that it has what is there then.

    `files`: those of a run that is about to write code, of which a snapshot is taken.
    """
    if files is not None:
        _take_snapshot(files)
    missing = [path for path in call.inputs if folder.read(path) is None] if call.may_miss else []
    texts = {path: _input(folder, path, call.inputs) for path in call.inputs if path not in missing}
    texts |= {path: text for path in call.also if (text := _made_before(folder, path)) is not None}
    same = tuple(path for path, text in texts.items() if call.known.get(path) == text_hash(text))
    listing = list_files(folder.project).files
    feedback, more_feedback = feedback_for(folder, call.stage)
    Session(folder).change(call.stage, current_stage=call.stage)
    return BegunStage(
        {path: text for path, text in texts.items() if path not in same},
        tuple(missing),
        tuple(feedback),
        tuple(_nearest(listing)),
        max(0, len(listing) - MAX_FILES),
        same,
        more_feedback,
    )


def _take_snapshot(files: RunFiles) -> None:
    """Without a place for snapshots the work goes on; a person is then told that there is nothing to compare with."""
    try:
        if begun := files.begin(("",)):
            files.note(begun, ())
    except (Refused, TryAgain, OSError) as error:
        logger.warning("Cannot take a snapshot of %s: %s", files.workspace, error)


def _nearest(listing: list[ListedFile]) -> list[ListedFile]:
    """The files that a stage is told: of too many, those in the highest folders."""
    chosen = sorted(listing, key=lambda one: (one.path.count("/"), one.path))[:MAX_FILES]
    return sorted(chosen, key=lambda one: one.path)


def _made_before(folder: CoworkFolder, path: str) -> str | None:
    """What an earlier stage has made, shortened; none if it is not there."""
    try:
        return None if folder.read(path) is None else _shortened(folder.text(path), MAX_ALSO)
    except Refused as refusal:
        return f"(It cannot be read: {refusal})"


def missing_inputs(folder: CoworkFolder, inputs: tuple[str, ...]) -> list[str]:
    """The inputs without which a stage that makes something cannot begin."""
    return [path for path in inputs if folder.read(path) is None and not _counts_as_empty(folder, path, inputs)]


def _counts_as_empty(folder: CoworkFolder, path: str, inputs: tuple[str, ...]) -> bool:
    """Whether a file that is not there is as good as an empty list: the original system takes features so."""
    is_list = BY_PATH.get(path) is FEATURES
    return is_list and REQUIREMENTS.path in inputs and folder.read(REQUIREMENTS.path) is not None


def _input(folder: CoworkFolder, path: str, inputs: tuple[str, ...]) -> str:
    data = folder.read(path)
    file = BY_PATH.get(path)
    if data is None:
        if _counts_as_empty(folder, path, inputs):
            return '{"features": []}'
        raise missing_file(path)
    document = load(folder, file) if file is not None else None
    if document is not None and file is CODE:
        return _listed(document.entries)
    return _shortened(folder.text(path), MAX_INPUT)


def _listed(code: Sequence[CodeFile]) -> str:
    """The list of code for an agent: nobody reads hashes, and of hundreds of files they would fill the prompt."""
    lines = [f"{one.path} ({one.size} bytes{f', {one.task_id}' if one.task_id else ''})" for one in code[:MAX_FILES]]
    more = [f"… and {len(code) - MAX_FILES} more"] if len(code) > MAX_FILES else []
    return _shortened("\n".join([*lines, *more]) or "There are no code files.", MAX_INPUT)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… (cut here: {len(text):,} characters, the first {most:,} are shown)"


# Writing


def write_files(folder: CoworkFolder, run_id: str, call: WriteFilesCall) -> WrittenFiles:
    texts = {path: _checked(path, text) for path, text in call.files.items()}
    for path in call.reset:
        _check_path(path)
    for path in call.reset:
        if path not in texts:
            folder.remove(path, call.stage)
    relink(folder, call.reset)
    edited: dict[str, str] = {}
    for path, text in call.expected.items():
        _check_path(path)
        if folder.read(path) is None:
            texts[path] = as_data(path, text)
        elif (now_there := folder.text(path)) != text:
            edited[path] = now_there
    written = {path: folder.write(path, data, call.stage) for path, data in texts.items()}
    if call.feedback:
        given = {"stage": call.stage, **asdict(call.feedback)}
        # the record with the words, because the command is another one when the run was resumed
        add_feedback(folder, f"{run_id}/{given.pop('record')}", given)
    removed = tuple(path for path in call.reset if path not in texts)
    return WrittenFiles(written, removed, edited)


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


def check_stage(folder: CoworkFolder, call: CheckStageCall, files: RunFiles | None = None) -> CheckedStage:
    """`files`: those of a run whose product is judged, of which it is found how they differ."""
    found = find(folder)
    needs_code = call.writes_code or call.kind == "delivery"
    problems = output_problems(folder, call.outputs, found, needs_code)
    changed, reviewed, started = (
        None if before is None else tuple(changed_code(folder.project, found.code, before))
        for before in (call.code_before, call.code_reviewed, call.code_at_start)
    )
    facts = replace(found.facts, changed_files=changed, since_review=reviewed, since_start=started)
    if files is not None:
        before = (call.code_before if started is None else call.code_at_start) or {}
        facts = _with_differences(folder, facts, found, _differing(files), before)
    return CheckedStage(tuple(problems), facts)


def _differing(files: RunFiles) -> tuple[DifferingFile, ...]:
    """Without a snapshot the work goes on: that code differs is known by its hashes."""
    try:
        return files.since_snapshot(MAX_COMPARED).files
    except (Refused, TryAgain, OSError) as error:
        logger.warning("Cannot compare %s with its snapshot: %s", files.workspace, error)
        return ()


def _with_differences(
    folder: CoworkFolder,
    facts: ProjectFacts,
    found: Findings,
    differing: Sequence[DifferingFile],
    before: Mapping[str, str],
) -> ProjectFacts:
    """`before`: the code that is compared with. An earlier run may have changed it, so the snapshot can be of other."""
    listed = {one.path for one in list_files(folder.project).files}  # without caches and what is hidden
    planned = frozenset(found.code.planned)
    return replace(
        facts,
        in_white_space=tuple(one.path for one in differing if _is_in_white_space(one, before.get(one.path, ""))),
        other_files=tuple(one.path for one in differing if one.path in listed and not is_code(one.path, planned)),
    )


def _is_in_white_space(one: DifferingFile, before: str) -> bool:
    if one.before is None or one.now is None or sha_of(one.before) != before:
        return False
    return b"".join(one.before.split()) == b"".join(one.now.split())


# Showing


def show_code(folder: CoworkFolder, files: RunFiles, call: ShowCodeCall) -> ShownCode:
    """What the code is, against what was there before the run. All of it goes to a file, its beginning to a person."""
    since = files.since_snapshot(MAX_COMPARED)
    differing = since.files
    if since.problem and call.code_before is not None:
        listing = list_code(folder.project, ())
        paths = changed_code(folder.project, listing, call.code_before)
        differing = tuple(_without_snapshot(folder.project, path, call.code_before) for path in paths)
    whole = f"{LOGS}/{call.stage}{CHANGES}"
    shown = difference_of(differing, since.problem, f"{COWORK}/{whole}")
    folder.write(whole, as_data(whole, shown.whole[:MAX_WHOLE]), call.stage, "show")
    return ShownCode(shown.text, len(differing), possible_code(folder.project))


def _without_snapshot(project: Path, path: str, before: Mapping[str, str]) -> DifferingFile:
    """A changed file of a project of which there is no snapshot: what it was is not known."""
    now: bytes | None = None
    with suppress(Refused, OSError):
        *folders, name = parts_of(path)
        with opened(project, tuple(folders)) as above:
            data, _ = read_file(above, name, MAX_COMPARED)
            now = data if len(data) <= MAX_COMPARED else None
    return DifferingFile(path, path in before, _exists(project, path), None, now)


def _exists(project: Path, path: str) -> bool:
    return os.path.lexists(project / path)


# Finishing


def finish_stage(
    folder: CoworkFolder, run_id: str, call: FinishStageCall, files: RunFiles | None = None
) -> FinishedStage:
    """`files`: what the run did to files that were there before it."""
    if call.writes_code:
        _write_code_metadata(folder, find(folder), call.stage)
    report = ""
    if call.report:
        report = _write_report(folder, run_id, call.report, call.stage, files.changes() if files else None)
    session = Session(folder)
    mark = new_mark(folder, _all_products(call))
    if not call.is_finished:
        return FinishedStage(mark.products, report)
    known = session.meta.completed.get(call.stage)
    if known is None or known.products != mark.products:
        ended = {"change": None, "code_at_change": None} if call.ends_change else {}
        session.change(call.stage, completed={**session.meta.completed, call.stage: mark}, **ended)
    return FinishedStage(mark.products, report)


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


def _write_report(
    folder: CoworkFolder, run_id: str, report: ReportCall, stage: str, changes: FileChanges | None
) -> str:
    """Write a report; returns that of a delivery, which is the run's result."""
    _check_path(report.path)
    found = find(folder)
    if report.path == DELIVERY_REPORT and not found.code.count:
        raise Refused(f"{NO_CODE} in {str(folder.project)!r}, so there is no report.")
    text = report_text(report, found, load(folder, FEEDBACK).entries, run_id, changes)
    folder.write(report.path, as_data(report.path, text), stage, "report")
    return text if report.path == DELIVERY_REPORT else ""


# The tools


class Projects:
    """The projects that runs of this process work on."""

    def __init__(self) -> None:
        self._locks = project_locks()

    async def open(self, request: Request, call: OpenProjectCall) -> OpenedProject:
        return await self._work(request, lambda folder: open_project(folder, request.run_id, request.key, call))

    async def begin(self, request: Request, call: BeginStageCall) -> BegunStage:
        files = await run_files(request) if call.writes_code else None
        return await self._work(request, lambda folder: begin_stage(folder, call, files))

    async def write(self, request: Request, call: WriteFilesCall) -> WrittenFiles:
        return await self._work(request, lambda folder: write_files(folder, request.run_id, call))

    async def check(self, request: Request, call: CheckStageCall) -> CheckedStage:
        files = None if call.kind == "work" else await run_files(request)
        return await self._work(request, lambda folder: check_stage(folder, call, files))

    async def show(self, request: Request, call: ShowCodeCall) -> ShownCode:
        files = await run_files(request)
        return await self._work(request, lambda folder: show_code(folder, files, call))

    async def finish(self, request: Request, call: FinishStageCall) -> FinishedStage:
        files = await run_files(request)
        return await self._work(request, lambda folder: finish_stage(folder, request.run_id, call, files))

    async def close(self, request: Request, call: CloseProjectCall) -> ClosedProject:
        def work(folder: CoworkFolder) -> ClosedProject:
            try:
                if folder.exists():
                    folder.log(Session(folder).meta.current_stage or "", f"close: {call.outcome}")
            finally:
                self._locks.release(folder.project)
            return ClosedProject()

        return await self._work(request, work)

    async def _work(self, request: Request, work: Callable[[CoworkFolder], ProjectAnswer]) -> ProjectAnswer:
        project = Path(workspace_of(request))

        def work_locked(over: frozenset[str]) -> ProjectAnswer:
            folder = CoworkFolder(project)
            folder.prepare_locks()
            with self._locks.working(project, request.run_id, over):
                return work(folder)

        return await work_in_turn(request, work_locked)


def own_tools() -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    projects = Projects()
    return {
        OPEN: typed_tool(OPEN, OpenProjectCall, projects.open),
        BEGIN: typed_tool(BEGIN, BeginStageCall, projects.begin),
        WRITE: typed_tool(WRITE, WriteFilesCall, projects.write),
        CHECK: typed_tool(CHECK, CheckStageCall, projects.check),
        SHOW: typed_tool(SHOW, ShowCodeCall, projects.show),
        FINISH: typed_tool(FINISH, FinishStageCall, projects.finish),
        CLOSE: typed_tool(CLOSE, CloseProjectCall, projects.close),
    }
