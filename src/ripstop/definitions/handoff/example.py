"""A small folder of documents that is ready to work, with replies to work without a model."""

import json
from pathlib import Path

from ripstop.definitions.example_files import write_files
from ripstop.styles.handoff.policy import WORKFLOWS

from .roles import FOLDER

SCRIPT = "script.jsonl"
POLICY = """\
# A writer writes, and an editor checks. Each works on the documents that it owns.

first: writer
max_interactions: 10
"""
WRITER = "You write short, clear paragraphs. When a paragraph is written, pass the document to the editor.\n"
EDITOR = "You check paragraphs. Complete the document if the paragraph is clear and correct; else pass it back.\n"
REPLIES = (
    {"action": "pass", "to": "editor", "next_action": "Check it", "result": "Rivers carry salt into the sea."},
    {"action": "complete", "to": "", "next_action": "", "result": "Rivers carry salt into the sea. It stays there."},
)


def write_example(folder: Path) -> list[Path]:
    """Write the folder's rules, its roles and a script. Raises `UsageError` if one of the files is there already."""
    lines = [json.dumps({"reply": json.dumps({"content": "Done.", "decisions": made})}) for made in REPLIES]
    files = {
        "handoff.yaml": POLICY,
        f"{FOLDER}/writer.md": WRITER,
        f"{FOLDER}/editor.md": EDITOR,
        SCRIPT: "\n".join(lines) + "\n",
    }
    return write_files(folder, files, (FOLDER, WORKFLOWS))
