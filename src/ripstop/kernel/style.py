"""A style: a way of working together, as pure functions of what has happened.

A style defines `name`, `begin`, `evolve` and `decide`; one that calls agents also `render`. Everything else has a
default here. `StyleKit` is what is plugged in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .effects import Answer, AskAgent, CallTool, Command, Field, Guards, Limits, PersonAnswered, StartRun, text_of
from .errors import UsageError
from .events import Answered, ChildSpoke, Event, Fact, Forked, GuardTripped, Heard, Record, Redefined, Resumed, Started
from .parts import Part
from .prompt import Prompt
from .resuming import override_guards
from .run import Contents, Run, end_line
from .text_limits import plain

if TYPE_CHECKING:
    from .step import Step


# A run without its style: what the kernel itself makes of its records.
#
# For callers that have records but not the style, or do not need it: a journal that checks its list of open commands
# against its records. Definitions and results are not read.


class BareStyle:
    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards:
        return Guards()

    def begin(self, definition: Any, started: Started) -> None:
        return None

    def rebase(self, state: None, definition: Any) -> None:
        return None

    def evolve(self, state: None, number: int, event: Event) -> None:
        return None

    def joined(self, state: None, number: int, event: Answered, result: Any) -> None:
        return None


class _Nothing(dict[str, Any]):
    def __missing__(self, key: str) -> None:
        return None


BARE = BareStyle()
NO_CONTENTS = Contents(_Nothing(), _Nothing())


S = TypeVar("S")


class Settled(Struct, frozen=True, gc=False):
    """An answer, joined with the command it settles."""

    number: int
    command: Command
    answer: Answer


News = Started | Forked | Redefined | Heard | ChildSpoke | Resumed | Settled | Fact
"""What `decide` is called with. `Fact`: one of the style's own."""


class Picture(Struct, frozen=True, kw_only=True):
    """What any face may show of a run at a glance, whatever its style."""

    where: str = ""
    whose_turn: str = ""
    progress: str = ""
    document: str = ""


class Reason(Struct, frozen=True):
    """One line of why something was decided."""

    text: str
    holds: bool | None = None
    """For a condition: whether it held."""
    taken: bool = False
    """Whether it is the one that was acted on."""
    source: str = ""
    """Where it is written, as `file:line:column`."""
    tree: tuple[str, ...] = ()
    """The parts of a condition, each with its value."""
    is_check: bool = False
    """Whether it is something that was wanted or claimed, beside what was found; the end of a run can rest on it."""


class Explanation(Struct, frozen=True):
    """Why a style decided something; no reasons: it is not the style's own decision."""

    reasons: tuple[Reason, ...] = ()


class Lead(Struct, frozen=True):
    """Where a decision led, for one line."""

    way: str
    """In a word or two: a state, an agent, what was done."""
    condition: str = ""
    """The condition that held, as its author wrote it; empty: none had to."""
    because: str = ""
    """What was said about it, for a turn without other words for people."""


class Action(Struct, frozen=True):
    """Something that a person may do with a run now, which no question asks for."""

    name: str
    label: str
    fields: dict[str, Field] = {}
    confirm: str = ""
    """A question to ask before it is done; empty where it does no harm."""
    by: str = ""
    """The only one who may do it; empty: anyone."""


class Child(Struct, frozen=True):
    """What a run gives a child that it starts."""

    input: str = ""
    arguments: dict[str, Any] = {}
    workspace: str = ""
    """A folder inside its own workspace; empty: the same one."""


class Document(Struct, frozen=True):
    """A document that others read, projected from a run's state. `body` is JSON; `None` deletes it."""

    collection: str
    key: str
    body: Any


class Notice(Struct, frozen=True):
    """Something in a record that others are told of: users of a service, webhooks."""

    kind: str
    """`message`, `status`, or another word of the style."""
    data: dict[str, Any] = {}
    about: int = 0
    """The record that holds the text of a message; 0: `data` has it."""


class CallPolicy(Struct, frozen=True):
    """How a definition wants calls of models made."""

    interval: float = 0.0
    """Seconds between two calls to one provider."""
    retry: Literal["all", "rate_limit"] = "all"
    """Which failures that may pass are tried again."""
    exempt: tuple[str, ...] = ()
    """Providers whose calls need not wait, such as `script`."""

    def interval_for(self, provider: str) -> float:
        return 0.0 if provider in self.exempt else self.interval


NO_POLICY = CallPolicy()


class AgentUse(Struct, frozen=True):
    """An agent that a definition names, for the check whether its model is available."""

    name: str
    model: str = ""
    """A model's SPEC, a role's name, or empty for the run's model."""
    tools: tuple[str, ...] = ()
    """The tools that it may call."""


class EndpointUse(Struct, frozen=True):
    """A URL that a tool of a definition calls, for the consent to it."""

    tool: str
    url: str
    """A template, as the definition has it."""
    headers: dict[str, str] = {}
    """Templates too; `${NAME}` is a secret from the environment."""


