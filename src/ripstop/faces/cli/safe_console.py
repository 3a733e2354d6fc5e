"""rich's console, with the filter for what was not filtered before it was laid out."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

from ripstop.text.visible_text import visible


class SafeConsole(Console):
    """Escapes every text that is rendered, however it got here. Only rich's own control codes stay what they are.

    Nothing can be clicked: a link would show other words than its address.
    """

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            style = segment.style.update_link(None) if segment.style and segment.style.link else segment.style
            yield segment if segment.control else Segment(visible(segment.text), style)

    def render_str(self, text: str, **options: Any) -> Text:
        # before it is measured, so that columns are as wide as what is shown
        return super().render_str(visible(text), **options)
