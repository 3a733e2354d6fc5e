"""Broken passes in the log of a service. What users and models said is never in it: the journal has that."""

import logging
from collections.abc import Callable

from ripstop.runtime.live import Appended, Live, LiveEvent

from .session_view import why_broken_off

log = logging.getLogger("ripstop.conversation")


def log_broken_passes(live: Live) -> Callable[[], None]:
    """Log each pass that is broken off in this process; returns how to stop it."""

    def see(event: LiveEvent) -> None:
        for record in event.records if isinstance(event, Appended) else ():
            if because := why_broken_off(record.event):
                cause = because.partition(":")[0]  # behind it are words of a model or a tool
                log.warning("A pass of %s was broken off: %s; see `ripstop why`", event.run_id, cause)

    return live.watch(see)
