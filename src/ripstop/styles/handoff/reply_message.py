"""The message to the sender of a document that is finished or refused, of type `workflow_reply`."""

from typing import Any

from .document import HandoffDocument
from .message import HandoffMessage, write_message
from .rules import COMPLETED, legal_from
from .state import RESULT, HandoffState, in_named_folder
from .texts import ENGINE

_SAID = {
    "en": {True: "{id} is completed.", False: "{id} is terminated."},
    "zh": {True: "{id} 已完成。", False: "{id} 已终止。"},
}


def sending(state: HandoffState) -> dict[str, Any]:
    """The arguments of the tool that sends the message."""
    paper = state.paper
    # a document that is reopened and finished again has a longer history, and that is worth another message
    wanted = {"agent": state.reply_to, "stem": f"reply_{len(paper.history)}_{paper.id}", "text": _text(state)}
    return {**wanted, **in_named_folder(state)}


def _text(state: HandoffState) -> str:
    paper = state.paper
    said = _SAID[state.language][paper.status == COMPLETED].format(id=paper.id)
    body = "\n\n".join(text for text in (said, _outcome(paper)) if text)
    return write_message(
        HandoffMessage(
            sender=paper.owner, to=state.reply_to, body=body, time=paper.updated, type="workflow_reply", title=paper.id
        )
    )


_REFUSED = {
    "en": "The document {id} that you sent was refused: {reason}.\n\nIt is {status} with {owner}. Legal now: {legal}."
    "\n\nYour text is kept in {kept}. Nothing else was changed.",
    "zh": "你发来的文档 {id} 未被接受：{reason}。\n\n它现在的状态是 {status}，负责人是 {owner}。"
    "现在允许的变化：{legal}。\n\n你的文本保存在 {kept}，其他内容没有改变。",
}


def refusal(state: HandoffState, to: str, reason: str, kept: str, at: str) -> str:
    """The message to the sender of a document that was refused."""
    paper = state.paper
    body = _REFUSED[state.language].format(
        id=paper.id,
        reason=reason.rstrip("."),
        status=paper.status,
        owner=paper.owner,
        legal=legal_from(paper.status),
        kept=kept,
    )
    return write_message(
        HandoffMessage(sender=ENGINE, to=to, body=body, time=at, type="workflow_reply", title=paper.id)
    )


def _outcome(paper: HandoffDocument) -> str:
    """What came out of it. If nothing did, or it was terminated, the last thing that happened to it."""
    last = paper.history[-1] if paper.history else None
    happened = f"{last.agent} {last.action}" if last else ""
    result = paper.section(RESULT)
    if paper.status == COMPLETED:
        return result or happened
    return "\n\n".join(text for text in (result, happened) if text)
