"""Settings: the user's `ripstop.toml`, the project's, the environment, the command line; the later wins.

The user's is `$XDG_CONFIG_HOME/ripstop/ripstop.toml` (`~/.config/…`), the project's is in the folder you work in. What
the project's names is not the user's choice: an address needs the user's consent before anything is sent to it, a
module of tools before it is imported, an MCP server before it is started, and a store must be inside the project's
folder.

    store = "sqlite:.ripstop/journal.db"
    concurrency = 32            # commands at a time
    attempts = 7                # of a call that is refused, before its run is paused
    default_limits = true       # false: limit nothing but what is limited explicitly

    [models]
    default = "local"           # or "openai:NAME", "script:PATH", "<provider>:NAME"
    strong = "…"                # for architects; without it they get the default
    base_url = "…"              # for openai: and anything compatible
    timeout = 900               # seconds for one call, from its beginning to its end

    [limits]                    # for every run; what can be limited is in `kernel/limits.py`
    tokens = 200000

    [guards]                    # for every run whose definition says nothing else
    patience = 5

    [docs]                      # hand-off documents
    max_interactions = 10
    attempts = 3                # of an agent at a document, before a person is asked
    language = "en"             # of what is written into documents: en or zh; left out: that of the document
    keep_days = 7               # before terminated documents are cleaned up
    replies = true              # the sender of a document gets a message when it is finished

    [docs.models]               # per role; without one, the default
    programmer = "…"

    [tools]
    modules = ["shop.tools"]    # Python modules whose tools agents may call

    [mcp.git]                   # an MCP server; its tools are git__NAME (`tables.py`)
    command = ["mcp-server-git"]

    [commands]                  # what agents run with run_command; in the user's own file only
    allow = ["python3", "git"]  # instead of the built-in list
    also = ["terraform"]        # more than the built-in list
    seconds = 120               # the longest that a command can take
    read = ["~/.cargo"]         # more folders that commands can read
    unconfined = false          # true: run commands without a sandbox where there is none

    [http]                      # what tools can reach; in the user's own file only
    allow = ["http://127.0.0.1:8080"]   # origins that need no consent and can be private addresses

    [webhooks.crm]              # is told what happens: url, secret, workflows, kinds (docs/webhooks.md)
    url = "https://crm.example.com/hook"
    secret = "CRM_SECRET"       # the environment variable with whsec_…

    [serve.workflows]           # bots that `ripstop serve` answers for (`tables.py`)
    shop = "bots/shop.json"

    [rate_limits]               # seconds between two calls, per provider
    openai = 2.0

    [retries.openai]            # how patient workers are with one provider, before a run is paused
    attempts = 7
    pause = 1.0                 # seconds before the second attempt, doubled each time
    longest = 60.0              # seconds between two attempts
    seconds = 300.0             # from the first refusal to the last attempt

    [windows]                   # tokens of prompt and reply together, per model or provider
    "openai:NAME" = 32768

    [prices."openai:NAME"]      # money per million tokens
    input = 0.5
    output = 1.5

Environment: `RIPSTOP_STORE`, `RIPSTOP_MODEL`, `RIPSTOP_BASE_URL`, `RIPSTOP_HTTP_ALLOW` (separated by commas).
Keys of providers are read from the environment only, never from a file. The range of every number is in
`number_ranges.py`.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from ripstop.kernel.effects import Guards, Limits
from ripstop.kernel.errors import UsageError
from ripstop.kernel.outages import RetryPolicy
from ripstop.kernel.resuming import override_guards
from ripstop.security.addresses import parse_address
from ripstop.security.files import config_folder, read_plain_file
from ripstop.text.courtesy import check_phrases

from .number_ranges import numbers_in, wrong_number
from .tables import (
    Http,
    McpServer,
    Serve,
    Webhook,
    check_webhooks,
    named_by_project,
    only_in_project,
    replaced,
    wrong_servers,
)

# What a project's settings must not say, because it is the user's to choose.


ONLY_IN_USERS_FILE = {
    "commands": "choose what agents run on your machine",
    "http": "choose which addresses tools can reach from your machine",
    "serve.hosts": "choose under which names your machine answers",
}
"""Tables and keys, each with what the project must not do."""


def check_project(table: Mapping[str, Any], file: Path, users_file: Path | None) -> None:
    """Check the table of a project's file. Raises `UsageError`."""
    for keys, harm in ONLY_IN_USERS_FILE.items():
        name, _, key = keys.partition(".")
        if key in table.get(name, ()) if key else name in table:
            raise UsageError(
                f"{file}: `{keys}`: a project must not {harm}. Only your own settings file can have this: "
                f"{users_file or 'ripstop.toml in your configuration folder'}."
            )