class Uses(Struct, frozen=True):
    """What the runs of a definition depend on: checked, agreed to and pinned before one starts."""

    agents: tuple[AgentUse, ...] = ()
    """The agents that it names; none: they are not known beforehand."""
    children: Mapping[str, str] = {}
    """The workflows that its runs can start, pinned when the root starts.

    Each with the style that reads the same definition, or with an empty text if it has to be looked up.
    """
    endpoints: tuple[EndpointUse, ...] = ()
    """The URLs that its runs call as tools; the user has to agree to their origins."""
    folders: tuple[str, ...] = ()
    """The folders that its runs read or keep documents in besides their workspace, as absolute paths."""
    workspace: str = ""
    """Where its agents put their files; empty: in a folder of the run's own.

    An absolute path: one with a symbolic link in it is refused, because a project can ship one.
    """
    shares_workspace: bool = False
    """Whether all agents work in the workspace itself, such as a project's folder, not in folders of their own."""
    calls: CallPolicy = NO_POLICY


class Ending(Struct, frozen=True):
    """How a run that has ended without a verdict can continue."""

    is_resumable: bool = False
    restart_at: str = ""
    """Where a new run has to begin after the outcome `restart`; empty: it need not."""
    restarts: tuple[str, ...] = ()
    """Where a person can have the work of the run begin again, in a new run, whatever its outcome."""
    has_foreign_edits: bool = False
    """Whether files that changed stopped the run, so that a person has to accept them or put them back."""
    resume_at: int = 0
    """Before this time (microseconds) runs that share it do not resume it, unless they use another model."""


NO_USES, FOR_GOOD = Uses(), Ending()


