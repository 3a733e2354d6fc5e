"""What MAIN and the specialists are told. A prompt is bounded, however long the run."""

from collections.abc import Iterator
from typing import Any

from ripstop.kernel.prompt import Message, Prompt

from .. import shortening
from .decision import MAX_OPTIONS, Decision, legal_names
from .definition import FINISH, USER, Board, EvidenceKind, Specialist, VerificationPolicy, includes
from .gates import applies_to_report, concerned
from .history import MAX_ENTRY
from .state import BoardState, Reported

FILE_TOOLS = ("read_file", "list_files", "search_files", "write_file", "edit_file")
MAX_PLAN = 100_000
"""Characters of the plan that are shown."""
MAX_TASKS = 50
"""Tasks that an agent is told to name."""


def prompt_for_main(state: BoardState, longest: int = 0) -> Prompt:
    """`longest`: characters of each part of its prompt that is not the board's own; 0: all. Likewise below."""
    board = state.definition
    parts = [
        _section("Goal", state.goal, longest),
        _section("Iteration", f"{state.iteration} (at most {state.most_iterations} in this run)"),
        _section(f"Plan ({board.plan})", cut(state.known.plan, MAX_PLAN), longest),
        _section("History", _history(state), longest),
        _section("Reports", _reports(state), longest),
        _section("Open blockers of earlier runs", _left_open(state), longest),
        _section("Verification policy", board.policy_text),
    ]
    told = f"{board.main.prompt.strip()}\n\n{_FORMAT.format(names=', '.join(legal_names(board)))}"
    messages = (Message("system", told), Message("user", "\n\n".join(filter(None, parts))))
    return Prompt(messages, (), _schema(board) if board.policy.main_json == "strict" else None)


def prompt_for_agent(state: BoardState, agent: Specialist, longest: int = 0) -> Prompt:
    told = f"{agent.prompt.strip()}\n\n{report_format(state.definition.policy, agent.name)}"
    return Prompt((Message("system", told), Message("user", assignment(state, longest))), tools_of(agent))


def assignment(state: BoardState, longest: int = 0) -> str:
    """What a specialist gets to work on."""
    decision = state.decision
    assert decision is not None
    parts = [
        _section("Iteration", str(state.iteration)),
        _section("Task", decision.assignment, longest),
        _section("Why", decision.reason if decision.task else "", longest),
        _section("Tasks", _tasks(state, decision)),
        _section("Goal", state.goal, longest),
        _section(f"Plan ({state.definition.plan})", cut(state.known.plan, MAX_PLAN), longest),
        _section("Reports", _reports(state), longest),
    ]
    return "\n\n".join(filter(None, parts))


def _tasks(state: BoardState, decision: Decision) -> str:
    """For which tasks the report can count, where that is for the agent to say."""
    tasks = concerned(state, decision, state.known.tasks)
    if len(tasks) < 2 or not any(gate.per_task for gate in state.definition.policy.gates):
        return ""
    named = ", ".join(one.id for one in tasks[:MAX_TASKS]) + (", …" if len(tasks) > MAX_TASKS else "")
    return f"Your report counts only for those of these tasks that it names: {named}."


def report_format(policy: VerificationPolicy, agent: str) -> str:
    rules = policy.report_rules
    lines = [f"{rules.iteration_prefix} <number of the iteration>"]
    if rules.require_verdict and includes(rules.apply_to, agent):
        lines.append(f"{rules.verdict_prefix}<{' | '.join(rules.verdict_allowed)}>")
        lines.append(f"{rules.blocker_prefix}<what blocks, or {rules.blocker_clear_value}>")
    fields = "\n".join(lines)
    checked = "\n".join(dict.fromkeys([*_gate_lines(policy, agent), *_evidence_lines(policy, agent)]))
    return (
        "Your last message is your report, in free text. It must have these lines, each on a line of its own:\n"
        f"{fields}\n"
        + (f"What it says is checked; what is not shown does not count:\n{checked}\n" if checked else "")
        + "To deliver a file, write its path on a line of its own (shared files begin with collab/) and the whole file "
        "in a fenced block below it."
    )


