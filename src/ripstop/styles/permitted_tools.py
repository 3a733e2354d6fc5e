"""Which tools an agent may call: those that its definition lists, by name, or all of a server as `git__*`."""

from collections.abc import Sequence

ALL = "__*"


def permits(tools: Sequence[str], name: str) -> bool:
    if name in tools:
        return True
    return any(tool.endswith(ALL) and len(tool) > len(ALL) and name.startswith(tool[:-1]) for tool in tools)
