"""Whether a text has grown from another one: an editor saves again without having read what was written in between.

The view that an edit was made in is known, but not who made it. So a second save from the same buffer is recognised
by what it says: it keeps all that the first one changed. Then it contradicts nothing, no matter who made it.

- Every word of the text as it is now is still there, in the same order; a word can have become longer.
- Nothing that was taken out is back: neither the whole text of the view, nor two words that were next to each other
  in it and are not now.

Texts come from outside, so the work is linear in their length.
"""

import re
from itertools import pairwise

_WORD = re.compile(r"[A-Za-z0-9_]+|\S")


def has_grown(view: str, now: str, mine: str) -> bool:
    """Whether `mine`, made in `view`, keeps everything that has changed between `view` and `now`."""
    before, current, words = _WORD.findall(view), _WORD.findall(now), _WORD.findall(mine)
    if not _in_order(current, words, longer=True):
        return False
    if _in_order(before, current, longer=False):
        return True  # nothing was taken out
    if _in_order(before, words, longer=False):
        return False
    taken_out = {*pairwise(before)} - {*pairwise(current)}
    return taken_out.isdisjoint(pairwise(words))


def _in_order(part: list[str], whole: list[str], longer: bool) -> bool:
    """Whether all words of `part` are in `whole` in their order; `longer`: one may be the beginning of another."""
    rest = iter(whole)
    return all(any(word == one or (longer and word.startswith(one)) for word in rest) for one in part)
