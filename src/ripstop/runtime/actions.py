"""What a person may do with a run beyond answering its questions, as the fact that it becomes."""

from collections.abc import Mapping
from typing import Any

from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Fact
from ripstop.kernel.questions import read_field
from ripstop.kernel.run import Run
from ripstop.kernel.style import Style


def action_fact(
    style: Style[Any], run: Run[Any], name: str, fields: Mapping[str, Any], by: str, seen: int | None
) -> Fact:
    """The fact of an action. Raises `UsageError` that says what is possible now.

    Args:
        seen: The length of the run when the person saw it; `None`: any.
    """
    if seen is not None and seen != run.length:
        raise UsageError(f"{run.id} has changed since you looked at it (record {seen}). Look again, then decide.")
    actions = {action.name: action for action in style.actions(run)}
    if name not in actions:
        can = f"possible now: {', '.join(actions)}" if actions else "nothing can be done with it now"
        raise UsageError(f"{name!r} is not possible with {run.id}; {can}.")
    known = actions[name].fields
    for field in fields:
        if field not in known:
            raise UsageError(f"{name!r} has no field {field!r}; it takes: {', '.join(known) or 'nothing'}.")
    for field, described in known.items():
        if described.required and field not in fields:
            raise UsageError(f"{name!r} needs the field {field!r}.")
    given = {field: read_field(field, known[field], value) for field, value in fields.items()}
    return style.act(run, name, given, by)
