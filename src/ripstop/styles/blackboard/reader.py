"""Reading a board from its folder: policy, prompts and plan, each checked against the others.

Policy and prompts are pinned. Plan, history and reports are the board itself; of these only the plan has to be there.
"""

import os
from collections.abc import Iterator
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.definitions.example_files import scenario_files, scenarios_in, write_files
from ripstop.definitions.loading import WORKFLOW_FILES, files_named, inside, read_inside, refuse_link
from ripstop.definitions.problems import ERROR, WARNING, Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import Reference, check_references
from ripstop.definitions.yaml_tree import set_fields, tree_of
from ripstop.kernel.effects import Guards
from ripstop.kernel.errors import UsageError
from ripstop.kernel.resuming import override_guards

from .definition import HISTORY, MAIN, MEMORY, PLAN, PROMPTS, REPORTS, Board, Evidence, Gate, includes
from .policy_reader import (
    POLICY,
    POLICY_FILE,
    Placed,
    PolicyRead,
    PolicyTree,
    in_folder,
    policy_of,
    prompt_of,
    read_tree,
)
from .prompt_files import MAX_AGENTS, PromptFile, Prompts, read_prompts, wrong_name
from .schema import NUMBERS, POLICY_SCHEMA

# Checking a board that comes from a journal, which somebody else may have made.
#
# Its policy is written out as an author would have written it, and read again by the same reader.


def check_pinned(board: Board) -> None:
    """Raise `WrongDefinition` unless a board could have been read from a folder."""
    place = Position(POLICY)
    tree = PolicyTree(tree_of(_written(board), place), board.policy_text, (), False, [])
    problems = [*policy_of(tree)[1], *(Problem(place, text) for text in _wrong(board))]
    if problems:
        raise WrongDefinition(problems)


def _written(board: Board) -> dict[str, Any]:
    policy = board.policy
    return {
        "report_rules": msgspec.to_builtins(policy.report_rules),
        "gates": [set_fields(gate, ("number",)) for gate in policy.gates],  # which can be wanted to be nought
        "evidence": [set_fields(evidence) for evidence in policy.evidence],
        **{name: getattr(policy, name) for name in NUMBERS},
        "main_json": policy.main_json,
        "plan": board.plan,
        "guards": board.guards,
    }


def _wrong(board: Board) -> Iterator[str]:
    if not os.path.isabs(board.folder):
        yield "its folder is not an absolute path"
    if not all(inside(file) for file in board.files):
        yield "one of its files is not in its folder"
    if board.main.name != MAIN or board.main.workflow:
        yield f"{MAIN} is not an agent of that name"
    if not 1 <= len(board.agents) <= MAX_AGENTS:
        yield f"it has {len(board.agents)} agents"
    seen: set[str] = set()
    for agent in (board.main, *board.agents):
        about = wrong_name(agent.name)
        if about or agent.file.upper() != agent.name or agent.name in seen:
            why = about or "its file has another, or it is there twice"
            yield f"the agent {agent.name[:80]!r} cannot have this name: {why}"
        if not agent.prompt.strip() and not agent.workflow:
            yield f"the prompt of {agent.name} is empty"
        seen.add(agent.name)
    for name in board.policy.report_rules.apply_to:
        if not includes(tuple(seen - {MAIN}), name):
            yield f"{name!r} is in 'apply_to', but has no prompt"
    try:
        override_guards(Guards(), board.guards)
    except UsageError as error:
        yield str(error).rstrip(".")


MAX_PLAN_BYTES = 1_000_000


class BoardRead(Struct, frozen=True):
    board: Board
    prompts: tuple[PromptFile, ...]
    warnings: tuple[Problem, ...]


