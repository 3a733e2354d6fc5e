"""The words of the pages, in English and Chinese side by side: each module has the words of one part of the desk.

`{name}` in a text is filled in. A key that does not exist is a mistake of ours, and raises.
"""

from collections.abc import Mapping
from functools import cache

from . import chats, desk, documents, errors, look, record, run, runs, shell, workflows

LANGUAGES = ("en", "zh")
Words = Mapping[str, tuple[str, str]]
MODULES = (shell, errors, look, desk, runs, run, record, chats, documents, workflows)


@cache
def all_words() -> dict[str, tuple[str, str]]:
    """Every key with its texts. Raises `ValueError` for a key that two modules have."""
    found: dict[str, tuple[str, str]] = {}
    for module in MODULES:
        words: Words = module.WORDS
        if twice := found.keys() & words.keys():
            raise ValueError(f"two modules have the words {sorted(twice)}")
        found.update(words)
    return found


def word(language: str, key: str, **values: object) -> str:
    text = all_words()[key][LANGUAGES.index(language)]
    return text.format(**values) if values else text
