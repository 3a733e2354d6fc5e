"""Sentences that ripstop records in English, in another language.

A journal keeps labels, questions and progress lines as they were written, so the English sentence is the key. In a key
`{name}` stands for 1 to 200 characters and `{name:d}` for a whole number; the translation fills them in as `{name}`:

    {"turn {n:d} of at most {most:d}": "第 {n} 轮，最多 {most} 轮"}

Each author keeps the translations of its own sentences beside it (`texts.zh.json`).
"""

import re
from collections.abc import Mapping
from functools import lru_cache

MAX_SENTENCE = 500
"""Characters of the longest text that can be one of these sentences; a longer one is an agent's or a person's."""
PLACE = re.compile(r"\{([a-z_]+)(:d)?\}")


class Translation:
    def __init__(self, texts: Mapping[str, str]) -> None:
        """Raises `ValueError` for a text that fills in what its sentence does not name."""
        self._exact = {key: text for key, text in texts.items() if not PLACE.search(key)}
        self._patterns = tuple((_pattern(key), text) for key, text in texts.items() if key not in self._exact)
        for key, text in texts.items():
            if unknown := names_in(text) - names_in(key):
                raise ValueError(f"the translation of {key!r} has {', '.join(sorted(unknown))}, which the key has not")
        self._found = lru_cache(maxsize=1000)(self._find)

    def of(self, text: str) -> str:
        """The translation of a text; the text itself if it is not one of the sentences."""
        return text if len(text) > MAX_SENTENCE else self._found(text)

    def _find(self, text: str) -> str:
        if text in self._exact:
            return self._exact[text]
        for pattern, translated in self._patterns:
            if match := pattern.fullmatch(text):
                return _filled(translated, match.groupdict())
        return text


def names_in(text: str) -> set[str]:
    """The names of what is filled into a sentence."""
    return {place[1] for place in PLACE.finditer(text)}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)


def _pattern(key: str) -> re.Pattern[str]:
    pieces, end = "", 0
    for place in PLACE.finditer(key):
        filling = r"\d+" if place[2] else ".{1,200}"
        pieces += f"{re.escape(key[end : place.start()])}(?P<{place[1]}>{filling})"
        end = place.end()
    try:
        return re.compile(pieces + re.escape(key[end:]), re.DOTALL)
    except re.error as error:
        raise ValueError(f"the sentence {key!r} has two places of the same name") from error
