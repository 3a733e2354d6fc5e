"""What the engine writes into documents, in English and Chinese."""

import string
from datetime import UTC, datetime, timedelta

ENGINE = "ripstop"
"""Who acts when nobody else does."""
LONGEST = 160
"""Characters of a message that a history line quotes."""

_WORDS = {
    "en": {
        "assign": "assigned it to $to",
        "accept": "accepted it",
        "pass": "handed it to $to",
        "complete": "completed it",
        "terminate": "terminated it",
        "reopen": "reopened it",
        "next.pass": "$to takes over.",
        "next.complete": "Nothing; it is completed.",
    },
    "zh": {
        "assign": "分配给$to",
        "accept": "接受任务",
        "pass": "转交给$to",
        "complete": "完成任务",
        "terminate": "终止任务",
        "reopen": "重新打开",
        "next.pass": "待$to处理",
        "next.complete": "无（已完成）",
    },
}

REOPENED = tuple(words["reopen"] for words in _WORDS.values())
"""How a history says that a person has reopened what a guard terminated."""


def action_words(language: str, action: str, to: str, message: str) -> str:
    """An action as a history line says it, with the beginning of the message that came with it."""
    said = " ".join(message.split())
    said = said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
    words = string.Template(_WORDS[language][action]).substitute(to=to)
    return f"{words}: {said}" if said else words


def next_words(language: str, action: str, to: str) -> str:
    """What comes next if nobody said so; empty if that stays as it was."""
    return string.Template(_WORDS[language].get(f"next.{action}", "")).substitute(to=to)


def timestamp(at: int, offset: int) -> str:
    """Microseconds as a document's time, so many seconds east of Greenwich."""
    moment = datetime.fromtimestamp(at // 1_000_000, UTC) + timedelta(seconds=offset)
    return moment.strftime("%Y-%m-%d %H:%M:%S")
