"""The labels that agents put before the parts of a message: `From:`, `**To:**`, `发件人：`, `## Answer`.

Only data and how a line is matched with it. A label is known in any case, with full-width colons, in bold, and as an
item of a list. Headers have one name here, whatever they were called in the text.
"""

import re

_NAMES = {
    "From": "from, sender, 发件人, 发送者, 发送人, 发信人, 来自",
    "To": "to, recipient, receiver, 收件人, 接收者, 接收人, 收信人, 发给",
    "Time": "time, date, sent, sent at, timestamp, 时间, 日期, 发送时间",
    "Type": "type, message type, 类型, 消息类型",
    "Title": "title, subject, 标题, 主题",
    "Answer": "answer, reply, response, 回答, 答案, 回复, 答复, 回复内容, 回答内容",
    "Content": "content, message, body, text, 内容, 消息, 正文, 消息内容, 信息",
    "Request": "question, task, request, 问题, 任务, 请求",
    "Quoted": "original message, previous message, quoted message, in reply to, forwarded message, 原消息, 原始消息, "
    "原始邮件, 引用, 上一条消息, 回复的消息",
}
LABELS = {word.strip(): name for name, words in _NAMES.items() for word in words.split(",")}
"""Label as it is written, in lower case → its name."""
ENVELOPE = ("From", "To", "Time", "Type", "Title")
SPOKEN = ("Answer", "Content")
"""What is said begins with one of these."""

_WORDS = r"[^\W\d][\w-]*+(?: [\w-]++){0,3}"
_LABELLED = re.compile(rf"[ \t]*+(?:[-*+][ \t]++)?(\*\*|__)?[ \t]*+({_WORDS})[ \t]*+(\*\*|__)?[ \t]*+[:：]")
_HEADING = re.compile(r"#{1,6}[ \t]++(.*)")
_BOLD_LINE = re.compile(rf"(?:\*\*|__)[ \t]*+({_WORDS})[ \t]*+[:：]?[ \t]*+(?:\*\*|__)[ \t]*+[:：]?[ \t]*+")


def labelled(line: str) -> tuple[str, str] | None:
    """The name of the label that a line begins with (as it is written if it is not a known one), and what follows."""
    match = _LABELLED.match(line)
    if match is None:
        return None
    value, bold, closed = line[match.end() :].strip(), match[1], match[3]
    if bold and not closed:
        if value.startswith(bold):  # `**From:** Bob`
            value = value.removeprefix(bold).lstrip()
        elif value.endswith(bold):  # `**From: Bob**`
            value = value.removesuffix(bold).rstrip()
    return LABELS.get(match[2].lower(), match[2]), value


def heading_label(line: str) -> tuple[str, str] | None:
    """The name of the known label that is a heading or a bold line, and what follows it in the line."""
    heading = _HEADING.match(line)
    words, rest = (heading[1], "") if heading else ("", "")
    if not heading and (bold := _BOLD_LINE.match(line)):
        words, rest = bold[1], line[bold.end() :].strip()
    name = LABELS.get(words.strip(" \t*_:：#\r\n").lower(), "")
    return (name, rest) if name and name not in ENVELOPE else None
