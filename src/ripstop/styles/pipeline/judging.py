"""Whether a product can be delivered: the verdict of the check, beside what the engine found.

- A check ends with one JSON object, `{"verdict": "pass"}` or `{"verdict": "fail", "reasons": […]}`. It is read to the
  letter: words before it are fine; words behind it, a key that is there twice, two verdicts that differ, or a `pass`
  with reasons against it or with any other key are not.
- A `fail`, a critical finding of the check, and a planned file that is missing or empty each keep a product back,
  even if an agent says that all is well. What a critic found was for its stage.
- What keeps it back is a list. It goes to the last stage before that writes code, at most `max_returns` times in a run.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .. import reply
from ..checks import MAX_NAMED, Shown, command_ends, file_exists, no_open_blockers, verdict_is
from ..final_object import check_end
from .calls import ProjectFacts
from .definition import Pipeline
from .state import CommandRun, PipelineState

PASSED, FAILED = "pass", "fail"
VERDICT, REASONS = "verdict", "reasons"
MAX_REASONS, MAX_REASON = 20, 2_000
"""How many there are at most, and characters of one."""
MAX_KEY = 60
"""Characters of a key that is quoted."""
PLANNER = "the plan"
"""Who claims what it says of files and tasks."""
MAX_VERDICTS = 10
"""Objects with a verdict in one reply that are compared."""
FORM = (
    'End your reply with your verdict as one JSON object on lines of its own: {"verdict": "pass"} if the product can '
    'be delivered, or {"verdict": "fail", "reasons": ["what has to be put right", "…"]} if it cannot.'
)


class NoVerdict(Exception):
    """A reply does not end with a verdict that can be read; says why."""


class CheckVerdict(msgspec.Struct, frozen=True):
    said: str
    reasons: tuple[str, ...] = ()
    """Why it failed."""


def read_verdict(text: str) -> CheckVerdict:
    """The verdict in a reply. Raises `NoVerdict`."""
    found, rest = _one(text)
    said = found[VERDICT]
    if not isinstance(said, str) or said.strip().lower() not in (PASSED, FAILED):
        raise NoVerdict(f"the verdict is {msgspec.json.encode(said).decode()[:60]}, not {PASSED!r} or {FAILED!r}")
    verdict = said.strip().lower()
    reasons = _reasons(found.get(REASONS))
    if verdict == PASSED and reasons:
        raise NoVerdict(f"{PASSED!r} has {REASONS!r}, which are those against it; leave them out, or say {FAILED!r}")
    if verdict == PASSED and (others := [key for key in found if key not in (VERDICT, REASONS)]):
        named = ", ".join(repr(_cut(key)[:MAX_KEY]) for key in others[:MAX_NAMED])
        raise NoVerdict(f"{PASSED!r} has {named} beside it, which may be against it; leave it out, or say {FAILED!r}")
    if verdict == PASSED:
        return CheckVerdict(verdict)
    return CheckVerdict(verdict, reasons or (_cut(rest) or "The check gave no reason.",))


def _one(text: str) -> tuple[dict[str, Any], str]:
    """The last object with a verdict, and the words without it."""
    try:
        found, source, rest = check_end(text, VERDICT)
    except reply.NoReply as error:
        raise NoVerdict(str(error)) from error
    if why := reply.why_not_json(source):
        raise NoVerdict(f"the verdict is not JSON: {why}")
    if any(said != found[VERDICT] for said in _inner(found)):
        raise NoVerdict("there are other verdicts inside it, and they differ")
    left = rest
    for _ in range(MAX_VERDICTS):
        try:
            other, _, left = reply.last_part(left, VERDICT)
        except reply.NoReply:
            break
        if other[VERDICT] != found[VERDICT]:
            raise NoVerdict("there are two verdicts, and they differ")
    else:
        raise NoVerdict(f"there are more than {MAX_VERDICTS} verdicts")
    return found, rest


def _inner(value: Any) -> Iterator[Any]:
    """The verdicts in what an object holds. The depth of what was parsed is bounded."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(one, dict) and VERDICT in one:
            yield one[VERDICT]
        yield from _inner(one)


def _reasons(given: Any) -> tuple[str, ...]:
    many = given if isinstance(given, list) else [given]
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in many if one)
    return tuple(_cut(text) for text in texts if text.strip())[:MAX_REASONS]


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


# What is wanted, and what was found


def checks_of(verdict: CheckVerdict, by: str, effects: Sequence[tuple[str, Any]]) -> tuple[list[Shown], list[str]]:
    """What the check itself says: what was wanted and found, and what keeps the product back."""
    critical = [arguments for tool, arguments in effects if tool == "provide_feedback" and _is_critical(arguments)]
    findings = [_finding(one) for one in critical][:MAX_REASONS]
    judged = verdict_is(by, verdict.said, (PASSED,))
    claimed = replace(judged, by=by) if judged.holds else judged
    return [claimed, no_open_blockers(findings, "critical finding")], [*verdict.reasons, *findings]


