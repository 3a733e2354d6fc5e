"""Whether a line of a reply names a file, and which.

- Agents write a path bare, in backticks, bold, as a heading, in a list, after `File:`, or with a colon behind it.
- A path has a file name with a suffix, or a folder before the name, or it is one of the few names that have neither.
- A path with spaces is one in backticks or after `File:`. Bare, the space must come after the first slash
  (`my notes/to do.md`): in `new folder/x.md` it is unclear where the path begins.
- A sentence that ends with a colon and says nothing but that the file follows (`Here is `x.py`:`) names it. Every
  other word makes it a sentence about the file: what follows may be a part of it, or an example.
- The first line of a block names its file if it is a comment with nothing but a path in it, or if the fence's info
  string does (`python collab/x.py`, `python:x.py`, `title="x.py"`).
- Paths that lead somewhere forbidden, have control characters or are too long are paths as well: the file tools
  refuse them and say so.
"""

import re
from typing import NamedTuple

_LABEL = re.compile(
    r"(\*\*)?(?:file ?name|file ?path|file|path|文件名|文件路径|文件|路径)[ \t]*[:：](?(1)\*\*)\s*", re.IGNORECASE
)
_HEADING = re.compile(r"\A#{1,6}\s*(?=\S)")
_BULLET = re.compile(r"\A(?:[-*+]|\d{1,3}[.)])\s+")
_WRAPPED = ("**", "__", "`")
_WITH_SUFFIX = re.compile(r"[^\s<>|*?\"'`;={}$&,，。；！？、“”《》：]*\.(?=[0-9_+-]*[A-Za-z])[A-Za-z0-9_+-]{1,16}")
_IN_FOLDER = re.compile(r"(?:[\w.@+~-]*/)+\.?[\w@+~-]+")
_PLAIN_NAMES = frozenset(
    {"Makefile", "Dockerfile", "Procfile", "Gemfile", "Rakefile", "LICENSE", "README", "CHANGELOG"}
)
_PROSE = frozenset((
    "and", "or", "is", "are", "was", "see", "has", "have", "then", "run", "with", "from", "uses", "imports",
    "calls",
))  # fmt: skip
_MARKED_WORD = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")
_ANNOUNCING = frozenset((
    "here", "here's", "is", "are", "this", "the", "a", "file", "files", "path", "content", "contents", "code",
    "source", "script", "module", "document", "page", "complete", "completed", "full", "whole", "entire", "new",
    "updated", "final", "revised", "corrected", "fixed", "rewritten", "improved", "version", "below",
    "following", "follows", "now", "created", "create", "creating", "wrote", "write", "written", "writing",
    "saved", "save", "saving", "as", "it", "i", "i've", "have", "of", "for", "first", "second", "then", "next",
    "finally", "also", "step", "and", "my", "our",
))  # fmt: skip
_SAVING = frozenset((
    "saved", "save", "saving", "write", "written", "wrote",
))  # fmt: skip
_ANNOUNCING_ZH = re.compile(
    r"(?:以下|下面|这里?|此处|如下|文件|更新后?|修改后|完整|最终|新建?|创建|生成|写入|保存|代码|内容|源码|版本|首先|然后|接着|最后|[是为的了到至我已将请])*"
)
_COMMENTS = (("<!--", "-->"), ("/*", "*/"), ("#", ""), ("//", ""), ("--", ""), (";", ""))
"""How comments begin and end."""
_IN_INFO = re.compile(r"(?:.*[\s:,]|)(?:(?:title|file|filename|path|name)=)?[\"'{]*([^\s\"'{}:=]+)[\"'}]*")
_SHELLS = frozenset((
    "sh", "bash", "shell", "zsh", "fish", "console", "terminal", "powershell", "ps1", "bat", "cmd",
    "shell-session", "diff", "patch",
))  # fmt: skip
"""Info strings of blocks that are run or applied; only a path with one of these suffixes is a file of its own."""
_SCRIPTS = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".diff", ".patch")
_TEXTS = frozenset((
    "md", "markdown", "mdx", "rst", "adoc", "txt", "text",
))  # fmt: skip
"""Info strings of blocks in which `#` begins a heading."""
_SUFFIXES = frozenset((
    "adoc", "bash", "bat", "c", "cc", "cfg", "clj", "cmake", "cmd", "conf", "cpp", "cs", "css", "csv", "cxx",
    "dart", "diff", "ex", "exs", "fish", "go", "gradle", "graphql", "groovy", "h", "hpp", "hs", "htm", "html",
    "ini", "ipynb", "java", "jl", "js", "json", "json5", "jsonl", "jsx", "kt", "kts", "less", "lock", "log",
    "lua", "m", "md", "mdx", "mjs", "ml", "mm", "patch", "php", "pl", "properties", "proto", "ps1", "py", "pyi",
    "pyx", "r", "rb", "rs", "rst", "sass", "scala", "scss", "sh", "sql", "svelte", "svg", "swift", "tex", "tf",
    "toml", "ts", "tsv", "tsx", "txt", "vb", "vue", "xml", "yaml", "yml", "zig", "zsh",
))  # fmt: skip
"""Of a name without a folder in a comment: `# os.path` is not a file."""
MAX_LENGTH = 4096
"""Characters of a line that can name a file."""
MAX_LAYERS = 8
"""Decorations around a path, such as a bullet before backticks in bold."""


