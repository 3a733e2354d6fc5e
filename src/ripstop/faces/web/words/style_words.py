"""Chinese for what the styles that come with ripstop say in English: labels, questions, and how far a run is.

A style says these as plain text, so they are known by it. What is not known here is shown as it is.
"""

import re
from functools import lru_cache

EXACT = {
    # choices
    "Take it as it is": "按现状通过",
    "Take my edited text": "采用我的修改",
    "Write it again, with what I say": "按我的意见重写",
    "Answer the user": "回答用户",
    "Give the conversation back to the bot": "将对话交还机器人",
    "It happened": "已经发生",
    "Do it again": "再做一次",
    "Give it up": "放弃",
    "Write it again": "重新写入",
    "Terminate the document": "终止文档",
    "continue": "继续",
    "stop": "停止",
    # actions and their fields
    "Take the conversation over": "接管对话",
    "Assign": "分派",
    "Accept": "接受",
    "Hand over": "移交",
    "Complete": "完成",
    "Complete it? That is final.": "确定完成吗？完成后不可更改。",
    "Terminate": "终止",
    "Terminate it before it is completed?": "尚未完成，确定终止吗？",
    "Reopen": "重新打开",
    "To": "给",
    "Message": "消息",
    "Next action": "下一步",
    "Result so far": "目前的结果",
    "Result": "结果",
    "Reason": "原因",
    "Kind of feedback": "反馈类型",
    "Severity": "严重程度",
    # facts and titles
    "Session": "会话",
    "Status": "状态",
    "Taken by": "接管人",
    "Configuration": "配置",
    "Owner": "负责人",
    "Previous owner": "前任负责人",
    "Interactions": "交互次数",
    "File": "文件",
    "Transitions": "流转记录",
    "Values": "取值",
    "Stage": "阶段",
    "Now": "当前",
    "Iteration": "迭代",
    "Reviews of this stage": "本阶段的审阅",
    "Change": "改动",
    "Restart wanted": "要求退回",
    "Conversation": "对话",
    "a person": "等人处理",
    # what a pipeline does now
    "review": "审阅",
    "taking the answer": "接收答复",
    "making the output": "生成产物",
    "verifying the output": "核对产物",
    "checking the output": "检查产物",
    "finishing the stage": "结束阶段",
    "closing the project": "结束项目",
    # why a timer or a call is withdrawn
    "the user said something": "用户说了话",
    "a person has the conversation": "已由人接管对话",
    "the conversation was closed": "对话已关闭",
}
PATTERNS = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r"(?:(.{1,80}) has it\. )?Answer the user of session '(.{1,200})', or give the conversation back\.", "请回答会话“{1}”的用户，或将对话交还机器人。"),
        (r"(.{1,80}) has this conversation\. Take it over before you answer\.", "{0} 正在处理这个对话。请先接管再回答。"),
        (r"(.{1,80}) has this conversation\. Take it over\?", "{0} 正在处理这个对话。要接管吗？"),
        (r"Review the draft of the stage '(.{1,80})'\.", "请审阅“{0}”阶段的草稿。"),
        (r"Let (.{1,80}) try again", "让 {0} 再试一次"),
        (r"Decisions of (.{1,80})", "{0} 的决定"),
        (r"Profile: (.{1,80})", "资料：{0}"),
        (r"Raise (.{1,40}) by", "将 {0} 提高"),
        (r"turn (\d+) of at most (\d+)", "第 {0} 轮，最多 {1} 轮"),
        (r"(\d+) of (\d+) stages finished", "已完成 {0}/{1} 个阶段"),
        (r"(\d+) of at most (\d+)", "{0}，最多 {1}"),
        (r"(\d+) of at most (\d+) interactions?", "交互 {0} 次，最多 {1} 次"),
        (r"(\d+) of at most (\d+) iterations", "第 {0} 次迭代，最多 {1} 次"),
        (r"(\d+) of at most (\d+) iterations, (\d+) of (\d+) tasks done", "第 {0} 次迭代，最多 {1} 次，任务完成 {2}/{3}"),
        (r"(\d+) reviews?", "审阅 {0} 次"),
    )
)  # fmt: skip


@lru_cache(maxsize=1000)
def in_language(language: str, text: str) -> str:
    """What a style says, in the reader's language where it is known."""
    if language != "zh" or len(text) > 500:
        return text
    if text in EXACT:
        return EXACT[text]
    for pattern, told in PATTERNS:
        if found := pattern.fullmatch(text):
            return told.format(*(group or "" for group in found.groups()))
    return text
