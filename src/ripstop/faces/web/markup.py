"""What agents, people and tools wrote, as HTML that can do nothing.

- Plain text is escaped, and every character that acts or hides is shown as a marked box (`visible_text`).
- Markdown is read without raw HTML and without character references, which could write what is not shown. Images
  become text, because a picture's address can carry data out. What is made of it is cleaned once more by a list of
  allowed tags.
- Links go to mailto addresses, and to hosts by their names, over http and https; they say where, and are followed only
  by a click. None leads to this machine, because a browser sends the desk's cookie to every port of it: an address in
  any other form is only text, because browsers read more of them than can be listed.
- Nothing is left out. What a text has and its HTML would not show (a definition of a link, a cell too many, lists in
  lists in lists) would be hidden from who reviews it, so such a text is shown as it is written, and so is one with
  characters that act or hide. Numbers of lists are those that were written, and what is behind a fence is shown.
- A line break in Markdown is a line break: agents write lists and headers that way.
- Text of one voice is isolated from the text around it, whatever direction it has.
"""

import logging
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from html import unescape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLinkText
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from ripstop.text.visible_text import pieces, visible, visible_line

# Hides what looks like a key in texts of lists: an agent can repeat a key that a tool or a file has shown it.
#
# Only shapes that keys of well-known services have are hidden, and names such as `password=` in front of a value. The
# page of a record shows its text as it is.


HIDDEN = "…"
SHOWN = 4
"""Characters of a key that stay, so that a person can tell which one it is."""

_KEY = re.compile(
    r"""
    (?<![A-Za-z0-9])
    (?: sk-[A-Za-z0-9_-]{16,}                           # OpenAI, Anthropic
      | gh[oprsu]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
      | glpat-[\w-]{16,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,}                  # Slack
      | A[KS]IA[0-9A-Z]{16}                             # AWS
      | AIza[\w-]{30,}                                  # Google
      | eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}            # JWT
    )
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*
    """,
    re.VERBOSE | re.ASCII,
)
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|token|secret|password|passwd|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)"
    r"(?=[^\s\"',;]*[0-9])([^\s\"',;]{10,})",
    re.ASCII,
)


def masked(text: str) -> str:
    """The text with all but the first characters of each key hidden."""
    text = _KEY.sub(lambda found: f"{found[0][:SHOWN]}{HIDDEN}", text)
    return _NAMED.sub(lambda found: f"{found[1]}{HIDDEN}", text)


