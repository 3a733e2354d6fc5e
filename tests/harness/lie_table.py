"""Lies that agents tell: each changes the script of a shipped scenario, or of the delivery example, at one point.

A script without its lie ends as a success. With it, none may: the run has to end for the reason that is given.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Line = dict[str, Any]
Change = Callable[[list[Line]], list[Line]]
DELIVERY = "delivery"
GRAPH = "review"
"""The example of a graph that is told lies in."""
DONE_T1, DONE_T2 = "update M1-T1 status to VERIFIED", "update M1-T2 status to VERIFIED"
PLAN_ONE = "## M1-T1: Turn a title into a slug\n- status: VERIFIED\n"
PLAN_EXEMPT = "".join(f"## M1-T{n}: x\n- status: VERIFIED\n- test_required: no\n" for n in (1, 2))


class Lie(NamedTuple):
    name: str
    script: str
    """A scenario of boards, `DELIVERY` or `GRAPH`."""
    change: Change
    because: str
    """A part of the reason that the run ends for."""
    earlier: Change | None = None
    """The script of a run before it, on the same board."""


def decision(agent: str, reason: str = "All is done.", **more: Any) -> Line:
    told = {"next_agent": agent, "reason": reason, "dev_plan": "", "finish_review_override": None, **more}
    return {"agent": "MAIN", "reply": json.dumps(told, ensure_ascii=False)}


# Changes of a script


def mentioning(words: str, decisions: int) -> Change:
    """MAIN says more in the tasks of its first decisions."""

    def change(script: list[Line]) -> list[Line]:
        for at in [at for at, line in enumerate(script) if line["agent"] == "MAIN"][:decisions]:
            told = json.loads(script[at]["reply"])
            told["task"] += words
            script = with_line(script, at, {"agent": "MAIN", "reply": json.dumps(told)})
        return script

    return change


def only(*lines: Line) -> Change:
    return lambda script: [*lines, *([lines[-1]] * 4)]


def finish_after(agent: str, number: int = 0, **more: Any) -> Change:
    """FINISH behind an agent's report, and again however often it is told why not."""
    return lambda script: [*script[: _at(script, agent, number) + 1], *[decision("FINISH", **more)] * 5]


def blocked_in_the_end(script: list[Line]) -> list[Line]:
    """Both tasks are verified; then the test that is made once more is blocked."""
    report = "iteration: 9\nVerdict: BLOCKED\nBlockers: the production db is lost"
    calls = decision("TEST", "Once more.", task="Run the tests of M1-T2.", dev_plan=DONE_T2)
    return [*script[:-1], calls, {"agent": "TEST", "reply": report}, *[decision("FINISH")] * 5]


def said(agent: str, old: str, new: str, number: int = 0) -> Change:
    """Other words in a report."""

    def change(script: list[Line]) -> list[Line]:
        at = _at(script, agent, number)
        assert old in script[at]["reply"], script[at]
        return with_line(script, at, {**script[at], "reply": script[at]["reply"].replace(old, new)})

    return change


def wrote(agent: str, path: str, content: str | None) -> Change:
    """Other content in a file, wherever it is written; none: it is not written."""

    def change(script: list[Line]) -> list[Line]:
        found = []
        for line in script:
            calls = [_with_content(call, path, content) for call in line.get("calls", ())]
            kept = [call for call in calls if call is not None]
            if line["agent"] != agent or "calls" not in line:
                found.append(line)
            elif kept or line.get("reply"):
                found.append({**line, "calls": kept})
        return found

    return change


def _with_content(call: Any, path: str, content: str | None) -> Any:
    if call["args"].get("path") != path:
        return call
    return None if content is None else {**call, "args": {**call["args"], "content": content}}


def all_of(*changes: Change) -> Change:
    def change(script: list[Line]) -> list[Line]:
        for one in changes:
            script = one(script)
        return script

    return change


