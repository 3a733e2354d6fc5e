"""Which language a document is written in: Chinese or English, by the proportion of its author's own text.

A Chinese character counts as much as a word in Latin letters. Code, quotations and names in them say nothing about
who wrote around them, so they are left out. Where both weigh the same, the text is in the language that it begins with.
"""

import re
from typing import Literal

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[^\W\d_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff][\w'’]*")
_QUOTED = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|^>.*?$",
    re.DOTALL | re.MULTILINE,
)
_LONGEST = 20_000
"""Characters that are checked: the language does not change after that."""


def language_of(*texts: str) -> Literal["en", "zh"]:
    """`zh` or `en`."""
    whole = "\n".join(texts)[:_LONGEST]
    own = _QUOTED.sub(" ", whole)
    if not _HAN.search(own) and not _LATIN_WORD.search(own):
        own = whole
    han, words = len(_HAN.findall(own)), len(_LATIN_WORD.findall(_HAN.sub(" ", own)))
    if han == words:
        first = re.search(rf"{_HAN.pattern}|[^\W\d_]", own)
        return "zh" if first and _HAN.match(first[0]) else "en"
    return "zh" if han > words else "en"
