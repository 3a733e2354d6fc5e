"""Courtesy: does a message say nothing but thanks, welcome, "got it" or good-bye?

Agents thank each other for ever, so a courtesy must be recognised. But a real result that is taken for one stops the
work, which is worse than one reply too many; so in doubt it is not a courtesy:

1. A message is cut at punctuation and line ends, and *every* piece must be courtesy. A polite beginning proves nothing.
2. A piece is courtesy if it can be laid out without a gap from the words of `phrases.json`, as `MOVES` allows, and at
   least one of them says something polite by itself. Chinese, Japanese and Korean are laid out sign by sign, because
   blanks mean nothing there; other languages word by word.
3. Only what is listed below as punctuation or blank is passed over. Digits, brackets, slashes and other code stay, fit
   no phrase, so it is not a courtesy. So does a question mark anywhere.
4. Emoji beside words do not matter, unless they tell something (❌). Without words, all must be polite.
5. A person's name is not recognised; a few titles are, and mentions (`@name`) are passed over.
"""

import re
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Literal, get_args
from unicodedata import normalize

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import Guards
from ripstop.kernel.errors import UsageError

# Courtesy, as styles ask for it: whether a message says nothing else, and whether a user's own phrases can match.
#
# The words are read when they are first needed, because most runs never say anything so short.


MAX_COURTESY, MAX_DECOMPOSED = 240, 960
"""Characters of the longest courtesy; and in any Unicode form, since a composed character has at most four parts."""


def courteous(text: str, guards: Guards) -> bool:
    """Whether a text says nothing but courtesies, the guards' own phrases included."""
    if len(text) > (MAX_COURTESY if text.isascii() else MAX_DECOMPOSED):
        return False

    return is_courtesy(text, _manners(guards.phrases))


def check_phrases(guards: Guards) -> Guards:
    """Return the guards as they are. Raises `UsageError` for a phrase that no message could ever match."""
    if guards.phrases:
        _manners(guards.phrases)
    return guards


@lru_cache(maxsize=16)
def _manners(phrases: tuple[str, ...]) -> "Manners":
    return MANNERS.with_phrases(phrases) if phrases else MANNERS


# The words of courtesy, by language, from `phrases.json`; the top of this file says how they may be put together.
#
# - Case, accents, apostrophes and hyphens do not matter. A word of the list holds no other punctuation.
# - A word is listed only if it is nothing but polite. What may also report, ask, promise or decide is left out,
#   however often it is meant kindly: done, yes, sure, approved, with pleasure, 嗯, 可以, はい, perfecto, fertig.
# - `SPOKEN` kinds say it by themselves: `thanks`; `receipt` (what was received may be named); `hearing` (only "your …"
#   may follow); `plain` (welcome, acknowledgement, farewell); `lone` (polite only with nothing else beside it).
# - `BESIDE` kinds never say it by themselves: `title` (whom it is said to); `before` (only before thanks); `after`
#   (only after thanks); `particle` (after anything said); `join`; `for`, `owner`, `adjective`, `object` ("for", "your",
#   "quick", "reply"); `favour` (a whole "for letting me know").
# - `work` is what could be put together from polite words and yet says something else ("ok了": it is done).
# - `telling` are emoji that refuse, warn, ask, report or count (keycaps): with one of them nothing is courtesy.


Spoken = Literal["thanks", "receipt", "hearing", "plain", "lone"]
Beside = Literal["title", "before", "after", "particle", "join", "for", "owner", "adjective", "object", "favour"]
Kind = Literal[Spoken, Beside, "work", "telling"]

SPOKEN: frozenset[str] = frozenset(get_args(Spoken))
BESIDE: frozenset[str] = frozenset(get_args(Beside))


