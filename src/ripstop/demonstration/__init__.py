"""A small world to look at: runs of every style, with scripted agents, and something of every kind on the desk."""

from .building import build
from .demo_world import DemoWorld
from .showing import demo_app

__all__ = ["DemoWorld", "build", "demo_app"]
