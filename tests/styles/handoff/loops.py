"""Scenes of documents that go round in circles, and of documents that only look as if they did."""

from collections.abc import Callable
from typing import Any

from ripstop.kernel.effects import AgentReplied, Answer, Limits, TimerFired, ToolReturned
from ripstop.kernel.events import FORMAT, Answered, Fact, Heard, Started
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.events import Assignment, TransitionRequested, WorkRequested
from ripstop.styles.handoff.state import asked_of, draft
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing import Given, given
from tests.styles.loops import (
    COSTLY,
    COURTESIES,
    FAILS,
    MARKER,
    READ,
    Goes,
    Loop,
    Round,
    after,
    in_turn,
    says,
    writes,
)

Handling = Callable[[str, str, int], Round]
"""By whom, to whom, the how manieth it is."""
PEOPLE = ("ann", "bob", "cyd", "dan", "eve", "fay", "gus")


def settle_views(story: Given) -> None:
    """Write the document whenever the style wants that."""
    assert story.run is not None
    for number in [n for n, opened in story.run.open.items() if asked_of(opened.command) == "publish"]:
        story.tell(Answered(to=number, answer=ToolReturned(value={"file": "d.md", "done": "written"})), after=0)


def document(limits: Limits = Limits(), owner: str = "ann", **policy: Any) -> Callable[[], Given]:
    """A document that belongs to `owner`, whose file has not been written yet."""
    text = write(draft("d", "zoe", owner, "Write the report.", "2026-01-01 00:00:00", "Read the task."))
    arguments = {"is_document": True, "file": "d.md"}
    started = Started("handoff", "definition", FORMAT, text, arguments, limits)
    return lambda: given(HandoffStyle(), Policy(**policy), started)


def handled(by: str, to: str, message: str = "", next_action: str = "", result: str = "") -> Round:
    """Somebody accepts the document and passes it on."""
    return (TransitionRequested("accept", by), TransitionRequested("pass", by, to, message, next_action, result))


def worked(by: str, *answers: Fact | Answer) -> Round:
    """An agent works on the document."""
    return (WorkRequested(by, Assignment("Do your best.")), *answers)


def passes(to: str, content: str = "Done my part.", **more: Any) -> AgentReplied:
    return says(content, action="pass", to=to, **more)


def round_of(size: int, handling: Handling) -> Goes:
    """The document goes round among so many people."""
    return lambda n: handling(PEOPLE[(n - 1) % size], PEOPLE[n % size], n)


COMPLETES = says("It is all written.", action="complete")


def completed(by: str) -> Round:
    return (TransitionRequested("accept", by), TransitionRequested("complete", by, message="All is written."))


NEXT = "Please check it."


def delivers(to: str, content: str) -> Round:
    """An agent's reply with a file in it, that passes the document on with the same next action as always."""
    return writes("collab/a.md", content, action="pass", to=to, next_action=NEXT)


