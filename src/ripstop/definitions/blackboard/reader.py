"""Reading a board from its folder: policy, prompts and plan, each checked against the others.

Policy and prompts are pinned. Plan, history and reports are the board itself; of these only the plan has to be there.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ripstop.definitions.folders import refuse_link
from ripstop.definitions.problems import ERROR, WARNING, Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import read_text
from ripstop.styles.blackboard.definition import HISTORY, MAIN, PLAN, REPORTS, Board, Evidence, Gate, includes

from .checks import Placed
from .layout import MEMORY, POLICY, PROMPTS, in_folder, prompt_of
from .policy_files import read_tree
from .policy_reader import PolicyRead, policy_of
from .prompts import PromptFile, Prompts, read_prompts

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
        refuse_link(folder / plan)
        read_text(folder / plan, str(folder / plan), MAX_PLAN_BYTES)
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
    if then and includes(names, then) and not includes(names, first):
        text = f"{then} could never be called: the gate {gate.it.name!r} wants a report of {first!r} first"
        yield Problem(gate.place, text, f"there is no {prompt_of(first)}")
    else:
        mentioned = (*gate.it.agents, *filter(None, (first, then)))
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
