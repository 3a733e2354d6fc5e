"""Calls tools of real MCP servers, as `make peers` has installed them, and prints a table.

    python -m tests.harness.mcp_peers --programs FOLDER [--programs FOLDER]

Every server is started by its command, its tools are pinned, and each of its calls is performed as in a run. Anything
that is not as expected ends the program with code 1.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.kernel.effects import AskPerson, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.tools.mcp.servers import Pins, ServerSpec, ServerTools
from tests.tools.tool_requests import tool_request

REPEATS = 20
"""Calls that are timed, one after the other."""


class PeerCall(Struct, frozen=True):
    """A call and what is expected of it: words of its result, or of the reason why it failed."""

    tool: str
    arguments: dict[str, Any]
    says: str
    fails: bool = False


def peers(workspace: Path) -> dict[str, tuple[ServerSpec, tuple[PeerCall, ...]]]:
    place = str(workspace)
    return {
        "time": (
            ServerSpec(name="time", command=("mcp-server-time", "--local-timezone", "UTC"), hints=True),
            (
                PeerCall("get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
                PeerCall("get_current_time", {"timezone": "Nowhere/Else"}, "Nowhere", fails=True),
                PeerCall("get_current_time", {}, "required property", fails=True),
            ),
        ),
        "git": (
            ServerSpec(name="git", command=("mcp-server-git", "--repository", place)),
            (
                PeerCall("git_status", {"repo_path": place}, "hello.txt"),
                PeerCall("git_add", {"repo_path": place, "files": ["hello.txt"]}, "staged"),
                PeerCall("git_commit", {"repo_path": place, "message": "First"}, "committed"),
                PeerCall("git_log", {"repo_path": place}, "First"),
                PeerCall("git_log", {"repo_path": "/"}, "", fails=True),
            ),
        ),
        "files": (
            ServerSpec(name="files", command=("mcp-server-filesystem", place)),
            (
                PeerCall("read_text_file", {"path": f"{place}/hello.txt"}, "hello"),
                PeerCall("write_file", {"path": f"{place}/new.txt", "content": "new"}, "wrote"),
                PeerCall("read_text_file", {"path": "/etc/passwd"}, "denied", fails=True),
            ),
        ),
        "everything": (
            ServerSpec(name="everything", command=("mcp-server-everything",)),
            (
                PeerCall("echo", {"message": "hello"}, "hello"),
                PeerCall("get-sum", {"a": 2, "b": 3}, "5"),
                PeerCall("get-tiny-image", {}, "image/png"),
                PeerCall("get-roots-list", {}, str(workspace)),
                PeerCall("trigger-elicitation-request", {}, "Ann"),
                PeerCall("get-sum", {"a": "two", "b": 3}, "not of type", fails=True),
            ),
        ),
    }


async def answer(_key: str, question: AskPerson) -> PersonAnswered:
    """Fill in a form as a person would."""
    values = {"text": "Ann", "number": 5, "integer": 5, "boolean": True}
    given: dict[str, Any] = {}
    for name, field in question.fields.items():
        if field.type in ("one_of", "some_of"):
            given[name] = field.allowed[0] if field.type == "one_of" else [field.allowed[0]]
        elif field.required or field.type in ("number", "integer", "boolean") or name == "name":
            given[name] = values[field.type]
    return PersonAnswered(choice="accept", fields=given, by="ann")


async def perform(tools: ServerTools, server: str, call: PeerCall, workspace: Path) -> str:
    """What is wrong; empty if nothing is."""
    settings = RunSettings(workspace=str(workspace))
    request = tool_request(call.arguments, tool=f"{server}__{call.tool}", agent="clerk", settings=settings, ask=answer)
    try:
        found = await tools.perform(request)
    except Refused as error:
        found = Failed(reason=str(error))
    said = str(found.value) if isinstance(found, ToolReturned) else getattr(found, "reason", "")
    if isinstance(found, Failed) is not call.fails or call.says.lower() not in said.lower():
        return f"{server}__{call.tool}{call.arguments}: {found!r}"
    return ""


async def try_out(server: str, spec: ServerSpec, calls: Sequence[PeerCall], workspace: Path, state: Path) -> list[str]:
    pins, began = Pins(state), time.monotonic()
    first = ServerTools([spec], pins)
    connection = await first._servers[server].connection()
    connected, listing = time.monotonic() - began, connection.listing
    version = connection._session.protocol_version if connection._session else ""
    await first.close()
    pins.remember(spec, listing.cards.values())
    tools = ServerTools([spec], pins)
    problems = [problem for call in calls if (problem := await perform(tools, server, call, workspace))]
    began = time.monotonic()
    for _ in range(REPEATS):
        await perform(tools, server, calls[0], workspace)
    each = (time.monotonic() - began) / REPEATS
    await tools.close()
    print(
        f"{server:11} {version}  {len(listing.cards):2} tools, {len(listing.notes)} left out, connected in "
        f"{connected:.2f} s, a call takes {each * 1000:.1f} ms, {len(calls)} calls: {problems or 'as expected'}"
    )
    for note in listing.notes:
        print(f"            left out: {note}")
    return problems


async def main(folders: Sequence[str]) -> int:
    os.environ["PATH"] = os.pathsep.join((*folders, os.environ["PATH"]))
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ripstop-peers-") as folder:
        workspace = Path(folder).resolve() / "workspace"
        workspace.mkdir()
        (workspace / "hello.txt").write_text("hello\n")
        for command in (["init", "-q"], ["config", "user.email", "a@b.example"], ["config", "user.name", "Ann"]):
            subprocess.run(["git", *command], cwd=workspace, check=True)
        for name, (spec, calls) in peers(workspace).items():
            if shutil.which(spec.command[0]) is None:
                problems.append(f"{spec.command[0]} is not installed")
                continue
            problems += await try_out(name, spec, calls, workspace, Path(folder) / "state")
    print("\n".join(problems) or "All as expected.")
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", action="append", default=[], help="a folder with the servers' programs")
    sys.exit(asyncio.run(main(parser.parse_args().programs)))