def checks_of_files(facts: ProjectFacts | None) -> tuple[list[Shown], list[str]]:
    """What the engine finds of the plan: whether its files are there, and its tasks done."""
    if facts is None or not facts.code_files:  # without any code there is no delivery at all, which says so itself
        return [], []
    missing, empty = list(facts.missing_files), list(facts.empty_files)
    lacking = [file_exists(path, None) for path in missing[:MAX_REASONS]]
    lacking += [file_exists(path, 0) for path in empty[:MAX_REASONS]]
    shown = [replace(one, by=PLANNER) for one in lacking]
    if facts.planned_files and not shown:
        shown.append(Shown("every file of the plan exists", f"{facts.planned_files} do, and none is empty", True))
    done, tasks = facts.tasks
    if tasks:
        claimed = done if facts.tasks_marked is None else facts.tasks_marked
        shown.append(_tasks(claimed, done, facts.tasks_without_files, tasks))
    why = [f"{path} is in the plan, and there is no such file." for path in missing]
    return shown, [*why, *(f"{path} is in the plan, and it is empty." for path in empty)]


def _tasks(claimed: int, done: int, without_files: int, tasks: int) -> Shown:
    """A task that names no file is neither shown to be completed nor refuted."""
    found = f"{done - without_files} of {tasks} with all their files" if claimed else "none"
    if without_files:
        found = (
            f"{found}; {without_files} {'names' if without_files == 1 else 'name'} no file, so nothing was looked at"
        )
    holds = None if without_files else True
    return Shown(f"{claimed} of {tasks} tasks are completed", found, holds if done == claimed else False, by=PLANNER)


def checks_of_commands(state: PipelineState) -> list[Shown]:
    """What was run, and how it ended; that nothing was run is said as well. It is evidence, and keeps nothing back."""
    shown = [_command(one) for one in state.commands]
    coding = state.definition.stage(state.coded_in)
    if coding is not None and not any(one.stage == coding.name for one in state.commands):
        how = "no command was run"
        if coding.workflow:
            how = f"the workflow {coding.workflow!r} has written it; the records of its run say what was run"
        shown.insert(0, Shown("the code was tried out while it was written", how, None))
    return shown


def _command(run: CommandRun) -> Shown:
    times = f", the last of {run.times} times" if run.times > 1 else ""
    why = run.more or ("it was stopped" if run.exit_code is None else "")
    if run.is_stale:
        why = f"{why}; files were written after it" if why else "files were written after it"
    shown = command_ends(run.command, 0, run.exit_code, why)
    holds = None if shown.holds and run.is_stale else shown.holds
    return Shown(f"{run.stage}: {shown.claimed}{times}", shown.shown, holds)


def checks_of_review(facts: ProjectFacts | None) -> list[Shown]:
    """Whether the code is what a person has reviewed; nothing if nobody has."""
    if facts is None or facts.since_review is None:
        return []
    files = facts.since_review
    found = f"changed since: {_named(files)}" if files else "no code file was changed since"
    return [Shown("the code is what a person has reviewed", found, not files)]


def code_in(state: PipelineState) -> dict[str, str]:
    """The code as the engine found it last: hashes by path."""
    facts = state.found.facts if state.found else None
    return {one.path: one.sha256 for one in facts.files} if facts else {}


def checks_of_return(state: PipelineState) -> list[Shown]:
    """Whether the code is another one since it was kept back; nothing if it was not. It decides nothing by itself:
    a check can have been wrong. But who reads that it passes now should know.
    """
    before, now = state.code_kept_back, code_in(state)
    if not before:
        return []
    files = sum(before.get(path) != now.get(path) for path in before.keys() | now.keys())
    return [Shown("the code was changed since it was kept back", _differing(files), bool(files))]


def _differing(files: int) -> str:
    some = "1 code file differs" if files == 1 else f"{files} code files differ"
    return some if files else "no code file differs"


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - MAX_NAMED} more" if len(files) > MAX_NAMED else ""
    return f"{', '.join(files[:MAX_NAMED])}{more}"


def change_of(state: PipelineState) -> Shown | None:
    """Whether a change that a person asked for has left a trace; none if that is not known.

    That files differ does not show that the change is made. That none does shows that it is not.
    """
    facts = state.found.facts if state.found else None
    if state.change is None or facts is None or facts.changed_files is None:
        return None
    changed = facts.changed_files if facts.since_start is None else facts.since_start
    what = state.change.strip().split("\n", maxsplit=1)[0][:100] or "a change"
    found, others = _differing(len(changed)), facts.other_files
    if changed:
        blank = ", in white space only" if set(changed) <= set(facts.in_white_space) else ""
        found = f"{found}{blank}: {_named(changed)}"
    elif others:
        how = "but 1 other file does" if len(others) == 1 else f"but {len(others)} other files do"
        found = f"{found}, {how}: {_named(others)}"
    return Shown(f"the change is made: {what}", found, None if changed or others else False)


def stage_to_mend(pipeline: Pipeline, judging: str) -> str:
    """The last stage before the one that judges that writes code; empty if there is none."""
    before = pipeline.stages[: pipeline.index(judging)]
    return next((one.name for one in reversed(before) if one.writes_code and one.name in pipeline.restartable), "")


def as_list(reasons: Sequence[str]) -> str:
    more = [f"- and {len(reasons) - MAX_REASONS} more"] if len(reasons) > MAX_REASONS else []
    return "\n".join([*(f"- {one}" for one in reasons[:MAX_REASONS]), *more])


def _is_critical(arguments: dict[str, Any]) -> bool:
    return str(arguments.get("severity", "")).strip().lower() == "critical"


def _finding(arguments: dict[str, Any]) -> str:
    details, fix = str(arguments.get("details", "")), str(arguments.get("suggested_fix") or "")
    return _cut(f"{details} ({fix})" if fix.strip() else details)
