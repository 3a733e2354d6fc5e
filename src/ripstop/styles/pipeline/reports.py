"""Check and delivery reports: what the engine has found, then what an agent says, marked so, and what people said.

- All tables come from files as they are now. An agent's text is only in the first section.
- That text cannot pass for a section of the report, or swallow one. Headings become at least third level, where the
  report's own are second level; underlined headings lose their line. HTML is shown, not rendered: an open comment would
  hide everything behind it. So are images, which a reader's program would fetch.
- A code fence at the beginning of a line that is left open is closed. Others, inside lists and quotations, are shown:
  in which line such a fence ends depends on more than the fence.
- Feedback is in `session/feedback_history.json`, to which entries are only added.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ripstop.engine.performers import Refused
from ripstop.history.timeline import iso
from ripstop.text.markdown import MAX_INDENT, Fence, fence_of
from ripstop.text.plurals import count
from ripstop.text.visible_text import visible, visible_line
from ripstop.tools.snapshots.run_files import FileChanges

from ..checks import Shown
from . import checks
from .calls import ReportCall, ReportCost, ReviewDecision
from .checks import Findings
from .data_files import FEEDBACK, MOST_READ, chosen, load, save, text
from .definition import DELIVERY_REPORT
from .models import FEEDBACK_TYPES, SEVERITIES, FeedbackEntry, Requirement, convert_entry
from .store import CoworkFolder, now

MAX_MINE, MAX_OTHERS = 50, 20
"""Entries of the feedback history that a stage is told: about itself, and about other stages."""
LOWEST = 3
"""The level of the highest heading in prose."""
MAX_CELL = 120
"""Characters of a table's cell."""
NOTHING = "*Nothing was handed in.*"
OWN_WORDS = "*Claimed, not checked: what was found and shown is above.*"
MAX_ROWS = 1_000
SHORT_SHA = 12


# Feedback


def add_feedback(folder: CoworkFolder, key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Add an entry whose id is the key, unless it is there. Returns it. Raises `Refused`."""
    document = load(folder, FEEDBACK)
    at = document.index(key)
    if at is not None:
        found: dict[str, Any] = document.raw[at]
        return found
    if len(document.raw) >= MOST_READ:
        raise Refused(f"The feedback history has {len(document.raw):,} entries. Move the older ones to another file.")
    raw = {
        **given,
        "id": key,
        "feedback_type": chosen(given.get("feedback_type") or "suggestion", FEEDBACK_TYPES, "feedback_type"),
        "severity": chosen(given.get("severity") or "minor", SEVERITIES, "severity"),
        "details": text(given.get("details") or "", "details"),
        "suggested_fix": text(given.get("suggested_fix") or "", "suggested_fix") or None,
        "at": now(),
    }
    if not raw["details"].strip():
        raise Refused("details must say what the feedback is.", "agent")
    entry: dict[str, Any] = msgspec.to_builtins(convert_entry(FeedbackEntry, raw, ""))
    document.raw.append(entry)
    save(folder, document, entry["stage"])
    return entry


def feedback_for(folder: CoworkFolder, stage: str) -> tuple[list[FeedbackEntry], int]:
    """What was said about a stage, and the latest about others, the newest last; and how much is left out."""
    entries = load(folder, FEEDBACK).entries
    mine = [at for at, one in enumerate(entries) if one.stage == stage][-MAX_MINE:]
    others = [at for at, one in enumerate(entries) if one.stage != stage][-MAX_OTHERS:]
    chosen = [entries[at] for at in sorted((*mine, *others))]
    return chosen, len(entries) - len(chosen)


# Agents' text


_HEADING = re.compile(r"^((?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*)(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r"^(?:\s|>)*(=+|-+)\s*$")
_INNER_FENCE = re.compile(r"^((?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*)(?=```|~~~)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def embedded(text: str) -> str:
    """The text as it goes into a report."""
    lines: list[str] = []
    opening: Fence | None = None
    for line in visible(text).strip().split("\n"):
        fence = fence_of(line)
        if opening:
            is_end = fence is not None and fence.indent <= MAX_INDENT and fence.closes(opening)
            lines.append(line.rstrip() if is_end else line)  # other viewers know only spaces and tabs behind a fence
            if is_end:
                opening = None
            continue
        if fence and not fence.indent:
            opening = fence
            lines.append(line)
            continue
        if _UNDERLINE.match(line) and lines and lines[-1].strip():
            lines.append("")
        shown = _INNER_FENCE.sub(r"\1\\", _HEADING.sub(_lowered, line))
        lines.append(_TAG.sub("&lt;", shown.replace("![", "\\![")))
    if opening:
        lines.append(opening.mark)
    return "\n".join(lines)


def _lowered(found: re.Match[str]) -> str:
    return found[1] + "#" * min(6, max(LOWEST, len(found[2]) + LOWEST - 1))


def cell(text: object) -> str:
    """A text in a cell of a table, or in a line: one line, without Markdown's own signs."""
    plain = visible_line(" ".join(str(text).split()))
    short = plain if len(plain) <= MAX_CELL else f"{plain[: MAX_CELL - 1]}…"
    return re.sub(r"([\\|`*_\[\]<>#])", r"\\\1", short)


def code(text: str) -> str:
    """A path or an id, in the type of code."""
    plain = visible_line(text).replace("|", "\\|")
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, tuple("---" for _ in head), *rows)]
    return "\n".join(lines)


