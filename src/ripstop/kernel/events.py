"""Everything a journal may contain.

- *Facts* come from outside. *Decisions* are what the kernel or a style makes of a fact. A fact and its decisions are
  one step, appended together or not at all:

      journal = step*        step = fact decision*

  There is no exception: a fork at a fact shares the journal up to it, and begins `forked decision*`.
- Styles add facts and decisions of their own; their tags begin with the style's name.
- Tags, fields and defaults are part of the file format, for ever (see `effects`).
"""

from typing import Any, ClassVar, final

from msgspec import Struct
from msgspec.structs import force_setattr

from .effects import Answer, AskPerson, Command, Content, Effect, Limits, Usage, make_float

FORMAT = 2
"""Written in every `Started`. A journal with a higher number was written by a newer version."""


class Event(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of everything a journal may contain. A decision, unless it is a `Fact`."""

    is_fact: ClassVar[bool] = False
    is_trouble: ClassVar[bool] = False
    """Whether a person who looks for what went wrong wants to see every one of its kind."""


class Fact(Event, frozen=True):
    """Base of what comes from outside."""

    is_fact: ClassVar[bool] = True


class Pin(Effect, frozen=True):
    """A definition that a run may start children of, as it was when the root of the family started."""

    style: str
    definition: str


class RunSettings(Effect, frozen=True):
    """What the shell must know to continue a run in another process. Values for a style are `Started.arguments`.

    A model and the address where it is asked are recorded together: another process may use another address.
    """

    model: str = ""
    model_for_all: str = ""
    """A model that every agent uses, whatever the definition says."""
    base_url: str = ""
    workspace: str = ""
    """The folder that agents work in."""
    shared_workspace: bool = False
    """All agents work in the workspace itself, not in folders of their own."""
    read_only: tuple[str, ...] = ()
    """Absolute paths in a shared workspace that agents must not write, such as the definition."""
    folder: str = ""
    """The folder of documents that the run belongs to."""
    small_model: bool = False
    """All its models are small ones, which need short instructions."""
    moved: tuple[tuple[str, str], ...] = ()
    """(where it was, where it is) for folders that its definitions name and that were moved."""

    def where(self, folder: str) -> str:
        """Where a folder is now that a definition names."""
        return dict(self.moved).get(folder, folder)


# Facts


class Started(Fact, tag="started", frozen=True):
    """A run began: its style, its definition and what it was given."""

    style: str
    definition: str
    """Hash of the definition's content; the content is kept once per journal."""
    format: int
    """Required, because a default would not be written."""
    input: str = ""
    arguments: dict[str, Any] = {}
    """Of the type `Style.arguments_type`; checked before they are recorded."""
    limits: Limits = Limits()
    settings: RunSettings = RunSettings()
    guards: dict[str, Any] = {}
    """Guards that are set for this run, over those of its style and under those of its definition."""
    pinned: str = ""
    """Hash of `{definition: {workflow: Pin}}` for all that it and its descendants can start."""
    parent: tuple[str, int] | None = None
    """(run, command) that started it, if another run did."""
    surface: tuple[str, int] | None = None
    """(ancestor, its `StartRun`) where its messages and questions appear; inherited by its children."""
    depth: int = 0
    key: str = ""
    """What its starter calls it: starting again with the same key, definition and input is the same run."""
    mark: str = ""
    """What keys of its calls end with; empty in a journal that was never put back from a copy."""
    in_doubt: bool = False
    """A run of a restored journal started it, and may have done so before: so may its calls have been made."""


class Forked(Fact, tag="forked", frozen=True):
    """The run continues, under a new id, from a record of another run; all before it is shared."""

    run: str
    at: int
    definition: str = ""
    """Hash of the definition to continue with; empty keeps the one in force."""
    pinned: str | None = None
    limits: Limits | None = None
    settings: RunSettings | None = None
    mark: str = ""
    """What keys of calls that are asked for after it end with."""
    in_doubt: bool = False
    """The other run may have gone further than is on record, so every call of this one may have been made by it."""


class Redefined(Fact, tag="redefined", frozen=True):
    """The run continues with a new definition, in place."""

    definition: str
    pinned: str = ""


class Heard(Fact, tag="heard", frozen=True):
    """An unsolicited message to the run."""

    text: str
    by: str = ""
    channel: str = ""
    id: str = ""
    """The sender's id of the message: with the same id it is heard once."""
    attachments: tuple[Content, ...] = ()


class ChildSpoke(Fact, tag="child_spoke", frozen=True):
    """A message or a question of a descendant surfaced here."""

    command: int
    """The `StartRun` here that it came through."""
    run: str
    number: int
    """The run that spoke, and its command."""
    text: str = ""
    ask: AskPerson | None = None
    document: str = ""
    """Hash of the document to review."""


class CancelRequested(Fact, tag="cancel_requested", frozen=True):
    """Somebody wants the run to end at once."""

    by: str = ""
    because: str = ""


class ResumeRequested(Fact, tag="resume_requested", frozen=True):
    """Somebody wants the run to continue, perhaps with limits raised."""

    raises: dict[str, float] = {}
    """By how much which limit is raised."""
    by: str = ""
    """A person, or the command (`run/number`) that continues a child."""
    accept_edits: bool = False
    """Files that changed in a way that stopped the run are right as they are now."""


class SettingsChanged(Fact, tag="settings_changed", frozen=True):
    """Open and later commands are performed with the new settings."""

    settings: RunSettings
    by: str = ""


class Answered(Fact, tag="answered", frozen=True):
    """The answer to a command has come."""

    to: int
    answer: Answer
    attempt: int = 1
    """More than 1: it was tried before, and that attempt failed or its process died."""
    began: int = 0
    """When the worker that answers began, in microseconds, if that was after the command was asked: the command was
    left by another process. The time before it is not time at work."""
    took: float = 0.0
    """Seconds that the last attempt took."""
    first_token: float = 0.0
    """Seconds until the first token of a streamed reply."""
    retries: tuple[tuple[str, float], ...] = ()
    """(reason, seconds) of the attempts that this worker made before."""
    retried: Usage = Usage()
    """What those attempts cost."""


class Doubted(Fact, tag="doubted", frozen=True):
    """An effect that must not be repeated blindly may have happened: its worker died, or the call broke off."""

    is_trouble: ClassVar[bool] = True
    to: int
    evidence: str


class CallRefused(Fact, tag="call_refused", frozen=True):
    """The other side did not perform a call. It had no effect, or one that repeating it does not change."""

    is_trouble: ClassVar[bool] = True
    to: int
    reason: str
    by: str = ""
    """The provider that refused it."""
    attempt: int = 1
    again: int = 0
    """When it is tried again, in microseconds; 0: not before somebody says so."""
    pauses: bool = False
    """The patience with this provider is used up: the run is paused until the call succeeds."""
    usage: Usage = Usage()
    """What it cost all the same."""


class CallHeldBack(Fact, tag="call_held_back", frozen=True):
    """A call waits for what its run has not caused: a limit of calls to its provider, or a person's word."""

    to: int
    by: str = ""
    """The provider to which no call may go out yet; empty: the call has asked for something else, which is told only of
    runs whose seconds are limited."""
    over: bool = False
    """It is made now."""


class RetryRequested(Fact, tag="retry_requested", frozen=True):
    """Somebody wants the calls that were refused made again now."""

    by: str = ""


class Restored(Fact, tag="restored", frozen=True):
    """The journal was put back from a copy: what the run did after the copy was made is not on record."""

    is_trouble: ClassVar[bool] = True
    copy: str
    """Which copy; the same one is told once."""
    evidence: str
    begun: tuple[int, ...] = ()
    """Commands that a worker had begun then and not answered."""
    mark: str = ""
    """What keys of calls that are asked for after it end with: random, so no call that is not on record had one."""


# Decisions


class Asked(Event, tag="asked", frozen=True):
    """The run asks the world for something. This record's number is the command's id."""

    command: Command
    waits: bool = False
    """Not before what it needs of the budget has come back from where it is set aside; `Allowed` says so."""


class Allowed(Event, tag="allowed", frozen=True):
    """What a command waited for has come back: it is performed as it is here, with its part of the budget."""

    number: int
    command: Command


class Withdrawn(Event, tag="withdrawn", frozen=True):
    """The answer is no longer needed."""

    number: int
    because: str
    unmade: bool = False
    """This run never made it, because it is a fork that asks again: it does not count, and no answer comes late."""


class TurnRestarted(Event, tag="turn_restarted", frozen=True):
    """A turn that was not finished begins again, so it counts once."""

    is_trouble: ClassVar[bool] = True
    number: int
    """Its first command."""


class DoubtResolved(Event, tag="doubt_resolved", frozen=True):
    """A person said what became of a command in doubt. Styles fold it as `Answered`."""

    to: int
    answer: Answer


class Repeated(Event, tag="repeated", frozen=True):
    """A command in doubt, or one that was refused, is to be performed again, because a person said so."""

    number: int
    goes_on: bool = False
    """Nothing after it has happened either: a run of a restored journal has come to where it was."""


class Reopened(Event, tag="reopened", frozen=True):
    """A run that a refused call had ended continues with this call, as if it had not been answered."""

    number: int


class Resumed(Event, tag="resumed", frozen=True):
    """The run continues after an end or a guard's verdict, with limits raised."""

    raises: dict[str, float] = {}
    waits: bool = False
    """It continues when the children that were stopped with it have reported; another `Resumed` says so."""
    accept_edits: bool = False

    def __post_init__(self) -> None:
        if any(type(by) is int for by in self.raises.values()):  # read back as floats, so they are made floats at once
            force_setattr(self, "raises", {name: float(by) for name, by in self.raises.items()})


@final
class GuardTripped(Event, tag="guard_tripped", frozen=True):
    """A guard stopped something. The evidence is what `why` shows."""

    is_trouble: ClassVar[bool] = True
    guard: str
    limit: float
    value: float
    text: str
    evidence: tuple[int, ...] = ()
    """Numbers of the records that the verdict rests on."""
    progress: int = 0
    """Number of the last record with progress, for a guard that found none since; a fork there goes back to it."""

    def __post_init__(self) -> None:
        make_float(self, "limit", "value")


class Warned(Event, tag="warned", frozen=True):
    """Something is odd but not fatal."""

    is_trouble: ClassVar[bool] = True
    text: str


class Ended(Event, tag="ended", frozen=True):
    """`outcome` is one of `OUTCOMES`; `because` is never empty."""

    outcome: str
    because: str
    result: str = ""
    """Hash of the result, which is JSON kept with this step; empty for none."""


class TurnResult(Event, frozen=True, kw_only=True):
    """Base of the decisions with which a style ends an agent's turn: what the turn changed.

    Words are not in it, however many were said: only decisions, files, fields.
    """

    agent: str = ""
    digest: str = ""
    """A digest of all that the turn decided and wrote; the same for turns that did the same."""
    courteous: bool = False
    """Nothing was said but courtesies."""
    end_marker: bool = False
    """The agent used the end marker."""


OUTCOMES = ("completed", "limit", "stopped", "failed", "restart")

KERNEL_EVENTS: tuple[type[Event], ...] = (
    Started,
    Forked,
    Redefined,
    Heard,
    ChildSpoke,
    CancelRequested,
    ResumeRequested,
    SettingsChanged,
    Answered,
    Doubted,
    CallRefused,
    CallHeldBack,
    RetryRequested,
    Restored,
    Asked,
    Allowed,
    Withdrawn,
    TurnRestarted,
    DoubtResolved,
    Repeated,
    Reopened,
    Resumed,
    GuardTripped,
    Warned,
    Ended,
)


class Record(Struct, frozen=True, gc=False):
    """An event in its place. `at` is in microseconds since 1970-01-01 UTC."""

    number: int
    at: int
    event: Event
