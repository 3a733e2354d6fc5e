"""A workflow may come to a few words: that is a result, and not a courtesy of an agent."""

import json
from pathlib import Path

import pytest

from ripstop.testing.commands import command

ROLES = {
    "handoff.yaml": "first: checker\n",
    "roles/checker.md": "---\nworkflow: ../child\n---\nCheck it.\n",
    "roles/writer.md": "You write.\n",
}
CHILD = """\
name: child
initial_message: x
max_turns: 2
agents: [{name: clerk, type: ask}]
states:
  - name: check
    agent: clerk
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}}"
    transitions: [{to: END, condition: done}]
"""


@pytest.mark.parametrize("words", ["ok", "OK, thanks", "好的"])
def test_a_document_goes_on_with_what_a_workflow_came_to_however_short(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {**{f"desk/{path}": text for path, text in ROLES.items()}, "child/workflow.yaml": CHILD}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    decided = {"done": True, "action": "pass", "to": "writer"}
    done = {"action": "complete", "to": "", "next_action": "", "result": "The text is written."}
    replies = [
        {"agent": "clerk", "reply": json.dumps({"content": words, "decisions": decided})},
        {"agent": "writer", "reply": json.dumps({"content": "Done.", "decisions": done})},
    ]
    Path("replies.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in replies), encoding="utf-8")
    ended = command("run", "desk", "--input", "Write.", "--model", "script:replies.jsonl", "--workspace", "desk")
    assert ended.code == 0 and "courtesy" not in ended.out + ended.err, ended
