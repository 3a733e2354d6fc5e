"""The words of a decision that a model is still writing, as soon as it is sure that the user gets them.

A decision says what is done with its response: `ready` has none, and an answer beside an action is said only if the
action succeeds. So nothing is shown before the status is known, and of an answer nothing before it is known that there
is no action.
"""

import re

from ..partial_reply import UnfinishedReply

_STATUS = re.compile(r'(?<!\\)"next_status"\s*:\s*"(\w{1,20})"')
_ACTION = re.compile(r'(?<!\\)"action"\s*:\s*(null|\{)')
_RESPONSE = re.compile(r'(?<!\\)"response"\s*:\s*(?=")')
LONGEST_KEY = 100
"""Characters that a key, a colon and a status can take, so that no more has to be searched again."""


class DecisionDraft:
    """Takes a reply piece by piece and gives the words that are new and allowed."""

    def __init__(self) -> None:
        self.status = ""
        """The next status, once it is written."""
        self._has_action: bool | None = None
        self._in_response = False
        self._tail = ""
        self._held: list[str] = []
        self._reader = UnfinishedReply("response")

    def add(self, piece: str) -> str:
        before, text = len(self._tail), self._tail + piece
        self._look(text)
        found = None if self._in_response else _RESPONSE.search(text)
        if found:
            begins = max(0, found.end() - before)
            self._reader.add(piece[:begins])  # what comes before is not for the user
            piece, self._in_response = piece[begins:], True
        words = self._reader.add(piece)
        self._tail = text[-LONGEST_KEY:]
        if self._in_response:
            self._held.append(words)
        return self._allowed()

    def _look(self, text: str) -> None:
        if not self.status and (status := _STATUS.search(text)):
            self.status = status[1]
        if self._has_action is None and (action := _ACTION.search(text)):
            self._has_action = action[1] != "null"

    def _allowed(self) -> str:
        is_said = self.status in ("processing", "transferred") or (
            self.status == "typing" and self._has_action is False
        )
        if not is_said:
            return ""
        words, self._held = "".join(self._held), []
        return words