def insisting(script: list[Line]) -> list[Line]:
    """Say the last thing again, however often it is refused."""
    return [*script, *[script[-1]] * 4]


def insisting_on(words: str) -> Change:
    """MAIN says its first line with these words again, however often it is told why not."""

    def change(script: list[Line]) -> list[Line]:
        at = next(at for at, line in enumerate(script) if line["agent"] == "MAIN" and words in line["reply"])
        return [*script[: at + 1], *[script[at]] * 4]

    return change


def without(agent: str, number: int) -> Change:
    """The turn of an agent, and the decision that calls it, are left out."""

    def change(script: list[Line]) -> list[Line]:
        end = _at(script, agent, number)
        start = max(at for at in range(end) if script[at]["agent"] == "MAIN")
        return [*script[:start], *script[end + 1 :]]

    return change


def with_line(script: list[Line], at: int, line: Line) -> list[Line]:
    return [*script[:at], line, *script[at + 1 :]]


def _at(script: list[Line], agent: str, number: int) -> int:
    """Where the words of an agent are, counted from 0, or from the end below it."""
    return [at for at, line in enumerate(script) if line["agent"] == agent and "calls" not in line][number]


def iterations_again(script: list[Line]) -> list[Line]:
    """Each report with the number of its own iteration, after a turn was left out or put in."""
    number, found = 0, []
    for line in script:
        if line["agent"] == "MAIN":
            number += 1
        elif "calls" not in line:
            head, _, rest = line["reply"].partition("\n")
            assert head.startswith("iteration:")
            line = {**line, "reply": f"iteration: {number}\n{rest}"}  # noqa: PLW2901
        found.append(line)
    return found


def check_says(*words: str) -> Change:
    """The last words of the check, each time with the coding before it; the last ones whenever it is asked again."""

    def change(script: list[Line]) -> list[Line]:
        at = _last(script, "check")
        again = [line for line in script if line["agent"] in ("coding", "coding_critic")]
        more = [line for word in words[1:] for line in (*again, {"agent": "check", "reply": word})]
        return [*with_line(script, at, {"agent": "check", "reply": words[0]}), *more, *again]

    return change


def check_finds(severity: str) -> Change:
    found = {"feedback_type": "build_error", "severity": severity, "details": "It does not start."}

    def change(script: list[Line]) -> list[Line]:
        call = {"agent": "check", "reply": "", "calls": [{"tool": "provide_feedback", "args": found}]}
        again = [line for line in script if line["agent"] in ("coding", "coding_critic")]
        last = script[_last(script, "check")]
        more = [line for _ in range(2) for line in (*again, call, last)]
        return [*script[: _last(script, "check")], call, *script[_last(script, "check") :], *more]

    return change


def coding_again(script: list[Line]) -> list[Line]:
    """The same work and the same words, each time that the project is sent back."""
    again = [line for line in script if line["agent"] in ("coding", "coding_critic")]
    return [*script, *[line for _ in range(2) for line in (*again, script[_last(script, "check")])]]


def _last(script: list[Line], agent: str) -> int:
    return max(at for at, line in enumerate(script) if line["agent"] == agent and not line.get("calls"))


def reviewer_says(text: str) -> Change:
    """Other last words of the reviewer, however often it is asked."""
    return lambda script: [*script[: _last(script, "reviewer")], *[{"agent": "reviewer", "reply": text}] * 4]


APPROVAL = '{"content": "Good.", "decisions": {"score": 9, "blocking": false}}'
PASSES, FAILS = '{"verdict": "pass"}', '{"verdict": "fail", "reasons": ["The list is lost."]}'
NOT_READ, KEPT_BACK = "'check' gave no verdict", "The product cannot be delivered. It was sent back 2 times."
OPEN, VERDICT = "wants every task of the plan", "wants {} of {} before FINISH"

