"""Everything a run may ask of the world, and everything the world may answer.

- Commands and answers come in pairs: a new effect is two small classes here and one performer outside. `Failed` may
  answer any command.
- A text is recorded once. A command *names* the records its words come from (`context`, `source`, `about`), and the
  words are put together, purely, when it is performed or shown (`Style.render`, `Style.arguments`).
- Content that several runs share is a blob, named by its hash.
- Tags, fields and *defaults* are part of the file format, for ever: a default is not written, so changing one changes
  what old journals say. A new field needs a default. An unknown tag or field stops the reader.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr


class Effect(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of commands, answers and their parts: immutable (so no cycles for the collector), defaults not written."""


def make_float(struct: Struct, *names: str) -> None:
    """60 is read back as 60.0, so it is made a float at once; otherwise the two would differ."""
    for name in names:
        value = getattr(struct, name)
        if type(value) is int:
            force_setattr(struct, name, float(value))


class Usage(Effect, frozen=True):
    """What one call, or many, cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0
    unreported_input: int = 0
    """Tokens that the server did not report, although the bytes that were sent must have had them."""
    unreported_output: int = 0
    unreported_money: float = 0.0
    """What the unreported tokens cost, at the model's price."""

    def __post_init__(self) -> None:
        if type(self.money) is int or type(self.unreported_money) is int:  # in every step, so only looked at
            make_float(self, "money", "unreported_money")

    @property
    def tokens(self) -> int:
        """As they were reported."""
        return self.input_tokens + self.output_tokens

    @property
    def counted_tokens(self) -> int:
        """What a limit counts."""
        return self.input_tokens + self.output_tokens + self.unreported_input + self.unreported_output

    @property
    def counted_money(self) -> float:
        """What a limit counts."""
        return self.money + self.unreported_money

    @property
    def is_short(self) -> bool:
        """Whether at least as much is unreported as was reported."""
        unreported = self.unreported_input + self.unreported_output
        return unreported > 0 and unreported >= self.tokens

    def plus(self, other: "Usage") -> "Usage":
        """Both together. A negative number, which a crafted journal may hold, gives nothing back."""
        sent, received, money, unreported = other.input_tokens, other.output_tokens, other.money, other.unreported_money
        is_whole = not (unreported or other.unreported_input or other.unreported_output)
        if is_whole and sent >= 0 and received >= 0 and money >= 0:
            return Usage(  # nearly always, and in every step
                self.input_tokens + sent,
                self.output_tokens + received,
                self.money + money,
                self.unreported_input,
                self.unreported_output,
                self.unreported_money,
            )
        return Usage(
            self.input_tokens + max(0, other.input_tokens),
            self.output_tokens + max(0, other.output_tokens),
            self.money + max(0.0, other.money),
            self.unreported_input + max(0, other.unreported_input),
            self.unreported_output + max(0, other.unreported_output),
            # the default itself, not another 0.0, or it would be written
            self.unreported_money + unreported if unreported > 0 else self.unreported_money,
        )

    def minus(self, other: "Usage") -> "Usage":
        """What was spent since `other` had been spent."""
        return Usage(
            max(0, self.input_tokens - other.input_tokens),
            max(0, self.output_tokens - other.output_tokens),
            max(0.0, self.money - other.money),
            max(0, self.unreported_input - other.unreported_input),
            max(0, self.unreported_output - other.unreported_output),
            max(0.0, self.unreported_money - other.unreported_money),
        )


class Limits(Effect, frozen=True):
    """What a run may spend. `None`: not limited. Checked before the call that would exceed it.

    What each of them means to people is in `limits.LIMITS`; depth and prices have no row there.
    """

    tokens: int | None = None
    money: float | None = None
    calls: int | None = None
    seconds: float | None = None
    turns: int | None = None
    runs: int | None = None
    depth: int = 8
    input_price: float = 0.0
    output_price: float = 0.0
    """Money per million tokens; with them a money limit holds before the call, not after it."""

    def __post_init__(self) -> None:
        make_float(self, "money", "seconds", "input_price", "output_price")


class Guards(Effect, frozen=True):
    """How a run is watched for loops and idle talk. Each style has its own defaults."""

    patience: Annotated[int, Meta(ge=0, le=1000)] = 5
    """How often the same may be done with nothing changed: by one agent, or by several in a circle; 0: for ever."""
    courtesy: Literal["terminate", "ignore"] = "terminate"
    """What turns of nothing but courtesy do: `terminate` the run, or `ignore`."""
    phrases: tuple[str, ...] = ()
    """Courtesies besides the built-in ones."""
    end_marker: str = ""
    """Words with which an agent ends the run; empty for none."""
    turn_calls: Annotated[int, Meta(ge=0, le=10_000)] = 40
    """Calls of the model in one turn; 0: as many as it takes."""
    then: Literal["end", "ask"] = "end"
    """What a verdict does: `end` the run, or `ask` a person whether it may continue."""


