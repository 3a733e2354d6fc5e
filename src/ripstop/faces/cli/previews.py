"""A document for a person to decide on: rendered in a terminal, elsewhere as it is; and what has changed in it.

Agents write these documents, so what is rendered must not hide or pretend anything:
- HTML, comments and definitions of links are shown as text. Rendered, they would be invisible.
- A link shows its address next to its words, and nothing in it can be clicked. So does an image.
- Code is not coloured: a highlighter is a large program for a hostile text to work on.
"""

from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from rich.console import ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TextElement
from rich.padding import Padding
from rich.text import Text

from ripstop.text.plurals import count
from ripstop.text.visible_text import visible

from .blocks import print_indented, print_line
from .terminal import Part, line_of, say_text

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console

    from ripstop.text.differences import DifferenceLine, Hunk


MOST_RENDERED = 200_000
"""Characters of a document that is rendered; a longer one is shown as it is."""


SIGNS = {"same": " ", "removed": "-", "added": "+"}


STYLES = {"same": "", "removed": "red", "added": "green"}


def print_document(console: "Console", text: str, most: int | None = None, rest: str = "") -> None:
    """Show a document; with `most`, only so many of its lines, and in `rest` where the others can be seen."""
    lines = text.splitlines()
    shown = text if most is None or len(lines) <= most else "\n".join(lines[:most])
    if not console.is_terminal:
        return say_text(shown)
    if len(shown) > MOST_RENDERED:
        print_indented(console, 2, shown)
    else:
        console.print(Padding(_Document(visible(shown)), (0, 0, 0, 2)), soft_wrap=False)
    if shown is not text:
        print_line(console, (f"  … {count(len(lines) - len(lines[:most]), 'more line')}: {rest}", "dim"))
    return None


def print_difference(console: "Console", hunks: "list[Hunk]", most: int | None = None, rest: str = "") -> None:
    """Show changed lines with those around them; changed words are underlined."""
    shown, total = 0, sum(len(hunk.lines) for hunk in hunks)
    for index, hunk in enumerate(hunks):
        if index:
            print_line(console, ("  …", "dim"))
        for line in hunk.lines:
            if most is not None and shown >= most:
                return print_line(console, (f"  … {count(total - shown, 'more line')}: {rest}", "dim"))
            console.print(line_of(*_line(line)), soft_wrap=True)
            shown += 1
    return None


def _line(line: "DifferenceLine") -> list[Part]:
    parts: list[Part] = [(f"  {line.new or line.old:>4} {SIGNS[line.kind]} ", STYLES[line.kind] or "dim")]
    for segment in line.segments:
        colour = STYLES[line.kind]
        partly = segment.kind != "same" and len(line.segments) > 1
        parts.append((segment.text.removesuffix("\n"), f"{colour} bold underline" if partly else colour))
    if line.kind != "same" and not line.text.endswith("\n"):
        parts.append((" (no newline at the end)", "dim"))
    return parts


class _Code(TextElement):
    """Code as it is, with what was said about it: the name of its language."""

    style_name = "markdown.code_block"

    @classmethod
    def create(cls, _: Markdown, token: "Token") -> "MarkdownElement":
        return cls(token.info.strip())

    def __init__(self, info: str) -> None:
        self._info = info

    def __rich_console__(self, console: "Console", options: ConsoleOptions) -> RenderResult:
        if self._info:
            yield Text(self._info, style="dim")
        self.text.rstrip()
        yield Padding(self.text, (0, 0, 0, 2))


class _Document(Markdown):
    elements = {**Markdown.elements, "fence": _Code, "code_block": _Code}

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        parser.disable(["reference", "image"])  # an image is then a link with a `!` before it
        self.parsed: Any = parser.parse(text)
