"""What ripstop asks of the definitions of a style: to be recognised, read, checked, described and shown by example.

Every style that is defined in files has a reader. All that finds, loads and checks workflows goes over a list of
readers and knows no style. The first reader that recognises a path gets it; greedy ones are asked after all others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ripstop.kernel.errors import UsageError

from .problems import Problem, did_you_mean, with_stop


class ModelProblem(Struct, frozen=True):
    text: str
    hint: str = ""
    certain: bool = True
    """False: it may be right elsewhere."""


class Environment(Struct, frozen=True):
    """What a definition is checked against. A field that is `None` is not checked."""

    goal: str = ""
    """What the run is to do, if the definition does not say it."""
    any_name: bool = False
    """A workflow need not have its folder's name."""
    about_model: Callable[[str], ModelProblem | None] | None = None
    tools: tuple[str, ...] | None = None
    """The tools that are known here. Another process may bring more, so an unknown one is not an error."""
    about_workflow: Callable[[str], str] | None = None
    """Why a workflow that is named cannot be found; empty if it can."""
    cycle_through: Callable[[str], tuple[str, ...]] | None = None
    """The names on the way round, if a workflow that is named leads into a cycle; empty if it does not."""


class DefinitionReader(Protocol):
    """Recognises, reads and checks the definitions of one style."""

    @property
    def style(self) -> str: ...

    @property
    def looks_like(self) -> str:
        """What a path of this style is, for those whose path is none: `a folder with workflow.yaml`."""

    @property
    def greedy(self) -> bool:
        """Whether it takes files whose names do not say what they are."""

    def find(self, path: Path) -> Path | None:
        """The file (or folder) with the definition that a path means; `None` if it is not one of this style.

        Looks at names, and into a file only where its name does not say what it is. Never raises for odd files.
        """

    def find_all(self, folder: Path) -> list[Path]:
        """Every definition somewhere in a folder, in order."""

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        """The name of a definition, and its content in one canonical form. Raises `WrongDefinition`."""

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        """Everything that is wrong with a definition; if nothing is, what its author would want to know."""

    def check_pinned(self, definition: Any) -> None:
        """Raise `WrongDefinition` unless a definition from a journal could have been read from a file."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the file, for editors."""

    def example(self, folder: Path) -> list[Path]:
        """Write a definition that is ready to run; returns its files. Raises `UsageError` if one is there already."""


@runtime_checkable
class ScenarioReader(Protocol):
    """A reader that has several examples to choose from. `example` without one writes the first."""

    @property
    def scenarios(self) -> tuple[str, ...]: ...

    def example(self, folder: Path, scenario: str = "") -> list[Path]: ...


def write_example(reader: DefinitionReader, folder: Path, scenario: str | None = None) -> list[Path]:
    """Write an example of a style, or the one that is named. Raises `UsageError`."""
    if scenario is None:
        return reader.example(folder)
    if not isinstance(reader, ScenarioReader):
        raise UsageError(f"The style {reader.style!r} has one example only. Leave the scenario out.")
    if scenario not in reader.scenarios:
        known = reader.scenarios
        raise UsageError(
            with_stop(f"There is no scenario {scenario!r} of {reader.style!r}; {did_you_mean(scenario, known)}")
        )
    return reader.example(folder, scenario)


class LazyReaders(Sequence[DefinitionReader]):
    """Readers by their styles, each imported when it is needed. To go over all of them imports all of them."""

    def __init__(
        self, load: Callable[[str], DefinitionReader], files: Mapping[str, str], styles: Sequence[str]
    ) -> None:
        """`files`: the styles to which files of a name always belong, the first that a folder has before the others."""
        self._load = load
        self._files = files
        self._styles = tuple(styles)

    def for_names(self, names: Callable[[str], bool]) -> DefinitionReader | None:
        """The reader of the first file for which `names` is true; `None` if there is no such file."""
        style = next((style for file, style in self._files.items() if names(file)), None)
        return None if style is None else self._load(style)

    def of(self, style: str) -> DefinitionReader | None:
        return self._load(style) if style in self._styles else None

    def __getitem__(self, index: Any) -> Any:
        return tuple(map(self._load, self._styles))[index]

    def __iter__(self) -> Iterator[DefinitionReader]:
        return map(self._load, self._styles)

    def __len__(self) -> int:
        return len(self._styles)


Readers = Sequence[DefinitionReader]