# The line of a key in a TOML file, which the standard library's reader does not report.
#
# A line that only looks like a key, inside a text of several lines, may be taken for one; it is a hint for people.


Keys = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_NAME})\s*\]")
_KEY = re.compile(rf"\s*({_NAME})\s*=")


def line_of(text: str, keys: Keys) -> int | None:
    """The line of a key, or of the innermost thing around it that has a line of its own."""
    found: dict[Keys, int] = {}
    for number, place in _places(text):
        found.setdefault(place, number)
    around = (keys[:length] for length in range(len(keys), 0, -1))
    return next((found[place] for place in around if place in found), None)


def _places(text: str) -> Iterator[tuple[int, Keys]]:
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _keys(header[1])
            yield number, table
        elif key := _KEY.match(line):
            yield number, table + _keys(key[1])


def _keys(name: str) -> Keys:
    """A dotted name, taken apart as TOML does it."""
    try:
        value: Any = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)


FILE = "ripstop.toml"
MAX_BYTES = 64_000
DEEPEST = 20
"""Tables and arrays inside one another; no setting needs more than three."""
MOST_DOTS = 100
"""In a line. `tomllib` takes time that grows with the square of a key's parts."""
LONGEST_KEY = 80
"""Characters of a key that an error quotes."""
LONGEST_PROBLEM = 500
DEFAULT_STORE = "sqlite:.ripstop/journal.db"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: float = 0.0
    output: float = 0.0


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: str = "local"
    strong: str = ""
    base_url: str = ""
    timeout: float = 900.0
    """Seconds for one call of a model, from its beginning to its end."""


class Docs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max_interactions: int = 10
    attempts: int = 3
    language: Literal["", "en", "zh"] = ""
    keep_days: float = 7.0
    replies: bool = True
    models: dict[str, str] = {}


class ToolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    modules: tuple[str, ...] = ()
    """Python modules whose tools agents may call."""


