"""How many tokens a model can take, prompt and reply together, and how servers say that a prompt has too many.

The window of a model is a setting (`[windows]`), by the model's SPEC or by its provider. The local model's is known, a
script has none. Without a setting, other models count as having `DEFAULT_WINDOW`: a larger one is then not used whole,
a smaller one is found out when its server refuses a prompt.
"""

import re
from collections.abc import Mapping

LOCAL_WINDOW = 8192
DEFAULT_WINDOW = 128_000
_KNOWN = {"local": LOCAL_WINDOW, "script": 0}
REFUSING = (400, 413, 422, 500)
"""Statuses with which servers refuse a prompt that is too long; 413 says so by itself."""
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|model_context_window_exceeded|string_above_max_length"
    r"|maximum context length|maximum prompt length|context (?:length|window|size) (?:was |is |has been )?exceeded"
    r"|(?<!\bkey )(?:prompt|input|request|messages?) (?:is|are|was|were) too (?:long|large)"
    r"|\b(?:prompt|input|messages|request)[ _]too[ _](?:long|large)"
    r"|(?:prompt|input|sequence) length[^.\n]{0,40}?exceeds? (?:the |its )?max(?:imum)?\b[^.\n]{0,20}length"
    r"|(?<!密钥)(?:输入|上下文|提示词?|prompt)(?:(?!频率|速率|次数|并发)[^。，,\n]){0,20}?(?:超过|超出|超限|过长|太长|超长)"
    r"|(?:exceeds?|exceeded|larger than|longer than|beyond|too large for)[^.\n]{0,60}?context (?:length|window|size)"
    r"|input token count[^.\n]{0,60}exceeds|too many (?:input )?tokens"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|inputs?`? tokens \+ `?max_new_tokens|range of input length should be"
    r"|context_?window_?exceeded|tokens_limit_reached|exceeds? context limit|exceeded model token limit"
    r"|longer than the maximum model length|inputs?`? must have (?:less|fewer) than \d+ tokens"
    r"|input tokens[^\n]{0,80}?context (?:length|window|size) is|when (?:the )?context (?:the )?overflows",
    re.IGNORECASE,
)
MOST_SEARCHED = 8_000
"""Characters of a server's words."""


def window_of(spec: str, windows: Mapping[str, int]) -> int:
    """Tokens; 0: not known."""
    kind = spec.partition(":")[0]
    window = windows.get(spec) or windows.get(kind) or _KNOWN.get(kind, DEFAULT_WINDOW)
    return min(window, LOCAL_WINDOW) if kind == "local" else window


def says_too_long(status: int, said: str) -> bool:
    """Whether a server's error means that the prompt is too long."""
    return status == 413 or (status in REFUSING and bool(_TOO_LONG.search(said[:MOST_SEARCHED])))