@cache
def phrases() -> dict[str, dict[Kind, tuple[str, ...]]]:
    """By language and kind. Read when first needed, and once."""
    text = (files(__package__) / "phrases.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[Kind, tuple[str, ...]]])


# Where the words laid out so far have led: bits, because several readings may be open at once.
OPEN, ADDRESSED, WARM, SAID, HEARD, RECEIVED, THANKED, OWNED, DETAILED, LONE = (1 << bit for bit in range(10))

COURTEOUS = SAID | HEARD | RECEIVED | THANKED | DETAILED | LONE
_GOES_ON = (SAID, HEARD, RECEIVED, THANKED, DETAILED)


def _from(*states: int, to: int) -> dict[int, int]:
    return dict.fromkeys(states, to)


def _staying(*states: int) -> dict[int, int]:
    return {state: state for state in states}


MOVES: dict[str, dict[int, int]] = {
    "thanks": _from(OPEN, ADDRESSED, WARM, *_GOES_ON, to=THANKED),
    "receipt": _from(OPEN, *_GOES_ON, to=RECEIVED),
    "hearing": _from(OPEN, *_GOES_ON, to=HEARD),
    "plain": _from(OPEN, *_GOES_ON, to=SAID),
    "lone": _from(OPEN, to=LONE),
    "title": _from(OPEN, to=ADDRESSED) | _staying(ADDRESSED, WARM, *_GOES_ON),
    "before": _from(OPEN, ADDRESSED, WARM, *_GOES_ON, to=WARM),
    "after": _staying(THANKED, DETAILED),
    "particle": _staying(*_GOES_ON),
    "join": _from(OPEN, *_GOES_ON, to=OPEN) | _from(DETAILED, to=OPEN | OWNED),
    "for": _from(THANKED, to=OWNED),
    "owner": _from(THANKED, RECEIVED, HEARD, OWNED, to=OWNED),
    "adjective": _from(THANKED, RECEIVED, OWNED, to=OWNED),
    "object": _from(THANKED, RECEIVED, OWNED, to=DETAILED),
    "favour": _from(THANKED, to=DETAILED),
}
"""What each kind of word does: from which state it may be added, and where that leads."""

_CUT = re.compile('[.,!;:¡~*"“”„‟«»‹›·•・。、〜「」『』،؛۔।॥\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+')
_DASH = re.compile("[-‐‒–—―−]+")
# A name of letters. In scripts without spaces at most two signs, so that it does not swallow the message: the third may
# be a word (`@张三对`), unless the name is set apart as chat programs do it: no word right before it, a space after.
_MENTION = re.compile(
    r"(?<![a-z0-9_.])@(?:[a-z0-9_](?:[.-]?[a-z0-9_]){0,40}(?![a-z0-9_])"
    r"|(?:[\u0370-\u06ff]{1,40}|[\uac00-\ud7a3]{1,3}|\w{1,2})(?!\w)|(?<!\w@)\w{3}(?= ))"
)
_QUESTION = re.compile("[?؟¿⸮՞፧❓❔]")

_EMOJI_DRESS = "[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
_EMOJI_BODY = (
    "[\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2767\u2794-\u27bf\u2934\u2935"
    "\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\U0001f004\U0001f0cf\U0001f170\U0001f171\U0001f17e\U0001f17f\U0001f18e"
    "\U0001f191-\U0001f19a\U0001f1e6-\U0001f1ff\U0001f201\U0001f202\U0001f21a\U0001f22f\U0001f232-\U0001f23a"
    "\U0001f250\U0001f251\U0001f300-\U0001faff]"
)
_EMOJI = re.compile(
    rf"{_EMOJI_BODY}{_EMOJI_DRESS}*(?:\u200d\S{_EMOJI_DRESS}*)*|[0-9#*]\ufe0f?\u20e3|[:;=]-?[)D\]]|\^_?\^|<3(?!\d)"
)
_EMOJI_VARIANT = re.compile(rf"{_EMOJI_DRESS}|\u200d[♀♂]")

_FOLDED: dict[int, int | None] = {
    **dict.fromkeys(map(ord, "'’‘ʼ′＇\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u061c\u0640\u0670\ufe0e\ufe0f")),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A))),  # marks of writing direction
    **dict.fromkeys((*range(0x0300, 0x0370), *range(0x064B, 0x0660))),  # accents; vowels of Arabic
    **str.maketrans("ıłđø", "ildo"),
}

Tokens = tuple[str, ...]


class _Heard(Struct, frozen=True):
    """A text as it is compared: the words of each piece, and the emoji."""

    pieces: tuple[Tokens, ...]
    emoji: tuple[str, ...]
    asks: bool


class _Lexicon(Struct, frozen=True):
    words: dict[str, tuple[tuple[Tokens, frozenset[str]], ...]]
    """By their first token: the words that begin so, longest first, and their kinds (none: not a courtesy)."""
    emoji: frozenset[str]


