"""What is searched for: the words of a text, and of a question, in scripts with and without spaces between words.

- Letters are compared without case, width and accents. English endings are left to SQLite's own stemmer.
- Chinese, Japanese, Korean, Thai and the like are cut into pairs of neighbouring characters, so a word of two is found
  inside a sentence. The last character of a run is kept on its own, so that one character can be found as the beginning
  of a pair.
- A question has words that say nothing about its subject. They are left out, unless it has no others.
- Words are letters and digits only: nothing of a user's message can be part of a query's syntax.
"""

import re
import unicodedata
from collections.abc import Iterator

from msgspec import Struct

MAX_QUESTION = 2_000
"""Characters: of a longer question its beginning and its end are searched for."""
MAX_WORDS = 100

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3031-\u3035\u3041-\u30ff\u3105-\u318e"
    "\u31a0-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

SHORTEST_PIECE = 3
"""Characters that the trigram index needs."""
PLURAL = 5
"""From this length on a final `s` is taken for an ending."""

_ENGLISH = """
a about after all also am an and any are as at be been before being but by can could d did do does doesn doing don down
for from get got had has have having he hello help her here hi him his how i if in into is isn it its just know let like
ll m may me might more my need no not now of on or our out please re s shall she should so some t tell than thank thanks
that the their them then there these they this those to too up us ve very want was we were what when where which while
who whom why will with would you your
"""
_CHINESE = """
什么 怎么 么样 怎样 如何 哪里 哪儿 哪个 哪些 多少 几个 为什 请问 你们 我们 他们 你好 您好 是否 是不 不是 可以 可不 能不
不能 有没 没有 有什 有哪 是什 是多 我想 想要 想问 问一 一下 一个 需要 知道 告诉 诉我 帮我 给我 这个 那个 这些 那些
么办 办呢 的吗 了吗 谢谢 麻烦 的是 的话 关于 或者 还是 以及 因为 所以 如果 但是
"""
_STOP_WORDS = frozenset((*_ENGLISH.split(), *_CHINESE.split()))


class Terms(Struct, frozen=True):
    """What a question asks for, as queries of FTS5."""

    words: str
    pieces: str
    """Parts of words, for the trigram index; can be empty."""


def words_of(text: str) -> str:
    """The words of a text as they are indexed, with spaces between them."""
    return " ".join(word for run in _runs(text) for word in _indexed(run))


def terms_of(question: str) -> Terms | None:
    """What to search for; `None` if a question has no letters and no digits."""
    if len(question) > MAX_QUESTION:
        question = f"{question[: MAX_QUESTION // 2]} {question[-MAX_QUESTION // 2 :]}"
    runs = list(dict.fromkeys(_runs(question)))
    wanted = list(dict.fromkeys(word for run in runs for word in _wanted(run)))
    subjects = [word for word in wanted if word not in _STOP_WORDS] or wanted
    if not subjects:
        return None
    # the trigram index has the texts as they are, with their accents
    accented = [run for run in _runs(question, accents=True) if run not in _STOP_WORDS]
    pieces = dict.fromkeys(piece for run in accented for piece in _pieces(run))
    return Terms(_any_of(subjects), _any_of(list(pieces)))


def _runs(text: str, accents: bool = False) -> Iterator[str]:
    """Words, and runs of characters without spaces between words, folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if not accents:
        folded = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    for match in _WORD.finditer(unicodedata.normalize("NFC", folded)):
        yield match[0]


def _indexed(run: str) -> Iterator[str]:
    if not _IS_UNSPACED.match(run):
        yield run
        return
    yield from _grams(run, 2)
    yield run[-1]


def _wanted(run: str) -> Iterator[str]:
    if len(run) == 1 or not _IS_UNSPACED.match(run):
        yield run
    else:
        yield from _grams(run, 2)


def _pieces(run: str) -> Iterator[str]:
    if _IS_UNSPACED.match(run):
        yield from _grams(run, SHORTEST_PIECE)
    elif len(run) > SHORTEST_PIECE:
        yield run[:-1] if len(run) >= PLURAL and run.endswith("s") else run


def _grams(run: str, length: int) -> Iterator[str]:
    return (run[at : at + length] for at in range(len(run) - length + 1))


def _any_of(words: list[str]) -> str:
    """A query for texts that have any of these. One character of an unspaced script is the beginning of a pair."""
    some = words[:MAX_WORDS]
    return " OR ".join(f'"{word}"*' if len(word) == 1 and _IS_UNSPACED.match(word) else f'"{word}"' for word in some)
