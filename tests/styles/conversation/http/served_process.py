"""`ripstop serve` as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

from tests.styles.conversation.http.served_bot import write_bot

TOOLS = '''
import pathlib, time
import ripstop

@ripstop.tool("pure")
def reply() -> str:
    """Answer the user, once the file `go` is there."""
    with open("calls", "a") as calls:
        calls.write("x")
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return "hello"
'''
BOUND = 30.0
"""Seconds after which a process that hangs fails the test."""


def prepare(folder: Path) -> None:
    """A folder with a bot that answers once `may_reply` was called."""
    write_bot(folder)
    (folder / "desk_tools.py").write_text(TOOLS, encoding="utf-8")


def may_reply(folder: Path) -> None:
    (folder / "go").touch()


class ServedProcess:
    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "ripstop", "--tools", "desk_tools", "serve", "shop", "--port", "0", "--json"]
        path = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
        with (folder / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, "PYTHONPATH": path, **(environment or {})},
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (folder / "stderr").read_text()
        self.said: dict[str, Any] = json.loads(line)
        token = (environment or {}).get("RIPSTOP_TOKEN") or Path(folder, self.said["token"]).read_text().strip()
        self.client = httpx2.Client(
            base_url=self.said["address"], headers={"authorization": f"Bearer {token}"}, timeout=BOUND
        )

    def __enter__(self) -> "ServedProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(BOUND)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def say(self, text: str, id: str, wait: int = 0, session: str = "ann") -> httpx2.Response:
        path = f"/conversations/shop/{session}/messages"
        return self.client.post(path, json={"text": text, "id": id}, params={"wait": wait} if wait else {})

    def messages(self, session: str = "ann") -> list[str]:
        """What the bot has said."""
        found = self.client.get(f"/conversations/shop/{session}").json()
        return [one["text"] for one in found["messages"] if one["kind"] != "user"]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it in order; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(BOUND)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(BOUND)


def until(condition: Any) -> None:
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
