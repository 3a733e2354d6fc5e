"""Plug-ins that are wrong, each in one way."""

from typing import Any

from msgspec import Struct

from ripstop.app.plugin import Plugin, PluginCommand
from ripstop.kernel.events import Event
from ripstop.kernel.style import StyleKit
from tests.toy_style import PLUGIN
from tests.toy_style.definition import Chores
from tests.toy_style.style import ChoreStyle


class Foreign(Event, tag="graph.stolen", frozen=True):
    pass


class Once(Event, tag="broken.twice", frozen=True):
    pass


class Twice(Event, tag="broken.twice", frozen=True):
    pass


class Lenient(Event, tag="broken.lenient", frozen=True, forbid_unknown_fields=False):
    pass


class Changeable(Struct, tag="broken.changeable"):
    pass


class Needy(Struct, frozen=True):
    who: str


class BrokenStyle(ChoreStyle):
    name = "broken"


class GraphAgain(ChoreStyle):
    name = "graph"


class Dotted(ChoreStyle):
    name = "a.b"


class NeedyStyle(BrokenStyle):
    arguments_type = Needy  # type: ignore[assignment]


def kit(style: ChoreStyle | None = None, *events: type[Event], collections: tuple[str, ...] = ()) -> StyleKit:
    return StyleKit(style=style or BrokenStyle(), definition=Chores, events=events, collections=collections)


WRONG_TAG = kit(None, Foreign)
DUPLICATE_TAG = kit(None, Once, Twice)
LENIENT = kit(None, Lenient)
NOT_AN_EVENT = kit(None, Changeable)  # type: ignore[arg-type]
SAME_NAME = kit(GraphAgain())
ODD_NAME = kit(Dotted())
NEEDY = kit(NeedyStyle())
FINE = kit()


class HalfAReader:
    style = "broken"


HALF_A_READER = HalfAReader()


def no_tools() -> dict[str, object]:
    raise OSError("the disk is full")


def plugin(kits: str, **more: Any) -> Plugin:
    return Plugin(name="broken", kits=(f"tests.app.plugins.broken:{kits}",))._replace(**more)


KITS = {
    "WRONG_TAG": "'graph.stolen' of Foreign does not begin with 'broken' and a dot",
    "DUPLICATE_TAG": "two events with the tag 'broken.twice'",
    "LENIENT": "Lenient is not frozen, or does not refuse unknown fields",
    "NOT_AN_EVENT": "Changeable is not an Event",
    "SAME_NAME": "two styles named 'graph'",
    "ODD_NAME": "'a.b' cannot be the name of a style",
    "NEEDY": "The argument 'who' of the style 'broken' has no default",
    "MISSING": "has no attribute 'MISSING'",
}
"""Kits that cannot be registered, with the reason."""
PLUGINS = {name: plugin(name) for name in KITS}
READER = plugin("FINE", reader="tests.app.plugins.broken:HALF_A_READER")
TOOLS = plugin("FINE", tools="tests.app.plugins.broken:no_tools")
SERVICE = plugin("FINE", service="tests.app.plugins.nowhere:SERVICE")
COMMAND = plugin("FINE")._replace(commands=(PluginCommand("sweep", "tests.app.plugins.nowhere:sweep", "Sweep."),))
SHADOW = plugin("FINE")._replace(
    commands=(PluginCommand("runs", "tests.app.plugins.nowhere:runs", "Not the real one."),)
)
AGAIN = PLUGIN._replace(name="graph")
"""A plug-in with the name of a built-in one."""
NUMBER = 7
FIRST = PLUGINS["WRONG_TAG"]