LONGEST_MARKDOWN = 100_000
"""Characters; a longer text is shown as it is written."""
MOST_BRACKETS = 1_000
"""Of `[` in a text; one with more is shown as it is written, because each of them costs a reader of Markdown much."""
MOST_CELLS = 5_000
"""Of the tables in a text; one with more is shown as it is written."""
_LINKS = "links"
"""Where the links that are open are kept while a text is rendered."""
DEEPEST_MARKDOWN = 60
"""Lists and quotes inside one another; a text with more is shown as it is written."""
HAN_SHARE = 0.2
"""Of the letters of a text that are Han, from which on it is read as Chinese."""
SAMPLE = 2000
"""Characters that are looked at for its language."""
_HAN = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")
_TAG = re.compile("<[^>]*>")
_NOT_A_LETTER = re.compile(r"[\W_]+")
_NAMED_HOST = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?!localhost)[a-z][a-z0-9-]*[a-z0-9](?::[0-9]{1,5})?(?:[/?#].*)?",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_MAIL = re.compile(r"mailto:[^\s:/@]+@[^\s:/@]+", re.IGNORECASE)
_MARKER = re.compile(r"^(?:\s*(?:>|[-*+]\s|\d{1,9}[.)]\s))+")
"""What a line of a list or a quote begins with; the numbers of a list are the browser's own."""
_TAGS = {
    *("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong"),
    *("s", "a", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
_ATTRIBUTES = {"a": {"href"}, "li": {"value"}, "ol": {"start"}, "span": {"class"}, "th": {"class"}, "td": {"class"}}
_CLASSES = {"span": {"ctl", "host", "image"}}


def words(text: str) -> Markup:
    """Plain text, with its line breaks."""
    return Markup("<bdi>") + marked(visible(text), text) + Markup("</bdi>")


def line(text: str, most: int = 200) -> Markup:
    """Plain text on one line, cut where it is too long, without what looks like a key."""
    flat = " ".join(masked(text[: 4 * most]).split())
    cut = flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[: most - 1]}…"
    return Markup("<bdi>") + marked(visible_line(cut), cut) + Markup("</bdi>")


def marked(shown: str, original: str) -> Markup:
    """Escaped text in which what `visible_text` wrote out is marked as such."""
    if shown == original:  # nearly every text; an escape that the author typed is only text
        return escape(shown)
    return Markup("").join(_box(piece) if is_hidden else escape(piece) for piece, is_hidden in pieces(original))


def _box(written: str) -> Markup:
    return Markup('<span class="ctl">{}</span>').format(written)


def markdown(text: str) -> Markup:
    """Markdown as safe HTML."""
    plain = text.replace("\r\n", "\n")
    if len(text) > LONGEST_MARKDOWN or text.count("[") > MOST_BRACKETS or _cells(plain) > MOST_CELLS:
        return _as_written(text)
    if visible(plain) != plain:
        return _as_written(text)
    html = _cleaner().clean(_reader().render(plain))
    if _leaves_out(plain, html):
        return _as_written(text)
    return Markup(html)  # noqa: S704  # cleaned by a list of allowed tags


def _as_written(text: str) -> Markup:
    return Markup("<pre>") + words(text) + Markup("</pre>")


def _cells(text: str) -> int:
    """How many cells the tables of a text can have at most: a short row is filled up to the longest."""
    bars = [one.count("|") for one in text.split("\n")]
    return max(bars) * sum(1 for count in bars if count)


def _leaves_out(text: str, html: str) -> bool:
    """Whether letters or digits of a line of the text are not, in this order, in its HTML."""
    seen = _NOT_A_LETTER.sub("", unescape(_TAG.sub("", html)))
    at = 0
    for one in text.split("\n"):
        wanted = _NOT_A_LETTER.sub("", _MARKER.sub("", one))
        found = seen.find(wanted, at)
        if found < 0:
            return True
        at = found + len(wanted)
    return False


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes={},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow ugc",
        attribute_filter=_allowed_class,
    )


def _allowed_class(element: str, attribute: str, value: str) -> str | None:
    if attribute != "class":
        return value
    known = _CLASSES.get(element, set())
    return value if value in known or value.startswith("align-") else None


class _SafeRenderer(RendererHTML):
    """Headings begin below the page's own, images are words, links say where they lead, lists keep their numbers."""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return f"<{_below(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return f"</{_below(tokens[idx].tag)}>\n"

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        number = tokens[idx].info
        return f'<li value="{int(number)}">' if number.isdecimal() else "<li>"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        info = Markup('<span class="host">{}</span>\n').format(token.info.strip()) if token.info.strip() else Markup("")
        return str(Markup("<pre>{}<code>{}</code></pre>\n").format(info, token.content))

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        alt = "".join(child.content for child in token.children or ())
        return str(Markup('<span class="image">{} ({})</span>').format(alt or "image", str(token.attrGet("src") or "")))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        env.setdefault(_LINKS, []).append(idx)
        href = str(tokens[idx].attrGet("href") or "")
        return str(Markup('<a href="{}">').format(href) if _may_be_followed(href) else Markup("<span>"))

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        opened = env[_LINKS].pop()
        href = str(tokens[opened].attrGet("href") or "")
        told = "".join(one.content for one in tokens[opened:idx])
        where = "" if href in told else f" ({visible_line(normalizeLinkText(href))})"
        end = Markup("</a>") if _may_be_followed(href) else Markup("</span>")
        return str(end + Markup('<span class="host">{}</span>').format(where))


def _below(tag: str) -> str:
    """The heading one level down: a page has one `h1` of its own."""
    return f"h{min(6, int(tag[1]) + 1)}"


def _may_be_followed(href: str) -> bool:
    """Whether an address is a name of another host, in the one form that everybody reads alike, or a mail address."""
    return _NAMED_HOST.fullmatch(href) is not None or _MAIL.fullmatch(href) is not None


@cache
def _reader() -> MarkdownIt:
    logging.getLogger("markdown_it").setLevel(logging.WARNING)  # it tells of every rule that it tries
    reader = MarkdownIt(
        "commonmark",
        {"html": False, "linkify": False, "typographer": False, "breaks": True, "maxNesting": DEEPEST_MARKDOWN},
        renderer_cls=_SafeRenderer,
    )
    return reader.enable(["table", "strikethrough"]).disable("entity")


def language(text: str) -> Markup:
    """The attribute `lang` for a text whose letters are Han often enough; empty for others."""
    if not _HAN.search(text):  # nearly every text; what follows looks at each character
        return Markup("")
    letters = han = 0
    for char in text[:SAMPLE]:
        if unicodedata.category(char)[0] == "L":
            letters += 1
            han += "\u3400" <= char <= "\u9fff" or "\U00020000" <= char <= "\U0003ffff"
    return Markup(' lang="zh"') if letters and han >= HAN_SHARE * letters else Markup("")


def initials(name: str) -> str:
    """One or two letters for a name: `WR` for writer, `李` for 李梅, `TW` for Tom Weber."""
    parts = [part for part in re.split(r"[\s_.\-/:]+", visible_line(name)) if part]
    if not parts:
        return "·"
    if "\u3400" <= parts[0][0] <= "\u9fff":
        return parts[0][0]
    both = parts[0][0] + parts[1][0] if len(parts) > 1 else parts[0][:2]
    return both.upper()


def hue(name: str) -> int:
    """Which of the six colours of agents a name has, always the same."""
    return sum(ord(char) * (at + 1) for at, char in enumerate(name[:40])) % 6 + 1