def _gate_lines(policy: VerificationPolicy, agent: str) -> Iterator[str]:
    """What the gates of a policy want of the reports of an agent."""
    for gate in policy.gates:
        if not applies_to_report(gate, policy, agent):
            continue
        line, needs = " or ".join(repr(one) for one in (gate.prefix, *gate.also)), _with(gate.verdicts)
        match gate.gate:
            case "require_line":
                choice = f" and one of {', '.join(gate.allowed)}" if gate.allowed else ""
                yield f"- {needs}a line that begins with {line}{choice}"
            case "forbid_line":
                yield f"- {needs}no line that begins with {line}"
            case _:
                bound = "at least" if gate.gate == "min_number" else "at most"
                there = "" if gate.required else ", if there is one,"
                yield f"- {needs}the line that begins with {line}{there} has a number of {bound} {gate.number:g}, alone"


def _evidence_lines(policy: VerificationPolicy, agent: str) -> Iterator[str]:
    for one in policy.evidence:
        if not includes(one.agents or policy.report_rules.apply_to, agent):
            continue
        path, needs = one.path.replace("{agent}", agent), _with(one.verdicts)
        where = path or f"the file that a line with {one.line!r} names"
        match one.evidence:
            case EvidenceKind.FILE:
                named = path or f"every file that you name on a line that begins with {one.line!r}, one at least,"
                yield f"- {needs}{named} is there and not empty"
            case EvidenceKind.NUMBER:
                bounds = [f"at least {one.at_least:g}"] if one.at_least is not None else []
                bounds += [f"at most {one.at_most:g}"] if one.at_most is not None else []
                number = " ".join(("a number", " and ".join(bounds))).strip()
                yield f"- {needs}{where} has {number}{f' after {one.prefix!r}' if one.prefix else ''}"
            case EvidenceKind.QUOTE:
                yield f"- {needs}what follows {one.line!r} on a line, one at least, is word for word in {path}"
            case EvidenceKind.COMMAND:
                yield f"- {needs}`{' '.join(one.command)}` is run, and ends with {one.exit_code}"


def _with(verdicts: tuple[str, ...]) -> str:
    return f"with {' or '.join(verdicts)}: " if verdicts else ""


def tools_of(agent: Specialist) -> tuple[str, ...]:
    return FILE_TOOLS if agent.tools is None else agent.tools


def cut(text: str, most: int, length: int = 0) -> str:
    """The beginning of a text, saying how much of it there is; `length`: if `text` itself is only a beginning."""
    length = max(length, len(text))
    return text if length <= most else f"{text[:most]}\n[cut: the first {most:,} of {length:,} characters]"


_FORMAT = (
    "Answer with one JSON object and nothing else:\n"
    '{{"next_agent": "…", "reason": "…", "task": "…", "dev_plan": "…", "finish_review_override": null}}\n'
    "next_agent is one of: {names}. " + FINISH + " ends the run; " + USER + ' asks a person ("question", "options"). '
    "task is what the agent is to do. dev_plan says what changes in the plan; `update <id> status to <STATUS>` is "
    "carried out. dev_plan_next replaces the whole plan. finish_review_override is only for " + FINISH + "."
)


def _schema(board: Board) -> dict[str, Any]:
    """What a server that holds MAIN to a schema lets it say: everything that a decision may have."""
    text: dict[str, Any] = {"type": "string", "maxLength": 4000}
    required = {"next_agent": {"enum": legal_names(board)}, "reason": text, "task": text, "dev_plan": text}
    optional: dict[str, Any] = {
        **{name: {"type": "string"} for name in ("dev_plan_next", "history_append", "question", "decision_title")},
        "options": {"type": "array", "items": text, "maxItems": MAX_OPTIONS},
        "finish_review_override": {"type": ["string", "null"]},
    }
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _section(title: str, text: str, longest: int = 0) -> str:
    return f"# {title}\n{shortening.cut(text.strip(), longest)}" if text.strip() else ""


def _history(state: BoardState) -> str:
    history = state.known.history
    before = f"[{history.left_out} earlier entries are left out]\n" if history.left_out else ""
    return before + "\n\n".join(cut(entry.strip(), MAX_ENTRY) for entry in history.entries)


def _reports(state: BoardState) -> str:
    most = state.definition.policy.recent_reports
    recent = state.reports[-most:] if most else ()
    return "\n\n".join(_report(one, state.definition.policy.max_report_chars) for one in recent)


def _left_open(state: BoardState) -> str:
    return "\n".join(f"- {agent}: {one}" for agent, ones in state.left_open.items() for one in ones)


def _report(one: Reported, most: int) -> str:
    said = [f"## {one.agent}, iteration {one.iteration}"]
    for shown in one.shown:
        holds = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}[shown.holds]
        said.append(f"- claimed: {shown.claimed}; shown: {shown.shown} ({holds})")
    return "\n".join([*said, cut(one.text, most, one.length)])
