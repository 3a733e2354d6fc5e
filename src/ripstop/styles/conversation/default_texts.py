"""What a bot says where its configuration has no words for it, in the language of the bot.

The languages are those that ripstop itself speaks. A bot in any other gets English, and its author can set the texts.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .configuration import PROCEDURE, fields_of
from .definition import APOLOGY, CHECKING, HANDOVER

CHINESE = ("zh", "cn", "chinese", "mandarin", "中文", "汉语", "漢語", "普通话", "国语", "华语")
PROSE = ("greeting", *PROCEDURE, "description", "background", "constraints")
"""Fields whose words show in which language a bot speaks; a greeting is what its users read."""
LONGEST_READ = 2_000
"""Characters of a text that are looked at."""


class DefaultTexts(Struct, frozen=True):
    apology: str = APOLOGY
    checking: str = CHECKING
    handover: str = HANDOVER


IN_CHINESE = DefaultTexts(
    apology="抱歉，我们这边出了点问题，请您再试一次。",
    checking="我们正在核实，稍后回复您。",
    handover="我现在为您转接人工客服，请稍候。",
)


def default_texts(config: Mapping[str, Any]) -> DefaultTexts:
    """The texts for a configuration: by its `language`, or by the words of its other fields."""
    fields = fields_of(config)
    named = fields.get("language")
    if isinstance(named, str) and named.strip():
        words = named.casefold().replace("-", " ").replace("_", " ")
        is_chinese = any(one in words.split() or (not one.isascii() and one in words) for one in CHINESE)
        return IN_CHINESE if is_chinese else DefaultTexts()
    for key in PROSE:
        text = fields.get(key)
        if isinstance(text, str) and text.strip():
            return IN_CHINESE if _is_chinese(text[:LONGEST_READ]) else DefaultTexts()
    return DefaultTexts()


def _is_chinese(text: str) -> bool:
    """Whether a tenth of the characters are Chinese and none Japanese: names and codes in between are often Latin."""
    written = [one for one in text if one.isalpha()]
    if any("\u3040" <= one <= "\u30ff" for one in written):
        return False
    return sum("\u4e00" <= one <= "\u9fff" for one in written) * 10 >= len(written) > 0
