"""What makes the types of agents different: what they may do, and how they are told to work.

- `coder` writes: it has all file tools, and files in the text of its reply are written.
- `architect` thinks first: it is given the stronger model (the role `strong`), and is told to reason
  before it edits; it has all file tools.
- `ask` asks: it can look at everything and change nothing, even if its definition lists a tool that writes.
"""

from ripstop.kernel.prompt import Message

from ..exchange import EDIT, LOOKING, WRITE

WRITING = (*LOOKING, WRITE, EDIT)

TOOLS: dict[str, tuple[str, ...]] = {"coder": WRITING, "architect": WRITING, "ask": LOOKING}

NEVER_WRITES = "ask"
"""The type that may not write files, whichever tools its definition lists."""


def allowed_tools(kind: str, listed: tuple[str, ...] | None) -> tuple[str, ...]:
    """The tools that an agent may call: those that its definition lists, or those of its type."""
    tools = TOOLS[kind] if listed is None else listed
    return tuple(tool for tool in tools if tool not in (WRITE, EDIT)) if kind == NEVER_WRITES else tools


MODELS = {"architect": "strong"}
"""The role whose model a type gets, unless the definition names another; the others get the run's."""

_FILES_EN = (
    "To deliver a file without a tool, write its path on a line of its own "
    "and the whole file in a fenced block below it. To change a part of a file, "
    "put <<<<<<< SEARCH, the old lines, =======, the new lines and >>>>>>> REPLACE "
    "into the fenced block. Shared files stand under collab/."
)
_FILES_ZH = (
    "不用工具也能交付文件：单独一行写路径，下面用代码块写出完整内容。只改一部分时，在代码块里依次写 "
    "<<<<<<< SEARCH、旧内容、=======、新内容、>>>>>>> REPLACE。共享文件放在 collab/ 下。"
)
INSTRUCTIONS: dict[tuple[str, str], str] = {
    ("coder", "en"): f"You implement: work quickly and deliver finished files. {_FILES_EN}",
    ("coder", "zh"): f"你负责实现：动作要快，交付完整的文件。{_FILES_ZH}",
    ("architect", "en"): "You decide how things are built. Reason first: weigh the options and name the risks. "
    f"Only then edit files. {_FILES_EN}",
    ("architect", "zh"): f"你负责设计决策。先推理：比较方案、指出风险，然后才修改文件。{_FILES_ZH}",
    ("ask", "en"): "You clarify: ask, check and judge. You can read every file, and you change none.",
    ("ask", "zh"): "你负责澄清：提问、核对、判断。你可以读所有文件，但不修改任何文件。",
}
SHORT_INSTRUCTIONS: dict[tuple[str, str], str] = {
    ("coder", "en"): "You write short texts.",
    ("coder", "zh"): "你写简短的文字。",
    ("architect", "en"): "You think first, then you write short texts.",
    ("architect", "zh"): "你先思考，再写简短的文字。",
    ("ask", "en"): "You give your opinion on texts.",
    ("ask", "zh"): "你对文字发表意见。",
}
"""For small models, which repeat long instructions; files are not mentioned, because a local model writes none."""
_TOLD = {
    is_short: {kind_and_language: Message("system", text) for kind_and_language, text in texts.items()}
    for is_short, texts in ((False, INSTRUCTIONS), (True, SHORT_INSTRUCTIONS))
}


def instructions_for(kind: str, language: str, short: bool = False) -> Message:
    return _TOLD[short][kind, language]