LIES = (
    # MAIN
    Lie("FINISH at once, everything TODO", "tdd", only(decision("FINISH")), "M1-T1 is TODO"),
    Lie(
        "FINISH at once, everything set to VERIFIED",
        "tdd",
        only(decision("FINISH", dev_plan=f"{DONE_T1}; {DONE_T2}")),
        VERDICT.format("PASS", "TEST"),
    ),
    Lie(
        "FINISH at once, with an override",
        "tdd",
        only(decision("FINISH", dev_plan=f"{DONE_T1}; {DONE_T2}", finish_review_override="reviewed by hand")),
        VERDICT.format("PASS", "TEST"),
    ),
    Lie("an override of open tasks", "tdd", only(decision("FINISH", finish_review_override=True)), OPEN),
    Lie(
        "the task that is not done is no longer in the plan",
        "tdd",
        finish_after("REVIEW", dev_plan_next=PLAN_ONE),
        "M1-T2 is not in the plan any more",
    ),
    Lie("an empty plan", "tdd", only(decision("FINISH", dev_plan_next="# Done\n")), "not in the plan any more"),
    Lie(
        "a plan that says that no test is needed",
        "tdd",
        only(decision("FINISH", dev_plan_next=PLAN_EXEMPT)),
        VERDICT.format("PASS", "TEST"),
    ),
    Lie(
        "the review is left out",
        "tdd",
        all_of(without("REVIEW", -1), iterations_again, insisting),
        VERDICT.format("PASS", "REVIEW"),
    ),
    Lie(
        "the test after the change is left out",
        "tdd",
        all_of(without("TEST", -1), iterations_again, insisting),
        VERDICT.format("PASS", "TEST"),
    ),
    Lie(
        "a test of another task",
        "tdd",
        lambda script: with_line(
            script, 0, decision("TEST", "M1-T2 is easier.", task="Write tests for M1-T2.", dev_plan=DONE_T2)
        ),
        "wants a report of TEST on M1-T1 before DEV is called",
    ),
    Lie(
        "FINISH and DEV in one decision",
        "tdd",
        only({"agent": "MAIN", "reply": '{"next_agent": "DEV", "reason": "x", "next_agent": "FINISH"}'}),
        "is in it twice",
    ),
    Lie("only one task is worked on", "tdd", finish_after("REVIEW", dev_plan=DONE_T1), "M1-T2 is TODO"),
    Lie(
        "only one task is worked on, both are VERIFIED",
        "tdd",
        finish_after("REVIEW", dev_plan=f"{DONE_T1}; {DONE_T2}"),
        "(M1-T2)",
    ),
    Lie(
        "a task that MAIN only mentions",
        "tdd",
        all_of(
            finish_after("REVIEW", dev_plan=f"{DONE_T1}; {DONE_T2}"), mentioning(" (M1-T1 only; M1-T2 comes later.)", 4)
        ),
        "wants a report of TEST on M1-T2 before DEV is called",
    ),
    # Specialists
    Lie("PASS without a coverage", "tdd", said("TEST", "coverage: 100%\n", "", 1), "wants a line 'coverage:'"),
    Lie("PASS with too little coverage", "tdd", said("TEST", "coverage: 100%", "coverage: 79.9%", 1), "at least 80"),
    Lie("a coverage in words", "tdd", said("TEST", "coverage: 100%", "coverage: full", 1), "wants a number"),
    Lie(
        "another coverage than the one that was measured",
        "tdd",
        all_of(wrote("TEST", "collab/test_results.txt", "coverage: 12%\n"), insisting_on("VERIFIED")),
        "12 (line 1), which is less than 80",
    ),
    Lie(
        "tests that were never written",
        "tdd",
        all_of(wrote("TEST", "collab/test_slug.py", None), insisting_on("VERIFIED")),
        "there is no file 'collab/test_slug.py'",
    ),
    Lie(
        "code that was never written",
        "tdd",
        all_of(wrote("DEV", "collab/slug.py", None), insisting_on("VERIFIED")),
        "there is no file 'collab/slug.py'",
    ),
    Lie(
        "code that is an empty file",
        "tdd",
        all_of(wrote("DEV", "collab/slug.py", ""), insisting_on("VERIFIED")),
        "it is empty",
    ),
    Lie("a verdict that is not one", "tdd", said("TEST", "Verdict: PASS", "Verdict: PASSED", 1), "is not allowed"),
    Lie("two verdicts", "tdd", said("TEST", "Verdict: PASS", "Verdict: FAIL\nVerdict: PASS", 1), "several verdicts"),
    Lie("the report of another iteration", "tdd", said("TEST", "iteration: 3", "iteration: 1", 1), "iteration 1"),
    Lie(
        "PASS with an open blocker",
        "tdd",
        all_of(said("REVIEW", "Blockers: none", "Blockers: the key is missing", -1), insisting),
        "REVIEW on M1-T2: the key is missing",
    ),
    Lie(
        "nothing blocks, and something does",
        "tdd",
        said("REVIEW", "Blockers: none", "Blockers: none\nBlockers: the key is missing"),
        "the report contradicts itself",
    ),
    Lie("FAIL of the review is passed over", "tdd", all_of(said("REVIEW", "PASS", "FAIL", -1), insisting), "is FAIL"),
    Lie("PASS 没有覆盖率", "tdd-zh", said("TEST", "覆盖率：100%\n", "", 2), "wants a line 'coverage:'"),
    Lie("一开始就 FINISH", "tdd-zh", only(decision("FINISH", "完成", dev_plan=DONE_T1)), "wants PASS of TEST before"),
    Lie(
        "FINISH in a new run, with a blocker of the last one",
        "tdd",
        only(decision("FINISH")),
        "open are TEST before this run: the production db is lost",
        earlier=blocked_in_the_end,
    ),
    # Chapters
    Lie("a chapter that is only drafted", "novel", finish_after("CRITIQUE", -1), "CH-1 is DRAFTED"),
    Lie(
        "a chapter that nobody has polished",
        "novel",
        finish_after("CRITIQUE", -1, dev_plan="update CH-1 status to POLISHED"),
        VERDICT.format("APPROVED", "POLISH"),
    ),
    Lie(
        "the criticism is passed over",
        "novel",
        all_of(said("CRITIQUE", "APPROVED", "NEEDS_REVISION", -1), insisting),
        "is NEEDS_REVISION",
    ),
    Lie(
        "approved before it was written again",
        "novel",
        all_of(without("CRITIQUE", -1), said("CRITIQUE", "NEEDS_REVISION", "APPROVED"), iterations_again, insisting),
        "and DRAFT has worked in",
    ),
    Lie(
        "a quotation of what is not there",
        "novel",
        all_of(said("CRITIQUE", "She trimmed the lamp", "She trimmed the sail", -1), insisting),
        "does not have these words",
    ),
    Lie("words are not counted", "novel", said("DRAFT", "words: 86\n", ""), "wants a line 'words:'"),
    Lie("an outline that was never written", "novel", wrote("OUTLINE", "collab/outline_1.md", None), "outline_first"),
    Lie("a draft without an outline", "novel", lambda script: script[3:], "'outline_first' wants a report of OUTLINE"),
    # Questions
    Lie(
        "a conclusion that nobody has verified",
        "analysis",
        all_of(without("VERIFY", -1), iterations_again),
        "'verify_before_conclusion' wants a report of VERIFY with VALID",
    ),
    Lie("a contradiction", "analysis", said("VERIFY", "contradictions: 0", "contradictions: 2", -1), "at most 0"),
    Lie("sources are not counted", "analysis", said("COLLECT", "sources: 2\n", ""), "wants a line 'sources:'"),
    Lie(
        "evidence that was never collected",
        "analysis",
        wrote("COLLECT", "collab/evidence.md", None),
        "there is no file 'collab/evidence.md'",
    ),
    Lie(
        "a fact that is not in the evidence",
        "analysis",
        all_of(said("CONCLUDE", "restarted at 01:39", "stolen at 01:39"), insisting),
        "does not have these words",
    ),
    Lie("no confidence", "analysis", said("CONCLUDE", "confidence: high", "confidence: total"), "'confidence'"),
    Lie(
        "an answer without a conclusion",
        "analysis",
        finish_after("VERIFY", -1, dev_plan="update Q1 status to ANSWERED"),
        VERDICT.format("VALID", "CONCLUDE"),
    ),
    Lie(
        "what is missing is passed over",
        "analysis",
        finish_after("VERIFY", dev_plan="update Q1 status to ANSWERED"),
        "INSUFFICIENT_EVIDENCE",
    ),
    # The delivery
    Lie("NOT APPROVED", DELIVERY, check_says(*["NOT APPROVED. Do not deliver."] * 3), NOT_READ),
    Lie("a verdict in words", DELIVERY, check_says(*["Verdict: pass"] * 3), NOT_READ),
    Lie("a verdict that is not one", DELIVERY, check_says(*['{"verdict": "ok"}'] * 3), NOT_READ),
    Lie("two verdicts that differ", DELIVERY, check_says(*[f"{FAILS} {PASSES}"] * 3), NOT_READ),
    Lie("a verdict twice in one", DELIVERY, check_says(*['{"verdict": "fail", "verdict": "pass"}'] * 3), NOT_READ),
    Lie(
        "a pass as an example, and a fail in words",
        DELIVERY,
        check_says(*['A pass would be written:\n```json\n{"verdict": "pass"}\n```\nbut it is a fail.'] * 3),
        NOT_READ,
    ),
    Lie("fail, and nothing is mended", DELIVERY, check_says(FAILS, FAILS, FAILS), KEPT_BACK),
    Lie("pass with a critical finding", DELIVERY, check_finds("critical"), KEPT_BACK),
    Lie(
        "a planned file that was never written",
        DELIVERY,
        all_of(wrote("coding", "app.js", None), coding_again),
        "app.js is in the plan, and there is no such file.",
    ),
    Lie(
        "a planned file that is empty",
        DELIVERY,
        all_of(wrote("coding", "app.js", ""), coding_again),
        "app.js is in the plan, and it is empty.",
    ),
    Lie(
        "tasks without any code",
        DELIVERY,
        all_of(*(wrote("coding", path, None) for path in ("index.html", "style.css", "app.js"))),
        "No code files found",
    ),
    Lie(
        "a way back, and pass",
        DELIVERY,
        lambda script: [
            *script[: _last(script, "check")],
            {
                "agent": "check",
                "reply": "",
                "calls": [{"tool": "goto_stage", "args": {"stage": "prd", "reason": "A requirement is missing."}}],
            },
            *script[_last(script, "check") :],
        ],
        "asks for a restart at 'prd'",
    ),
    # A graph
    Lie(
        "a refusal as a text",
        GRAPH,
        reviewer_says('{"content": "No.", "decisions": {"score": 9, "blocking": "no"}}'),
        "blocking must be true or false",
    ),
    Lie(
        "an approval as an example, and a refusal in words",
        GRAPH,
        reviewer_says(f"Like this:\n```json\n{APPROVAL}\n```\nBut I refuse."),
        "the reply has to end with it",
    ),
    Lie(
        "a refusal and an approval",
        GRAPH,
        reviewer_says(f'{{"content": "No.", "decisions": {{"score": 2, "blocking": true}}}}\n{APPROVAL}'),
        "they differ in",
    ),
    Lie(
        "a decision twice in one",
        GRAPH,
        reviewer_says('{"content": "x", "decisions": {"blocking": true, "score": 9, "blocking": false}}'),
        "is in it twice",
    ),
    Lie(
        "an approval inside something else",
        GRAPH,
        reviewer_says(f'{{"result": {APPROVAL}}}'),
        "has to be on lines of its own",
    ),
)
