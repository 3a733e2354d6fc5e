"""The styles that a process knows, and the codec for all their events.

A kit is checked when it is registered: two styles of one name, an event that another style has, or one whose tag does
not begin with its style's name would make journals that cannot be read; two styles that keep documents in one
collection would overwrite each other's.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .codec import Codec
from .effects import AskPerson, PersonAnswered, text_of
from .errors import DefinitionError
from .events import KERNEL_EVENTS, Event, Started
from .run import DOUBT, GUARD, Run
from .step import Step
from .style import News, Picture, Settled, Style, StyleKit

# The built-in style `question`: a run that asks a person one thing and ends with the answer.
#
# With it a performer can ask a person: the question is a child of the command that needs the answer, so it survives
# crashes, is on the desk, and is cancelled with the command.


NAME = "question"


class QuestionState(Struct, frozen=True):
    definition: AskPerson


class QuestionStyle(Style[QuestionState]):
    name = NAME
    unforkable = "A question to a person cannot be forked; fork the run that asks it."

    def begin(self, definition: AskPerson, started: Started) -> QuestionState:
        # a performer cannot ask in the kernel's name: the answer would be lost
        own = definition.purpose not in (GUARD, DOUBT)
        return QuestionState(definition if own else replace(definition, purpose=NAME))

    def evolve(self, state: QuestionState, number: int, event: Event) -> QuestionState:
        return state

    def decide(self, step: Step[QuestionState], news: News) -> None:
        match news:
            case Started():
                step.ask_unguarded(step.state.definition)
            case Settled(answer=PersonAnswered() as answer):
                by = f"{answer.by} answered" if answer.by else "a person answered"
                step.end("completed", by, result=msgspec.to_builtins(answer))
            case Settled(answer=answer):
                step.end("failed", text_of(answer) or "the question could not be asked")

    def picture(self, run: Run[QuestionState]) -> Picture:
        return Picture(where=run.state.definition.title or "question")

    def gist(self, run: Run[QuestionState]) -> str:
        return run.state.definition.title


QUESTION = StyleKit(style=QuestionStyle(), definition=AskPerson)


SHARED = "turn."
"""What the tags of events begin with that all styles with agents share."""
REGISTRY_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
RESERVED = ("turn", "ripstop")


class Registry:
    def __init__(self, kits: Iterable[StyleKit] = ()) -> None:
        self.kits: dict[str, StyleKit] = {}
        tags: dict[str, type[Event]] = {_tag(event): event for event in KERNEL_EVENTS}
        for kit in (QUESTION, *kits):
            if kit.name in self.kits:
                raise ValueError(f"There are two styles named {kit.name!r}.")
            _check_kit(kit, self.kits.values())
            for event in kit.events:
                _check_event(kit.name, event, tags)
                tags[_tag(event)] = event
            self.kits[kit.name] = kit
        self.codec = Codec(event for event in tags.values() if event not in KERNEL_EVENTS)

    @property
    def styles(self) -> Mapping[str, Style[Any]]:
        return {name: kit.style for name, kit in self.kits.items()}

    def load(self, style: str, content: bytes) -> Any:
        """A style's definition from its pinned content. Raises `DefinitionError`."""
        try:
            return msgspec.json.decode(content, type=self.kits[style].definition)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DefinitionError(f"The pinned definition of a {style} workflow cannot be read: {error}.") from error


def _tag(event: type[Event]) -> str:
    return str(event.__struct_config__.tag)


def _check_kit(kit: StyleKit, others: Iterable[StyleKit]) -> None:
    if not REGISTRY_NAME.fullmatch(kit.name) or kit.name in RESERVED:
        raise ValueError(f"{kit.name!r} cannot be the name of a style: small letters, digits, '-' and '_'.")
    for field in msgspec.structs.fields(kit.style.arguments_type):
        if field.required:
            raise ValueError(f"The argument {field.name!r} of the style {kit.name!r} has no default.")
    for other in others:
        for collection in kit.collections:
            if collection in other.collections:
                raise ValueError(f"The styles {other.name!r} and {kit.name!r} both keep documents in {collection!r}.")


def _check_event(style: str, event: type[Event], known: Mapping[str, type[Event]]) -> None:
    if not issubclass(event, Event):
        raise ValueError(f"{event.__name__} is not an Event.")
    tag, config = _tag(event), event.__struct_config__
    if not tag.startswith((f"{style}.", SHARED)):
        raise ValueError(f"The tag {tag!r} of {event.__name__} does not begin with {style!r} and a dot.")
    if known.get(tag, event) is not event:
        raise ValueError(f"There are two events with the tag {tag!r}.")
    if not config.frozen or not config.forbid_unknown_fields:
        raise ValueError(f"{event.__name__} is not frozen, or does not refuse unknown fields.")
