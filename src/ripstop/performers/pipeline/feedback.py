"""`session/feedback_history.json`: what people, critics and agents said about the stages. Entries are only added."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ripstop.runtime.performers import Refused

from .data_files import FEEDBACK, MOST_READ, load, save
from .given_values import chosen, text
from .models import FEEDBACK_TYPES, SEVERITIES, FeedbackEntry, convert_entry
from .store import CoworkFolder, now

MAX_SHOWN = 20
"""Entries that a stage is told."""


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


def latest_feedback(folder: CoworkFolder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.to_builtins(load(folder, FEEDBACK).entries[-MAX_SHOWN:])
    return found
