"""A small graph that is ready to run, with replies to run it without a model."""

import json
from pathlib import Path

from ripstop.definitions.example_files import write_files
from ripstop.kernel.errors import UsageError

from .reader import FILE, cannot_be_folder

SCRIPT = "script.jsonl"
WORKFLOW = """\
# A writer writes, and an editor judges. They go round until the editor approves.

name: {name}
description: A writer writes a paragraph; an editor approves it or sends it back.
initial_message: why the sea is salty
max_turns: 6

agents:
  - name: writer
    type: coder
  - name: editor
    type: ask

states:
  - name: write
    agent: writer
    start: true
    prompt: |
      {{{{COLLABORATION_GUIDE}}}}
      {{% if last_agent_name == "editor" %}}The editor said: {{{{last_agent_content}}}}
      {{% else %}}{{% endif %}}Write one paragraph about {{{{initial_message}}}}.
      Decide "done": true when it is written.
    transitions:
      - to: judge
        condition: done
      - to: write
        condition: NOT done

  - name: judge
    agent: editor
    prompt: |
      {{{{COLLABORATION_GUIDE}}}}
      Here is a paragraph: {{{{last_agent_content}}}}
      Judge it. Decide "approved": true if it is clear and correct.
    transitions:
      - to: END
        condition: approved
      - to: write
        condition: NOT approved

exit_conditions:
  - condition: max_turns_exceeded
    action: save_and_end
"""
REPLIES = (
    ("Rivers carry salt into the sea.", {"done": True}),
    ("Say why it stays there.", {"approved": False}),
    ("Rivers carry salt into the sea. Water evaporates, but the salt stays.", {"done": True}),
    ("Clear and correct.", {"approved": True}),
)


def write_example(folder: Path) -> list[Path]:
    """Write the graph and its script; the folder's name is the workflow's. Raises `UsageError`."""
    name = folder.resolve().name
    if not name or cannot_be_folder(name):
        raise UsageError(f"{str(folder)!r} cannot be the name of a workflow. Use letters, digits, - and _.")
    lines = [json.dumps({"reply": json.dumps({"content": text, "decisions": made})}) for text, made in REPLIES]
    files = {FILE: WORKFLOW.format(name=json.dumps(name, ensure_ascii=False)), SCRIPT: "\n".join(lines) + "\n"}
    return write_files(folder, files)
