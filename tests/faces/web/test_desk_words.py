"""The words of the pages: every key that a page uses exists, no other does, and both languages say the same."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest
from jinja2 import Environment, nodes

from ripstop.faces import web
from ripstop.faces.web.words import LANGUAGES, ONE, word, words
from ripstop.kernel.limits import LIMITS, RAISABLE

ROOT = Path(web.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
WORDS = words("en")
AREAS = {key.partition(".")[0] for key in WORDS}
FILES = (".html", ".css", ".js", ".svg")


class Use(NamedTuple):
    place: str
    key: str
    """Of words; if it ends with a dot, that of all words that begin with it."""
    values: frozenset[str] | None = None
    """What is filled in; `None`: not known here."""


def in_template(path: Path) -> Iterator[Use]:
    """The keys in calls of `t`: a text, one of two, or a text with something behind it."""
    tree = Environment(autoescape=True).parse(path.read_text(encoding="utf-8"))
    for call in tree.find_all(nodes.Call):
        if not isinstance(call.node, nodes.Name) or call.node.name != "t":
            continue
        values = frozenset(one.key for one in call.kwargs)
        chosen = call.args[0]
        for one in (chosen.expr1, chosen.expr2) if isinstance(chosen, nodes.CondExpr) else (chosen,):
            begin = one.nodes[0] if isinstance(one, nodes.Concat) else one
            if isinstance(begin, nodes.Const):
                yield Use(f"{path.name}:{call.lineno}", begin.value, values if begin is one else None)


def in_module(path: Path) -> Iterator[Use]:
    """The keys in calls of `word`, and all texts that look like one: a handler may choose a key before it calls."""
    place, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="word"), args=[_, ast.Constant(value=str(key))], keywords=given):
                yield Use(f"{place}:{node.lineno}", key, frozenset(one.arg or "" for one in given))
            case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]) if begin.endswith(".") and is_key(
                f"{begin}x"
            ):
                yield Use(f"{place}:{node.lineno}", begin)
            case ast.Constant(value=str(text)) if is_key(text):
                yield Use(f"{place}:{node.lineno}", text)


def is_key(text: str) -> bool:
    """Whether a text looks like a key."""
    area, dot, rest = text.partition(".")
    return bool(dot) and area in AREAS and rest.replace("_", "").replace(".", "").isalnum() and not text.endswith(FILES)


USES = [use for path in TEMPLATES for use in in_template(path)] + [use for path in MODULES for use in in_module(path)]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_key_that_a_page_uses_exists() -> None:
    missing = [
        f"{use.place}: {use.key}"
        for use in USES
        if use.key not in WORDS and not (use.key.endswith(".") and any(key.startswith(use.key) for key in WORDS))
    ]
    assert missing == []


def test_every_key_is_used() -> None:
    whole = {use.key for use in USES}
    begun = tuple(key for key in whole if key.endswith("."))
    assert [key for key in WORDS if key.removesuffix(ONE) not in whole and not key.startswith(begun)] == []


def test_a_page_fills_in_what_the_words_need() -> None:
    wrong = [
        f"{use.place}: {use.key} gets {sorted(use.values)}"
        for use in USES
        if use.values is not None and use.key in WORDS and use.values != placeholders(WORDS[use.key])
    ]
    assert wrong == []


SEVERAL = re.compile(r"\b1 (?:[a-z]+ )?[a-z]{2,}s\b")


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_thing_is_not_told_as_several(language: str) -> None:
    counted = [key for key in WORDS if "n" in placeholders(WORDS[key])]
    told = {key: word(language, key, **dict.fromkeys(placeholders(WORDS[key]), 1)) for key in counted}
    assert {key: text for key, text in told.items() if SEVERAL.search(text)} == {}
    assert word("en", "count.records", n=1) == "1 record" and word("en", "count.records", n="2") == "2 records"


def test_every_limit_has_words() -> None:
    needed = (*(f"spent.{limit.name}" for limit in LIMITS), *(f"limit.{name}" for name in RAISABLE))
    assert [key for key in needed if key not in WORDS] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_the_same_with_the_same_placeholders(language: str) -> None:
    texts = words(language)
    assert list(texts) == list(WORDS), "the same keys, in the same order, so that two files can be read side by side"
    assert [key for key, text in texts.items() if not text.strip()] == []
    assert [key for key, text in texts.items() if placeholders(text) != placeholders(WORDS[key])] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_key_is_written_twice(language: str) -> None:
    pairs = json.loads((ROOT / "words" / f"{language}.json").read_bytes(), object_pairs_hook=list)
    assert len({key for key, _ in pairs}) == len(pairs)
