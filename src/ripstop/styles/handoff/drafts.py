"""A new document, in English or Chinese."""

from collections.abc import Sequence

from msgspec import Struct

from ripstop.kernel.errors import UsageError

from .document import HEADERS, HandoffDocument, read
from .markdown import as_id, either, one_line


class _Words(Struct, frozen=True):
    created: str
    assigned: str
    waiting: str
    conditions: tuple[str, ...]


_WORDS = {
    "en": _Words(
        "created",
        "assigned to {owner}",
        "{owner} accepts the task",
        ("the task is done", "more than {limit} interactions", "a message contains [WORKFLOW_END]"),
    ),
    "zh": _Words(
        "新建文档",
        "交给{owner}",
        "等{owner}接手",
        ("工作已经做完", "交互多于{limit}次", "消息里出现[WORKFLOW_END]"),
    ),
}


def draft(
    id: str,
    creator: str,
    owner: str,
    task: str,
    at: str,
    next_action: str = "",
    conditions: Sequence[str] = (),
    language: str = "en",
    limit: int = 10,
) -> HandoffDocument:
    """A new document. What is not given is said in the words of `language`: `en` or `zh`."""
    if language not in _WORDS:
        raise UsageError(f"There are no words for a document in {language!r}; there are for {either([*_WORDS])}.")
    words = _WORDS[language]
    values = ("pending", one_line(owner), one_line(creator), one_line(at), one_line(at), "0")
    header = "".join(f"{key}: {value}".rstrip() + "\n" for key, value in zip(HEADERS, values, strict=True))
    paper = read(f"# Workflow: {as_id(id)}\n{header}")
    paper = paper.with_task(task).with_bullet(at, creator, words.created, "pending", "pending")
    if paper.owner != paper.previous:
        paper = paper.with_bullet(at, creator, words.assigned.format(owner=paper.owner), "pending", "pending")
    paper = paper.with_next_action(next_action or words.waiting.format(owner=paper.owner))
    return paper.with_conditions(conditions or [condition.format(limit=limit) for condition in words.conditions])
