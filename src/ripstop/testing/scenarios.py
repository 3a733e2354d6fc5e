"""Stories about a pure style: what was told before, what happens now, what it decides.

    given(style, definition, AgentReplied(text="hello")).when(AgentReplied(text="bye")).then(Ended)

- A `Started` is told first, unless the story brings its own.
- A bare answer answers the oldest open command that it fits, so stories need no record numbers.
- `then` compares what was decided, in order: an event must be equal, a type must be the event's type.
"""

from typing import Any

import msgspec

from ripstop.kernel.effects import ANSWER_TO, Answer, Command, Failed, Limits
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import FORMAT, Answered, Asked, Event, Fact, RunSettings, Started
from ripstop.kernel.run import Contents, Run, status
from ripstop.kernel.step import advance
from ripstop.kernel.style import Style

SECOND = 1_000_000
NO_LIMITS = Limits()
NO_SETTINGS = RunSettings()


class Given:
    """A run to which something was told. One second passes before each fact."""

    def __init__(self, style: Style[Any], definitions: dict[str, Any], run_id: str = "story") -> None:
        self.style = style
        self.contents = Contents(definitions, {})
        self.run_id = run_id
        self.run: Run[Any] | None = None
        self.records: list[Any] = []
        self.now = 0

    def tell(self, fact: Fact | Answer, after: float = 1.0) -> list[Event]:
        """Tell one more; returns the fact's and the decisions' events."""
        self.now += round(after * SECOND)
        told = fact if isinstance(fact, Fact) else self._answer(fact)
        step = advance(self.style, self.contents, self.run, self.run_id, told, self.now)
        if step is None:
            return []
        self.run = step.run
        self.records += step.records
        for digest, body in (step.kept or {}).items():
            self.contents.results[digest] = msgspec.json.decode(body)
        return [record.event for record in step.records]

    def when(self, fact: Fact | Answer, after: float = 1.0) -> "ScenarioOutcome":
        try:
            events = self.tell(fact, after)
        except RipstopError as error:
            return ScenarioOutcome(self, [], error)
        return ScenarioOutcome(self, events, None)

    def opened(self, kind: type | tuple[type, ...] | None = None) -> int:
        """The number of the oldest open command (of a kind)."""
        assert self.run is not None, "nothing was told yet"
        fitting = (number for number, o in self.run.open.items() if kind is None or isinstance(o.command, kind))
        number = min(fitting, default=None)
        assert number is not None, f"no {kind or 'command'} is open in {self.run.open}"
        return number

    def _answer(self, answer: Answer) -> Fact:
        kinds = tuple(asked for asked, given in ANSWER_TO.items() if given is type(answer))
        return Answered(to=self.opened(None if isinstance(answer, Failed) else kinds), answer=answer)


class ScenarioOutcome:
    """What came of the last fact."""

    def __init__(self, story: Given, events: list[Event], error: RipstopError | None) -> None:
        self.story = story
        self.events = events
        """The fact, then what was decided on it; nothing if it was ignored."""
        self.error = error

    @property
    def decided(self) -> list[Event]:
        if self.error:
            raise self.error
        return self.events[1:]

    @property
    def commands(self) -> list[Command]:
        return [event.command for event in self.decided if isinstance(event, Asked)]

    @property
    def run(self) -> Run[Any]:
        assert self.story.run is not None, "the run was never started"
        return self.story.run

    @property
    def status(self) -> str:
        return status(self.run, self.story.style.listens(self.run.state))

    def then(self, *expected: Event | type[Event]) -> "ScenarioOutcome":
        decided = self.decided
        fits = len(decided) == len(expected) and all(
            isinstance(event, wanted) if isinstance(wanted, type) else event == wanted
            for event, wanted in zip(decided, expected, strict=True)
        )
        assert fits, f"decided {decided}, not {list(expected)}"
        return self

    def then_asks(self, *expected: Command | type) -> "ScenarioOutcome":
        """The commands that were given, whatever else was decided."""
        commands = self.commands
        fits = len(commands) == len(expected) and all(
            isinstance(command, wanted) if isinstance(wanted, type) else command == wanted
            for command, wanted in zip(commands, expected, strict=True)
        )
        assert fits, f"asked {commands}, not {list(expected)}"
        return self

    def then_ends(self, outcome: str, because: str = "") -> "ScenarioOutcome":
        """The run has ended so, and its reason contains `because`."""
        assert self.error is None, self.error
        ended = self.run.ended
        assert ended is not None and ended.outcome == outcome, f"ended as {ended}, not {outcome!r}"
        assert ended.because and because in ended.because, f"{because!r} is not in {ended.because!r}"
        return self

    def then_nothing(self) -> "ScenarioOutcome":
        """The fact was ignored: not even itself was recorded."""
        assert self.error is None, self.error
        assert not self.events, f"recorded {self.events}"
        return self

    def then_refused(self, error: type[RipstopError]) -> "ScenarioOutcome":
        assert isinstance(self.error, error), f"{self.error!r} is not {error.__name__}"
        return self


def given(
    style: Style[Any],
    definition: Any,
    *told: Fact | Answer,
    input: str = "",
    limits: Limits = NO_LIMITS,
    depth: int = 0,
    arguments: dict[str, Any] | None = None,
    settings: RunSettings = NO_SETTINGS,
) -> Given:
    """A run of `style`, started, to which the facts and answers in `told` were told, in order."""
    story = Given(style, {"definition": definition})
    if not told or not isinstance(told[0], Started):
        story.tell(
            Started(
                style=style.name,
                definition="definition",
                format=FORMAT,
                input=input,
                arguments=arguments or {},
                limits=limits,
                settings=settings,
                depth=depth,
            )
        )
    for fact in told:
        story.tell(fact)
    return story
