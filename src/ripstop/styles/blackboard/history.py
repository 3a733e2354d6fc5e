"""The project's history: what the engine appends to it, and what MAIN is shown of it.

It is append-only. An entry begins with a line `## …`; texts of agents and people in it cannot begin one.
"""

import re
from datetime import UTC, datetime

from msgspec import Struct

from .decision import Decision

ITERATION = r"(?i)^\ufeff?#{2,4} (?:[^\n(]{0,60}\()?Iteration (\d{1,6})\b"
"""How the entry of an iteration begins, so that a new run on a used board knows where to go on."""
TAIL = 200_000
"""Characters of an existing history that are read."""
MAX_ENTRY = 4_000
"""Characters of an entry that MAIN is shown."""
_HEADING = re.compile(r"^(?=#)", re.MULTILINE)
_OWN_HEADING = re.compile(r"\A\s*#{2,4} Iteration \d{0,9}[ \t:：]*([^\n]*)\n?", re.IGNORECASE)
"""A heading that MAIN writes itself; what it says besides the number is kept."""


class History(Struct, frozen=True):
    """The end of the history."""

    entries: tuple[str, ...] = ()
    left_out: int = 0
    """Entries before these."""

    def plus(self, entry: str, most: int) -> "History":
        entries = (*self.entries, entry)
        drop = max(0, len(entries) - most)
        return History(entries[drop:], self.left_out + drop)


def read_history(text: str, left_out: int, most: int) -> History:
    """The last entries of a history whose end is `text`."""
    entries = [entry.strip() for entry in re.split(r"^(?=## )", text, flags=re.MULTILINE) if entry.startswith("## ")]
    drop = max(0, len(entries) - most)
    return History(tuple(entries[drop:]), left_out + drop)


def time_of(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def decision_entry(iteration: int, decision: Decision, at: int) -> str:
    rows = [("next_agent", decision.next_agent), ("reason", decision.reason)]
    rows += [
        ("task", decision.task),
        ("dev_plan", decision.dev_plan),
        ("finish_review_override", decision.override),
        ("question", decision.question),
        ("options", "; ".join(f"{one}: {label}" if label else one for one, label in decision.options.items())),
        ("title", decision.title),
    ]
    written = decision.history_append.replace("\r", "")  # before headings are looked for, which it could hide
    added = _OWN_HEADING.sub(r"\1\n", written).strip()
    return _entry(f"Iteration {iteration}", at, rows, added)


def report_entry(iteration: int, agent: str, file: str, verdict: str, blockers: tuple[str, ...], at: int) -> str:
    rows = [("file", file), ("verdict", verdict), *(("blocker", one) for one in blockers)]
    return _entry(f"Report (Iteration {iteration}): {agent}", at, rows)


def user_entry(iteration: int, question: str, choice: str, text: str, by: str, at: int) -> str:
    rows = [("question", question), ("choice", choice), ("comment", text), ("by", by)]
    return _entry(f"User Decision (Iteration {iteration})", at, rows)


def _entry(title: str, at: int, rows: list[tuple[str, str]], added: str = "") -> str:
    said = [f"{name}: {_inside(value)}" for name, value in [("at", time_of(at)), *rows] if value.strip()]
    text = "\n".join([f"## {title}", *said, *([_HEADING.sub(" ", added)] if added else [])])
    return f"{text}\n"


def _inside(text: str) -> str:
    """A text of an agent or a person in a row: its further lines are indented, so they cannot begin an entry."""
    return "\n  ".join(text.strip().splitlines())
