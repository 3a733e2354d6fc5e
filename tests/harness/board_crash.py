"""Kills runs on a board (`killed_runs`): twelve iterations with scripted agents, then the board is compared.

python -m tests.harness.board_crash --kills 500
"""

import json
from pathlib import Path

from ripstop.engine.failpoints import FAILPOINTS
from ripstop.styles.blackboard.plugin import PLUGIN
from tests.harness.killed_runs import found_in, main, masked

ITERATIONS = 12
UNREACHED = ("messages.", "worker.before_doubt")
"""How the fail-points begin that no run of this board gets to."""
POINTS = tuple(name for name in FAILPOINTS + PLUGIN.failpoints if not name.startswith(UNREACHED))

POLICY = {
    "report_rules": {
        "apply_to": ["CHECKER"],
        "require_verdict": True,
        "verdict_prefix": "Verdict:",
        "verdict_allowed": ["GOOD", "BAD"],
        "blocker_prefix": "Blockers:",
        "blocker_clear_value": "none",
    },
    "evidence": [{"evidence": "file", "agents": ["CHECKER"], "path": "collab/line.md"}],
}
PLAN = "# Plan\n\n" + "".join(f"### T{number}: Line {number}\n- status: TODO\n\n" for number in range(1, 7))


def make_board(folder: Path) -> None:
    """A board whose twelve iterations write, check, and change the plan."""
    prompts = folder / "memory" / "prompts"
    prompts.mkdir(parents=True)
    (folder / "memory" / "verification_policy.json").write_text(json.dumps(POLICY, indent=2))
    (folder / "memory" / "dev_plan.md").write_text(PLAN)
    for agent in ("main", "writer", "checker"):
        (prompts / f"subagent_prompt_{agent}.md").write_text(f"You are {agent}.\n")
    replies = []
    for number in range(1, ITERATIONS):
        task = (number + 1) // 2
        agent = "WRITER" if number % 2 else "CHECKER"
        decision = {"next_agent": agent, "reason": f"turn {number}", "task": f"Work on T{task}."}
        if number % 2 == 0:
            decision["dev_plan"] = f"update T{task} status to DONE"
        report = f"iteration: {number}\nLine {task}.\n"
        if agent == "WRITER":
            report = f"collab/line.md\n```\nline {number}\n```\n\n{report}"
        else:
            report += "Verdict: GOOD\nBlockers: none\n"
        replies += [{"agent": "MAIN", "reply": json.dumps(decision)}, {"agent": agent, "reply": report}]
    last = {"next_agent": "FINISH", "reason": "all is written", "dev_plan": "update T6 status to DONE"}
    replies.append({"agent": "MAIN", "reply": json.dumps(last)})
    script = folder.parent / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))


def files_of(board: Path) -> dict[str, str]:
    """The board's files, with times masked; what the engine keeps for itself is not part of it."""
    found = {}
    for path in sorted(board.rglob("*")):
        name = str(path.relative_to(board))
        if path.is_file() and not name.startswith(".ripstop"):
            found[name] = masked(path)
    return found


class BoardWork:
    def make(self, folder: Path) -> None:
        make_board(folder / "board")

    def command(self, folder: Path) -> list[str] | None:
        found = found_in(folder)
        if not found.run_id:
            return ["run", "board"]
        return None if found.status == "completed" else ["resume"]

    def files(self, folder: Path) -> dict[str, str]:
        return files_of(folder / "board")


if __name__ == "__main__":
    main(BoardWork(), POINTS, "Kill runs on a board.")