# The report


def report_text(
    report: ReportCall,
    found: Findings,
    feedback: Sequence[FeedbackEntry],
    run: str,
    changes: FileChanges | None = None,
) -> str:
    """`changes`: what the run did to files that were there before it."""
    is_delivery = report.path == DELIVERY_REPORT
    what = "Delivery report" if is_delivery else "Check report"
    title = cell(report.title)
    sections = [
        f"# {what}: {title}" if title else f"# {what}",
        f"*{_summary(found)} Written {_minute(now())} by run {code(run)}.*",
        *_claims(report.shown),
        *_files(found),
        *_changed(changes),
        *_coverage(found),
        "## Consistency",
        _bullets(found.inconsistencies()) or "Requirements, features, components, tasks and files fit together.",
        f"## {'What was built' if is_delivery else 'What was found'}, in the agent's words",
        OWN_WORDS,
        embedded(report.prose) or NOTHING,
        *_decisions(feedback, report.decisions),
        "## What could not be checked",
        _bullets(found.unchecked),
        *_cost(report.cost),
    ]
    return "\n\n".join(sections) + "\n"


def _changed(changes: FileChanges | None) -> list[str]:
    """What became of the user's own files; nothing where nothing did."""
    if changes is None or not (changes.problem or changes.changes):
        return []
    lines = [f"{one.what}: {one.path}" for one in changes.changes]
    return ["## Files that were there before", *filter(None, [changes.problem, _bullets(lines)])]


def _summary(found: Findings) -> str:
    facts = found.facts
    (features_done, features), (tasks_done, tasks) = facts.features, facts.tasks
    return (
        f"{count(facts.code_files, 'code file')}, {count(facts.requirements, 'requirement')}, "
        f"{features_done} of {features} features and {tasks_done} of {tasks} tasks completed"
        f"{_by_claim(facts.tasks_without_files)}."
    )


def _by_claim(tasks: int) -> str:
    """Where completed tasks name no file, that they are completed is the agent's word."""
    return f" ({count(tasks, 'task')} by claim only: no file is named)" if tasks else ""


def _bullets(lines: Sequence[str]) -> str:
    shown = [f"- {cell(line)}" for line in lines[:MAX_ROWS]]
    return "\n".join([*shown, *_rest(lines)])


def _rest(lines: Sequence[Any]) -> list[str]:
    return [f"- and {len(lines) - MAX_ROWS:,} more"] if len(lines) > MAX_ROWS else []


# What was claimed and what was shown


