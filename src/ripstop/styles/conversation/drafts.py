"""The words of a decision that a model is still writing, as soon as it is sure that the user gets them.

Only words without an action beside them are sure: an action may fail, repeat a call, or be one that does not exist, and
then its words are never said. So nothing is shown before the status and `"action": null` are there, wherever in the
object they are. What is said with an action comes when it is on record.
"""

from ..partial_reply import UnfinishedReply

STATUS, ACTION = "next_status", "action"
SAID = ("processing", "typing", "transferred")
"""Statuses whose words are said, if there is no action."""


class DecisionDraft:
    """Takes a reply piece by piece and gives the words that are new and allowed."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._reader = UnfinishedReply("response", beside=(STATUS, ACTION))

    @property
    def status(self) -> str:
        """The next status, once it is written."""
        return self._reader.fields.get(STATUS, "")

    def add(self, piece: str) -> str:
        """The words that may be shown now; empty while there are none."""
        self._held.append(self._reader.add(piece))
        if self.status not in SAID or self._reader.fields.get(ACTION) != "null":
            return ""
        words, self._held = "".join(self._held), []
        return words
