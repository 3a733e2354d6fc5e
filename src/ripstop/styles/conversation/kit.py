"""Conversation: a service desk that plans, acts, waits and hands over."""

from collections.abc import Sequence

from ripstop.kernel.style import Sample, StyleKit

from .definition import Bot
from .events import CONVERSATION_EVENTS, PLANNING_EVENTS
from .planning import PLAN_CACHE, PlanningStyle
from .style import ConversationStyle
from .view import SESSIONS


def _samples() -> Sequence[Sample]:
    from .samples import samples

    return samples()


def _planning_samples() -> Sequence[Sample]:
    from .samples import planning_samples

    return planning_samples()


KIT = StyleKit(
    style=ConversationStyle(),
    definition=Bot,
    events=CONVERSATION_EVENTS,
    collections=(SESSIONS,),
    section="conversations",
    samples=_samples,
)
PLANNING = StyleKit(
    style=PlanningStyle(), definition=Bot, events=PLANNING_EVENTS, collections=(PLAN_CACHE,), samples=_planning_samples
)
