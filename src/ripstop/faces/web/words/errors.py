"""Words of errors."""

WORDS: dict[str, tuple[str, str]] = {
    "error.title": ("That did not work", "操作未成功"),
    "error.no_page": ("There is no such page.", "没有这个页面。"),
    "error.ours": (
        "This is a bug in ripstop, not in what you did. The server's log has more.",
        "这是 ripstop 的错误，与您的操作无关。服务器日志中有更多信息。",
    ),
    "error.given": ("Answered by {by},", "回答者：{by}，"),
    "error.your_text": ("What you had typed", "您输入的内容"),
    "error.to_desk": ("To the desk", "前往待办台"),
    "error.next.again": ("Open the page again, then try once more.", "请重新打开页面再试。"),
    "error.next.find": ("Look for it among the runs or on the desk.", "请在运行列表或待办台中查找。"),
    "error.next.moved": (
        "Nothing was changed. Look at how it is now, then decide.",
        "没有做任何改动。请先查看现状再决定。",
    ),
    "error.next.shorter": ("Send a shorter text.", "请缩短文本。"),
    "error.next.correct": ("Correct it, then send it again.", "请更正后重新提交。"),
    "error.next.folder": (
        "Only a person at the server's terminal can agree to that:  ripstop {store}resume {run} --workspace {folder}",
        "只有在服务器终端上的人才能同意：  ripstop {store}resume {run} --workspace {folder}",
    ),
    "error.next.locked": (
        "Another process holds the journal. Try again in a moment.",
        "日志正被另一个进程占用，请稍后再试。",
    ),
    "error.next.journal": (
        "Look at the journal: `ripstop verify` checks it, `ripstop doctor` says what is missing.",
        "请检查日志：`ripstop verify` 验证日志，`ripstop doctor` 说明缺少什么。",
    ),
}
