"""Errands that tell other systems what is said and where they are."""

from typing import Any

from ripstop.kernel.effects import Say
from ripstop.kernel.events import Asked, Ended, Record
from ripstop.kernel.registry import Registry
from ripstop.kernel.style import AudienceHooks, Notice, StyleKit
from ripstop.testing.stub_style import Errands, ErrandStyle, RoundBegan


class NamedErrands(Errands, frozen=True, omit_defaults=True):
    name: str = "shop"


class TellingAudience(AudienceHooks[Any]):
    def public_events(self, record: Record) -> tuple[Notice, ...]:
        match record.event:
            case Asked(command=Say(text=text, about=about)):
                return (Notice("message", {"text": text}, about),)
            case RoundBegan(index=index):
                return (Notice("status", {"round": index}), Notice("progress", {"round": index}))
            case Ended(because=because) if "break" in because:
                raise ValueError("a bug of the style")
            case Ended(outcome=outcome):
                return (Notice("status", {"outcome": outcome}),)
        return ()


class TellingStyle(ErrandStyle):
    audience = TellingAudience()


REGISTRY = Registry([StyleKit(style=TellingStyle(), definition=NamedErrands, events=(RoundBegan,))])


def speaking(*texts: str, **fields: Any) -> NamedErrands:
    """Says these things, one after the other, and ends."""
    return NamedErrands(rounds=tuple((Say(text=text),) for text in texts), **fields)
