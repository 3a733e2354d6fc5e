"""The keys of the desk, as one table: the page `/keys` shows it, and `keys.js` obeys it.

No single key decides anything: keys open, move and focus. They are off in fields and with Ctrl, Alt or Meta, except
Ctrl or ⌘ with Enter, which sends the form that has the focus. `/look` turns all single keys off.
"""

from typing import NamedTuple


class KeyHint(NamedTuple):
    keys: str
    """As they are typed; several ways with a blank between them, one after the other with `then`."""
    word: str
    """The key of its words."""


KEYS: tuple[tuple[str, tuple[KeyHint, ...]], ...] = (
    (
        "keys.anywhere",
        (
            KeyHint("?", "keys.help"),
            KeyHint("/", "keys.find"),
            KeyHint("g then d", "keys.to_desk"),
            KeyHint("g then r", "keys.to_runs"),
            KeyHint("g then c", "keys.to_chats"),
            KeyHint("g then o", "keys.to_documents"),
            KeyHint("g then w", "keys.to_workflows"),
            KeyHint("n", "keys.new_run"),
            KeyHint("u Esc", "keys.back"),
            KeyHint("Ctrl+Enter", "keys.send"),
        ),
    ),
    ("keys.in_lists", (KeyHint("j", "keys.next"), KeyHint("k", "keys.previous"), KeyHint("Enter o", "keys.open"))),
    (
        "keys.in_reviews",
        (
            KeyHint("c", "keys.changes"),
            KeyHint("v", "keys.preview"),
            KeyHint("e", "keys.edit"),
            KeyHint("Shift+P", "keys.pass"),
            KeyHint("Shift+F", "keys.feedback"),
        ),
    ),
    (
        "keys.in_runs",
        (
            KeyHint("[", "keys.turn_before"),
            KeyHint("]", "keys.turn_after"),
            KeyHint("w", "keys.why"),
            KeyHint("x", "keys.records"),
            KeyHint("f", "keys.fork"),
            KeyHint("l", "keys.follow"),
        ),
    ),
)
