"""The words of the pages: `words/en.json` and `words/zh.json` have the same keys, each with its text.

`{name}` in a text is filled in. What stands between backticks is a command. A key that does not exist is a bug in
ripstop, and raises. `KEY.one` is the text of a key for one thing, where `{n}` is 1. What a style says is not here but
beside the style: see `ripstop.text.translation`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

LANGUAGES = ("en", "zh")
ONE = ".one"


@cache
def words(language: str) -> dict[str, str]:
    """Every text of a language, by its key."""
    return msgspec.json.decode((files(__package__) / "words" / f"{language}.json").read_bytes(), type=dict[str, str])


def word(language: str, key: str, **values: object) -> str:
    text = pattern(language, key, values)
    return text.format(**values) if values else text


def pattern(language: str, key: str, values: Mapping[str, object]) -> str:
    """The text of a key; `KEY.one` if there is one, and `n` is 1."""
    texts = words(language)
    return texts.get(f"{key}{ONE}", texts[key]) if str(values.get("n")) == "1" else texts[key]
