"""Whether a file is a bot's configuration, where its name does not say so.

The text is looked at with patterns, because a file that is not right has to be recognised too. Keys that only bots have
are enough; `sop`, `skills`, `tools` and `flows` are words that others use, so something of a bot has to be with them.
"""

import re
from pathlib import Path

from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.yaml_tree import read_text

_OWN = ("basic_settings", "basicSettings", "action_books", "actionBooks", "system_tools", "systemTools",
        "system_actions", "systemActions", "agent_actions", "agentActions")  # fmt: skip
_SHARED = {
    "sop": ("name", "tone", "greeting", "tools", "skills", "timers", "constraints", "flows"),
    "skills": ("condition",),
    "tools": ("endpoint", "greeting", "tone"),
    "flows": ("flow_id", "flowId", "trigger_patterns", "triggerPatterns", "match_type"),
}
_OF_OTHERS = ("states", "stages", "agents", "stage_id", "stage_type")


def looks_like_bot(path: Path) -> bool:
    """False for a file that cannot be read: then the reader that gets it says why."""
    try:
        text = read_text(path, str(path))
    except WrongDefinition:
        return False
    top, below = _keys(text)
    if top & set(_OF_OTHERS):
        return False
    if top & set(_OWN):
        return True
    return any(key in top and below & set(with_it) for key, with_it in _SHARED.items())


_YAML_KEY = re.compile(r"""^([ \t]*(?:-[ \t]+)*)(?:[{][ \t]*)?(["']?)([A-Za-z_][\w-]{0,60})\2[ \t]*:(?=\s|\Z)""", re.M)
_JSON_KEY = re.compile(r'"([A-Za-z_][\w-]{0,60})"\s*:|"(?:[^"\\\n]|\\.)*"|([{\[])|([}\]])')


def _keys(text: str) -> tuple[set[str], set[str]]:
    """The keys at the top, and all keys."""
    top: set[str] = set()
    found: set[str] = set()
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        depth = 0
        for one in _JSON_KEY.finditer(text):
            depth += bool(one[2]) - bool(one[3])
            if one[1]:
                found.add(one[1])
                if depth == 1:
                    top.add(one[1])
        return top, found
    for one in _YAML_KEY.finditer(text):
        found.add(one[3])
        if not one[1]:
            top.add(one[3])
    return top, found
