"""What the agents of a stage are told. A prompt is bounded: what is read from files is cut where it is read."""

import json
from typing import Any

from msgspec import to_builtins

from ripstop.kernel.prompt import Message, Prompt

from ..shortening import cut
from .calls import ProjectFacts
from .flow import tools_for, turn_phase
from .judging import FORM, checks_of_commands
from .state import EDIT, FEEDBACK, PipelineState

MAX_DRAFT = 60_000
"""Characters of a draft that are shown."""
MAX_FILES = 200
MAX_FACTS = 100
"""Entries of one list of facts."""
IF_ANY = (
    "empty_files",
    "planned_files",
    "tasks_marked",
    "since_review",
    "since_start",
    "tasks_without_files",
    "in_white_space",
    "other_files",
    "features_marked",
)
"""Facts that agents are told only if there is something to tell."""
MAX_FEEDBACK = 30_000
"""Characters of all feedback but the latest words of a person."""

_DRAFT = (
    "You write a draft now, in Markdown. Reply with the whole draft and nothing else: your reply is what a person "
    "reviews. Do not make the formal output yet."
)
_IDEA = "Reply with the whole document in Markdown, and nothing else: your reply is the document."
_FORMAL = (
    "The draft is accepted. Make the formal output from it now, with your tools; do not add what is not in the draft. "
    "When everything is there, reply with one short sentence."
)
_WORK = "Do your work with your tools. When it is done, reply with a short summary of what you found."
_CRITIC = (
    "You check what was made. Report every problem with provide_feedback (feedback_type, severity, details): critical "
    "or major only if it has to be put right. If all is well, say so in one sentence."
)


def prompt_for(state: PipelineState, longest: int = 0) -> Prompt:
    """The first prompt of the turn that is asked for now. `longest`: characters of each part of its task; 0: all."""
    stage, phase = state.here, turn_phase(state)
    if phase == "critic":
        assert stage.critic is not None
        told = [stage.critic.instructions, _CRITIC]
    elif phase == "draft":
        told = [stage.instructions, _DRAFT if stage.is_formal or stage.review else _IDEA]
    else:
        told = [stage.instructions, _FORMAL if stage.draft else _WORK, FORM if stage.kind == "check" else ""]
    system = "\n\n".join(part.strip() for part in told if part.strip())
    return Prompt((Message("system", system), Message("user", _task(state, phase, longest))), tools_for(state))


def workflow_input(state: PipelineState) -> str:
    """What a workflow gets that works in the actor's place."""
    task = "The draft is accepted. Do what it says." if state.draft else ""
    return "\n\n".join(filter(None, (state.here.instructions.strip(), task, _task(state, "formal"))))


def _task(state: PipelineState, phase: str, longest: int = 0) -> str:
    facts = state.found.facts if state.found and state.here.kind != "work" else None
    parts = [
        ("Idea", state.idea),
        ("Change that is wanted", state.change or ""),
        ("Why the project went back to this stage", state.goto_reason),
        *((f"File .cowork/{path}", text) for path, text in state.given.inputs.items()),
        ("Files that are not there", "\n".join(f".cowork/{path}" for path in state.given.missing)),
        ("Files of the project", _files(state)),
        ("What the engine found", _facts(facts)),
        ("What was run, and how it ended", _commands(state)),
        ("Feedback so far", _feedback(state)),
        ("Draft", _cut(state.draft, MAX_DRAFT)),
        _review(state, phase),
    ]
    return "\n\n".join(filter(None, (_section(title, cut(text, longest)) for title, text in parts)))


def _review(state: PipelineState, phase: str) -> tuple[str, str]:
    """What a person said about the draft that is shown."""
    review = state.last_review
    if review is not None and review.choice == FEEDBACK and phase == ("formal" if review.code else "draft"):
        kind = " ".join(str(value) for value in review.fields.values())
        about = f" ({kind})" if kind else ""
        what, again = ("the code", "Change the code") if review.code else ("this draft", "Revise the draft")
        return f"Feedback of the person who reviewed {what}{about}", f"{review.text}\n\n{again} accordingly."
    if phase == "formal" and review is not None and review.choice == EDIT:
        return "About this draft", "A person has edited it. It is exactly what is wanted."
    return "", ""


def _files(state: PipelineState) -> str:
    lines = [f"{one.path} ({one.size} bytes)" for one in state.given.files]
    more = f"… and {state.given.more_files} more" if state.given.more_files else ""
    return "\n".join(filter(None, (*lines, more)))


def _feedback(state: PipelineState) -> str:
    """All of it, the newest last. Of too much the oldest is left out, and that is said."""
    lines: list[str] = []
    room, left_out = MAX_FEEDBACK, state.given.more_feedback
    for one in reversed(state.given.feedback):
        who = one.by or one.source or "someone"
        about = f"{one.stage}, {one.severity} {one.feedback_type}"
        fix = f" (suggested: {one.suggested_fix})" if one.suggested_fix else ""
        line = f"- [{about}] {who}: {one.details}{fix}"
        room -= len(line)
        if room < 0 and lines:
            left_out += len(state.given.feedback) - len(lines)
            break
        lines.append(_cut(line, MAX_FEEDBACK))
    if left_out:
        lines.append(f"({left_out} earlier {'entry is' if left_out == 1 else 'entries are'} left out here.)")
    return "\n".join(reversed(lines))


def _commands(state: PipelineState) -> str:
    """For those who judge a product."""
    return "" if state.here.kind == "work" else "\n".join(f"- {one}" for one in checks_of_commands(state))


def _facts(facts: ProjectFacts | None) -> str:
    if facts is None:
        return ""
    said = {name: _bounded(value) for name, value in to_builtins(facts).items() if value or name not in IF_ANY}
    said["files"] = _bounded([{"path": one.path, "size": one.size, "task_id": one.task_id} for one in facts.files])
    return json.dumps(said, ensure_ascii=False, indent=1)


def _bounded(value: Any) -> Any:
    """A list with what is beyond the limit counted; anything else as it is."""
    if not isinstance(value, list | tuple) or len(value) <= MAX_FACTS:
        return value
    return [*value[:MAX_FACTS], f"… and {len(value) - MAX_FACTS} more"]


def _section(title: str, text: str) -> str:
    return f"# {title}\n{text.strip()}" if text.strip() else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: the first {most:,} of {len(text):,} characters]"
