"""A journal for tests and demonstrations. It forgets everything when the process ends."""

from .journal import MemoryJournal

__all__ = ["MemoryJournal"]
