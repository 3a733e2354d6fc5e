"""Reading a report by a policy: three key fields, and everything else is left to MAIN.

- A field is a key line (`key_lines.py`): in any case and notation. What is in a block of code, an HTML comment or a
  quotation is an example, and says nothing; but a quotation can contradict.
- The iteration is always needed. Verdict and blockers are checked in the reports of the agents that the rules apply to.
  Both have to be there if the rules require a verdict; otherwise they can be left out, but what is there must be valid.
  In the reports of other agents they are only read.
- Lines that have the prefix of the iteration or the verdict and no valid value do not count, unless no line has one:
  logs and tables in a report may begin with the same word. A line without marks is the verdict rather than one with
  marks. Another line that begins with another verdict contradicts it. `PASS | FAIL` is a choice, and says nothing.
- With marks (`- Verdict: FAIL`), below a heading that begins with the id of a task, a verdict is about that task alone,
  and so is that nothing blocks.
- A problem says where it is and quotes the line.
- Lines that say that nothing blocks and lines that say what does contradict one another.
- What a verdict has to show is put beside what the board's tool has found. The gates are in `gates.py`.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from ripstop.kernel.text_limits import shown as quoted
from ripstop.text.markdown import heading_of

from ..checks import Shown, command_ends, file_exists
from ..key_lines import FieldLine, key_lines, lines_of, shown_lines
from .calls import MAX_CLAIMS, CommandClaim, EvidenceClaim, FileClaim, NumberClaim, QuoteClaim
from .definition import Evidence, EvidenceKind, ReportRules, includes
from .gates import ReportProblem, report_checks, report_problems
from .plan import task_of_heading
from .state import BoardState

MAX_BLOCKERS = 200
MAX_DIGITS = 9
MISSING_ITERATION = "Report missing iteration (critical field)"

_MARKS = " .。!！;；,，"
_EXAMPLE = "in a block of code, a comment or a quotation, as an example is; write it as a line of the report"

InFile = TypeVar("InFile", FileClaim, NumberClaim, QuoteClaim)


class Report(Struct, frozen=True):
    iteration: int | None = None
    verdict: str | None = None
    blockers: tuple[str, ...] = ()
    clear: bool | None = None
    """Whether all blockers are the clear value; none if there is no blocker line."""
    problems: tuple[ReportProblem, ...] = ()

    clear_value: str = ""
    of_tasks: tuple[tuple[str, str], ...] = ()
    """Verdicts on one task alone: its id, and the verdict."""

    @property
    def open_blockers(self) -> tuple[str, ...]:
        return () if self.clear else tuple(one for one in self.blockers if not _is_clear(one, self.clear_value))


class _Field(Struct, frozen=True):
    """The lines of one field."""

    own: list[FieldLine]
    """About all that the report is about; those of a quotation included."""
    of_tasks: list[tuple[str, FieldLine]]
    """Each with the id of the task that it is about alone."""
    examples: list[FieldLine]

    @property
    def said(self) -> list[FieldLine]:
        return [line for line in self.own if not line.is_quoted]


def read_report(text: str, rules: ReportRules, agent: str, iteration: int | None = None) -> Report:
    """What a report says. `iteration`: the one that it has to be of; none: any."""
    problems: list[ReportProblem] = []
    lines = lines_of(text)
    shown = shown_lines(lines)
    tasks = _tasks(shown)

    def field(prefix: str) -> _Field:
        seen = key_lines(shown, prefix)
        about = {line.number: tasks[line.number] for line in seen if line.is_marked and line.number in tasks}
        hidden = [line for line in key_lines(lines, prefix) if not shown[line.number - 1]]
        return _Field(
            [line for line in seen if line.number not in about],
            [(about[line.number], line) for line in seen if line.number in about],
            hidden + [line for line in seen if line.is_quoted],
        )

    number = _iteration(field(rules.iteration_prefix), iteration, problems)
    of_policy: list[ReportProblem] = []
    verdicts, end = field(rules.verdict_prefix), max(1, len(lines))
    verdict = _verdict(verdicts, rules, end, of_policy)
    of_tasks = tuple((task, said) for task, line in verdicts.of_tasks if (said := _begins_with(line, rules)))
    blockers, clear = _blockers(field(rules.blocker_prefix), rules, end, of_policy)
    if includes(rules.apply_to, agent):
        problems += of_policy
    return Report(number, verdict, blockers, clear, tuple(problems), rules.blocker_clear_value, of_tasks)


def _tasks(lines: Sequence[str]) -> dict[int, str]:
    """The task in whose section a line is, by its number; a section lasts up to a heading of its level, or above."""
    found: dict[int, str] = {}
    level, task = 0, ""
    for number, line in enumerate(lines, 1):
        heading = heading_of(line) if "#" in line else None
        if heading and (named := task_of_heading(line)):
            level, task = heading.level, named
        elif heading and heading.level <= level:
            task = ""
        elif task:
            found[number] = task
    return found


def _iteration(field: _Field, wanted: int | None, problems: list[ReportProblem]) -> int | None:
    found = [*field.said, *(line for _, line in field.of_tasks)]
    if not found:
        example = f"; there is one {_EXAMPLE}" if field.examples else ""
        problems.append(ReportProblem(f"{MISSING_ITERATION}{example}", field="iteration"))
        return None
    numbers: dict[int, FieldLine] = {}
    for line in found:
        if line.value.isascii() and line.value.isdigit() and len(line.value) <= MAX_DIGITS:
            numbers.setdefault(int(line.value), line)
    if len(numbers) > 1:
        named = " and ".join(map(str, list(numbers)[:5])) + (" and others" if len(numbers) > 5 else "")
        problems.append(_at(list(numbers.values())[1], "iteration", f"the report names several iterations: {named}"))
        return None
    if not numbers:
        problems.append(_at(found[0], "iteration", f"the iteration {quoted(found[0].value)} is not a whole number"))
        return None
    number, line = next(iter(numbers.items()))
    if wanted is not None and number != wanted:
        problems.append(_at(line, "iteration", f"the report is of iteration {number}, and the current one is {wanted}"))
    return number


def _verdict(field: _Field, rules: ReportRules, end: int, problems: list[ReportProblem]) -> str | None:
    allowed = ", ".join(rules.verdict_allowed)
    valid = [line for line in field.said if line.value in rules.verdict_allowed]
    valid = [line for line in valid if not line.is_marked] or valid
    if not valid:
        if examples := [line for line in field.examples if line.value in rules.verdict_allowed]:
            problems.append(_at(examples[-1], "verdict", f"the verdict is {_EXAMPLE}"))
        elif field.said:
            text = f"the verdict {quoted(field.said[-1].value)} is not allowed; allowed are {allowed}"
            problems.append(_at(field.said[-1], "verdict", text))
        elif rules.require_verdict:
            text = f"the report has no verdict: a line {rules.verdict_prefix!r} with one of {allowed}"
            problems.append(ReportProblem(text, line=end, field="verdict"))
        return None
    said = list(dict.fromkeys(line.value for line in valid))
    if len(said) > 1 and rules.verdict_pick != "last":
        text = f"the report has several verdicts that differ: {', '.join(said)}; `verdict_pick: last` takes the last"
        problems.append(_at(next(line for line in valid if line.value == said[1]), "verdict", text))
        return None
    counted = valid[-1]
    first = counted.number if rules.verdict_pick == "last" else 0
    for line in field.own:
        if line.number > first and _begins_with(line, rules) not in ("", counted.value):
            says = f"its verdict is {counted.value}, and another line says another"
            problems.append(_at(line, "verdict", f"the report contradicts itself: {says}"))
            return None
    return counted.value


def _begins_with(line: FieldLine, rules: ReportRules) -> str:
    """The verdict that a line begins with; empty if it has none, or a choice of several."""
    value = line.value.casefold()
    begins = [one for one in rules.verdict_allowed if value.startswith(one.casefold())]
    longest = max(begins, key=len, default="")
    return "" if value[len(longest) :].lstrip()[:1] in ("|", "/") else longest


def _blockers(
    field: _Field, rules: ReportRules, end: int, problems: list[ReportProblem]
) -> tuple[tuple[str, ...], bool | None]:
    clear_value = rules.blocker_clear_value
    aside = [line for _, line in field.of_tasks] + [line for line in field.own if line.is_quoted]
    found = field.said + [line for line in aside if not _is_clear(line.value, clear_value)]
    found.sort(key=lambda line: line.number)
    if not field.said and rules.require_verdict:
        where = " outside of code, comments and quotations" if field.examples else ""
        text = f"the report does not say what blocks: a line {rules.blocker_prefix!r}{where} with {clear_value!r}"
        problems.append(ReportProblem(f"{text} if nothing does", line=end, field="blockers"))
    if not found:
        return (), None
    empty = next((line for line in found if not line.value), None)
    if empty:
        problems.append(_at(empty, "blockers", f"the line says nothing; write {clear_value!r} if nothing blocks"))
    if len(found) > MAX_BLOCKERS:
        text = f"the report has {len(found)} lines of blockers; at most {MAX_BLOCKERS} are read"
        problems.append(_at(found[MAX_BLOCKERS], "blockers", text))
    texts = tuple(line.value for line in found[:MAX_BLOCKERS])
    are_clear = [_is_clear(text, clear_value) for text in texts]
    if any(are_clear) and not all(are_clear):
        says = f"one line says {clear_value!r}, and another one what blocks"
        problems.append(_at(found[are_clear.index(False)], "blockers", f"the report contradicts itself: {says}"))
    return texts, all(are_clear)


def _is_clear(text: str, clear_value: str) -> bool:
    """Whether a text says that nothing blocks: case and marks behind it do not matter."""
    return text.rstrip(_MARKS).casefold() == clear_value.rstrip(_MARKS).casefold()


def _at(line: FieldLine, field: str, text: str) -> ReportProblem:
    return ReportProblem(text, line.number, line.column, field, line.text)


# The report of the agent whose turn it was


def current_report(state: BoardState) -> Report:
    assert state.agent is not None
    return read_report(state.report, state.definition.policy.report_rules, state.agent.name, state.iteration)


def why_refused(state: BoardState, report: Report) -> list[ReportProblem]:
    """Why the policy does not accept the report; empty if it does."""
    assert state.agent is not None
    return list(report.problems) or report_problems(
        state.report, report.verdict, state.definition.policy, state.agent.name, then="stop"
    )


# Evidence: what the policy demands, looked for on disk and put beside what is claimed


def evidence_claims(state: BoardState, verdict: str | None) -> list[tuple[Evidence, EvidenceClaim]]:
    """The evidence that the report needs, each with what the tool has to look for."""
    assert state.agent is not None
    found: list[tuple[Evidence, EvidenceClaim]] = []
    lines = shown_lines(lines_of(state.report))
    for one in state.definition.policy.evidence:
        if _is_demanded(one, state, verdict):
            found += [(one, claim) for claim in _claims_of(one, state.agent.name, lines)]
    return found[:MAX_CLAIMS]


def _is_demanded(one: Evidence, state: BoardState, verdict: str | None) -> bool:
    assert state.agent is not None
    agents = one.agents or state.definition.policy.report_rules.apply_to
    return includes(agents, state.agent.name) and (not one.verdicts or verdict in one.verdicts)


def _claims_of(one: Evidence, agent: str, lines: Sequence[str]) -> list[EvidenceClaim]:
    """Without a `line` in the policy one claim; else one for each such line, whose rest is the path or the quote."""
    path = one.path.replace("{agent}", agent)
    named: list[str] | None = None
    if one.line:
        named = [line.value.strip("`\"'“”") for line in key_lines(lines, one.line) if line.value]
    match one.evidence:
        case EvidenceKind.FILE:
            return [_in_file(FileClaim, one, name) for name in ([path] if named is None else named)]
        case EvidenceKind.NUMBER:
            return [_in_file(NumberClaim, one, name) for name in ([path] if named is None else named)]
        case EvidenceKind.QUOTE:
            return [_in_file(QuoteClaim, one, path, text) for text in ([""] if named is None else named)]
        case EvidenceKind.COMMAND:
            return [CommandClaim(command=one.command, exit_code=one.exit_code)]


def _in_file(kind: type[InFile], one: Evidence, path: str, text: str = "") -> InFile:
    return kind(path=path, sha256=one.sha256, prefix=one.prefix, at_least=one.at_least, at_most=one.at_most, text=text)


def claims_shown(state: BoardState, report: Report) -> list[tuple[Evidence | None, Shown]]:
    """What was claimed and what was found, in the order of the policy: evidence, then gates."""
    assert state.agent is not None
    policy = state.definition.policy
    looked = evidence_claims(state, report.verdict)
    found: list[tuple[Evidence | None, Shown]] = []
    for (one, claim), result in zip(looked, state.checked.evidence, strict=False):
        found.append((one, Shown(_in_words(claim, report.verdict), result.shown, result.holds)))
    for one in policy.evidence:
        if one.line and not any(one is each for each, _ in looked) and _is_demanded(one, state, report.verdict):
            claimed = f"{report.verdict or 'the report'}, {one.name or one.evidence}"
            found.append((one, Shown(claimed, f"the report has no line {one.line!r}", False)))
    checks = report_checks(state.report, report.verdict, policy, state.agent.name)
    return found + [(None, one.shown) for one in checks]


def _in_words(claim: EvidenceClaim, verdict: str | None) -> str:
    match claim:
        case FileClaim():
            what = file_exists(claim.path, None).claimed
        case NumberClaim():
            what = f"{claim.prefix or 'the number'} in {claim.path}"
        case QuoteClaim():
            what = f"{claim.text[:100]!r} in {claim.path}"
        case CommandClaim():
            what = command_ends(claim.command, claim.exit_code, None).claimed
    return f"{verdict}: {what}" if verdict else what
