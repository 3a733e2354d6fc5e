"""Kills the delivery of a project (`killed_runs`): seven stages with scripted agents and answers, then its files.

    python -m tests.harness.project_crash --kills 500

The person who reviews sends the first draft back twice, edits the next one, and passes the others.
"""

import json
import re
from pathlib import Path

from ripstop.engine.failpoints import FAILPOINTS
from ripstop.history.desk import DeskItem
from ripstop.styles.pipeline.plugin import PLUGIN
from tests.harness.killed_runs import found_in, main, masked

SCRIPT = Path(__file__).parents[2] / "examples" / "delivery" / "script.jsonl"
UNREACHED = ("messages.", "worker.before_doubt", "worker.before_retry", "worker.after_retry")
"""How the fail-points begin that no run of this project gets to."""
POINTS = tuple(name for name in FAILPOINTS + PLUGIN.failpoints if not name.startswith(UNREACHED))
EDITED = "# Design\n\nAs the person wrote it: 两个部分, to the last character.  \n\n\n"
HASH = re.compile("[0-9a-f]{64}")
SKIPPED = (".ripstop", ".cowork/logs", "script.jsonl", "edited.md")


class ProjectWork:
    def make(self, folder: Path) -> None:
        lines = SCRIPT.read_text(encoding="utf-8").splitlines(keepends=True)
        drafts = [number for number, line in enumerate(lines) if json.loads(line)["agent"] == "prd"]
        lines.insert(drafts[1], lines[drafts[0]])  # the first draft once more, for the second feedback
        (folder / "script.jsonl").write_text("".join(lines), encoding="utf-8")
        (folder / "edited.md").write_text(EDITED, encoding="utf-8")

    def command(self, folder: Path) -> list[str] | None:
        found = found_in(folder)
        if not found.run_id:
            return ["new", "a to-do list in the browser"]
        if found.status == "completed":
            return None
        if found.question is None:
            return ["resume"]
        return ["answer", found.question.id, *self._answer(found.question), "--as", "ann"]

    def _answer(self, question: DeskItem) -> list[str]:
        match question.purpose:
            case "review.prd" if "export" in (question.document or ""):
                return ["feedback", "Too many: leave out export and import.", "--field", "severity=major"]
            case "review.design":
                return ["edit", "--file", "edited.md"]
        return ["pass"]

    def files(self, folder: Path) -> dict[str, str]:
        found, run_id = {}, found_in(folder).run_id
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_file() and not name.startswith(SKIPPED):
                found[name] = masked(path).replace(run_id, "RUN")
                if name.endswith("meta.json"):  # files with times in them have other hashes
                    found[name] = HASH.sub("HASH", found[name])
        return found


if __name__ == "__main__":
    main(ProjectWork(), POINTS, "Kill the delivery of a project.")
