"""Names are words of the field, not a private language that every reader has to learn first (docs/style.md).

`WORDS` says which words no module, class, function, variable or parameter has in its name, and what to call it instead.
Prose and texts for people are not searched, nor are strings: tags in journals and columns of a store stay as they are.

A word that is still in use is in `NOT_YET`, so that words go one by one. That list only ever gets shorter: a word that
has gone must be taken off it, and then never comes back.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import ripstop

ROOT = Path(ripstop.__file__).parent

WORDS = {
    "allowance": "budget, limit",
    "anew": "retry, attempt",
    "blank": "space, empty",
    "care": "maintenance",
    "cell": "cached (a run in the cache)",
    "circle": "cycle",
    "complaint": "problem, error",
    "continuing": "resume",
    "deed": "effect, turn digest",
    "errand": "run",
    "hands": "command runner",
    "holder": "worker_id",
    "letter": "message",
    "loudspeaker": "messages",
    "mailroom": "inbox",
    "office": "desk",
    "owe": "open (in the outbox)",
    "owed": "open (in the outbox)",
    "pace": "rate limit",
    "paper": "document",
    "saying": "message",
    "sight": "live event",
    "spot": "prompt_user",
    "stock": "documents, reconcile",
    "story": "run, history",
    "telling": "narration",
    "trouble": "problem, warning",
    "turnstile": "write queue",
}
"""A private word, and what to say. It is found as a part of a name too, in the singular or plural: `LONGEST_PAPER`."""

NAMES = {
    "FAR": "what is how far apart",
    "LONGEST": "MAX_ and of what",
    "LOOK": "POLL_INTERVAL",
    "LOOKS": "the number of what",
    "MOST": "MAX_ and of what",
    "PATIENCE": "LOCK_TIMEOUT",
    "PAUSE": "RETRY_INTERVAL",
    "has_grown": "keeps_changes",
    "is_ours": "wrote, is_own_…",
    "meant_run": "resolve_run",
    "meant_session": "resolve_session",
    "run_meant": "resolve_run",
    "session_meant": "resolve_session",
}
"""The same, of whole names: a constant says which quantity it is, and a function what it does."""

OTHER_MEANINGS = {
    "blank": ("definitions/*_tree.py", "faces/*", "styles/*"),  # a line or an answer with nothing in it
    "cell": (
        # of a table, or of a terminal
        "definitions/problems.py",
        "faces/cli/blocks.py",
        "faces/web/markup.py",
        "styles/blackboard/plan.py",
        "styles/conversation/cli/*.py",
        "styles/pipeline/reports.py",
        "text/markdown.py",
    ),
    "errand": ("testing/*.py",),  # the stub style, which is public
    "letter": (
        # of an alphabet
        "faces/web/markup.py",
        "styles/conversation/events.py",
        "styles/handoff/files.py",
        "styles/handoff/folder.py",
        "styles/handoff/folder_runs.py",
        "text/diagrams/lanes.py",
        "tools/workspace.py",
    ),
    "story": ("testing/*.py",),  # given, when, then
    "LOOK": ("faces/web/application.py", "faces/web/site.py"),  # the look of a page
}
"""Files in which a word is the field's own, or is read from outside."""

NOT_YET = {
    "allowance",
    "paper",
    "telling",
    "trouble",
}
"""Words that are still in use. Take one off when it has gone; put none on."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@cache
def banned_in(name: str) -> tuple[str, ...]:
    """The private words in a name."""
    parts = {part.lower() for part in _PART.findall(name)}
    singular = {re.sub("ies$", "y", part).removesuffix("s") for part in parts}
    return tuple(sorted({name} & NAMES.keys() | (parts | singular) & WORDS.keys()))


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What a module defines, uses and imports, with the line. Strings are not names."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(name=name, asname=alias):
                yield from ((node.lineno, part) for part in (*name.split("."), alias or ""))


@cache
def found() -> dict[str, list[str]]:
    """Where each private word is used, by word."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        file = str(path.relative_to(ROOT))
        named = [(0, part) for part in path.relative_to(ROOT).with_suffix("").parts]
        for line, name in (*named, *names_in(ast.parse(path.read_text(encoding="utf-8")))):
            for word in banned_in(name):
                if not any(fnmatch(file, pattern) for pattern in OTHER_MEANINGS.get(word, ())):
                    places[word].append(f"{file}:{line}: {name}")
    return places


def test_no_name_has_a_private_word() -> None:
    used = {word: places for word, places in found().items() if word not in NOT_YET}
    assert used == {}, f"Say instead: { {word: (WORDS | NAMES)[word] for word in used} }"


def test_a_word_that_has_gone_is_taken_off_the_list() -> None:
    assert sorted(NOT_YET - found().keys()) == []


def test_exceptions_are_about_words_of_the_tables() -> None:
    assert not WORDS.keys() & NAMES.keys()
    assert WORDS.keys() | NAMES.keys() >= NOT_YET | OTHER_MEANINGS.keys()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paper", ["paper"]),
        ("LONGEST_PAPER", ["paper"]),
        ("SpokenPapers", ["paper"]),
        ("JournalStories", ["story"]),
        ("take_stock", ["stock"]),
        ("deeds", ["deed"]),
        ("newspaper", []),
        ("LOOK", ["LOOK"]),
        ("LOOK_AHEAD", []),
        ("look", []),
        ("run_meant", ["run_meant"]),
    ],
)
def test_a_private_word_is_recognised(name: str, words: list[str]) -> None:
    assert list(banned_in(name)) == words
