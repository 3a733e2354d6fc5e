"""What a bot says where its configuration has no words for it, in the language of the bot.

The languages are those that ripstop itself speaks. A bot in any other gets English, and its author can set the texts.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .configuration import PROCEDURE, as_prose, fields_of
from .definition import APOLOGY, CHECKING, HANDOVER

CHINESE = ("zh", "cn", "chinese", "mandarin", "cantonese")
IN_CHINESE_WORDS = ("中文", "汉语", "漢語", "普通话", "国语", "华语", "简体", "繁体", "繁體", "粤语", "粵語")
PROSE = ("greeting", *PROCEDURE, "description", "background", "constraints")
"""Fields whose words show in which language a bot speaks; a greeting is what its users read."""
OTHERS = (("timers", "skills", "action_books", "flows"), ("tone", "name"))
"""Fields that are looked at where none of those has a text."""
DEEPEST = 5
"""Lists and mappings in one another that are looked at."""
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
    if named := as_prose(fields.get("language")).casefold():
        words = re.findall(r"[a-z]+", named)
        is_chinese = any(one in words for one in CHINESE) or any(one in named for one in IN_CHINESE_WORDS)
        return IN_CHINESE if is_chinese else DefaultTexts()
    said = [as_prose(fields.get(key)) for key in PROSE]
    said += ["\n".join(_texts([fields.get(key) for key in keys])) for keys in OTHERS]
    text = next(filter(None, said), "")
    return IN_CHINESE if _is_chinese(text[:LONGEST_READ]) else DefaultTexts()


def _texts(value: Any, depth: int = 0) -> list[str]:
    """The texts in a value, without the names of fields, which are English in every bot."""
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner[:100] for text in _texts(one, depth + 1)] if depth < DEEPEST else []


def _is_chinese(text: str) -> bool:
    """Whether a tenth of the characters are Chinese and none Japanese: names and codes in between are often Latin."""
    written = [one for one in text if one.isalpha()]
    if any("\u3040" <= one <= "\u30ff" for one in written):
        return False
    return sum("\u4e00" <= one <= "\u9fff" for one in written) * 10 >= len(written) > 0
