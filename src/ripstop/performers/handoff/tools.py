"""The tools that only the hand-off style calls."""

from ripstop.runtime.performers import Performer

from .publisher import TOOL as PUBLISH
from .publisher import Publisher
from .relocation import folder_of
from .sender import TOOL as SEND
from .sender import Sender


def own_tools() -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    return {PUBLISH: Publisher(folder_of), SEND: Sender(folder_of)}
