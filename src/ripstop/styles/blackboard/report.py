"""Reading a report by a policy: three key fields, and everything else is left to MAIN.

- A field is a line that begins with its prefix. The full-width colon and the ASCII one are the same; blanks before and
  after are not part of it.
- The iteration is always needed. Verdict and blockers are checked in the reports of the agents that the rules apply to.
  Both have to be there if the rules require a verdict; otherwise they can be left out, but what is there must be valid.
  In the reports of other agents they are only read.
- Lines that have the prefix of the iteration or the verdict and no valid value do not count, unless no line has one:
  logs and tables in a report may begin with the same word.
- A problem says where it is and quotes the line.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ripstop.kernel.plain import shown

from .definition import ReportRules, includes

MAX_BLOCKERS = 200
MAX_DIGITS = 9
LONGEST_QUOTE = 200
_NEWLINE = re.compile(r"\r\n|\r|\n")
MISSING_ITERATION = "Report missing iteration (critical field)"


class ReportProblem(Struct, frozen=True):
    text: str
    line: int = 1
    column: int = 1
    field: str = ""
    quote: str = ""

    def __str__(self) -> str:
        return f"{self.text} (line {self.line}: {shown(self.quote)})" if self.quote else self.text


class FieldLine(Struct, frozen=True):
    """A line that begins with a prefix."""

    number: int
    column: int
    """Where the value begins."""
    value: str
    text: str


class Report(Struct, frozen=True):
    iteration: int | None = None
    verdict: str | None = None
    blockers: tuple[str, ...] = ()
    clear: bool | None = None
    """Whether all blockers are the clear value; none if there is no blocker line."""
    problems: tuple[ReportProblem, ...] = ()

    @property
    def open_blockers(self) -> tuple[str, ...]:
        return () if self.clear else self.blockers


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
    return Report(number, verdict, blockers, clear, tuple(problems))


def lines_of(text: str) -> list[str]:
    """The lines as editors count them; `str.splitlines` breaks at more characters."""
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    return lines if lines[-1] else lines[:-1]


def lines_with(lines: Sequence[str], prefix: str, any_case: bool = False) -> Iterator[FieldLine]:
    """The lines that begin with a prefix, each with what comes after it."""
    wanted = _comparable(prefix.strip(), any_case)
    for number, line in enumerate(lines, 1):
        bare = line.lstrip()
        if _comparable(bare[: len(wanted)], any_case) == wanted:
            rest = bare[len(wanted) :]
            column = len(line) - len(rest.lstrip()) + 1
            yield FieldLine(number, column, rest.strip(), line.strip()[:LONGEST_QUOTE])


def one_colon(text: str) -> str:
    return text.replace("：", ":")


def _comparable(text: str, any_case: bool) -> str:
    return one_colon(text).lower() if any_case else one_colon(text)


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
        problems.append(_at(found[0], "iteration", f"the iteration {shown(found[0].value)} is not a whole number"))
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
            _at(found[-1], "verdict", f"the verdict {shown(found[-1].value)} is not allowed; allowed are {allowed}")
        )
        return None
    said = list(dict.fromkeys(line.value for line in valid))
    if len(said) > 1 and rules.verdict_pick != "last":
        text = f"the report has several verdicts that differ: {', '.join(said)}; `verdict_pick: last` takes the last"
        problems.append(_at(next(line for line in valid if line.value == said[1]), "verdict", text))
        return None
    return valid[-1].value


def _blockers(
    lines: Sequence[str], rules: ReportRules, needed: bool, problems: list[ReportProblem]
) -> tuple[tuple[str, ...], bool | None]:
    found = list(lines_with(lines, rules.blocker_prefix))
    if not found:
        if needed:
            text = f"the report does not say what blocks: a line {rules.blocker_prefix!r}"
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
    return texts, all(text == rules.blocker_clear_value for text in texts)


def _at(line: FieldLine, field: str, text: str) -> ReportProblem:
    return ReportProblem(text, line.number, line.column, field, line.text)