def _claims(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    holds = {True: "yes", False: "**no**", None: "not checked"}
    rows = [(cell(one.by) or "–", cell(one.claimed), cell(one.shown), holds[one.holds]) for one in shown[:MAX_ROWS]]
    return ["## Claimed and shown", table(("Claimed by", "What", "Shown", "Holds"), rows)]


# Files


def _files(found: Findings) -> list[str]:
    if not found.code.files:
        return ["## Files", "There are no code files."]
    rows = [
        (code(one.path), f"{one.size:,}", code(one.sha256[:SHORT_SHA]) if one.sha256 else "–", one.task_id or "–")
        for one in found.code.files[:MAX_ROWS]
    ]
    size = sum(one.size for one in found.code.files)
    total = f"{count(len(found.code.files), 'file')}, {size:,} bytes."
    return ["## Files", table(("File", "Bytes", "SHA-256", "Task"), [(*row[:3], cell(row[3])) for row in rows]), total]


# Coverage


def _coverage(found: Findings) -> list[str]:
    data = found.data
    rows = [_requirement_row(found, one) for one in data.requirements]
    known = {one.id for one in data.requirements}
    loose = [one.id for one in data.features if not known & {*one.requirement_ids}]
    if loose:
        rows.append(("*none*", *_feature_cells(found, loose)))
    if not rows:
        return ["## Coverage", "There are no requirements and no features."]
    return ["## Coverage", table(("Requirement", "Features", "Components", "Tasks", "Status"), rows[:MAX_ROWS])]


def _requirement_row(found: Findings, requirement: Requirement) -> tuple[str, ...]:
    features = [
        one.id
        for one in found.data.features
        if requirement.id in one.requirement_ids or one.id in requirement.related_features
    ]
    return (f"{cell(requirement.id)} {cell(requirement.title)}", *_feature_cells(found, features))


def _feature_cells(found: Findings, features: list[str]) -> tuple[str, ...]:
    rows = [row for row in checks.coverage(found.data) if row.feature in features]
    tasks = [one for one in found.data.tasks if one.feature_id in features]
    components = dict.fromkeys(name for row in rows for name in row.components)
    done = sum(map(found.is_completed, tasks))
    if not rows:
        status = "no feature"
    elif not tasks:
        status = "no task"
    else:
        status = "completed" if done == len(tasks) else f"{done} of {len(tasks)} tasks completed"
        status += _by_claim(sum(map(found.is_only_claimed, tasks)))
    return (
        "<br>".join(f"{cell(row.feature)} {cell(row.name)}" for row in rows) or "–",
        cell(", ".join(components)) or "–",
        cell(", ".join(one.id for one in tasks)) or "–",
        status,
    )


# Decisions, cost


def _minute(time: str) -> str:
    return f"{time[:16].replace('T', ' ')} UTC"


def _decisions(feedback: Sequence[FeedbackEntry], decisions: Sequence[ReviewDecision]) -> list[str]:
    lines = [
        f"- {cell(one.stage) or '–'}: {cell(one.severity)} {cell(one.feedback_type)} "
        f"by {cell(one.by or one.source or '–')}: {cell(one.details)}"
        for one in feedback[:MAX_ROWS]
    ]
    decided = []
    for one in decisions[:MAX_ROWS]:
        said = f": {cell(one.text)}" if one.text else ""
        by = f" by {cell(one.by)}" if one.by else ""
        at = f" ({_minute(iso(one.at))})" if one.at else ""
        decided.append(f"- {cell(one.stage)}: {cell(one.choice)}{by}{at}{said}")
    return [
        "## Feedback and decisions",
        "**Feedback**",
        "\n".join([*lines, *_rest(feedback)]) or "There was none.",
        "**Decisions**",
        "\n".join([*decided, *_rest(decisions)]) or "No decisions of people were recorded.",
    ]


def _cost(cost: ReportCost | None) -> list[str]:
    if cost is None:
        return ["## Cost", "The cost is not known."]
    rows = [
        ("Model calls", f"{cost.calls:,}"),
        ("Input tokens", f"{cost.input_tokens:,}"),
        ("Output tokens", f"{cost.output_tokens:,}"),
        ("Money", cell(cost.money)),
    ]
    return ["## Cost", table(("What", "How much"), rows)]
