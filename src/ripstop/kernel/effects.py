"""Everything a run may ask of the world, and everything the world may answer.

Commands and answers stand side by side in pairs: a new effect is two small classes here and
one performer outside. `Failed` may answer any command.

Texts never stand twice in a journal. So a command *names* the records its words come from
(`context`, `source`, `about`), and the words are put together, purely, when it is performed
or looked at (`Style.render`, `Style.arguments`).

Tags are part of the file format: never rename one, never give an old one a new meaning.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr


class Effect(Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of commands, answers and their parts: immutable (so no cycles for the collector), defaults not written."""


def _make_float(effect: Effect, *names: str) -> None:
    """60 is read back as 60.0; it must stand so from the beginning, or the two would be told apart."""
    for name in names:
        value = getattr(effect, name)
        if type(value) is int:
            force_setattr(effect, name, float(value))


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
        """Both together. A negative number, which an old journal may hold, gives nothing back."""
        sent, received, money = other.input_tokens, other.output_tokens, other.money
        if sent >= 0 and received >= 0 and money >= 0 and not other.unreported_input and not other.unreported_output:
            return Usage(  # nearly always, and in every step
                self.input_tokens + sent,
                self.output_tokens + received,
                self.money + money,
                self.unreported_input,
                self.unreported_output,
                self.unreported_money,
            )
        unreported = other.unreported_money
        return Usage(
            self.input_tokens + max(0, other.input_tokens),
            self.output_tokens + max(0, other.output_tokens),
            self.money + max(0.0, other.money),
            self.unreported_input + max(0, other.unreported_input),
            self.unreported_output + max(0, other.unreported_output),
            # the default itself, not another 0.0, or it would be written
            self.unreported_money + unreported if unreported > 0 else self.unreported_money,
        )


class Limits(Effect, frozen=True):
    """What a run may spend. `None` is no limit. Held before the call that would break it."""

    tokens: int | None = None
    money: float | None = None
    calls: int | None = None
    seconds: float | None = None
    turns: int | None = None
    depth: int = 8
    input_price: float = 0.0
    output_price: float = 0.0
    """Money per million tokens; with them a money limit holds before the call, not after it."""

    def __post_init__(self) -> None:
        _make_float(self, "money", "seconds", "input_price", "output_price")


class Guards(Effect, frozen=True):
    """How a run is watched for loops and idle talk. Each style has defaults of its own."""

    patience: Annotated[int, Meta(ge=0, le=1000)] = 5
    """How often the same may be done with nothing changed: by one agent, or by several in a circle; 0: for ever."""
    courtesy: Literal["terminate", "ignore"] = "terminate"
    """What turns of nothing but courtesy do: `terminate` the run, or `ignore`."""
    phrases: tuple[str, ...] = ()
    """Courtesies besides the built-in ones."""
    end_marker: str = ""
    """Words with which an agent ends the run; empty for none."""
    then: Literal["end", "ask"] = "end"
    """What a verdict does: `end` the run, or `ask` a person whether it may go on."""


class ToolCall(Effect, frozen=True):
    """One tool call that an agent wants made."""

    id: str
    tool: str
    arguments: dict[str, Any] = {}


# An agent's turn


class AskAgent(Effect, tag="ask_agent", frozen=True):
    """Give an agent the word: a new turn, or (`continues`) the next call of a turn under way."""

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


class AgentReplied(Effect, tag="agent_replied", frozen=True):
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    sent: str = ""
    """SHA-256 of what was really sent, so that a log can prove that what it shows is what went out."""
    model: str = ""
    recorded: bool = False
    """The text comes from a recording, so asking again cannot change it."""


# A tool


class CallTool(Effect, tag="call_tool", frozen=True):
    """Call a tool with arguments of its own, or with those that an agent's reply holds."""

    tool: str
    agent: str = ""
    arguments: dict[str, Any] | None = None
    source: tuple[int, int] | None = None
    """(number of the reply, index of the call in it): where the arguments stand."""


class ToolReturned(Effect, tag="tool_returned", frozen=True):
    value: Any = None


# A person


class AskPerson(Effect, tag="ask_person", frozen=True):
    """Ask a person and wait for as long as it takes."""

    question: str
    choices: tuple[str, ...] = ()
    about: tuple[int, ...] = ()
    """Numbers of the records that the person should see."""


class PersonAnswered(Effect, tag="person_answered", frozen=True):
    choice: str
    text: str = ""
    by: str = ""


# The clock


class SetTimer(Effect, tag="set_timer", frozen=True):
    """`after` seconds, counted from the moment the command is recorded."""

    name: str
    after: float

    def __post_init__(self) -> None:
        _make_float(self, "after")


class TimerFired(Effect, tag="timer_fired", frozen=True):
    pass


# Words to whoever listens


class Say(Effect, tag="say", frozen=True):
    """Send words out: its own `text`, or those of the record `about`."""

    text: str = ""
    about: int | None = None


class Said(Effect, tag="said", frozen=True):
    pass


# Another run


class StartRun(Effect, tag="start_run", frozen=True):
    """Start a workflow as a child. Its id is `<run>.<number of this command>`."""

    workflow: str
    input: str = ""
    limits: Limits = Limits()


class RunFinished(Effect, tag="run_finished", frozen=True):
    run: str
    outcome: str
    because: str = ""
    usage: Usage = Usage()


# Any of them


class Failed(Effect, tag="failed", frozen=True):
    """It was surely not done. `fault` says whose: definition, agent, tool, or ours."""

    reason: str
    fault: str = "tool"


Command = AskAgent | CallTool | AskPerson | SetTimer | Say | StartRun
Answer = AgentReplied | ToolReturned | PersonAnswered | TimerFired | Said | RunFinished | Failed

ANSWER_TO: dict[type, type] = {
    AskAgent: AgentReplied,
    CallTool: ToolReturned,
    AskPerson: PersonAnswered,
    SetTimer: TimerFired,
    Say: Said,
    StartRun: RunFinished,
}


def text_of(answer: object) -> str:
    """The words that an answer carries, for whoever quotes it."""
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