class ToolCall(Effect, frozen=True):
    """One tool call that an agent wants made."""

    id: str
    tool: str
    arguments: dict[str, Any] = {}
    malformed: str = ""
    """Why its arguments could not be read, for the agent; empty if they could. Such a call is never made."""


class Content(Effect, frozen=True):
    """Bytes that the journal keeps once, such as an attachment."""

    hash: str
    name: str = ""
    media_type: str = ""


# An agent's turn


class AskAgent(Effect, tag="ask_agent", frozen=True):
    """Call an agent: a new turn, or (`continues`) the next call of a turn under way."""

    agent: str
    kind: str = ""
    """The type of agent as the definition names it; reaches every backend."""
    model: str = ""
    context: tuple[int, ...] = ()
    """Numbers of the records that the prompt is made of."""
    continues: int | None = None
    """The command that began this turn; none for a turn's first call."""
    max_tokens: int | None = None
    """What a token or money budget leaves for the reply."""
    longest: int = 0
    """The most characters of one text from outside in the prompt: a tool's result, or the history of a conversation.
    0: as it was in 0.2, where results were whole, and as Python writes them."""
    longest_given: int = 0
    """The most characters of one text that the turn was given in its first prompt and that is not the definition's own,
    once that prompt was too long for the model. 0: as the style gives them."""


class AgentReplied(Effect, tag="agent_replied", frozen=True):
    """What a model said: its words, the tools it calls, and what that cost."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    sent: str = ""
    """SHA-256 of what was really sent, so that a log can prove that what it shows is what went out."""
    model: str = ""
    recorded: bool = False
    """The text comes from a recording, so asking again cannot change it."""
    cut: bool = False
    """The model reached its limit of length: the text ends in the middle."""
    window: int = 0
    """Tokens that prompt and reply may have together with this model; 0: not known."""
    says: str = ""
    """The model that replied, as its server says, if that is another one than `model`."""
    filtered: bool = False
    """The server says that it left something out of the reply, because of its contents."""


# A tool


class CallTool(Effect, tag="call_tool", frozen=True):
    """Call a tool with the command's own arguments, or with those that an agent's reply holds."""

    tool: str
    agent: str = ""
    """The agent that wants it called; empty for a call of the style itself."""
    arguments: dict[str, Any] | None = None
    source: tuple[int, int] | None = None
    """(number of the reply, index of the call in it): where the arguments are."""
    effect: Literal["", "pure", "keyed", "unsafe"] = ""
    """What kind of effect a definition declares; empty: what the tool itself declares."""


class ToolReturned(Effect, tag="tool_returned", frozen=True):
    """What a tool returned, as JSON can hold it."""

    value: Any = None
    unkept: str = ""
    """Why the files that it could change were not kept before; empty: they were, or it changes none."""


# A person


class Field(Effect, frozen=True):
    """One field of a structured answer."""

    label: str = ""
    type: Literal["text", "number", "integer", "boolean", "one_of", "some_of"] = "text"
    allowed: tuple[str, ...] = ()
    """The values that `one_of` and `some_of` choose from."""
    required: bool = False


class AskPerson(Effect, tag="ask_person", frozen=True):
    """Ask a person and wait for as long as it takes. `questions.read_answer` turns words into the answer."""

    question: str
    purpose: str = ""
    """Who gets the answer: a word of the style, or the kernel's own (`run.GUARD`, `run.DOUBT`, `run.RESTORED`)."""
    title: str = ""
    """What it is about, in a few words: a file, a session."""
    to: str = ""
    """The role or person that is asked; empty for anyone."""
    about: tuple[int, ...] = ()
    """Numbers of the records that the person should see."""
    document: int = 0
    """The record that holds the document to review; 0 for none."""
    choices: dict[str, str] = {}
    """What can be chosen, each with a label for people (empty: the choice itself)."""
    other: str = ""
    """The choice that any other text means; empty: other text is refused."""
    empty: str = ""
    """The choice that an empty answer means."""
    edit: str = ""
    """The choice that brings an edited document with it."""
    fields: dict[str, Field] = {}
    """What else can be said, in a structured way."""
    arguments: dict[str, Any] | None = None
    """Of the tool call that the answer allows, whole; `None`: it allows none, or they are too long to be shown."""
    shown: str = ""
    """SHA-256 of those arguments (`shown_calls`): a call with others is not what the person agreed to."""


