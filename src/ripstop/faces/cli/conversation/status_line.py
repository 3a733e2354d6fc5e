"""The one line that says where a session is."""

from typing import TYPE_CHECKING

from ripstop.faces.cli.terminal import Part
from ripstop.faces.cli.words import first_line, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripstop.services.conversation.feed import SessionNow

WORDS = {"acknowledged": "has read it", "processing": "is at work", "typing": "is typing"}
LONGEST_TIMER = 60
SECOND = 1_000_000


def status_line(
    now: "SessionNow",
    at: int,
    since: float,
    doing: str = "",
    is_desk: bool = False,
    held: "Mapping[str, int] | None" = None,
) -> Part:
    """Args:
    at: The time, in microseconds.
    since: Seconds for which it has been at work.
    doing: The action under way.
    is_desk: The person at the desk is looking.
    held: Providers that take no calls now, with the seconds left.
    """
    if now.ended:
        return f"ended ({now.ended})", "yellow"
    if now.status == "transferred":
        return _transferred(now, is_desk), "magenta"
    if now.asks:
        return "waits for the user's answer" if is_desk else "waits for your answer", "dim"
    if now.in_pass:
        if held and not doing:
            waits = ", ".join(f"{provider} ({left} s)" for provider, left in held.items())
            return f"{now.name} waits for {waits}, which takes no more calls now", "yellow"
        words = f"is using {doing}" if doing else WORDS.get(now.status, "is at work")
        return f"{now.name} {words} … {seconds(since) if since >= 1 else ''}".rstrip(), "cyan"
    timers = sorted(now.timers, key=lambda timer: timer.due)
    coming = f"  ·  in {_left(timers[0].due - at)}: {first_line(timers[0].name, LONGEST_TIMER)}" if timers else ""
    if now.closed:
        return f"closed{coming}", "dim"
    return f"{'broken off' if now.status == 'cancelled' else now.status}{coming}", "dim"


def _transferred(now: "SessionNow", is_desk: bool) -> str:
    if is_desk:
        return f"{now.taken_by} has this conversation" if now.taken_by else "nobody has taken this conversation yet"
    if now.taken_by:
        return f"a person has this conversation ({now.taken_by})"
    return f"waits for a person ({now.handed_to} was asked)"


def _left(microseconds: int) -> str:
    left = max(0, round(microseconds / SECOND))
    return f"{left // 3600} h {left // 60 % 60} min" if left >= 3600 else f"{left // 60}:{left % 60:02d}"
