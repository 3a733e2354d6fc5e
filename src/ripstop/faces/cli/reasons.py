"""Why a record came to be, in lines for a person."""

from typing import TYPE_CHECKING

from .summary import way_command

if TYPE_CHECKING:
    from ripstop.kernel.style import Reason
    from ripstop.runtime.timeline import Why


def why_lines(run_id: str, why: "Why") -> list[str]:
    from ripstop.views import way

    lines = []
    if why.verdict:
        verdict = why.verdict
        lines.append(f"guard     {verdict.guard}: limit {verdict.limit:g}, found {verdict.value:g}")
    lines += [f"evidence  {one.text}: record {', '.join(map(str, one.numbers))}" for one in why.evidence]
    if why.verdict and why.verdict.progress:
        lines.append(f"progress  the last is record {why.verdict.progress}")
    taken = False
    if why.child:
        how = f"ended as {why.child.outcome}: {why.child.because}" if why.child.outcome else "was started"
        lines.append(f"child     {why.child.run} {how}  → ripstop why {why.child.run}")
    for reason in why.reasons:
        lines += reason_lines(reason, after_taken=taken)
        taken = taken or reason.taken
    return [*lines, *(f"next      {way_command(run_id, way(one))}" for one in why.ways)]


def reason_lines(reason: "Reason", after_taken: bool = False) -> list[str]:
    """A reason: whether it held, whether it was acted on, and the parts of a condition below it."""
    mark = "" if reason.holds is None else "✓ " if reason.holds else "✗ "
    note = ""
    if reason.holds is not None and reason.taken:
        note = "  (taken)"
    elif reason.holds is not None and after_taken:
        note = "  (holds too, but comes later)" if reason.holds else "  (not needed)"
    source = f"  {reason.source}" if reason.source else ""
    return [f"{mark}{reason.text}{note}{source}", *(f"    {part}" for part in reason.tree)]
