"""What a run may spend, held *before* the call that would break it.

A turn, a call and a moment are known beforehand. Tokens and money are not, so the prompt is
estimated (rather too high) and the reply is capped at what is left: a limit is kept even if the
agent uses every token it was given. What a child or a call that is open may still spend is set aside; what needs more
than the rest waits until it comes back (`guards.review`). What a server reports is not believed: a limit counts at
least what the bytes that were sent and received must have cost (`Usage.counted_tokens`).
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from .effects import AskAgent, Limits, StartRun, Usage
from .events import GuardTripped
from .limits import LIMITS
from .prompt import Prompt, estimate
from .run import Run, Spent, WorkTime, is_shared

MILLION = 1_000_000
SHARED_WITH_CHILDREN = tuple(limit.name for limit in LIMITS if limit.is_shared)
SMALLEST_REPLY = 16
"""A reply of fewer tokens is useless, so a call that could only have so few is not made."""


def before_turn(limits: Limits, turns: int) -> GuardTripped | None:
    if limits.turns is not None and turns >= limits.turns:
        return _over("turns", limits.turns, turns + 1)
    return None


def before_turn_or_call(limits: Limits, spent: Spent, ask: AskAgent) -> GuardTripped | None:
    verdict = before_turn(limits, spent.turns) if ask.continues is None else None
    if verdict:
        return verdict
    if limits.calls is not None and spent.calls >= limits.calls:
        return _over("calls", limits.calls, spent.calls + 1)
    return None


def before_child(run: Run[Any]) -> GuardTripped | None:
    limit, so_far = run.limits.runs, runs_below(run)
    if limit is not None and so_far >= limit:
        return _over("runs", limit, so_far + 1, "workflow")
    return None


def runs_below(run: Run[Any]) -> int:
    """Those that have ended, and its own children that have not. What these start counts when they have ended."""
    made = (opened.command for number, opened in run.open.items() if number not in run.waiting)
    commands = (*made, *run.late.values())
    return run.spent.runs + sum(type(command) is StartRun for command in commands)


def before_time(limits: Limits, work: WorkTime) -> GuardTripped | None:
    if limits.seconds is not None and work.is_up(limits.seconds):
        return time_is_up(limits.seconds, work)
    return None


def time_is_up(limit: float, work: WorkTime, deadline: int = 0) -> GuardTripped:
    return GuardTripped(
        guard="budget.seconds",
        limit=limit,
        value=max(limit, work.counted / MILLION),
        text=f"The run reached its time limit of {limit:g} s.",
        evidence=(deadline,) if deadline else (),
    )


def with_allowance(limits: Limits, spent: Spent, ask: AskAgent, prompt_tokens: int) -> AskAgent | GuardTripped:
    """The same call, its reply capped at what is left; or the verdict that nothing is left."""
    room = ask.max_tokens
    if limits.tokens is not None:
        counted = spent.usage.counted_tokens
        left = limits.tokens - counted - prompt_tokens
        if left < SMALLEST_REPLY:
            return _over("tokens", limits.tokens, counted + prompt_tokens + SMALLEST_REPLY)
        room = left if room is None else min(room, left)
    if limits.money is not None:
        committed = spent.usage.counted_money + prompt_tokens * limits.input_price / MILLION
        smallest = committed + SMALLEST_REPLY * limits.output_price / MILLION
        if spent.usage.counted_money >= limits.money:
            return _spent("money", limits.money, spent.usage.counted_money)
        if smallest > limits.money:
            return _over("money", limits.money, smallest)
        if limits.output_price > 0:
            left = int((limits.money - committed) * MILLION / limits.output_price)
            room = left if room is None else min(room, left)
    return replace(ask, max_tokens=room)


Render = Callable[[Any, AskAgent], Prompt]


def committed(run: Run[Any], render: Render | None = None) -> Spent:
    """What was spent, and what is set aside for children that have not reported, and for calls that have no reply yet.

    Args:
        render: Puts prompts together; without it, only children count.
    """
    spent = run.spent
    for number, opened in run.open.items():
        command = opened.command
        if type(command) is StartRun:
            if number not in run.waiting:
                spent = _with_slice(run, spent, command)
        elif type(command) is AskAgent and render and command.max_tokens is not None and number not in run.waiting:
            spent = replace(
                spent, usage=spent.usage.plus(_promised(run.limits, command, render(opened.state, command)))
            )
    for late in run.late.values():
        if type(late) is StartRun:
            spent = _with_slice(run, spent, late)
    return spent


def _with_slice(run: Run[Any], spent: Spent, command: StartRun) -> Spent:
    slice_ = command.limits
    if slice_ is None or is_shared(run.id, command):
        return spent
    usage = spent.usage.plus(Usage(input_tokens=slice_.tokens or 0, money=slice_.money or 0.0))
    return replace(spent, calls=spent.calls + (slice_.calls or 0), usage=usage)


def _promised(limits: Limits, ask: AskAgent, prompt: Prompt) -> Usage:
    """The most that a call can cost that is open: it was counted as one already."""
    sent, received = estimate(prompt), ask.max_tokens or 0
    return Usage(sent, received, (sent * limits.input_price + received * limits.output_price) / MILLION)


def explained(run: Run[Any], verdict: GuardTripped) -> GuardTripped:
    """The verdict, with what a limit means in a family: who gave it, and how much of it children have."""
    what = verdict.guard.removeprefix("budget.")
    said = []
    if what in SHARED_WITH_CHILDREN:
        set_aside = amount(committed(run), what) - amount(run.spent, what)
        if set_aside > 0:
            said.append(f"{set_aside:g} of it is set aside for workflows that have not reported yet.")
    given = getattr(run.started.limits, what, None)
    if run.started.parent is not None and given is not None and given == verdict.limit:
        said.append(f"It is what {run.started.parent[0]} gave this run.")
    return replace(verdict, text=" ".join((verdict.text, *said))) if said else verdict


def amount(spent: Spent, what: str) -> float:
    """How much was spent of what a limit counts; time at work is not among it."""
    match what:
        case "turns":
            return spent.turns
        case "calls":
            return spent.calls
        case "tokens":
            return spent.usage.counted_tokens
        case "money":
            return spent.usage.counted_money
        case "runs":
            return spent.runs
    raise KeyError(what)


def slice_for_child(run: Run[Any], command: StartRun, render: Render | None = None) -> Limits | GuardTripped:
    """What a child may spend: what is left, and at most what is asked for; of what is not shared, what is asked for."""
    limits, spent, asked = run.limits, committed(run, render), command.limits or Limits(depth=run.limits.depth)
    left: dict[str, float | None] = {
        **{name: _left(getattr(limits, name), amount(spent, name)) for name in SHARED_WITH_CHILDREN},
        "seconds": None if limits.seconds is None else run.work.left(limits.seconds),
    }
    slice_: dict[str, Any] = {}
    for name, rest in left.items():
        wanted = getattr(asked, name)
        if rest is not None and rest <= 0:
            return _nothing_left(run, command, name)
        slice_[name] = _least(wanted, rest)
    # nothing is set aside: every child gets what is left now, itself not counted
    runs = None if limits.runs is None else limits.runs - runs_below(run) - 1
    return replace(
        asked,
        **slice_,
        runs=_least(asked.runs, runs),
        depth=min(limits.depth, asked.depth),
        input_price=limits.input_price,
        output_price=limits.output_price,
    )


def allows_no_child(run: Run[Any], command: StartRun) -> bool:
    """Whether the run's own limits have nothing left for a child: then a limit that one has reached is the run's."""
    return before_child(run) is not None or type(slice_for_child(run, command)) is GuardTripped


def _nothing_left(run: Run[Any], command: StartRun, what: str) -> GuardTripped:
    limit: float = getattr(run.limits, what)
    value = limit if what not in SHARED_WITH_CHILDREN else amount(committed(run), what)
    text = f"Nothing is left of the limit of {limit:g} {what} for the workflow {command.workflow!r}."
    return GuardTripped(guard=f"budget.{what}", limit=limit, value=value, text=text)


def _least(wanted: Any, rest: Any) -> Any:
    """The smaller of two amounts, of which any may be unlimited."""
    return wanted if rest is None else rest if wanted is None else min(rest, wanted)


def _left(limit: float | None, spent: float) -> float | None:
    return None if limit is None else limit - spent


def _spent(what: str, limit: float, value: float) -> GuardTripped:
    text = f"The run has spent {value:g} of {what}; the limit is {limit:g}."
    return GuardTripped(guard=f"budget.{what}", limit=limit, value=value, text=text)


def _over(what: str, limit: float, value: float, by: str = "call") -> GuardTripped:
    return GuardTripped(
        guard=f"budget.{what}",
        limit=limit,
        value=value,
        text=f"The next {by} would bring {what} to {value:g}; the limit is {limit:g}.",
    )
