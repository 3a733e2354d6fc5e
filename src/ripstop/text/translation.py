"""Sentences that ripstop says in English, in another language.

A journal keeps labels, questions, verdicts and progress lines as they were written, so the English sentence is the key.
In a key `{name}` stands for 1 to 200 characters and `{name:d}` for a whole number; the translation fills them in as
`{name}`. Of a text of several sentences each is looked for, and all are translated or none.

    {"turn {n:d} of at most {most:d}": "第 {n} 轮，最多 {most} 轮"}

A sentence that an agent or a person could have written has its kind in its key, and so has the name of an event, a
field, an outcome or a guard. It is only looked for where such a text is shown. `{name:kind}` is translated itself, as
a text of that kind, and `{name:t}` as one of none:

    {"reason|to {state} always": "到 {state}，无条件", "event|turn finished": "一轮结束"}

What is not recorded but made to be shown, such as the sentence about a record, is a `Phrase`: its pattern is the key,
and what is filled in is known.

Each author keeps the translations of its own sentences beside it (`texts.zh.json`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

MAX_SENTENCE = 500
"""Characters of the longest text that can be one of these sentences; a longer one is an agent's or a person's."""
PLACE = re.compile(r"\{([a-z_]+)(?::([a-z]+))?\}")
NUMBER, TRANSLATED = "d", "t"
_KIND = re.compile(r"([a-z]+)\|")
_END = re.compile(r"[.?!] ")
_FULL_WIDTH = ("。", "？", "！", "：")
"""Marks behind which no space is written."""


class Phrase(Struct, frozen=True):
    """A sentence, or a part of one: `phrase(pattern, name=value)`. Without values, a text as it was written."""

    pattern: str
    values: "tuple[tuple[str, str | Phrase], ...]" = ()
    kind: str = ""
    """Of a text as it was written: what kind of text it is."""

    def __str__(self) -> str:
        return ENGLISH.tell(self)


Told = str | Phrase


def phrase(pattern: str, **values: Told) -> Phrase:
    return Phrase(pattern, tuple(values.items()))


def joined(parts: "list[Phrase]") -> Told:
    """Parts of a sentence in a row."""
    if not parts:
        return ""
    first, *rest = parts
    return phrase("{first}, {rest}", first=first, rest=joined(rest)) if rest else first


class _Sentence(Struct, frozen=True):
    """A sentence with places, and its translation."""

    pattern: re.Pattern[str]
    text: str
    kinds: dict[str, str]
    """Of the values that are translated themselves, by their names."""


class Translation:
    def __init__(self, texts: Mapping[str, str], phrases: Mapping[str, str] | None = None) -> None:
        """Args:
        texts: Sentences in journals.
        phrases: Patterns of phrases; they are not looked for in texts.

        Raises `ValueError` for a text that fills in what its sentence does not name.
        """
        self._phrases = phrases or {}
        self._exact: dict[str, str] = {}
        self._patterns: dict[str, list[_Sentence]] = {}
        for key, text in (*texts.items(), *self._phrases.items()):
            if unknown := names_in(text) - names_in(key):
                raise ValueError(f"the translation of {key!r} has {', '.join(sorted(unknown))}, which the key has not")
        for key, text in (*texts.items(), *((key, text) for key, text in self._phrases.items() if _KIND.match(key))):
            kind = match[1] if (match := _KIND.match(key)) else ""
            if PLACE.search(key):
                self._patterns.setdefault(kind, []).append(_sentence(key, text))
            else:
                self._exact[key] = text
        self._found = lru_cache(maxsize=2000)(self._find)

    def of(self, text: str, kind: str = "") -> str:
        """The translation of a text; the text itself if it is not one of the sentences."""
        if len(text) > MAX_SENTENCE:
            return text
        found = self._found(text, kind)
        return self._found(text, "") if kind and found == text else found

    def tell(self, told: Told) -> str:
        """A phrase in this language; a text as it is."""
        if isinstance(told, str):
            return told
        pattern = self._phrases.get(told.pattern)
        if not told.values:
            return self.of(told.pattern, told.kind) if pattern is None or told.kind else pattern
        values = {name: self.tell(value) for name, value in told.values}
        return _filled(told.pattern if pattern is None else pattern, values)

    def _find(self, text: str, kind: str) -> str:
        found = next(self._sentences(text), None) if not kind else None
        return found or self._one(text, kind) or text

    def _one(self, text: str, kind: str) -> str | None:
        exact = self._exact.get(f"{kind}|{text}" if kind else text)
        if exact is not None:
            return exact
        for sentence in self._patterns.get(kind, ()):
            if match := sentence.pattern.fullmatch(text):
                values = match.groupdict()
                own = {name: self.of(values[name], one) for name, one in sentence.kinds.items()}
                return _filled(sentence.text, values | own)
        return None

    def _sentences(self, text: str) -> Iterator[str]:
        """The translation of several sentences, if each of them is known."""
        for end in _END.finditer(text):
            head, rest = self._one(text[: end.start() + 1], ""), text[end.end() :]
            if head is not None and (tail := self._found(rest, "")) != rest:
                yield f"{head}{tail}" if head.endswith(_FULL_WIDTH) else f"{head} {tail}"


def names_in(text: str) -> set[str]:
    """The names of what is filled into a sentence."""
    return {place[1] for place in PLACE.finditer(text)}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def _sentence(key: str, text: str) -> _Sentence:
    plain = _KIND.sub("", key, count=1)
    pieces, end = "", 0
    kinds: dict[str, str] = {}
    for place in PLACE.finditer(plain):
        filling = r"\d+" if place[2] == NUMBER else ".{1,200}?"
        pieces += f"{re.escape(plain[end : place.start()])}(?P<{place[1]}>{filling})"
        end = place.end()
        if place[2] and place[2] != NUMBER:
            kinds[place[1]] = "" if place[2] == TRANSLATED else place[2]
    try:
        return _Sentence(re.compile(pieces + re.escape(plain[end:]), re.DOTALL), text, kinds)
    except re.error as error:
        raise ValueError(f"the sentence {key!r} has two places of the same name") from error


ENGLISH = Translation({})
