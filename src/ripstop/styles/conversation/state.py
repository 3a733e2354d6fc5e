"""Where a session is: folded from its records, and small, because thousands are in one process."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskPerson

from ..turn import Turn
from .decision import IterationDecision
from .definition import Bot, BotAction
from .plan import CachedPlan

MOST_LINES = 60
"""Lines of the conversation that are kept for prompts and for those who look; the journal has all."""
LONGEST_LINE = 20_000
MOST_UNANSWERED = 100
"""Messages that wait with their whole text; of later ones the beginning is kept."""
LONGEST_OF_MANY = 300
"""Characters of a message that comes when so many wait."""

Speaker = Literal["user", "assistant", "desk", "flow", "result"]


class ChatArguments(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    session: str = ""
    """Empty: it is not a session. The run answers its input and ends, such as one that another workflow starts."""
    channel: str = ""
    """Where what the bot says is delivered; empty: it is in the transcript."""
    user: str = ""
    """The recipient on the channel."""
    variables: dict[str, str] = {}
    """What is known of the session, for `#name#` in addresses and `{{$name}}` in texts."""


class ChatLine(Struct, frozen=True, gc=False):
    speaker: Speaker
    number: int
    """The record that it is from."""
    text: str
    by: str = ""
    left_out: int = 0
    """Characters of the record that are not in `text`."""


class PassCall(Struct, frozen=True, gc=False):
    """A call that was made for the messages of a pass, or one that is in doubt."""

    key: str
    """What is called, and with what (`actions.call_key`)."""
    result: str = ""
    """What the model is told of it."""
    failed: bool = False
    repeats: int = 0
    """How often the model has decided on it again in this pass."""
    visible: bool = True
    """Whether the model may learn of it."""
    heard: tuple[int, ...] = ()
    """The messages that it was made for."""
    is_earlier: bool = False
    """It was made before this pass."""


class DoubtedAction(Struct, frozen=True, gc=False):
    """An action of which nobody knows yet whether it took effect. The session goes on without it."""

    action: BotAction
    visible: bool
    heard: tuple[int, ...]
    """The messages that its pass was to answer."""
    timer: str
    number: int
    """Of the command."""
    noted: int = 0
    """The record that says that it is in doubt, and the number of the line with which the model is told so."""
    is_renewed: bool = False
    """It was made again, and is in doubt again."""


class SessionState(Struct, frozen=True, gc=False):
    definition: Bot
    chat: ChatArguments
    hash: str = ""
    """Of the configuration that `plan` is for."""
    served: str = ""
    """Of the configuration that was used last, with its plan or without."""
    generation: int = 1
    need_greeting: bool = True
    status: str = "ready"
    plan: CachedPlan | None = None
    first: IterationDecision | None = None
    """The decision of the planning run, if it was made for the message that this pass answers."""
    first_problem: str = ""
    """What is wrong with that decision."""
    lines: tuple[ChatLine, ...] = ()
    unanswered: tuple[int, ...] = ()
    """Messages that no pass has taken up."""
    kept_from_flows: tuple[int, ...] = ()
    """Messages that start no flow by a keyword: a person had the conversation, or has given the call of the flow up."""
    heard: tuple[int, ...] = ()
    """Messages that this pass answers."""
    in_pass: bool = False
    superseded: bool = False
    timer: str = ""
    """The timer that this pass is about; empty: it answers messages."""
    due: tuple[str, ...] = ()
    """Timers that expired while a pass was under way."""
    fired: dict[str, int] = {}
    iterations: int = 0
    idle_rounds: int = 0
    """Decisions in a row to go on without an action."""
    calls: tuple[PassCall, ...] = ()
    """What was called for the messages of this pass, and for those that wait."""
    in_doubt: dict[int, DoubtedAction] = {}
    """Open calls that may have taken effect; a person at the desk is asked about each."""
    resolved: DoubtedAction | None = None
    """The last of them of which it became known what had happened."""
    action: BotAction | None = None
    """What was decided last."""
    next_status: str = ""
    response: str = ""
    """What is said once the action is done."""
    visible: bool = True
    """Whether the model and the user may learn of the action."""
    planning: int = 0
    searching: int = 0
    acting: int = 0
    """Open commands: for the plan, for passages of the knowledge base, and for the action."""
    passages: tuple[tuple[str, str], ...] = ()
    """(source, text) of what the knowledge base has about the message."""
    asking: int = 0
    """The record (`ChildSpoke`) with a flow's question that the user is asked."""
    asks: AskPerson | None = None
    answering: tuple[int, int] = (0, 0)
    """The command with which a message was passed on as the answer to a flow, and the message."""
    flow_spoke: bool = False
    flow_words: tuple[str, ...] = ()
    """The result of a flow, which is said if the flow itself has said nothing since its last question."""
    continued: str = ""
    """The run of a flow that has reached the limit of this run: it continues if the limit is raised."""
    desk: int = 0
    """The open question on the desk while a person has the conversation."""
    taken_by: str = ""
    closed: bool = False
    profile: dict[str, Any] = {}
    history: int = 0
    """Characters of the conversation in a prompt, as they were asked for last; 0: not yet."""
    turn: Turn | None = None

    @property
    def then(self) -> Literal["flow", "iterate", "transfer", "finish"]:
        """What comes after the action."""
        if self.action and self.action.type == "FLOW":
            return "flow"
        return {"processing": "iterate", "transferred": "transfer"}.get(self.next_status, "finish")  # type: ignore[return-value]

    @property
    def is_in_flow(self) -> bool:
        """Whether a flow is at work. What it says is the answer to the messages of its pass."""
        return bool(self.acting) and self.then == "flow"

    @property
    def waits_for_effect(self) -> bool:
        """Whether something is at work whose outcome has to be known before the next decision."""
        return bool(self.acting or self.planning or self.searching or self.answering[0])

    @property
    def is_planned(self) -> bool:
        """Whether the plan is the one that counts for the configuration as it is now."""
        bot = self.definition
        return self.plan is not None and (self.hash, self.generation) == (bot.hash, bot.generation)

    @property
    def is_preparing(self) -> bool:
        """Whether the pass has not begun to decide, so that nothing is cancelled by another message."""
        return bool(self.planning or self.searching)

    @property
    def is_session(self) -> bool:
        return bool(self.chat.session)

    @property
    def said(self) -> tuple[ChatLine, ...]:
        """The lines that this pass may know of: without messages that wait for their own."""
        return tuple(line for line in self.lines if line.number not in self.unanswered)

    def message(self) -> str:
        """What this pass answers."""
        wanted = set(self.heard)
        return "\n".join(line.text for line in self.lines if line.number in wanted and line.speaker == "user")

    def with_line(
        self, speaker: Speaker, number: int, text: str, by: str = "", longest: int = LONGEST_LINE
    ) -> "SessionState":
        words = text if len(text) <= longest else f"{text[:longest]}…"
        left_out = max(0, len(text) - longest)
        return replace(self, lines=(*self._kept_lines(), ChatLine(speaker, number, words, by, left_out)))

    def _kept_lines(self) -> tuple[ChatLine, ...]:
        """The lines without the oldest, if there are many; what is still to be answered is never dropped."""
        if len(self.lines) < MOST_LINES:
            return self.lines
        needed = {*self.heard, *self.unanswered}
        oldest = next((at for at, line in enumerate(self.lines) if line.number not in needed), None)
        return self.lines if oldest is None else (*self.lines[:oldest], *self.lines[oldest + 1 :])


def asker(state: SessionState) -> str:
    """Names the message that a planning run also decides about."""
    return f"{state.chat.session}/{state.heard[-1] if state.heard else 0}"
