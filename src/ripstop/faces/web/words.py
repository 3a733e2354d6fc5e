"""The words of the pages: `words/en.json` and `words/zh.json` have the same keys, each with its text.

`{name}` in a text is filled in. What stands between backticks is a command. A key that does not exist is a bug in
ripstop, and raises. What a style says is not here but beside the style: see `ripstop.text.translation`.
"""

from functools import cache
from importlib.resources import files

import msgspec

LANGUAGES = ("en", "zh")


@cache
def words(language: str) -> dict[str, str]:
    """Every text of a language, by its key."""
    return msgspec.json.decode((files(__package__) / "words" / f"{language}.json").read_bytes(), type=dict[str, str])


def word(language: str, key: str, **values: object) -> str:
    text = words(language)[key]
    return text.format(**values) if values else text
