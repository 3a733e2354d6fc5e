"""Answers questions of descendants that were asked in another run's place, such as a chat."""

from ripstop.kernel.effects import Answer, AnswerChild, Command, Failed, Said
from ripstop.kernel.errors import AlreadyAnswered, UsageError
from ripstop.kernel.events import ChildSpoke, Heard
from ripstop.kernel.questions import read_answer
from ripstop.runtime.engine import Engine
from ripstop.runtime.performers import Kind, Request
from ripstop.runtime.words import text_in


class ChildAnswers:
    """The performer of `AnswerChild`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def perform(self, request: Request) -> Answer:
        command = request.command
        assert isinstance(command, AnswerChild)
        records = await request.history()
        spoke = records[command.asked - 1].event
        assert isinstance(spoke, ChildSpoke)
        said = records[command.about - 1] if command.about else None
        words = text_in(said) if said else ""
        by = said.event.by if said and isinstance(said.event, Heard) else ""
        try:
            await self._engine.answer(spoke.run, spoke.number, words, choice=command.choice, by=by)
        except AlreadyAnswered as error:
            assert spoke.ask is not None
            meant = read_answer(spoke.ask, words, choice=command.choice, by=by)
            # a worker that died may have given this very answer
            if (error.choice, error.text, error.by) != (meant.choice, meant.text, meant.by):
                return Failed(reason=str(error), fault="person")
        except UsageError as error:
            return Failed(reason=str(error), fault="person")
        return Said()

    def kind(self, command: Command) -> Kind:
        return Kind.PURE  # a question takes one answer, so a repeat changes nothing

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
