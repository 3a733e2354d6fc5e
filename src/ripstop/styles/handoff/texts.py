"""What the engine writes into documents, in English and Chinese."""

import re
import string
from datetime import UTC, datetime, timedelta
from typing import Literal

# Which language a document is written in: Chinese or English, by the proportion of its author's own text.
#
# A Chinese character counts as much as a word in Latin letters. Code, quotations and names in them say nothing about
# who wrote around them, so they are left out. Where both weigh the same, the text is in the language that it begins
# with.


_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[^\W\d_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff][\w'’]*")
_QUOTED = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|^>.*?$",
    re.DOTALL | re.MULTILINE,
)
_LONGEST = 20_000
"""Characters that are checked: the language does not change after that."""


def language_of(*texts: str) -> Literal["en", "zh"]:
    """`zh` or `en`."""
    whole = "\n".join(texts)[:_LONGEST]
    own = _QUOTED.sub(" ", whole)
    if not _HAN.search(own) and not _LATIN_WORD.search(own):
        own = whole
    han, words = len(_HAN.findall(own)), len(_LATIN_WORD.findall(_HAN.sub(" ", own)))
    if han == words:
        first = re.search(rf"{_HAN.pattern}|[^\W\d_]", own)
        return "zh" if first and _HAN.match(first[0]) else "en"
    return "zh" if han > words else "en"


ENGINE = "ripstop"
"""Who acts when nobody else does."""
UNNAMED = {"en": "unnamed", "zh": "未署名"}
"""Who acts, in a history, when a person does not say who it is."""
MAX_QUOTED = 160
"""Characters of a message that a history line quotes."""

_WORDS = {
    "en": {
        "assign": "assigned it to $to",
        "accept": "accepted it",
        "pass": "handed it to $to",
        "complete": "completed it",
        "terminate": "terminated it",
        "reopen": "reopened it",
        "person": " (by $person)",
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
        "person": "（由$person）",
        "next.pass": "待$to处理",
        "next.complete": "无（已完成）",
    },
}

_GUARDS = {
    "en": {
        "end_marker": "$by ended it with $marker.",
        "courtesy": "$by said nothing but a courtesy.",
        "interactions": "It has had $interactions, which is all that it can have.",
    },
    "zh": {
        "end_marker": "$by用$marker结束了任务。",
        "courtesy": "$by只说了客套话。",
        "interactions": "已有$limit次交互，不能再多。",
        "no_progress": "$names连续处理了$value次，没有任何变化。",
        "circle": "$names来回传递了$value轮，没有任何变化。",
        "calls": "模型调用达到上限（$limit次）。",
        "turn_calls": "一个回合里的模型调用达到上限（$limit次）。",
        "tokens": "词元用量达到上限（$limit）。",
        "money": "费用达到上限（$limit）。",
        "seconds": "时间达到上限（$limit秒）。",
        "turns": "轮次达到上限（$limit）。",
        "runs": "启动的运行达到上限（$limit）。",
        "": "守卫“$guard”终止了任务（上限$limit）。",
    },
}
"""Why a guard terminated a document. The kernel's own guards have English texts already."""

REOPENED = tuple(words["reopen"] for words in _WORDS.values())
"""How a history says that a person has reopened what a guard terminated."""


def action_words(language: str, action: str, to: str, message: str, person: str = "") -> str:
    """An action as a history line says it, with the beginning of the message that came with it.

    Args:
        person: Who has made it in the name of whom the line names.
    """
    said = " ".join(message.split())
    said = said if len(said) <= MAX_QUOTED else said[: MAX_QUOTED - 1] + "…"
    words = string.Template(_WORDS[language][action]).substitute(to=to)
    if person:
        words += string.Template(_WORDS[language]["person"]).substitute(person=" ".join(person.split()))
    return f"{words}: {said}" if said else words


def guard_words(language: str, guard: str, **values: object) -> str:
    """Why a guard terminated the document, as its history says it."""
    words = _GUARDS[language].get(guard.removeprefix("budget.")) or _GUARDS[language][""]
    return string.Template(words).safe_substitute(values, guard=guard)


def next_words(language: str, action: str, to: str) -> str:
    """The default next action; empty if it stays as it was."""
    return string.Template(_WORDS[language].get(f"next.{action}", "")).substitute(to=to)


def timestamp(at: int, offset: int) -> str:
    """Microseconds as a document's time, in local time that is `offset` seconds east of Greenwich."""
    moment = datetime.fromtimestamp(at // 1_000_000, UTC) + timedelta(seconds=offset)
    return moment.strftime("%Y-%m-%d %H:%M:%S")