def read_board(folder: Path) -> BoardRead:
    """The board that a folder is. Raises `WrongDefinition` with everything that is wrong, warnings included: a key that
    is not known may be the one that is missing."""
    for part in (MEMORY, PROMPTS):
        refuse_link(folder / part)
    problems: list[Problem] = []
    policy = _policy(folder, problems)
    prompts = _prompts(folder, problems)
    warnings: list[Problem] = []
    if prompts and not prompts.agents and not prompts.problems:
        place = Position(str(folder / PROMPTS))
        problems.append(Problem(place, f"{MAIN} has nobody to call", f"write {prompt_of('NAME')} for an agent"))
    if policy:
        warnings += policy.warnings
        problems += _plan_problems(folder, policy.plan, policy.plan_place)
        if prompts:
            found = [*_verdict_problems(policy), *_agent_problems(policy, prompts)]
            problems += [one for one in found if one.severity == ERROR]
            warnings += [one for one in found if one.severity == WARNING]
    elif not os.path.lexists(folder / PLAN):
        problems += _plan_problems(folder, PLAN, Position(str(folder / POLICY)))
    if problems:
        raise WrongDefinition(in_order([*problems, *warnings]))
    assert policy and prompts and prompts.main, "nothing is missing"
    all_prompts = (prompts.main, *prompts.agents)
    files = (in_folder(path, folder) for path in (*policy.files, *(one.path for one in all_prompts)))
    root = folder.resolve()
    board = Board(
        name=root.name,
        folder=str(root),
        main=prompts.main.agent,
        agents=tuple(one.agent for one in prompts.agents),
        policy=policy.policy,
        policy_text=policy.text,
        plan=policy.plan,
        files=tuple(dict.fromkeys(filter(None, files))),
        guards=policy.guards,
    )
    return BoardRead(board, all_prompts, tuple(in_order([*warnings, *prompts.warnings])))


def references_of(read: BoardRead) -> Iterator[Reference]:
    """What prompts name that is outside of the board."""
    for prompt in read.prompts:
        if prompt.model:
            yield Reference("model", prompt.agent.model, prompt.model.place)
        if prompt.workflow:
            yield Reference("workflow", prompt.agent.workflow, prompt.workflow.place)
        for tool in prompt.tools:
            yield Reference("tool", tool.value, tool.place)


def _policy(folder: Path, problems: list[Problem]) -> PolicyRead | None:
    """What could be read of the policy, so that the other files are checked as well; none if nothing could."""
    try:
        read, found = policy_of(read_tree(folder / POLICY))
    except WrongDefinition as error:
        problems += error.problems
        return None
    problems += found
    return read


def _prompts(folder: Path, problems: list[Problem]) -> Prompts | None:
    try:
        read = read_prompts(folder)
    except WrongDefinition as error:
        problems += error.problems
        return None
    problems += read.problems
    return read


def _plan_problems(folder: Path, plan: str, place: Position) -> Iterator[Problem]:
    if plan in (HISTORY, POLICY) or plan.startswith((f"{REPORTS}/", f"{PROMPTS}/")):
        yield Problem(place, f"{plan!r} cannot be the plan: it is another part of the board")
        return
    try:
        read_inside(folder, plan, MAX_PLAN_BYTES)
    except WrongDefinition as error:
        for problem in error.problems:
            hint = problem.hint or "it is the plan: what is to be done, and how far it is"
            yield Problem(problem.place, problem.text, hint)


# Names that a policy uses


def _agent_problems(policy: PolicyRead, prompts: Prompts) -> Iterator[Problem]:
    names = tuple(one.agent.name for one in prompts.agents)
    unreadable = tuple(Path(one.place.file).name.casefold() for one in prompts.problems)
    for named in policy.apply_to:
        if named.it.casefold() == MAIN.casefold():
            yield Problem(named.place, f"{MAIN} is in 'apply_to', but decides and does not report", "leave it out")
        elif not includes(names, named.it) and Path(prompt_of(named.it)).name.casefold() not in unreadable:
            text = f"{named.it!r} is in 'apply_to', but has no prompt: there is no {prompt_of(named.it)}"
            yield Problem(named.place, text, did_you_mean(named.it, names))
    for gate in policy.gates:
        yield from _gate_problems(gate, names)
    for evidence in policy.evidence:
        yield from _unknown(evidence.it.agents, names, evidence.place, evidence.it.name)


