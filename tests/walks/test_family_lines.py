"""What a person sees while a run and its children are at work."""

from pathlib import Path

from tests.walks.commands import ripstop

PARENT = """\
name: parent
initial_message: Go.
max_turns: 3
agents: [{name: boss, type: ask}]
states:
  - name: plan
    agent: boss
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Plan."
    transitions: [{to: delegate, condition: planned}]
  - name: delegate
    workflow: ../child
    transitions: [{to: END, condition: always}]
"""
CHILD = """\
name: child
initial_message: Do it.
max_turns: 3
agents: [{name: clerk, type: ask}]
states:
  - name: write
    agent: clerk
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Write."
    transitions: [{to: END, condition: done}]
"""
SCRIPT = """\
{"agent": "boss", "reply": "{\\"content\\": \\"The plan of the boss.\\", \\"decisions\\": {\\"planned\\": true}}"}
{"agent": "clerk", "reply": "{\\"content\\": \\"Good enough.\\", \\"decisions\\": {\\"done\\": false}}"}
"""


def test_lines_of_a_child_have_its_name_and_its_own_words(tmp_path: Path) -> None:
    for name, text in (("parent", PARENT), ("child", CHILD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.yaml").write_text(text)
    (tmp_path / "s.jsonl").write_text(SCRIPT)
    done = ripstop("run", "parent", "--model", "script:s.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    run_id = lines[0].split()[0]
    boss = next(n for n, line in enumerate(lines) if line.startswith("  ● plan boss"))
    clerk = next(n for n, line in enumerate(lines) if line.startswith(f"  ● {run_id}.6 write clerk"))
    assert boss < clerk
    assert (lines[boss + 1], lines[clerk + 1]) == ("    The plan of the boss.", "    Good enough.")
    assert f"  {run_id}.6 warning: the only transition of write does not hold: done is false" in lines