# fmt: off
WITHOUT_CHANGE: dict[str, Handling] = {
    "with-the-same-next-action": lambda by, to, n: handled(by, to, "", NEXT),
    "with-new-words-and-the-same-next-action": lambda by, to, n: handled(by, to, f"I looked at it, take {n}.", NEXT),
    "with-the-same-result-again": lambda by, to, n: handled(by, to, f"take {n}", NEXT, "42"),
    "with-no-words-at-all": lambda by, to, n: handled(by, to),
    "of-agents": lambda by, to, n: worked(by, passes(to, next_action=NEXT)),
    "of-agents-with-ever-longer-words": lambda by, to, n: worked(by, passes(to, "More! " * n, next_action=NEXT)),
    "of-agents-that-write-the-same-file": lambda by, to, n: worked(by, *delivers(to, "# A")),
    "of-agents-that-only-read": lambda by, to, n: worked(by, *READ[:2], passes(to, next_action=NEXT)),
    "of-agents-whose-tools-fail": lambda by, to, n: worked(by, *FAILS[:2], passes(to, next_action=NEXT)),
}
HANDOFF_LOOPS = [
    *(Loop(f"ping-pong-{how}", document(), round_of(2, handling), 4, "circle", interactions=8)
      for how, handling in WITHOUT_CHANGE.items()),
    *(Loop(f"same-owner-twice-{how}", document(), round_of(1, handling), 2, "no_progress", interactions=4)
      for how, handling in WITHOUT_CHANGE.items()),
    Loop("same-owner-after-a-healthy-beginning", document(),
         after(2, round_of(1, lambda by, to, n: handled(by, to, "", NEXT)),
               round_of(2, lambda by, to, n: handled(by, to, f"Part {n} is written."))), 4, "no_progress",
         interactions=8),
    *(
        Loop(f"documents-go-round-among-{size}", document(max_interactions=1000),
             round_of(size, lambda by, to, n: handled(by, to, f"{n}", NEXT)), 2 * size, "circle",
             interactions=4 * size)
        for size in range(3, 8)
    ),
    Loop("document-that-flips-and-flops", document(max_interactions=1000),
         lambda n: handled("ann", "ann", "", ("Use tabs.", "Use blanks.")[n % 2]), 4, "circle", interactions=8),
    Loop("three-people-reach-the-most-interactions-first", document(),
         round_of(3, lambda by, to, n: handled(by, to, "", NEXT)), 6, "interactions", "limit", interactions=10),
    Loop("ever-new-words-until-the-most-interactions", document(),
         round_of(2, lambda by, to, n: handled(by, to, f"New idea {n}.")), 6, "interactions", "limit", interactions=10),
    Loop("ever-new-words-of-agents-until-the-most-interactions", document(),
         round_of(2, lambda by, to, n: worked(by, passes(to, f"New idea {n}."))), 6, "interactions", "limit",
         interactions=10),
    Loop("ever-new-files-until-the-most-interactions", document(),
         round_of(2, lambda by, to, n: worked(by, *delivers(to, f"# {n}"))), 6, "interactions", "limit",
         interactions=10),
    *(
        Loop(f"most-interactions-set-to-{most}", document(max_interactions=most),
             round_of(2, lambda by, to, n: handled(by, to, f"New idea {n}.")), most // 2 + 1, "interactions", "limit",
             interactions=most)
        for most in (1, 2, 3, 7, 25)
    ),
    *(
        Loop(f"hand-over-with-courtesy-in-{name}", document(),
             in_turn(handled("ann", "bob", "Written."), handled("bob", "ann", said)), 2, "courtesy", interactions=3)
        for name, (said, *_) in COURTESIES.items()
    ),
    Loop("agent-that-hands-over-with-courtesy", document(), lambda n: worked("ann", passes("bob", "Thank you!")), 1,
         "courtesy", interactions=1),
    Loop("courtesy-heard-on-a-document-in-progress", document(),
         in_turn((TransitionRequested("accept", "ann"), Heard("You're welcome!", "bob"))), 1, "courtesy",
         interactions=1),
    Loop("assignment-with-nothing-but-courtesy", document(),
         in_turn((TransitionRequested("assign", "zoe", "bob", "谢谢"),)), 1, "courtesy", interactions=0),
    *(
        Loop(f"end-marker-in-the-{field}", document(),
             in_turn(handled("ann", "bob", **{"message": "I am through.", field: f"All {MARKER} is said."})), 1,
             "end_marker", interactions=1)
        for field in ("message", "next_action", "result")
    ),
    Loop("end-marker-heard", document(), in_turn((Heard(f"Stop here.{MARKER} Bye", "zoe"),)), 1, "end_marker",
         interactions=0),
    Loop("end-marker-of-an-agent", document(), in_turn(worked("ann", passes("bob", f"So {MARKER} it is."))), 1,
         "end_marker", interactions=1),
    Loop("end-marker-of-one's-own", document(guards={"end_marker": "<<fin>>"}),
         in_turn(handled("ann", "bob", "That is it <<fin>>, I think.")), 1, "end_marker", interactions=1),
    Loop("budget-of-calls-for-a-document", document(Limits(calls=3)),
         round_of(2, lambda by, to, n: worked(by, passes(to, f"New idea {n}."))), 4, "budget.calls", "limit",
         interactions=7),
    Loop("budget-of-tokens-for-a-document", document(Limits(tokens=100_000)),
         round_of(2, lambda by, to, n: worked(by, says(f"New idea {n}.", COSTLY, action="pass", to=to))), 3,
         "budget.tokens", "limit", interactions=5),
    Loop("budget-of-seconds-for-a-document", document(Limits(seconds=2)),
         round_of(2, lambda by, to, n: worked(by, passes(to, f"New idea {n}."))), 3, "budget.seconds", "limit",
         interactions=5),
    Loop("deadline-of-a-document", document(Limits(seconds=1)), in_turn(worked("ann", TimerFired())),
         1, "budget.seconds", "limit", interactions=1),
]
# fmt: on
