"""What can go wrong, said so that the reader knows what to do next.

The classes are split by whose fault it is, because that decides who has to act:

- the caller's:      `UsageError` and its children (a run that does not exist, one that has ended)
- the definition's:  `DefinitionError`
- the agent's or a rule's, found while a style decides: `Unworkable` (it ends the run as `failed`)
- the store's:       `JournalError` and its children
"""


class RipstopError(Exception):
    """Base of every error that is raised on purpose. Its text is meant for people."""


class UsageError(RipstopError):
    """The caller asked for something that cannot be."""


class RunNotFound(UsageError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"There is no run {run_id!r}. `ripstop runs` lists the runs of this journal.")


class RunAlreadyStarted(UsageError):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"A run {run_id!r} exists already. Choose another id, or resume that one.")


class RunHasEnded(UsageError):
    def __init__(self, run_id: str, outcome: str) -> None:
        super().__init__(
            f"Run {run_id!r} has ended ({outcome}) and takes nothing more. "
            f"`ripstop fork {run_id} --at N` goes on from one of its records."
        )


class DefinitionError(RipstopError):
    """A workflow's definition is wrong; the text says where and what would be right."""


class Unworkable(RipstopError):
    """A style cannot go on with what it was given. The run ends as `failed`, with this text."""


class JournalError(RipstopError):
    """The store cannot do its work."""


class Conflict(JournalError):
    """Somebody else appended to the run first. Read what is new and decide again."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} was changed by somebody else in the meantime.")


class LeaseLost(JournalError):
    """Another worker holds the command now; what this one found out must not be recorded."""

    def __init__(self, run_id: str, number: int) -> None:
        super().__init__(f"The lease on {run_id}/{number} belongs to another worker now.")


class UnknownRecord(JournalError):
    """A record that this version cannot read. Never skipped: a fold with holes would be wrong."""
