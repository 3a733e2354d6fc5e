"""What a conversation asks of its own tool, and what that answers. The style and the tool both use these types.

- A field of a call has no default: what the style forgets, mypy finds.
- An answer is recorded, so its fields are those of the journals. One can be added, with a default.
- A call is shown in the log with its fields in this order.
"""

from msgspec import Struct

SEARCH = "search_knowledge"
"""The tool that searches the bot's knowledge base."""


class SearchCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Find the passages of a knowledge base that fit a message best."""

    folder: str
    """An absolute path."""
    query: str
    most: int
    """Passages, at most."""


class KnowledgePassage(Struct, frozen=True):
    source: str
    """`file.md#Heading`, or the file alone."""
    text: str


class KnowledgeFound(Struct, frozen=True):
    passages: tuple[KnowledgePassage, ...]
    """The best one first; none if nothing fits."""