class PersonAnswered(Effect, tag="person_answered", frozen=True):
    """What a person chose, wrote and filled in."""

    choice: str = ""
    text: str = ""
    document: str | None = None
    """The whole document, if it was edited."""
    fields: dict[str, Any] = {}
    by: str = ""
    """An identity that the face has checked."""


# The clock


class SetTimer(Effect, tag="set_timer", frozen=True):
    """`after` seconds, counted from the moment the command is recorded. Replaces the open timer of the same name."""

    name: str
    after: float

    def __post_init__(self) -> None:
        make_float(self, "after")


class TimerFired(Effect, tag="timer_fired", frozen=True):
    """The time has come."""


# Messages


class Say(Effect, tag="say", frozen=True):
    """Send a message: its own `text`, or that of the record `about`.

    Without a channel it is in the run's transcript, and so it is sent when it is recorded. On a channel it waits for
    a worker that serves the channel, one at a time and in order, even when the run has ended.
    """

    text: str = ""
    about: int = 0
    channel: str = ""
    to: str = ""
    """The recipient on the channel."""
    purpose: str = ""
    """The style's word for what kind of message it is."""


class Said(Effect, tag="said", frozen=True):
    """The message was delivered."""


# Another run


class StartRun(Effect, tag="start_run", frozen=True):
    """Start a workflow as a child and wait for its end. What it gets is `Style.start_child`'s word."""

    workflow: str
    """A name that `Started.pinned` resolves."""
    name: str = ""
    """The child's id, shared by all runs that ask for it; empty: `<run>.<number of this command>`."""
    context: tuple[int, ...] = ()
    limits: Limits | None = None
    """What the style asks for at most; as recorded, the slice of the budget that the child got."""
    surface: bool = False
    """The messages and questions of the child, and of its children, appear in this run."""


class CutOff(Effect, frozen=True):
    """A call that must not be repeated blindly, cut off at work: it may have taken effect."""

    number: int
    run: str = ""
    """Empty: the run itself."""
    what: str = ""
    """The tool or the agent that was called."""


class RunFinished(Effect, tag="run_finished", frozen=True):
    """The child has ended, and so have all its children."""

    run: str
    outcome: str
    because: str = ""
    result: str = ""
    """Hash of its result, which is JSON; empty for none."""
    usage: Usage = Usage()
    """What it spent since this command started or resumed it, its children included; nothing for other waiters."""
    calls: int = 0
    runs: int = 1
    """How many runs it was, with all its descendants since this command started or resumed it."""
    uncertain: tuple[CutOff, ...] = ()
    """Calls of it and its descendants that were cut off and may have taken effect, unless it completed."""
    worked: int | None = None
    """Its time at work, in microseconds; `None`: it was not counted, because nothing limits it."""
    refused: bool = False
    """It has not completed because a call of its model could not be made, which says nothing about its work."""


class AnswerChild(Effect, tag="answer_child", frozen=True):
    """Answer a question of a descendant that surfaced here. `Failed`: it was answered elsewhere, or is not valid."""

    asked: int
    """The record (`ChildSpoke`) with the question."""
    choice: str = ""
    about: int = 0
    """The record with the person's words."""


# Any of them


class Failed(Effect, tag="failed", frozen=True):
    """It was surely not done. `fault` says whose: definition, agent, tool, person, or ours."""

    reason: str
    fault: str = "tool"
    usage: Usage = Usage()
    """What it cost all the same."""
    uncertain: bool = False
    """It was cut off at work and may have taken effect; only a late answer can be so."""
    too_long: int = 0
    """The estimated tokens of a prompt that the model could not take; 0: that was not the reason."""


Command = AskAgent | CallTool | AskPerson | SetTimer | Say | StartRun | AnswerChild
Answer = AgentReplied | ToolReturned | PersonAnswered | TimerFired | Said | RunFinished | Failed

ANSWER_TO: dict[type, type] = {
    AskAgent: AgentReplied,
    CallTool: ToolReturned,
    AskPerson: PersonAnswered,
    SetTimer: TimerFired,
    Say: Said,
    StartRun: RunFinished,
    AnswerChild: Said,
}


def text_of(answer: object) -> str:
    """The words that an answer carries."""
    match answer:
        case AgentReplied(text=text) | PersonAnswered(text=text):
            return text
        case ToolReturned(value=value):
            return value if isinstance(value, str) else repr(value)
        case Failed(reason=reason):
            return reason
        case RunFinished(because=because):
            return because
    return ""
