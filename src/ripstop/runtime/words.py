"""What a message says: its own words, or those of the record that it names."""

from ripstop.kernel.effects import Say, text_of
from ripstop.kernel.events import Answered, ChildSpoke, Record

from .ports import Journal


async def words_of(journal: Journal, run_id: str, message: Say) -> str:
    if not message.about:
        return message.text
    return text_in((await journal.read(run_id, after=message.about - 1, most=1))[0])


def text_in(record: Record) -> str:
    """The words that a record holds."""
    event = record.event
    if isinstance(event, Answered):
        return text_of(event.answer)
    if isinstance(event, ChildSpoke) and event.ask:
        return event.text or event.ask.question
    return str(getattr(event, "text", ""))
