"""A board as it is pinned: its policy, the prompts of its agents, and how MAIN works.

Nothing here, and nothing in this style, is about a field of work: what the agents are called, which verdicts there are
and what is checked is the policy's word.
"""

from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

MAIN = "MAIN"
"""The agent that decides."""
FINISH, USER = "FINISH", "USER"
"""What MAIN may name besides an agent: the end, and a person."""
MEMORY, REPORTS = "memory", "reports"
"""The folders of a board."""
PLAN = f"{MEMORY}/dev_plan.md"
HISTORY = f"{MEMORY}/project_history.md"
PROMPTS = f"{MEMORY}/prompts"

Then = Literal["stop", "tell"]
"""What happens if a check fails: the run stops, or MAIN is told."""


class ReportRules(Struct, frozen=True):
    """How the key fields of a report are read. Every field is required in a policy, apart from the last two."""

    apply_to: tuple[str, ...]
    """Agents whose reports need a verdict and blockers; of all others only the iteration is checked."""
    require_verdict: bool
    verdict_prefix: str
    verdict_allowed: tuple[str, ...]
    blocker_prefix: str
    blocker_clear_value: str
    verdict_pick: Literal["one", "last"] = "one"
    """Of several verdicts that differ: an error, or the last."""
    iteration_prefix: str = "iteration:"


class Gate(Struct, frozen=True):
    """A check that a policy composes. Which of the fields count depends on its `gate`."""

    gate: Literal[
        "require_line",
        "forbid_line",
        "min_number",
        "max_number",
        "before",
        "finish_needs",
        "finish_needs_plan",
        "no_open_blockers",
    ]
    name: str = ""
    """As the policy calls it."""
    agents: tuple[str, ...] = ()
    """For reports: of which agents; empty: of those that the report rules apply to."""
    verdicts: tuple[str, ...] = ()
    """Only reports with one of these verdicts, or for `finish_needs` the verdicts that are needed; empty: any."""
    prefix: str = ""
    """How the line begins."""
    allowed: tuple[str, ...] = ()
    """For `require_line`: what the rest of the line may be; empty: anything but nothing."""
    number: float = 0.0
    """For `min_number` and `max_number`."""
    required: bool = False
    """Whether a number that is not there fails the gate."""
    first: str = ""
    then: str = ""
    """For `before`: `first` has to report before `then` is called."""
    marked: str = ""
    """For `before`: only if the task, or its lines in the plan, hold this word."""
    if_reported: bool = False
    """For `finish_needs`: an agent that has not reported in this run is not asked for."""
    on_failure: Then = "stop"
    also: tuple[str, ...] = ()
    """Other ways in which the line may begin."""
    per_task: bool = False
    """For `before` and `finish_needs`: the report has to be about the same task, for each task that it is about."""
    after: tuple[str, ...] = ()
    """For `before` and `finish_needs`: the report has to be later than the last one of these agents."""
    unless: tuple[str, ...] = ()
    """Not for tasks whose lines in the plan hold one of these. Case and blanks do not matter."""
    statuses: tuple[str, ...] = ()
    """For `finish_needs_plan`: those that a task may have; empty: `done_statuses` of the policy."""


class EvidenceKind(StrEnum):
    """The one list of kinds. Which fields of a policy each has is in `schema.py`, what is looked for in `calls.py`."""

    FILE = "file"
    NUMBER = "number"
    QUOTE = "quote"
    COMMAND = "command"


class Evidence(Struct, frozen=True):
    """What a verdict has to show, besides saying so. Which of the fields count depends on its `evidence`."""

    evidence: EvidenceKind
    name: str = ""
    agents: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    path: str = ""
    """A file of the workspace …"""
    line: str = ""
    """… or how a line of the report begins whose rest names the file. For a quote: whose rest is the quote."""
    sha256: str = ""
    prefix: str = ""
    """For a number in a file: how its line begins."""
    at_least: float | None = None
    at_most: float | None = None
    command: tuple[str, ...] = ()
    """A program and its arguments, run in the workspace after the turn."""
    exit_code: int = 0
    """The one that the command has to end with."""
    on_failure: Then = "tell"


class VerificationPolicy(Struct, frozen=True):
    report_rules: ReportRules
    gates: tuple[Gate, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    max_iterations: int = 50
    recent_reports: int = 3
    recent_history: int = 20
    max_report_chars: int = 20_000
    main_json: Literal["strict", "last"] = "strict"
    main_retries: int = 0
    done_statuses: tuple[str, ...] = ("DONE", "VERIFIED", "COMPLETED", "CLOSED", "完成", "已完成", "已验证")
    """Statuses of a task in the plan that mean that it is done."""
    finish_override: bool = True
    """Whether `finish_review_override` of MAIN passes the gates `finish_needs`."""


class Specialist(Struct, frozen=True):
    """An agent, or a workflow in its place, that MAIN can call."""

    name: str
    prompt: str
    file: str
    """The middle of its file names: `report_<file>.md`."""
    model: str = ""
    tools: tuple[str, ...] | None = None
    """What it may call; none: the file tools."""
    workflow: str = ""

    @property
    def report(self) -> str:
        return f"{REPORTS}/report_{self.file}.md"


class Board(Struct, frozen=True):
    name: str
    folder: str
    main: Specialist
    agents: tuple[Specialist, ...]
    policy: VerificationPolicy
    policy_text: str = ""
    """The policy as its file says it, for MAIN."""
    plan: str = PLAN
    files: tuple[str, ...] = ()
    """The files of the definition: policy and prompts."""
    guards: dict[str, Any] = {}

    def agent(self, name: str) -> Specialist | None:
        """The agent of that name; case does not matter."""
        wanted = name.strip().casefold()
        return next((one for one in self.agents if one.name.casefold() == wanted), None)

    @property
    def watched(self) -> tuple[str, ...]:
        """The files that no agent may touch, apart from its own report."""
        reports = (one.report for one in self.agents)
        return tuple(dict.fromkeys((self.plan, HISTORY, *reports, *self.files)))


def includes(names: tuple[str, ...], name: str) -> bool:
    """Whether an agent is named; case does not matter."""
    wanted = name.casefold()
    return any(one.casefold() == wanted for one in names)