def _gate_problems(gate: Placed[Gate], names: tuple[str, ...]) -> Iterator[Problem]:
    first, then = gate.it.first, gate.it.then
    if gate.it.gate == "finish_needs" and not gate.it.if_reported:
        for name in gate.it.agents:
            if not includes(names, name):
                text = f"a run could never finish: the gate {gate.it.name!r} wants a verdict of {name!r}"
                yield Problem(gate.place, text, f"there is no {prompt_of(name)}")
        yield from _unknown(gate.it.after, names, gate.place, gate.it.name)
    elif then and includes(names, then) and not includes(names, first):
        text = f"{then} could never be called: the gate {gate.it.name!r} wants a report of {first!r} first"
        yield Problem(gate.place, text, f"there is no {prompt_of(first)}")
    else:
        mentioned = (*gate.it.agents, *gate.it.after, *filter(None, (first, then)))
        yield from _unknown(mentioned, names, gate.place, gate.it.name)


def _unknown(mentioned: tuple[str, ...], names: tuple[str, ...], place: Position, check: str) -> Iterator[Problem]:
    for name in mentioned:
        if not includes(names, name):
            yield Problem(
                place, f"{check!r} is about {name!r}, which has no prompt", did_you_mean(name, names), WARNING
            )


def _verdict_problems(read: PolicyRead) -> Iterator[Problem]:
    """Verdicts that no report can have."""
    allowed = read.policy.report_rules.verdict_allowed
    checks: list[Placed[Gate] | Placed[Evidence]] = [*read.gates, *read.evidence]
    for check in checks:
        for verdict in check.it.verdicts:
            if verdict not in allowed:
                text = f"{check.it.name!r} is about the verdict {verdict!r}, which is not in 'verdict_allowed'"
                yield Problem(check.place, text, did_you_mean(verdict, allowed), WARNING)


# Boards as folders: what ripstop asks of them, as of the definitions of any style.
#
# A folder is one if it has `memory/verification_policy.json` or `memory/prompts/`, and is not a workflow of another
# style (`workflow.yaml`, `pipeline.yaml`). The folder `memory` and the policy's file mean the folder that they are in.


class BoardFolders:
    style = "blackboard"
    looks_like = f"a folder with {POLICY}"
    greedy = False

    def find(self, path: Path) -> Path | None:
        if path.name == POLICY_FILE and os.path.isfile(path):
            path = path.parent
        if _is_board(path):
            return path
        inside = path.name == MEMORY or os.path.basename(os.path.realpath(path)) == MEMORY
        folder = path.parent if path.name == MEMORY else path / ".."
        return folder if inside and os.path.isdir(path) and _is_board(folder) else None

    def find_all(self, folder: Path) -> list[Path]:
        """Those with a policy: any folder can have `memory/prompts/`, whatever that is for."""
        return [path.parent.parent for path in files_named(POLICY_FILE, folder) if path.parent.name == MEMORY]

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        board = read_board(path).board
        return board.name, msgspec.json.encode(board, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        try:
            read = read_board(path)
        except WrongDefinition as error:
            return error.problems
        return [*read.warnings, *check_references(references_of(read), environment)]

    def check_pinned(self, definition: Board) -> None:

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        return POLICY_SCHEMA

    @property
    def scenarios(self) -> tuple[str, ...]:

        return scenarios()

    def example(self, folder: Path, scenario: str = "") -> list[Path]:

        return write_scenario(folder, scenario)


def _is_board(folder: Path) -> bool:
    if any(os.path.lexists(folder / name) for name in WORKFLOW_FILES):
        return False
    return os.path.lexists(folder / POLICY) or os.path.isdir(folder / PROMPTS)


READER = BoardFolders()


# Boards that are ready to run.


def scenarios() -> tuple[str, ...]:
    """Their names; first the one that is written if none is named."""
    return scenarios_in(_shipped())


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write the files of a scenario into a folder. Raises `UsageError` if one of them is there already."""
    return write_files(folder, scenario_files(_shipped(), scenario), (REPORTS,))


def _shipped() -> Traversable:
    return resources(__package__) / "scenarios"
