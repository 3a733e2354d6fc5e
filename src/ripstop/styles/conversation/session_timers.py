"""The timers of a session: set at the end of a pass, cancelled when the user says something."""

from ripstop.kernel.effects import SetTimer
from ripstop.kernel.step import Step

from .definition import TimerRule
from .folding import TIMER_PREFIX, timer_rule, timer_rules
from .state import SessionState

LONGEST_NAME = 200
"""Characters of what a timer says that are in its name."""
SHORTEST_PAUSE, MINUTE = 1.0, 60.0
"""Seconds between two times that one timer fires: at first, and after a few times. A plan that a model has written must
not flood the user."""


def set_timers(step: Step[SessionState]) -> None:
    for index, rule in enumerate(timer_rules(step.state)):
        step.ask(SetTimer(name=name_of(index, rule), after=rule.delay))


def name_of(index: int, rule: TimerRule) -> str:
    """A timer's name: its place in the plan, and what it says or, if users may know of it, does."""
    done = rule.action.target if rule.action and rule.action.type != "SYSTEM" else ""
    words = " ".join((rule.message or done).split())
    cut = words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"
    return f"{TIMER_PREFIX}{index}: {cut}" if cut else f"{TIMER_PREFIX}{index}"


def set_again(step: Step[SessionState], name: str) -> None:
    """A timer that has fired runs again only if it may; the others run on."""
    rule = timer_rule(step.state, name)
    if rule and not step.state.closed and (not rule.max_triggers or step.state.fired.get(name, 0) < rule.max_triggers):
        step.ask(SetTimer(name=name, after=_pause(step.state, rule, step.state.fired.get(name, 0))))


def _pause(state: SessionState, rule: TimerRule, fired: int) -> float:
    """How long a timer waits after it has fired so often: as its rule says, but quick ones slow down and take turns."""
    if rule.delay >= MINUTE:
        return rule.delay
    quick = sum(one.delay < MINUTE for one in timer_rules(state))
    return max(rule.delay, quick * min(MINUTE, SHORTEST_PAUSE * 2.0 ** max(0, fired - 1)))


def cancel_timers(step: Step[SessionState], because: str) -> None:
    for number, opened in list(step.run.open.items()):
        if type(opened.command) is SetTimer and opened.command.name.startswith(TIMER_PREFIX):
            step.withdraw(number, because)
