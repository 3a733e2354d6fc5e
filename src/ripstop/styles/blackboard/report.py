"""Reading a report by a policy: three key fields, and everything else is left to MAIN.

- A field is a line that begins with its prefix. The full-width colon and the ASCII one are the same; blanks before and
  after are not part of it.
- The iteration is always needed. Verdict and blockers are checked in the reports of the agents that the rules apply to.
  Both have to be there if the rules require a verdict; otherwise they can be left out, but what is there must be valid.
  In the reports of other agents they are only read.
- Lines that have the prefix of the iteration or the verdict and no valid value do not count, unless no line has one:
  logs and tables in a report may begin with the same word. But a line outside of code that begins with a verdict other
  than the one that counts contradicts it, in any notation (`- **Verdict:** FAIL`). `PASS | FAIL` is a choice, and says
  nothing.
- A verdict or a blocker in a block of code is an example, and counts for nothing.
- A problem says where it is and quotes the line.
- Lines that say that nothing blocks and lines that say what does contradict one another.
- What a verdict has to show is put beside what the board's tool has found. The gates are in `gates.py`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from ripstop.kernel.text_limits import shown as quoted

from ..checks import (
    MAX_QUOTE,
    FieldLine,
    Shown,
    command_ends,
    file_exists,
    lines_of,
    lines_with,
    one_colon,
    without_code,
)
from .calls import MAX_CLAIMS, CommandClaim, EvidenceClaim, FileClaim, NumberClaim, QuoteClaim
from .definition import Evidence, EvidenceKind, ReportRules, includes
from .gates import ReportProblem, report_checks, report_problems
from .state import BoardState

MAX_BLOCKERS = 200
MAX_DIGITS = 9
MISSING_ITERATION = "Report missing iteration (critical field)"

_MARKS = " .。!！;；,，"
_NOTATION = r"[ \t>#*_`+-]*(?:\d{1,4}[.)][ \t*_`]*)?"
"""What can stand before a field: of an item, a heading or a quotation, and bold."""

InFile = TypeVar("InFile", FileClaim, NumberClaim, QuoteClaim)


class Report(Struct, frozen=True):
    iteration: int | None = None
    verdict: str | None = None
    blockers: tuple[str, ...] = ()
    clear: bool | None = None
    """Whether all blockers are the clear value; none if there is no blocker line."""
    problems: tuple[ReportProblem, ...] = ()

    clear_value: str = ""

    @property
    def open_blockers(self) -> tuple[str, ...]:
        return () if self.clear else tuple(one for one in self.blockers if not _is_clear(one, self.clear_value))


def read_report(text: str, rules: ReportRules, agent: str, iteration: int | None = None) -> Report:
    """What a report says. `iteration`: the one that it has to be of; none: any."""
    problems: list[ReportProblem] = []
    lines = lines_of(text)
    number = _iteration(lines, rules, iteration, problems)
    of_policy: list[ReportProblem] = []
    verdict = _verdict(lines, rules, rules.require_verdict, of_policy)
    blockers, clear = _blockers(lines, rules, rules.require_verdict, of_policy)
    if includes(rules.apply_to, agent):
        problems += of_policy
    return Report(number, verdict, blockers, clear, tuple(problems), rules.blocker_clear_value)


def _iteration(
    lines: Sequence[str], rules: ReportRules, wanted: int | None, problems: list[ReportProblem]
) -> int | None:
    found = list(lines_with(lines, rules.iteration_prefix))
    if not found:
        problems.append(ReportProblem(MISSING_ITERATION, field="iteration"))
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


def _verdict(lines: Sequence[str], rules: ReportRules, needed: bool, problems: list[ReportProblem]) -> str | None:
    found = list(lines_with(lines, rules.verdict_prefix))
    allowed = ", ".join(rules.verdict_allowed)
    if not found:
        if needed:
            text = f"the report has no verdict: a line {rules.verdict_prefix!r} with one of {allowed}"
            problems.append(ReportProblem(text, line=max(1, len(lines)), field="verdict"))
        return None
    valid = [line for line in found if line.value in rules.verdict_allowed]
    if not valid:
        problems.append(
            _at(
                found[-1],
                "verdict",
                f"the verdict {quoted(found[-1].value)} is not allowed; allowed are {allowed}",
            )
        )
        return None
    plain = without_code(lines)
    examples, valid = valid, [line for line in valid if plain[line.number - 1]]
    if not valid:
        text = "the verdict is in a block of code, as an example is; write it as a line of the report"
        problems.append(_at(examples[-1], "verdict", text))
        return None
    said = list(dict.fromkeys(line.value for line in valid))
    if len(said) > 1 and rules.verdict_pick != "last":
        text = f"the report has several verdicts that differ: {', '.join(said)}; `verdict_pick: last` takes the last"
        problems.append(_at(next(line for line in valid if line.value == said[1]), "verdict", text))
        return None
    first = valid[-1].number if rules.verdict_pick == "last" else 0
    for line in _verdict_lines(plain, rules):
        if line.number > first and _says_another(line, valid[-1], rules):
            says = f"its verdict is {valid[-1].value}, and another line says another"
            problems.append(_at(line, "verdict", f"the report contradicts itself: {says}"))
            return None
    return valid[-1].value


def _verdict_lines(lines: Sequence[str], rules: ReportRules) -> Iterator[FieldLine]:
    """The lines that begin with a verdict in any notation: as an item, a heading or a quotation, or in bold."""
    prefix = one_colon(rules.verdict_prefix.strip())
    colon = r"[*_`]*[ \t]*[:：]" if prefix.endswith(":") else ""
    start = re.compile(rf"{_NOTATION}{re.escape(prefix.rstrip(': '))}{colon}[ \t*_`]*", re.IGNORECASE)
    for number, line in enumerate(lines, 1):
        if found := start.match(line):
            yield FieldLine(number, found.end() + 1, line[found.end() :].strip(), line.strip()[:MAX_QUOTE])


def _says_another(line: FieldLine, counted: FieldLine, rules: ReportRules) -> bool:
    """Whether a line begins with a verdict that differs. Of several to the letter it was looked at before."""
    value = line.value.casefold()
    begins = [one for one in rules.verdict_allowed if value.startswith(one.casefold())]
    longest = max(begins, key=len, default=counted.value)
    is_choice = value[len(longest) :].lstrip()[:1] in ("|", "/")
    return not is_choice and longest != counted.value


def _blockers(
    lines: Sequence[str], rules: ReportRules, needed: bool, problems: list[ReportProblem]
) -> tuple[tuple[str, ...], bool | None]:
    found = list(lines_with(without_code(lines), rules.blocker_prefix))
    if not found:
        if needed:
            where = " outside of code" if any(lines_with(lines, rules.blocker_prefix)) else ""
            text = f"the report does not say what blocks: a line {rules.blocker_prefix!r}{where}"
            clear = f"{text} with {rules.blocker_clear_value!r} if nothing does"
            problems.append(ReportProblem(clear, line=max(1, len(lines)), field="blockers"))
        return (), None
    empty = next((line for line in found if not line.value), None)
    if empty:
        text = f"the line says nothing; write {rules.blocker_clear_value!r} if nothing blocks"
        problems.append(_at(empty, "blockers", text))
    if len(found) > MAX_BLOCKERS:
        text = f"the report has {len(found)} lines of blockers; at most {MAX_BLOCKERS} are read"
        problems.append(_at(found[MAX_BLOCKERS], "blockers", text))
    texts = tuple(line.value for line in found[:MAX_BLOCKERS])
    are_clear = [_is_clear(text, rules.blocker_clear_value) for text in texts]
    if any(are_clear) and not all(are_clear):
        says = f"one line says {rules.blocker_clear_value!r}, and another one what blocks"
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
    lines = lines_of(state.report)
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
        named = [line.value.strip("`\"'“”") for line in lines_with(lines, one.line, any_case=True) if line.value]
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
