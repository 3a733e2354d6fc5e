"""Checking a board that comes from a journal, which somebody else may have made.

Its policy is written out as an author would have written it, and read again by the same reader.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from ripstop.definitions.folders import inside
from ripstop.definitions.plain_tree import set_fields, tree_of
from ripstop.definitions.problems import Position, Problem, WrongDefinition
from ripstop.kernel.effects import Guards
from ripstop.kernel.errors import UsageError
from ripstop.kernel.resuming import override_guards
from ripstop.styles.blackboard.definition import MAIN, Board, includes

from .layout import POLICY
from .policy_files import PolicyTree
from .policy_reader import policy_of
from .prompts import MAX_AGENTS, wrong_name
from .schema import NUMBERS


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