class Manners(Struct, frozen=True, dict=True):
    """The phrases that count as courtesy: those of `phrases.json`, with a user's own, without the unwanted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def with_phrases(self, phrases: tuple[str, ...]) -> "Manners":
        """These are courtesy too: words (with the usual fillers around them) or single emoji."""
        wanted = {_phrase(phrase) for phrase in phrases}
        return Manners((*self.added, *phrases), tuple(old for old in self.removed if _phrase(old) not in wanted))

    def without(self, phrases: tuple[str, ...]) -> "Manners":
        """A copy in which these are not courtesies. Longer phrases of the list that begin with them still are."""
        unwanted = {_phrase(phrase) for phrase in phrases}
        return Manners(tuple(own for own in self.added if _phrase(own) not in unwanted), (*self.removed, *phrases))

    @cached_property
    def lexicon(self) -> _Lexicon:
        """Made when first needed: reading a thousand phrases would slow the import."""
        kinds: dict[Tokens, set[str]] = {}
        for kind, phrase in _shipped():
            kinds.setdefault(phrase, set()).update({kind} - {"work"})
        for phrase in map(_phrase, self.removed):
            kinds.setdefault(phrase, set()).difference_update(SPOKEN)
        for phrase in map(_phrase, self.added):
            kinds.setdefault(phrase, set()).add("thanks")
        words: dict[str, list[tuple[Tokens, frozenset[str]]]] = {}
        for phrase in sorted(kinds, key=len, reverse=True):
            words.setdefault(phrase[0], []).append((phrase, frozenset(kinds[phrase])))
        emoji = frozenset(first for first, found in words.items() if _EMOJI.fullmatch(first) and found[-1][1])
        return _Lexicon({first: tuple(found) for first, found in words.items()}, emoji)


MANNERS = Manners()


def is_courtesy(text: str, manners: Manners = MANNERS) -> bool:
    """Whether the text is courtesy and nothing else. Never fails, whatever the text."""
    text = text.strip()
    if len(text) > MAX_DECOMPOSED:
        return False
    text = normalize("NFC", text)
    if len(text) > MAX_COURTESY:
        return False
    heard = _hear(text)
    if heard.asks or not _telling().isdisjoint(heard.emoji):
        return False
    lexicon = manners.lexicon
    if not heard.pieces:
        return bool(heard.emoji) and lexicon.emoji.issuperset(heard.emoji)
    said = 0
    for piece in heard.pieces:
        end = _lay_out(piece, lexicon)
        if not end & (COURTEOUS | ADDRESSED):
            return False
        said |= end
    return bool(said & COURTEOUS)


def _lay_out(piece: Tokens, lexicon: _Lexicon) -> int:
    """The states in which the piece can end; none if it cannot be laid out."""
    reached = [OPEN] + [0] * len(piece)
    for at, token in enumerate(piece):
        if not reached[at]:
            continue
        longest = True
        for phrase, kinds in lexicon.words.get(token, ()):
            end = at + len(phrase)
            if piece[at:end] == phrase:
                if longest and not kinds:
                    return 0
                longest = False
                reached[end] |= _moved(reached[at], kinds)
    return reached[-1]


@cache
def _moved(states: int, kinds: frozenset[str]) -> int:
    after = 0
    for kind in kinds:
        for state, to in MOVES[kind].items():
            if states & state:
                after |= to
    return after


def _hear(text: str) -> _Heard:
    """Reads a text; upper case, accents, width and other forms of the same signs are made one."""
    emoji = tuple(_EMOJI_VARIANT.sub("", found) for found in _EMOJI.findall(text))
    words = _EMOJI.sub("\n", text) if emoji else text
    words = words.replace("´", "")  # before its decomposition, which is a blank with an accent
    words = normalize("NFKC", normalize("NFKD", words).casefold().translate(_FOLDED))
    asks = _QUESTION.search(text) is not None or "?" in words
    words = _DASH.sub(" ", _MENTION.sub(" ", words))
    pieces = tuple(tokens for piece in _CUT.split(words) if (tokens := _tokens(piece)))
    return _Heard(pieces, emoji, asks)


def _tokens(piece: str) -> Tokens:
    """The words of a piece; a Chinese, Japanese or Korean sign is a word of its own."""
    if not piece.isascii():
        piece = "".join(
            f" {sign} " if "\u3005" <= sign <= "\u9fff" or "\uac00" <= sign <= "\ud7a3" else sign for sign in piece
        )
    return tuple(piece.split())


def _phrase(text: str) -> Tokens:
    """A phrase of the list as it is compared."""
    heard = _hear(normalize("NFC", text))
    if len(heard.pieces) == 1 and not heard.asks:
        return heard.pieces[0]
    if not heard.pieces and len(heard.emoji) == 1:
        return heard.emoji
    raise UsageError(
        f"{text!r} cannot be a courtesy phrase: messages are cut at punctuation, and a question is never courtesy. "
        "Write words without punctuation between them (each part as a phrase of its own), or one emoji."
    )


@cache
def _shipped() -> tuple[tuple[str, Tokens], ...]:
    """Every word of the table that is compared, with its kind."""
    kinds = (item for language in phrases().values() for item in language.items() if item[0] != "telling")
    # joined, because one long text is read much faster than a thousand words; it is cut again at the commas
    heard = ((kind, _hear(normalize("NFC", ", ".join(words)))) for kind, words in kinds)
    return tuple((kind, word) for kind, of in heard for word in (*of.pieces, *((emoji,) for emoji in of.emoji)))


@cache
def _telling() -> frozenset[str]:
    return frozenset(emoji for language in phrases().values() for emoji in language.get("telling", ()))