class Commands(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What agents may run with `run_command`. Only the user's own file has it."""

    allow: tuple[str, ...] | None = None
    """The programs, instead of the built-in list."""
    also: tuple[str, ...] = ()
    """More programs."""
    seconds: float = 120.0
    read: tuple[str, ...] = ()
    """More folders that commands can read."""
    unconfined: bool = False
    """Whether commands run without a sandbox where there is none."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `ripstop.toml`, the environment and flags have set; `read_settings` makes it."""

    store: str = DEFAULT_STORE
    store_named: bool | None = None
    """Whether the user named this very store, and so agreed to it; `None`: unless it is the default one. Not a setting
    of a file."""
    concurrency: int = 32
    attempts: int = 7
    models: Models = Models()
    limits: Limits = Limits()
    default_limits: bool = True
    """Whether a run has its style's limits where none is set here or for the run (`default_limits.py`)."""
    guards: dict[str, Any] = {}
    docs: Docs = Docs()
    tools: ToolSettings = ToolSettings()
    mcp: dict[str, McpServer] = {}
    commands: Commands = Commands()
    http: Http = Http()
    webhooks: dict[str, Webhook] = {}
    serve: Serve = Serve()
    rate_limits: dict[str, float] = {}
    windows: dict[str, int] = {}
    """Tokens that prompt and reply may have together, by a model's SPEC or by a provider."""
    retries: dict[str, RetryPolicy] = {}
    """How patient workers are with providers that refuse calls, by the provider's name."""
    prices: dict[str, Price] = {}
    model_for_all: str = ""
    """The model of the command line: for all agents, whatever the definition says. Not a setting of a file."""
    address_from: str = ""
    """The project's file that names `models.base_url`; empty if the user chose it. Not a setting of a file."""
    tools_from: str = ""
    """The project's file that names `tools.modules`; empty if the user chose them all. Not a setting of a file."""
    project_servers: tuple[str, ...] = ()
    """The MCP servers that are not the user's choice, but that of the project's file. Not a setting of a file."""
    project_webhooks: tuple[str, ...] = ()
    """The webhooks that the project's file names, and not the user's own. Not a setting of a file."""

    @property
    def store_is_named(self) -> bool:
        """Whether the user, or the program that made these settings, named this very store."""
        return self.store != DEFAULT_STORE if self.store_named is None else self.store_named

    def __post_init__(self) -> None:
        """Raise `UsageError` for a number out of its range: settings can also be made in Python."""
        for keys, value in numbers_in(msgspec.structs.asdict(self)):
            if problem := wrong_number(keys, value):
                raise UsageError(f"Settings: `{'.'.join(keys)}`: {problem}.")


NOT_IN_FILES = ("store_named", "model_for_all", "address_from", "tools_from", "project_servers", "project_webhooks")
"""Fields that say who chose a value; a file must not claim that the user did."""


def read_settings(
    folder: str | Path,
    environment: Mapping[str, str] | None = None,
    store: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    allow: Sequence[str] = (),
) -> Settings:
    """Read the settings that apply in a folder.

    Args:
        folder: The project's folder; its `ripstop.toml` need not exist.
        environment: Variables to use instead of the process's own.
        store: The journal, from the command line; likewise `model`, `base_url` and `allow`.

    Raises:
        UsageError: A file or a value is wrong; the text names the file and the line.
    """
    folder = Path(folder)
    variables = os.environ if environment is None else environment
    own = config_folder(variables)
    users = _from_file(own / FILE) if own else {}
    projects = _from_file(folder / FILE)
    if not (own and (folder / FILE).resolve() == (own / FILE).resolve()):
        check_project(projects, folder / FILE, own / FILE if own else None)
    found = msgspec.convert({**_merged(users, projects), "mcp": replaced(users, projects)}, Settings)
    chosen_store = store or variables.get("RIPSTOP_STORE")
    if chosen_store:
        store_path(chosen_store, "--store" if store else "RIPSTOP_STORE")
    chosen_model = model or variables.get("RIPSTOP_MODEL")
    chosen_address = base_url or variables.get("RIPSTOP_BASE_URL") or ""
    if chosen_address:
        parse_address(chosen_address, "--base-url" if base_url else "RIPSTOP_BASE_URL")
    models = msgspec.structs.replace(
        found.models,
        default=chosen_model or found.models.default,
        # a model that is chosen for this command takes the place of both
        strong="" if chosen_model else found.models.strong,
        base_url=chosen_address or found.models.base_url,
    )
    chosen_store = store or variables.get("RIPSTOP_STORE")
    if not chosen_store and projects.get("store") not in (None, users.get("store")):
        _check_store_of_project(folder, projects["store"])
    theirs, mine = (table.get("models", {}).get("base_url", "") for table in (projects, users))
    # an address of the project's that the user's own file has, too, is the user's choice
    from_project = bool(theirs and not chosen_address) and not (
        mine and parse_address(mine).origin == parse_address(theirs).origin
    )
    return msgspec.structs.replace(
        found,
        store=chosen_store or found.store,
        store_named=True if chosen_store else _names_one_store(users, projects),
        models=models,
        http=found.http.also(variables, allow),
        model_for_all=model or "",
        address_from=str(folder / FILE) if from_project else "",
        tools_from=str(folder / FILE) if _modules(projects) - _modules(users) else "",
        project_servers=only_in_project(users, projects),
        project_webhooks=named_by_project(found.webhooks, users.get("webhooks", {})),
    )


def _names_one_store(users: dict[str, Any], projects: dict[str, Any]) -> bool | None:
    """Whether the user's own file names the store, and it is the same in every folder; `None`: no file names any."""
    if "store" not in users and "store" not in projects:
        return None
    return "store" not in projects and os.path.isabs(users["store"].partition(":")[2])


def _modules(table: dict[str, Any]) -> set[str]:
    return set(table.get("tools", {}).get("modules", ()))


def _check_store_of_project(folder: Path, store: str) -> None:
    """A project must not choose where else on the user's machine a journal is written: only inside its own folder."""
    try:
        inside = (folder / store.partition(":")[2]).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a circle of links, or a character that no path can have
        inside = False
    if not inside:
        raise UsageError(
            f"{folder / FILE}: `store`: {store!r} is outside of the project's folder. If the journal is meant to be "
            "there, say so yourself: --store, RIPSTOP_STORE, or `store` in your own settings file."
        )


def _from_file(path: Path) -> dict[str, Any]:
    """The valid table of a settings file; empty if there is no file."""
    try:
        text = read_plain_file(path, MAX_BYTES).decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS:
            raise UsageError(f"{path}:{number}: more than {MOST_DOTS} dots in a line; no setting has that many parts.")
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:  # ValueError: a number with thousands of digits, a bad date
        raise UsageError(f"{path}: this is not TOML: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"{path}: tables or arrays are nested too deeply; at most {DEEPEST} are possible.") from error
    _SettingsReader(path, text).check(found)
    return found


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Two valid tables as one; where both have a key, that of `above` wins, key by key inside tables."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            merged[key] = _merged(below[key], above[key])
    return merged


class _SettingsReader:
    """Checks the table of a file; every error names the file and the line of the key."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def check(self, found: dict[str, Any]) -> None:
        if key := next((key for key, value in found.items() if _deeper(value, DEEPEST)), ""):
            raise self._wrong((key,), f"nested too deeply; at most {DEEPEST} tables or arrays are possible")
        self._known(found, Settings)
        for keys, value in numbers_in(found):
            if problem := wrong_number(keys, value):
                raise self._wrong(keys, problem)
        try:
            settings = msgspec.convert(found, Settings)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$")
            # `docs.attempts`, or `rate_limits[...]` where the user names the keys
            keys = tuple(key for key in where.strip("`").replace("[...]", "").split(".") if key)
            raise self._wrong(keys, f"{what[:1].lower()}{what[1:]}") from error
        self._sensible(settings)

    def _wrong(self, keys: tuple[str, ...], problem: str) -> UsageError:
        line = line_of(self._text, keys)
        named = ".".join(key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}…" for key in keys)
        if len(problem) > LONGEST_PROBLEM:  # it can quote a value
            problem = f"{problem[:LONGEST_PROBLEM]}…"
        return UsageError(f"{self._path}{f':{line}' if line else ''}: `{named}`: {problem.rstrip('.')}.")

    def _known(self, table: dict[str, Any], kind: type[msgspec.Struct], *inside: str) -> None:
        """Only keys that mean something: one that is misspelt would be silently without effect."""
        fields = {f.name: f.type for f in msgspec.structs.fields(kind) if f.name not in NOT_IN_FILES}
        for key, value in table.items():
            if key not in fields:
                near = difflib.get_close_matches(key[:80].lower(), fields, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise self._wrong((*inside, key), f"there is no such setting{hint} Known here: {', '.join(fields)}")
            within = fields[key]
            if isinstance(value, dict) and isinstance(within, type) and issubclass(within, msgspec.Struct):
                self._known(value, within, *inside, key)
            elif isinstance(value, dict) and (named := _struct_of_values(within)):
                for name, one in value.items():
                    if isinstance(one, dict):
                        self._known(one, named, *inside, key, name)

    def _sensible(self, settings: Settings) -> None:
        try:
            store_path(settings.store, "the store")
        except UsageError as error:
            raise self._wrong(("store",), str(error)) from error
        if settings.models.base_url:
            try:
                parse_address(settings.models.base_url, "the address")
            except UsageError as error:
                raise self._wrong(("models", "base_url"), str(error)) from error
        try:
            settings.http.check()
        except UsageError as error:
            raise self._wrong(("http", "allow"), str(error)) from error
        if wrong := check_webhooks(settings.webhooks) or settings.serve.problem:
            raise self._wrong(*wrong)
        for module in settings.tools.modules:
            if not all(map(str.isidentifier, module.split("."))):
                raise self._wrong(("tools", "modules"), f"{module[:LONGEST_KEY]!r} is not the name of a Python module")
        for keys, problem in wrong_servers(settings.mcp):
            raise self._wrong(keys, problem)
        for name, wish in settings.guards.items():
            try:
                check_phrases(override_guards(Guards(), {name: wish}))
            except UsageError as error:
                raise self._wrong(("guards", name), str(error)) from error


def _struct_of_values(kind: Any) -> type[msgspec.Struct] | None:
    """What the values of a table are, if the user names its keys."""
    value = get_args(kind)[-1] if get_origin(kind) is dict else None
    return value if isinstance(value, type) and issubclass(value, msgspec.Struct) else None


def _deeper(value: Any, levels: int) -> bool:
    """Whether tables and arrays in a value are nested deeper than this many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(one, levels - 1) for one in inner)


def store_path(store: str, named_by: str = "The store") -> Path:
    """The file behind `sqlite:PATH`. Raises `UsageError`, which says who or what named it."""
    kind, _, path = store.partition(":")
    if path == ":memory:":
        raise UsageError(
            f"{named_by} {store!r} is a journal in memory, which would forget the run. Name a file: sqlite:PATH."
        )
    if kind != "sqlite" or not path:
        raise UsageError(f"{named_by} {store!r} is not known; write sqlite:PATH, for example {DEFAULT_STORE}.")
    return Path(path)
