"""The definitions of a whole family, pinned when its root starts: what a child is does not change while it runs.

Names are resolved beside the definition that names them, so two definitions may mean different workflows by one name.
"""

from pathlib import Path
from typing import Any

import msgspec

from ripstop.checks.start import check_documents
from ripstop.definitions.loading import Located, Workflow, locate_child, read
from ripstop.definitions.reader import Environment
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Pin
from ripstop.kernel.style import EndpointUse
from ripstop.plugins import Plugins
from ripstop.runtime.definitions import digest_of
from ripstop.security.trusted_folders import TrustedFolders

MAX_DEFINITIONS = 200
"""Definitions in a family."""
FAMILY = Environment(goal="given by the parent", any_name=True)
_encode = msgspec.json.Encoder(order="deterministic").encode


class Pinned(msgspec.Struct, frozen=True):
    content: bytes
    """`{definition: {workflow: Pin}}` as JSON; empty if nothing can be started."""
    definitions: dict[str, bytes] = {}
    """The content of every definition in it, by hash."""
    folders: tuple[str, ...] = ()
    """The folders that runs of the family keep documents in."""
    endpoints: tuple[EndpointUse, ...] = ()
    """The URLs that tools of the family call."""


def pin_family(plugins: Plugins, workflow: Workflow) -> Pinned:
    """Read every workflow that a workflow and its descendants can start. Raises `UsageError` or `DefinitionError`."""
    pins: dict[str, dict[str, Pin]] = {}
    definitions: dict[str, bytes] = {}
    folders: list[str] = []
    endpoints: list[EndpointUse] = []
    waiting = [workflow]
    while waiting:
        one = waiting.pop()
        digest = digest_of(one.content)
        if digest in pins:
            continue
        if len(pins) >= MAX_DEFINITIONS:
            raise UsageError(f"{workflow.name!r} can start more than {MAX_DEFINITIONS} workflows, directly or not.")
        kit = plugins.registry.kits[one.style]
        definition: Any = plugins.registry.load(one.style, one.content)
        pins[digest] = {}
        folders += kit.style.folders(definition)
        endpoints += kit.style.endpoints(definition)
        for name, style in kit.style.children(definition).items():
            if style:  # the same definition, read by another style
                pins[digest][name] = Pin(style=style, definition=digest)
                continue
            child = find_child(plugins, name, one.path)
            child_digest = digest_of(child.content)
            definitions[child_digest] = child.content
            pins[digest][name] = Pin(style=child.style, definition=child_digest)
            waiting.append(child)
    named = {digest: workflows for digest, workflows in pins.items() if workflows}
    return Pinned(_encode(named) if named else b"", definitions, tuple(dict.fromkeys(folders)), tuple(endpoints))


def pin_with_folders(plugins: Plugins, workflow: Workflow, trusted: TrustedFolders) -> Pinned:
    """Pin a workflow's family; its user has named the folders of documents with it. Raises `UsageError` for others."""
    pinned = pin_family(plugins, workflow)
    for folder in check_documents(workflow, pinned.folders, trusted.cover_documents):
        trusted.remember(folder)
    return pinned


def children_of(plugins: Plugins, found: Located) -> tuple[str, ...]:
    """The workflows that a definition names. Raises `UsageError` or `DefinitionError`."""
    workflow = read(found, FAMILY)
    definition: Any = plugins.registry.load(workflow.style, workflow.content)
    named = plugins.registry.kits[workflow.style].style.children(definition)
    return tuple(name for name, style in named.items() if not style)


def find_child(plugins: Plugins, name: str, parent: Path) -> Workflow:
    """A workflow that a definition names: beside it, or as `ripstop run` would find it."""
    return read(locate_child(plugins.readers, name, parent), FAMILY)
