"""A small world to look at: runs of every style, with scripted agents, and something of every kind on the desk."""

from .building import build, demo_app
from .world import DemoWorld

__all__ = ["DemoWorld", "build", "demo_app"]
