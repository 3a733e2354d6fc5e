"""The environment of a command, made from nothing: no variable of the user's, so no key, reaches it.

`LANG` and `TZ` are the exceptions. What is set here keeps programs from the network, from questions, from colours, and
git from code that a repository brings (its hooks; the sandbox holds the rest).
"""

import re
from collections.abc import Mapping

PASSED_ON = ("LANG", "TZ")
_PLAIN = re.compile(r"[A-Za-z0-9_.@/+-]{1,64}")
_GIT = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "credential.helper": "",
    "gc.auto": "0",
    "protocol.ext.allow": "never",
    "safe.directory": "*",
}


def command_environment(path: list[str], home: str, users: Mapping[str, str]) -> dict[str, str]:
    """Args:
    path: The folders in which programs are looked for.
    home: A folder that only this command has.
    users: The user's own variables.
    """
    passed = {name: users[name] for name in PASSED_ON if _PLAIN.fullmatch(users.get(name, ""))}
    git = {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_GIT)}
    git |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT.values())}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": ":".join(path),
        "HOME": home,
        "TMPDIR": home,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "CI": "1",
        "PAGER": "cat",
        "EDITOR": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PIP_NO_INDEX": "1",
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "CARGO_NET_OFFLINE": "true",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_COUNT": str(len(_GIT)),
        **git,
    }