class NoArguments(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class StyleView(Generic[S]):
    """What people see of the runs of a style, in every face."""

    def document(self, record: Record) -> str:
        """The document that a record holds, for a review."""
        answer = getattr(record.event, "answer", None)
        if type(answer) is PersonAnswered and answer.document is not None:
            return answer.document
        return text_of(answer)

    def word_reader(self) -> Callable[[str], str]:
        """Reads an unfinished reply piece by piece: each call gives the words for people in the piece."""
        return lambda piece: piece

    def picture(self, run: Run[S]) -> Picture:
        return Picture()

    def turns(self, run: Run[S]) -> int:
        """The turns that the run has taken: those of agents, unless the style has others as well."""
        return run.spent.turns

    def gist(self, run: Run[S]) -> str:
        """One short line for a list of runs: where a run is, or why it has ended. Cheap, because every step asks."""
        return end_line(run)

    def parts(self, run: Run[S]) -> tuple[Part, ...]:
        return ()

    def explain(self, before: S, event: Event) -> Explanation:
        """Why a decision of this style was made."""
        return Explanation()

    def transition(self, before: S, event: Event) -> Lead | None:
        """Where a decision of this style led; `None` for one that cannot be explained.

        A style with long runs does better than this default, which explains every decision.
        """
        reasons = self.explain(before, event).reasons
        acted_on = next((reason.text for reason in reasons if reason.taken), "")
        return Lead(acted_on, because=acted_on) if reasons else None


class PersonHooks(Generic[S]):
    """What people can do with the runs of a style, besides answering its questions."""

    def actions(self, run: Run[S]) -> tuple[Action, ...]:
        """What a person may do with the run now."""
        return ()

    def objection(self, run: Run[S], number: int, by: str) -> str:
        """Why a person may not answer an open question now; empty: they may."""
        return ""

    def act(self, run: Run[S], name: str, fields: Mapping[str, Any], by: str) -> Fact:
        """The fact that an action becomes. Raises `UsageError`."""
        raise NotImplementedError


class AudienceHooks(Generic[S]):
    """What is told of the runs of a style to those who only see what they say, such as the users of a bot."""

    def doubted(self, step: "Step[S]", number: int) -> None:
        """It is not known whether a command took effect, and a person is asked: tell those who wait for it."""

    def public_events(self, record: Record) -> tuple[Notice, ...]:
        """What others are told of a record, with nothing in it that they must not know."""
        return ()

    def operator_events(self, record: Record) -> tuple[Notice, ...]:
        """What besides only those are shown who operate it, such as actions that its users must not see."""
        return ()


NO_AUDIENCE: AudienceHooks[Any] = AudienceHooks()
"""Others are told nothing."""


class Style(Generic[S]):
    """A way of working together: decides what comes of a fact. Pure; subclass it."""

    name: ClassVar[str]
    unforkable: ClassVar[str] = ""
    """Why its runs cannot be forked; empty if they can."""
    default_guards: ClassVar[Guards] = Guards()
    default_limits: ClassVar[Limits] = Limits()
    """For a run for which no limits are set."""
    arguments_type: ClassVar[type[Struct]] = NoArguments
    """The type of `Started.arguments`. A field without a default would keep other workflows from starting it."""
    view: StyleView[Any] = StyleView()
    people: PersonHooks[Any] = PersonHooks()
    audience: AudienceHooks[Any] = NO_AUDIENCE

    # Folding

    def begin(self, definition: Any, started: Started) -> S:
        raise NotImplementedError

    def evolve(self, state: S, number: int, event: Event) -> S:
        raise NotImplementedError

    def joined(self, state: S, number: int, event: Answered, result: Any) -> S:
        """Fold the end of a child, with its result."""
        return self.evolve(state, number, event)

    def rebase(self, state: S, definition: Any) -> S:
        """Continue with another definition."""
        return replace(state, definition=definition)  # type: ignore[type-var]

    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards:
        """The guards of a run: the style's own, then the operator's settings, then the definition's."""
        return override_guards(self.default_guards, wishes, getattr(definition, "guards", {}))

    def start_arguments(self, started: Started) -> Any:
        """The typed arguments of a run. Raises `UsageError`."""
        try:
            return msgspec.convert(started.arguments, self.arguments_type)
        except msgspec.ValidationError as error:
            raise UsageError(f"The arguments for a run of style {self.name!r} are wrong: {error}.") from error

    # Deciding

    def decide(self, step: "Step[S]", news: News) -> None:
        raise NotImplementedError

    def cancelled(self, step: "Step[S]", because: str) -> None:
        """A person cancels the run: end it as `stopped`, after whatever the style has to do before."""
        step.end("stopped", because)

    def stopped(self, step: "Step[S]", verdict: GuardTripped) -> None:
        """A guard stops the run: end it (`end_by_guard`), after whatever the style has to do before."""
        step.end_by_guard(verdict)

    # What commands say

    def render(self, state: S, command: AskAgent) -> Prompt:
        raise NotImplementedError

    def arguments(self, state: S, command: CallTool) -> Struct | dict[str, Any]:
        """What a tool is called with: for a tool of the style, a Struct that both know."""
        return command.arguments or {}

    def waiting_calls(self, state: S) -> tuple[CallTool, ...]:
        """Calls that an agent's reply has and that wait until those before them are answered; in their order."""
        return ()

    def start_child(self, state: S, command: StartRun) -> Child:
        return Child()

    # What people do

    def listens(self, state: S) -> bool:
        """Whether a message to the run can change anything."""
        return False

    @property
    def may_listen(self) -> bool:
        """Whether runs of this style can listen at all, now or later."""
        return type(self).listens is not Style.listens

    def pauses(self, run: Run[S]) -> bool:
        """Whether a call of a model that is refused for good pauses a run. If not, the call has failed: in a session,
        a user waits for an answer, gets an apology and can write again."""
        return True

    def ending(self, state: S) -> Ending:
        """How a run in this state can continue, if it has ended without a verdict."""
        return FOR_GOOD

    # What it depends on

    def uses(self, definition: Any) -> Uses:
        """What runs of a definition depend on. Asked once for each definition, and when one is checked."""
        return NO_USES

    def arguments_from(self, definition: Any, pairs: Mapping[str, str]) -> dict[str, Any]:
        """Start arguments from the KEY=VALUE pairs that a person gives. Raises `UsageError`."""
        known = {field.name for field in msgspec.structs.fields(self.arguments_type)}
        for name in pairs:
            if name not in known:
                there = f"it has: {', '.join(sorted(known))}" if known else "it has none"
                raise UsageError(f"This workflow has no argument {name!r}; {there}.")
        try:
            return msgspec.to_builtins(msgspec.convert(dict(pairs), self.arguments_type, strict=False))  # type: ignore[no-any-return]
        except msgspec.ValidationError as error:
            raise UsageError(f"The arguments are wrong: {error}.") from error

    # Looking

    def documents(self, run: Run[S]) -> tuple[Document, ...]:
        """Its documents as they are now. Only called for kits with `collections`."""
        return ()


class Sample(Struct, frozen=True):
    """A definition with answers that lead a run of it to its end, for tests that go over all styles."""

    name: str
    definition: Any
    answers: tuple[Answer, ...]
    """In the order in which commands are asked; `StubAnswers` of a test may repeat them."""
    input: str = ""
    arguments: dict[str, Any] = {}


class StyleKit(Struct, frozen=True, kw_only=True):
    """The pure half of a plug-in: a style, and what belongs to it."""

    style: Style[Any]
    definition: type
    events: tuple[type[Event], ...] = ()
    """Its own facts and decisions. Their tags begin with the style's name and a dot."""
    collections: tuple[str, ...] = ()
    """Collections that its documents are in; none: `Style.documents` is never called."""
    draw_definition: Callable[[Any], Any] | None = None
    draw_run: Callable[[Any, Sequence[Any]], Any] | None = None
    samples: Callable[[], Sequence[Sample]] | None = None
    section: Literal["", "conversations", "documents"] = ""
    """The list of their own that faces show its runs in; empty: only among all runs."""

    @property
    def name(self) -> str:
        return self.style.name


def arguments_for(style: Style[Any], state: Any, command: CallTool) -> dict[str, Any]:
    """What a tool is called with, as its performer gets it and as people see it.

    Only here a Struct of a style becomes builtins, as JSON has them: performers, questions, log and pages agree.
    """
    given = style.arguments(state, command)
    if isinstance(given, Struct):
        arguments: dict[str, Any] = plain(given)
        return arguments
    return given
