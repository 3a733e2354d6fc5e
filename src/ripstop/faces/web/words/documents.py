"""Words of documents."""

WORDS: dict[str, tuple[str, str]] = {
    "documents.title": ("Documents", "文档"),
    "documents.back": ("Back to the documents", "返回文档列表"),
    "documents.find": ("Name, or part of one", "名称或其中一部分"),
    "documents.all": ("All", "全部"),
    "documents.status": ("Status", "状态"),
    "documents.name": ("Document", "文档"),
    "documents.owner": ("Where it is", "所在"),
    "documents.records": ("Records", "记录"),
    "documents.last": ("Last", "最近"),
    "documents.newest": ("Last created first · 50 a page", "最新创建在前 · 每页 50 条"),
    "documents.none": ("No documents here.", "这里没有文档。"),
    "documents.none_how": (
        "`ripstop docs new` writes one in a folder with roles.",
        "用 `ripstop docs new` 在带角色的文件夹中新建一个。",
    ),
    "documents.run": ("Its run", "查看运行"),
    "documents.with": ("with {owner}", "由 {owner} 负责"),
    "documents.text": ("Text", "正文"),
    "documents.source": ("Source", "原文"),
    "documents.about": ("About this document", "关于此文档"),
    "documents.legal": ("What is legal now", "当前允许的操作"),
    "documents.only": ("only {by}", "仅 {by}"),
}
