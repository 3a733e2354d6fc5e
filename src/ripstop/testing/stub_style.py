"""A style without ideas of its own: it gives the commands that its definition lists, round by round.

For tests of engines, workers, journals and performers, which need a run that asks for something
and do not care why. A round begins when all of the one before is settled; after the last the run ends.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, Command, Failed, StartRun, text_of
from ripstop.kernel.events import Answered, Event, Forked, Heard, Resumed, Started
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.run import DEADLINE, Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import Child, Explanation, News, Picture, Reason, Settled, Style, StyleKit, StyleView, Uses


class Errands(Struct, frozen=True, omit_defaults=True):
    """What to ask for, in rounds."""

    rounds: tuple[tuple[Command, ...], ...] = ()
    outcome: str = "completed"
    """How it ends after the last round; empty: it does not."""
    listens: bool = False
    """Whether a run with nothing to do waits for words; every `Heard` then runs the last round again."""
    prompt: str = "Go on."
    child_input: str = ""
    """What a child gets."""

    def content(self) -> bytes:
        """As the engine takes it."""
        return msgspec.json.encode(self)


class RoundBegan(Event, tag="errands.round_began", frozen=True):
    index: int


class StubState(Struct, frozen=True):
    definition: Errands
    round: int = 0
    answers: tuple[str, ...] = ()
    failures: int = 0


class ErrandView(StyleView[StubState]):
    def picture(self, run: Run[StubState]) -> Picture:
        rounds = len(run.state.definition.rounds)
        return Picture(where=f"round {run.state.round}", progress=f"round {run.state.round + 1} of {rounds}")

    def explain(self, before: StubState, event: Event) -> Explanation:
        if not isinstance(event, RoundBegan):
            return Explanation()
        return Explanation((Reason(f"round {event.index} was next"),))


class ErrandStyle(Style[StubState]):
    """Gives the commands that its definition lists, one after the other."""

    name = "errands"
    view = ErrandView()

    @staticmethod
    def load(style: str, content: bytes) -> Errands:
        """What an `Engine` needs to read the definition."""
        return msgspec.json.decode(content, type=Errands)

    # Folding

    def begin(self, definition: Errands, started: Started) -> StubState:
        return StubState(definition)

    def evolve(self, state: StubState, number: int, event: Event) -> StubState:
        match event:
            case RoundBegan(index=index):
                return replace(state, round=index)
            case Answered(answer=answer):
                failures = state.failures + isinstance(answer, Failed)
                return replace(state, answers=(*state.answers, text_of(answer)), failures=failures)
        return state

    # Deciding

    def decide(self, step: Step[StubState], news: News) -> None:
        match news:
            case Started():
                self._begin(step, 0)
            case Forked() | Resumed():
                self._begin(step, step.state.round)
            case Heard():
                self._begin(step, max(len(step.state.definition.rounds) - 1, 0))
            case Settled() if not _pending(step.run):
                self._begin(step, step.state.round + 1)

    def _begin(self, step: Step[StubState], index: int) -> None:
        errands = step.state.definition
        if index >= len(errands.rounds):
            if errands.outcome:
                step.end(errands.outcome, "all errands are done")
            return
        step.record(RoundBegan(index=index))
        for command in errands.rounds[index]:
            step.ask(command)
        if not _pending(step.run):  # nothing but messages, which need no answer
            self._begin(step, index + 1)

    # Looking

    def render(self, state: StubState, command: AskAgent) -> Prompt:
        said = (Message(role="assistant", text=answer) for answer in state.answers)
        return Prompt(messages=(Message(role="user", text=state.definition.prompt), *said))

    def listens(self, state: StubState) -> bool:
        return state.definition.listens

    def uses(self, definition: Errands) -> Uses:
        asked = (command for commands in definition.rounds for command in commands)
        return Uses(children={command.workflow: "" for command in asked if isinstance(command, StartRun)})

    def start_child(self, state: StubState, command: StartRun) -> Child:
        return Child(input=state.definition.child_input)


def _pending(run: Run[StubState]) -> bool:
    """Whether a command of the style is still open; the kernel's own timer and questions do not count."""
    asked = run.held.question if run.held else 0
    return any(
        getattr(opened.command, "name", "") != DEADLINE and number not in run.doubts and number != asked
        for number, opened in run.open.items()
    )


ERRANDS = StyleKit(style=ErrandStyle(), definition=Errands, events=(RoundBegan,))
