"""What an agent is told about the document it owns, and what it may answer."""

from typing import Any

from ripstop.kernel.prompt import Message, Prompt

from .document import write
from .state import HandoffState

ACTIONS = ("pass", "complete", "terminate")
"""What an agent may do with a document that it has accepted."""

_TOLD = {
    "en": (
        "You are {name}. You own the document below and work on it now. Do what its Next_Action asks of you, then "
        "say what becomes of it. Other members of the team: {team}.\n"
        "To deliver a file, write its path on a line of its own (shared files begin with collab/) and the whole file "
        "in a fenced block below it.\n"
        "End with one JSON object and nothing after it:\n"
        '{{"content": "what you did, in a sentence", "decisions": {{"action": "pass", "to": "a member of the team", '
        '"next_action": "what that member shall do", "result": "what came out of it"}}}}\n'
        'action is "pass" (to somebody else), "complete" (the whole task is done) or "terminate" (it cannot be done). '
        "Only this object changes the document; saying that it is completed does not."
    ),
    "zh": (
        "你是{name}。下面的文档现在由你负责。完成其中 Next_Action 要你做的事，然后说明文档接下来怎么办。"
        "团队其他成员：{team}。\n"
        "要交付文件，单独一行写路径（共享文件以 collab/ 开头），下面用代码块写出完整内容。\n"
        "最后只写一个 JSON 对象，后面不要再写别的：\n"
        '{{"content": "一句话说明你做了什么", "decisions": {{"action": "pass", "to": "团队成员", '
        '"next_action": "该成员要做什么", "result": "得到的结果"}}}}\n'
        'action 是 "pass"（转交他人）、"complete"（整个任务已完成）或 "terminate"（无法完成）。'
        "只有这个对象会改变文档，口头说“已完成”不算。"
    ),
}

NOBODY = {"en": "nobody", "zh": "无"}

CHANGED = (
    "The document was changed by somebody else while you worked; above it is as it is now. "
    "Take the change into account and answer again, with the JSON object at the end."
)


def prompt_for(state: HandoffState, agent: str, tools: tuple[str, ...]) -> Prompt:
    assignment, language = state.assignment(agent), state.language
    team = [name for name in assignment.team if name != agent]
    told = _TOLD[language].format(name=agent, team=", ".join(team) or NOBODY[language])
    if assignment.prompt.strip():
        told = f"{assignment.prompt.strip()}\n\n{told}"
    messages = (Message(role="system", text=told), Message(role="user", text=write(state.paper)))
    return Prompt(messages=messages, tools=tools, schema=_schema(team))


def _schema(team: list[str]) -> dict[str, Any]:
    text = {"type": "string", "maxLength": 1000}
    to: dict[str, Any] = {"enum": [*team, ""]} if team else text
    decisions = {
        "type": "object",
        "properties": {"action": {"enum": list(ACTIONS)}, "to": to, "next_action": text, "result": text},
        "required": ["action", "to", "next_action", "result"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"content": text, "decisions": decisions},
        "required": ["content", "decisions"],
        "additionalProperties": False,
    }


def wrong_with(decisions: dict[str, Any]) -> str:
    """What is wrong with an agent's decisions; empty if they can be followed."""
    action, to = decisions.get("action"), decisions.get("to", "")
    if action not in ACTIONS:
        return f'"action" is {action!r}; it must be one of {", ".join(ACTIONS)}'
    if action == "pass" and (not isinstance(to, str) or not to.strip()):
        return '"to" must name the member of the team that the document is passed to'
    return ""
