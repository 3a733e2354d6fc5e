"""The styles that a process knows, and the codec for all their events.

A kit can be registered by its style's name alone; it is loaded when something asks for it, or a record of it is read.
A kit is checked when it is loaded: two styles of one name, an event that another style has, or one whose tag does
not begin with its style's name would make journals that cannot be read; two styles that keep documents in one
collection would overwrite each other's.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .codec import SHARED, Codec
from .effects import AskPerson, PersonAnswered, text_of
from .errors import DefinitionError
from .events import KERNEL_EVENTS, Event, Started
from .run import OWN_PURPOSES, Run
from .step import Step
from .style import News, Picture, Settled, Style, StyleKit, StyleView

# The built-in style `question`: a run that asks a person one thing and ends with the answer.
#
# With it a performer can ask a person: the question is a child of the command that needs the answer, so it survives
# crashes, is on the desk, and is cancelled with the command.


QUESTION_STYLE = "question"


class QuestionState(Struct, frozen=True):
    definition: AskPerson


class QuestionView(StyleView[QuestionState]):
    def picture(self, run: Run[QuestionState]) -> Picture:
        return Picture(where=run.state.definition.title or "question")

    def gist(self, run: Run[QuestionState]) -> str:
        return run.state.definition.title


class QuestionStyle(Style[QuestionState]):
    name = QUESTION_STYLE
    view = QuestionView()
    unforkable = "A question to a person cannot be forked; fork the run that asks it."

    def begin(self, definition: AskPerson, started: Started) -> QuestionState:
        # a performer cannot ask in the kernel's name: the answer would be lost
        own = definition.purpose not in OWN_PURPOSES
        return QuestionState(definition if own else replace(definition, purpose=QUESTION_STYLE))

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


QUESTION = StyleKit(style=QuestionStyle(), definition=AskPerson)


STYLE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
RESERVED = (SHARED, "ripstop")


class LazyKit(NamedTuple):
    """A kit that is not loaded before it is needed."""

    name: str
    load: Callable[[], StyleKit]


class Registry:
    def __init__(self, kits: Iterable[StyleKit | LazyKit] = ()) -> None:
        self.loaded = _Loaded(self._kit)
        self._lazy: dict[str, Callable[[], StyleKit]] = {}
        self._tags: dict[str, type[Event]] = {_tag(event): event for event in KERNEL_EVENTS}
        names: list[str] = []
        for kit in (QUESTION, *kits):
            if kit.name in names:
                raise ValueError(f"There are two styles named {kit.name!r}.")
            names.append(kit.name)
            if isinstance(kit, LazyKit):
                self._lazy[kit.name] = kit.load
            else:
                self._add(kit)
        self.kits: Mapping[str, StyleKit] = _Kits(tuple(names), self.loaded)
        self.codec = Codec(self._own_events(), tuple(self._lazy), self._kit)

    def _own_events(self) -> list[type[Event]]:
        return [event for event in self._tags.values() if event not in KERNEL_EVENTS]

    def _add(self, kit: StyleKit) -> None:
        # an app in another thread has the same registry, and may have loaded the same kit meanwhile
        _check_kit(kit, [other for other in self.loaded.values() if other is not kit])
        tags = dict(self._tags)
        for event in kit.events:
            _check_event(kit.name, event, tags)
            tags[_tag(event)] = event
        self._tags = tags
        self.loaded[kit.name] = kit

    def _kit(self, name: str) -> StyleKit:
        """Load a kit; it stays loaded. Raises `KeyError` for an unknown style."""
        if name not in self.loaded:
            found = self._lazy[name]()
            if found.name != name:
                raise ValueError(f"The kit of {name!r} is one of {found.name!r}.")
            self._add(found)
            self.codec.learn(self._own_events())
        return self.loaded[name]

    @property
    def styles(self) -> Mapping[str, Style[Any]]:
        return {name: kit.style for name, kit in self.kits.items()}

    def load(self, style: str, content: bytes) -> Any:
        """A style's definition from its pinned content. Raises `DefinitionError`."""
        try:
            return msgspec.json.decode(content, type=self.kits[style].definition)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DefinitionError(f"The pinned definition of a {style} workflow cannot be read: {error}.") from error


class _Loaded(dict[str, StyleKit]):
    """The kits that are loaded; to ask for another one loads it. Every step asks, so this is a plain dictionary."""

    def __init__(self, load: Callable[[str], StyleKit]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, name: str) -> StyleKit:
        return self._load(name)


class _Kits(Mapping[str, StyleKit]):
    """All kits by name. To look at the names loads none of them."""

    def __init__(self, names: tuple[str, ...], loaded: _Loaded) -> None:
        self._names = names
        self._loaded = loaded

    def __getitem__(self, name: str) -> StyleKit:
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _tag(event: type[Event]) -> str:
    return str(event.__struct_config__.tag)


def _check_kit(kit: StyleKit, others: Iterable[StyleKit]) -> None:
    if not STYLE_NAME.fullmatch(kit.name) or kit.name in RESERVED:
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
    if not tag.startswith((f"{style}.", f"{SHARED}.")):
        raise ValueError(f"The tag {tag!r} of {event.__name__} does not begin with {style!r} and a dot.")
    if known.get(tag, event) is not event:
        raise ValueError(f"There are two events with the tag {tag!r}.")
    if not config.frozen or not config.forbid_unknown_fields:
        raise ValueError(f"{event.__name__} is not frozen, or does not refuse unknown fields.")