class Named(NamedTuple):
    path: str
    marked: bool
    """The line says that this is a path; it is not just a word that could be one."""


def named_path(line: str) -> Named | None:
    """The path that a line above a block plainly names."""
    text = line.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    text, marked, quoted = _unwrapped(text)
    if "://" in text:
        return None
    if _is_path(re.sub(r"\s", "_", text) if quoted else text) or _is_spaced_path(text):
        return Named(text, marked)
    announced = _announced(line.strip())
    return Named(announced, True) if announced else None


def mentioned_path(line: str) -> str:
    """The path in a line above a block that does not plainly name the block's file; empty if there is none."""
    text = line.strip()
    if not text or len(text) > MAX_LENGTH or "://" in text:
        return ""
    paths = [path for path in _marked_words(text) if _is_path(path)]
    if not paths and (text.endswith((":", "：")) or len(text.split()) <= 4):
        words = [word.strip("`*_()[],:：") for word in text.split()]
        paths = [word for word in words if "." in word and _is_path(word) and _is_known(word)]
    return paths[0] if len(paths) == 1 else ""


def path_in_info(info: str) -> str:
    """The path in a fence's info string; empty if there is none."""
    found = _IN_INFO.fullmatch(info) if len(info) <= MAX_LENGTH and "://" not in info else None
    return found[1] if found and _is_path(found[1]) and _is_known(found[1]) else ""


def path_in_comment(line: str, info: str) -> tuple[str, bool]:
    """The path in the comment that a block begins with, and whether it is plainly meant as the block's file."""
    text = line.strip()
    begin, end = next(((b, e) for b, e in _COMMENTS if text.startswith(b) and text.endswith(e)), ("", ""))
    language = info.split(maxsplit=1)[0].lower() if info else ""
    if not begin or len(text) > MAX_LENGTH or (begin == "#" and language in _TEXTS):
        return "", False
    named = text.removeprefix(begin).removesuffix(end).strip()
    path, _, quoted = _unwrapped(named)
    if not _is_path(re.sub(r"\s", "_", path) if quoted else path) or "://" in path:
        return "", False
    if language in _SHELLS and not path.endswith(_SCRIPTS):
        return path, False
    name = path.rpartition("/")[2]
    if "/" not in path and not _is_known(path):
        return "", False
    return path, "." in name or name in _PLAIN_NAMES


def _is_known(path: str) -> bool:
    return "/" in path or path in _PLAIN_NAMES or path.rpartition(".")[2].lower() in _SUFFIXES


def _is_path(text: str) -> bool:
    return bool(text in _PLAIN_NAMES or _WITH_SUFFIX.fullmatch(text) or _IN_FOLDER.fullmatch(text))


def _is_spaced_path(text: str) -> bool:
    words = text.split(" ")
    if not 2 <= len(words) <= 8 or "/" not in "".join(words[:-1]) or not _WITH_SUFFIX.fullmatch("_".join(words)):
        return False
    return not any(not word or word.lower() in _PROSE or _WITH_SUFFIX.fullmatch(word) for word in words[:-1])


def _marked_words(text: str) -> list[str]:
    return [found[1] or found[2] for found in _MARKED_WORD.finditer(text)]


def _announced(text: str) -> str:
    """The one path in a sentence that says only that the file follows."""
    if not text.endswith((":", "：")):
        return ""
    marked = _marked_words(text)
    if marked:
        path = re.sub(r"\s", "_", marked[0]) if len(marked) == 1 else ""
        rest, named = _MARKED_WORD.sub(" ", text), marked[0]
    else:
        words = text[:-1].split()
        path = named = words[-1] if words else ""
        rest = " ".join(words[:-1])
        if "." not in path or not _is_known(path):
            return ""
    return named if _is_path(path) and _only_announces(rest) else ""


def _only_announces(rest: str) -> bool:
    words = [word for word in re.split(r"[\s,.:;!，。：；！#*_()\d-]+", rest.lower().replace("’", "'")) if word]
    english = [word for word in words if word.isascii()]
    allowed = _ANNOUNCING | ({"in", "to", "into"} if _SAVING.intersection(english) else set())
    return all(word in allowed if word.isascii() else _ANNOUNCING_ZH.fullmatch(word) for word in words)


def _unwrapped(text: str) -> tuple[str, bool, bool]:
    """What is inside the decorations, whether one of them marks it as a path, and whether that says where it ends."""
    marked = quoted = False
    for _ in range(MAX_LAYERS):
        before = text
        text = text.removesuffix(":").removesuffix("：").strip()
        text = _HEADING.sub("", _BULLET.sub("", text)) if not quoted else text
        if label := _LABEL.match(text):
            text, marked, quoted = text[label.end() :], True, True
        for mark in _WRAPPED:
            inner = text[len(mark) : -len(mark)]
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
                text, marked, quoted = inner.strip(), True, quoted or mark == "`"
        if text == before:
            break
    return text, marked, quoted
