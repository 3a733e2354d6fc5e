"""Templates: how a page becomes HTML. Everything is escaped unless `showing` made it; a name that is missing raises."""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from markupsafe import Markup, escape
from msgspec import Struct

from ripstop.history.narration import in_short
from ripstop.text.translation import Told, Translation
from ripstop.text.visible_text import visible_line

from . import markup
from .words import pattern

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_COMMAND = re.compile("`([^`]*)`")
UNITS = ((86_400, "ago.days"), (3_600, "ago.hours"), (60, "ago.minutes"))


class Shell(Struct, frozen=True, kw_only=True):
    """What every page shows around its own content."""

    title: str
    section: str = ""
    by: str = ""
    desk: int = 0
    runs: int = 0
    chats: int = 0
    documents: int = 0
    workflows: int = 0
    at_work: tuple[str, ...] = ()
    workers: int = 0
    journal: str = ""
    look_only: bool = False
    theme: str = ""
    lang: str = "en"
    keys: bool = True
    send_keys: str = "Ctrl ↵"
    """What sends a form, as the keyboard of the reader's system has it."""
    notice: str = ""
    live: str = ""
    """The address of the stream for this page."""


class Renderer:
    def __init__(self, now: Callable[[], int], translation: Callable[[str], Translation]) -> None:
        """Args:
        now: The time in microseconds.
        translation: Of what styles say, into a language; asked once for each.
        """
        self._now = now
        self.translation = cache(translation)
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {"static": static_address, "url": address}
        self._environment.filters |= {
            "md": markup.markdown,
            "words": markup.words,
            "line": markup.line,
            "hint": hint,
            "visible": visible_line,
            "han": markup.language,
            "initials": markup.initials,
            "hue": markup.hue,
            "num": number,
            "money": money,
            "bytes": size,
            "iso": iso,
            "ago": pass_context(lambda context, at: self._ago(at, context["t"])),
            "clock": self._clock,
            "own": pass_context(
                lambda context, told, kind="": _told(self.translation(context["shell"].lang), told, kind)
            ),
            "short": pass_context(lambda context, told: in_short(told, self.translation(context["shell"].lang))),
        }

    def compile_all(self) -> None:
        """Read every template now, so that nobody waits for it later."""
        for name in self._environment.list_templates(extensions=["html"]):
            self._environment.get_template(name)

    def page(self, template: str, shell: Shell, csrf: Callable[[], Markup], **context: Any) -> str:
        """A page, or a fragment of one, in the reader's language."""

        def t(key: str, **values: object) -> str:
            return _with_code(pattern(shell.lang, key, values), values)

        own = {"shell": shell, "t": t, "csrf_fields": csrf, "now": self._now()}
        return self._environment.get_template(template).render(**own, **context)

    def _ago(self, at: int, t: Callable[..., str]) -> str:
        """How long ago, in the largest unit that fits."""
        seconds = (self._now() - at) / 1_000_000
        for length, key in UNITS:
            if abs(seconds) >= length:
                return t(key, n=round(abs(seconds) // length))
        return t("ago.now")

    def _clock(self, at: int | str) -> str:
        """The time of day, for a moment of today; else the date. Given in microseconds, or as `DeskItem` has it."""
        moment = datetime.fromisoformat(at).astimezone() if isinstance(at, str) else _local(at)
        today = _local(self._now())
        return moment.strftime("%H:%M:%S" if moment.date() == today.date() else "%Y-%m-%d %H:%M")


def _told(translation: Translation, told: Told, kind: str) -> str:
    return translation.of(told, kind) if isinstance(told, str) else translation.tell(told)


def hint(text: str) -> Markup:
    """What to do next, on one line, with its commands between backticks shown as such."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(markup.line(text, 400))))  # noqa: S704  # escaped by `line`


def _with_code(text: str, values: Mapping[str, object]) -> str:
    """Words of the desk with what is filled in; commands between backticks are shown as such."""
    if "`" not in text:
        return text.format(**values) if values else text
    # a plain `str`: what `sub` puts into a `Markup` is escaped
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text)))).format(**values)  # noqa: S704  # words of our own


def _local(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone()


def iso(at: int) -> str:
    return _local(at).isoformat(timespec="seconds")


def number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def money(value: float) -> str:
    return f"${value:,.3f}" if value < 100 else f"${value:,.2f}"


def size(value: int) -> str:
    for unit, factor in (("MB", 1_000_000), ("KB", 1_000)):
        if value >= factor:
            return f"{value / factor:,.1f} {unit}"
    return f"{value} B"


def address(path: str, **query: object) -> str:
    """A path of this server, with a query of what is not empty."""
    given = {name.rstrip("_"): value for name, value in query.items() if value not in ("", None)}
    return quote(path, safe="/:@,;=+$!*'()") + (f"?{urlencode(given)}" if given else "")


@cache
def static_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(STATIC.iterdir()) if path.is_file()}


@cache
def static_address(name: str) -> str:
    """The address of a static file; it changes with the content, so that a browser can keep it for ever."""
    digest = hashlib.sha256(static_files()[name]).hexdigest()[:12]
    return f"/static/{digest}/{name}"
