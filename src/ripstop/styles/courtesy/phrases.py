"""The words of courtesy, by language, from `phrases.json`; `recognition.py` says how they may be put together.

- Case, accents, apostrophes and hyphens do not matter. A word of the list holds no other punctuation.
- A word is listed only if it is nothing but polite. What may also report, ask, promise or decide is left out,
  however often it is meant kindly: done, yes, sure, approved, with pleasure, 嗯, 可以, はい, perfecto, fertig.
- `SPOKEN` kinds say it by themselves: `thanks`; `receipt` (what was received may be named); `hearing` (only "your …"
  may follow); `plain` (welcome, acknowledgement, farewell); `lone` (polite only with nothing else beside it).
- `BESIDE` kinds never say it by themselves: `title` (whom it is said to); `before` (only before thanks); `after` (only
  after thanks); `particle` (after anything said); `join`; `for`, `owner`, `adjective`, `object` ("for", "your",
  "quick", "reply"); `favour` (a whole "for letting me know").
- `work` is what could be put together from polite words and yet says something else ("ok了": it is done).
- `telling` are emoji that refuse, warn, ask, report or count (keycaps): with one of them nothing is courtesy.
"""

from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec

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
