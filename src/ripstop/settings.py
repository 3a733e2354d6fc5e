"""Settings: `ripstop.toml`, then the environment, then the command line; the later wins.

    store = "sqlite:.ripstop/journal.db"
    concurrency = 32            # commands at a time
    attempts = 5                # of a call that may be tried again

    [models]
    default = "local"           # or "openai:NAME", "script:PATH", "<provider>:NAME"
    strong = "…"                # for architects; without it they get the default
    base_url = "…"              # for openai: and anything compatible

    [limits]                    # for every run: tokens, money, calls, seconds, turns
    tokens = 200000

    [guards]                    # for every run whose definition says nothing else
    patience = 5

    [docs]                      # hand-off documents
    max_interactions = 10
    attempts = 3                # of an agent at a document, before a person is asked
    language = "en"             # of what is written into documents: en or zh; left out: that of the document
    keep_days = 7               # before terminated documents are cleaned up
    replies = true              # whoever sent a document in gets a message when it is finished

    [docs.models]               # per role; without one, the default
    programmer = "…"

    [pace]                      # seconds between two calls, per provider
    openai = 2.0

    [prices."openai:NAME"]      # money per million tokens
    input = 0.5
    output = 1.5

Environment: `RIPSTOP_STORE`, `RIPSTOP_MODEL`, `RIPSTOP_BASE_URL`. Keys of providers stand in the
environment only, never in a file.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ripstop.kernel.effects import Guards, Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.going_on import AMOUNTS, with_wishes
from ripstop.plain_file import read_plain_file
from ripstop.toml_places import line_of

FILE = "ripstop.toml"
MAX_BYTES = 500_000
DEFAULT_STORE = "sqlite:.ripstop/journal.db"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: float = 0.0
    output: float = 0.0


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: str = "local"
    strong: str = ""
    base_url: str = ""


class Docs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max_interactions: Annotated[int, msgspec.Meta(ge=1)] = 10
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    language: Literal["", "en", "zh"] = ""
    keep_days: Annotated[float, msgspec.Meta(ge=0, le=36_500)] = 7.0
    replies: bool = True
    models: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    store: str = DEFAULT_STORE
    concurrency: int = 32
    attempts: int = 5
    models: Models = Models()
    limits: Limits = Limits()
    guards: dict[str, Any] = {}
    docs: Docs = Docs()
    pace: dict[str, float] = {}
    prices: dict[str, Price] = {}


def read_settings(
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    store: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
) -> Settings:
    found = _from_file(folder / FILE)
    chosen_model = model or environment.get("RIPSTOP_MODEL")
    models = Models(
        default=chosen_model or found.models.default,
        # a model that is named for this run is meant for all its agents
        strong="" if chosen_model else found.models.strong,
        base_url=base_url or environment.get("RIPSTOP_BASE_URL") or found.models.base_url,
    )
    chosen = store or environment.get("RIPSTOP_STORE") or found.store
    return msgspec.structs.replace(found, store=chosen, models=models)


def _from_file(path: Path) -> Settings:
    try:
        text = read_plain_file(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    try:
        return _Reader(path, text).settings()
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not TOML: {error}.") from error


class _Reader:
    """Makes settings of a file's text; every complaint names the file and the line of the key."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def settings(self) -> Settings:
        found = tomllib.loads(self._text)
        self._known(found, Settings)
        try:
            settings = msgspec.convert(found, Settings)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$")
            # `docs.attempts`, or `pace[...]` where any key may stand
            keys = tuple(key for key in where.strip("`").replace("[...]", "").split(".") if key)
            raise self._wrong(keys, f"{what[:1].lower()}{what[1:]}") from error
        self._sensible(settings)
        return settings

    def _wrong(self, keys: tuple[str, ...], problem: str) -> UsageError:
        line = line_of(self._text, keys)
        return UsageError(f"{self._path}{f':{line}' if line else ''}: `{'.'.join(keys)}`: {problem.rstrip('.')}.")

    def _known(self, table: dict[str, Any], kind: type[msgspec.Struct], *inside: str) -> None:
        """Only keys that mean something: one that is misspelt would be silently without effect."""
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        for key, value in table.items():
            if key not in fields:
                near = difflib.get_close_matches(key[:80].lower(), fields, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise self._wrong((*inside, key), f"there is no such setting. {hint}Known here: {', '.join(fields)}")
            within = fields[key]
            if isinstance(value, dict) and isinstance(within, type) and issubclass(within, msgspec.Struct):
                self._known(value, within, *inside, key)
            elif key == "prices" and isinstance(value, dict):
                for model, price in value.items():
                    if isinstance(price, dict):
                        self._known(price, Price, *inside, key, model)

    def _sensible(self, settings: Settings) -> None:
        for name in AMOUNTS:
            value = getattr(settings.limits, name)
            if value is not None and not value > 0:
                raise self._wrong(("limits", name), f"must be above 0, not {value:g}")
        for name, wish in settings.guards.items():
            try:
                with_wishes(Guards(), {name: wish})
            except UsageError as error:
                raise self._wrong(("guards", name), str(error)) from error


def store_path(store: str) -> Path:
    """The file behind `sqlite:PATH`."""
    kind, _, path = store.partition(":")
    if path == ":memory:":
        raise UsageError("A journal in memory would forget the run. Name a file: --store sqlite:PATH.")
    if kind != "sqlite" or not path:
        raise UsageError(f"--store {store!r} is not known; write sqlite:PATH, for example {DEFAULT_STORE}.")
    return Path(path)
