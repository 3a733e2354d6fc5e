"""Where the parts of a run go: which tabs its page has, which opens first, and what is beside them. Knows no style.

| tab      | when there is                 | shows                                    |
|----------|-------------------------------|------------------------------------------|
| board    | a plan or claims              | decisions, claims; the plan is beside it |
| stages   | a rail                        | the rail, decisions, drafts, last words  |
| talk     | a talk, and no rail           | the talk                                 |
| document | a document, and no rail       | the document, decisions                  |
| timeline | always                        | turns or records                         |

The first tab opens. A tab with nothing but a rail and last words comes last: the drawing of the run shows the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.parts import Claims, Facts, Ledger, Line, Paper, Part, Rail, Talk, Tasks, Timers

TIMELINE = "timeline"
ICONS = {"board": "list", "stages": "flow", "talk": "chat", "document": "doc", TIMELINE: "pulse"}
MOST_ROWS = 200
"""Rows of one part; of more, the last ones are shown."""
LONGEST_PAPER, LONGEST_LINE = 100_000, 4000
"""Characters of a document, and of one message; behind a longer one is the number of the record that has all of it."""


class ShownPart(Struct, frozen=True):
    part: Part
    left_out: int = 0
    """How many of its rows are not shown."""


class RunTabs(Struct, frozen=True):
    names: tuple[str, ...]
    """Of the tabs, in order; the first one opens."""
    main: dict[str, tuple[ShownPart, ...]]
    """What each tab shows; the timeline is not among them."""
    beside: tuple[ShownPart, ...]
    """What is beside every tab."""


def tabs_of(parts: Sequence[Part]) -> RunTabs:
    shown = [_bounded(part) for part in parts]

    def of(*kinds: type[Any]) -> tuple[ShownPart, ...]:
        return tuple(one for kind in kinds for one in shown if isinstance(one.part, kind))

    main: dict[str, tuple[ShownPart, ...]] = {}
    if of(Tasks, Claims):
        main["board"] = of(Ledger, Claims)
    elif of(Rail):
        main["stages"] = of(Rail, Ledger, Paper, Talk)
    elif of(Paper):
        main["document"] = of(Paper, Ledger)
    if of(Talk) and not of(Rail):
        main["talk"] = of(Talk)
    is_bare = "stages" in main and not of(Ledger, Paper)
    names = (TIMELINE, *main) if is_bare else (*main, TIMELINE)
    return RunTabs(names, main, of(Tasks, Facts, Timers))


def _bounded(part: Part) -> ShownPart:
    """A part of which not more is shown than a page can have."""
    match part:
        case Ledger(entries=rows):
            return _last(rows, lambda kept: replace(part, entries=kept))
        case Claims(claims=rows):
            return _last(rows, lambda kept: replace(part, claims=kept))
        case Tasks(tasks=rows):
            return _last(rows, lambda kept: replace(part, tasks=kept))
        case Talk(lines=rows):
            return _last(rows, lambda kept: replace(part, lines=tuple(map(_short, kept))))
        case Facts(rows=rows):
            return _last(rows, lambda kept: replace(part, rows=kept))
        case Rail(stages=rows):
            return _last(rows, lambda kept: replace(part, stages=kept))
        case Timers(timers=rows):
            return _last(rows, lambda kept: replace(part, timers=kept))
        case Paper(text=text) if len(text) > LONGEST_PAPER:
            return ShownPart(replace(part, text=text[:LONGEST_PAPER]), len(text) - LONGEST_PAPER)
    return ShownPart(part)


def _short(line: Line) -> Line:
    is_long = len(line.text) > LONGEST_LINE
    return replace(line, text=f"{line.text[:LONGEST_LINE]}… ({line.number})") if is_long else line


def _last(rows: tuple[Any, ...], kept: Callable[[Any], Part]) -> ShownPart:
    return ShownPart(kept(rows[-MOST_ROWS:]), max(0, len(rows) - MOST_ROWS))
