"""What is looked for in pages themselves: functions for `page.evaluate`, each in a file of `in_page/`."""

from pathlib import Path

FOLDER = Path(__file__).parent / "in_page"


def _function(name: str) -> str:
    return (FOLDER / f"{name}.js").read_text(encoding="utf-8")


ACCESSIBILITY, CONTRAST, FOCUS = _function("accessibility"), _function("contrast"), _function("focus")
SIDEWAYS, TEXTS, WHY = _function("sideways"), _function("texts"), _function("why")
