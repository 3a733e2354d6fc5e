"""Which built-in action a tool is, by its name: bots call handing over and closing by many names.

Upper and lower case, `_`, `-` and blanks do not matter. A tool's own `purpose` counts before its name.
"""

from typing import cast

from .definition import CLOSE, HANDOFF, UPDATE_PROFILE, Purpose

_NAMES: dict[str, tuple[str, ...]] = {
    HANDOFF: (
        HANDOFF,
        "handoffto",
        "handofftohuman",
        "handofftoagent",
        "humanhandoff",
        "transfertohuman",
        "transfertoagent",
        "transfertohumanagent",
        "escalatetohuman",
        "转人工",
    ),
    CLOSE: (
        "closeconversation",
        "closechat",
        "closesession",
        "closedialog",
        "endconversation",
        "endchat",
        "endsession",
        "关闭会话",
        "结束会话",
    ),
    UPDATE_PROFILE: ("updateprofile",),
}
_SYSTEM_NAMES: dict[str, tuple[str, ...]] = {
    UPDATE_PROFILE: (
        "updateuserprofile",
        "updatecustomerprofile",
        "updatecontact",
        "updatecontactattributes",
        "upsertcontact",
        "upsertcontactattributes",
    ),
}
"""Names that count only among the system actions: elsewhere the model should see what such a tool has done."""
_ALWAYS = {name: purpose for purpose, names in _NAMES.items() for name in names}
_AMONG_SYSTEM = _ALWAYS | {name: purpose for purpose, names in _SYSTEM_NAMES.items() for name in names}


def purpose_named(name: str, is_system: bool = False) -> Purpose:
    """The built-in action that a tool of this name is; empty for none."""
    letters = "".join(character for character in name.casefold() if character.isalnum())
    return cast(Purpose, (_AMONG_SYSTEM if is_system else _ALWAYS).get(letters, ""))
