"""What `outages` works with: workflows of the five styles that pay for orders, a bank outside, and the processes.

The clock of a worker is the machine's and what the harness has added to it, so ten minutes pass between two processes.

    python -m tests.harness.outage_world FOLDER URL SECONDS_AHEAD
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ripstop import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.engine.clock import ProcessClock, system_time
from ripstop.styles.conversation.chats import Chats, run_of
from tests.harness.outage_server import Mode, order_name, set_mode

ROOT = Path(__file__).parents[2]
CONCURRENCY = 200
"""Calls at a time: those that hang must not keep others waiting."""
BANK = '''
import json, os, time
from pathlib import Path

import ripstop
from ripstop.tools.toolbox import ToolContext

LEDGER = Path(__file__).with_name("ledger.jsonl")


def entered(tool, part, order, key):
    time.sleep(0.2)  # so that it is killed before its effect …
    file = os.open(LEDGER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, json.dumps([tool, part, order, key]).encode() + b"\\n")
    os.close(file)
    time.sleep(0.2)  # … and after it


@ripstop.tool("unsafe")
def pay(order: str, part: str) -> str:
    """Pay a part of an order."""
    entered("pay", part, order, "")
    return f"receipt:pay:{part}:{order}"


@ripstop.tool("keyed")
def book(order: str, part: str, context: ToolContext) -> str:
    """Book a part of an order. The bank knows the key."""
    known = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    if not any(json.loads(line)[3] == context.key for line in known):
        entered("book", part, order, context.key)
    return f"receipt:book:{part}:{order}"
'''
GRAPH = """\
name: pay
initial_message: Pay.
max_turns: 3
agents: [{name: cashier, type: ask, tools: [pay, book]}]
states:
  - name: pay
    agent: cashier
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: done."
    transitions: [{to: END, condition: done}]
"""
BOT = {
    "name": "cashier",
    "sop": "Pay what the customer orders.",
    "apology": "Sorry.",
    "tools": [{"name": name, "description": name} for name in ("pay", "book")],
}
PIPELINE = """\
name: deliver
rate_limit: 0
stages: [{name: settle, agent: cashier, tools: [pay, book], instructions: Pay.}]
"""
POLICY = {
    "extends": "base-en",
    "report_rules": {"apply_to": ["CASHIER"], "verdict_allowed": ["OK"]},
    "max_iterations": 3,
}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _board(order: str) -> dict[str, str]:
    return {
        "memory/verification_policy.json": json.dumps(POLICY),
        "memory/dev_plan.md": f"# Plan\n\n- T1: settle {order} (status: TODO)\n",
        "memory/prompts/subagent_prompt_main.md": "You decide.\n",
        "memory/prompts/subagent_prompt_cashier.md": "---\ntools: [pay, book]\n---\nYou pay.\n",
    }


OFFICE = {
    "handoff.yaml": "first: clerk\n",
    "roles/clerk.md": "You look at orders.\n",
    "roles/cashier.md": "---\nworkflow: ../../pay\n---\nPays.\n",
}


def settings_of(folder: Path, url: str) -> Settings:
    models = Models(default="openai:m", base_url=url)
    return Settings(store=f"sqlite:{folder / 'journal.db'}", models=models, concurrency=CONCURRENCY)


class OutageWorld:
    def __init__(self, folder: Path, orders: int) -> None:
        self.folder = folder
        self.orders = [order_name(number) for number in range(orders)]
        self.runs: dict[str, str] = {}
        """The run at the top, by order."""
        self.ahead = 0.0
        """Seconds that were added to the machine's clock."""
        self.killed = 0
        self._server: subprocess.Popen[str] | None = None
        self._workers: list[subprocess.Popen[str]] = []
        self._port = 0
        _write(folder, {"bank.py": BANK, "pay/workflow.yaml": GRAPH, "bot/bot.yaml": json.dumps(BOT)})
        _write(folder, {"deliver/pipeline.yaml": PIPELINE})

    # The model server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def serve(self, mode: Mode) -> None:
        """Begin to serve, at the same address as before; or change how it is done."""
        set_mode(self.folder, mode)
        if self._server is None:
            command = [sys.executable, "-m", "tests.harness.outage_server", str(self.folder), str(self._port)]
            self._server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert self._server.stdout is not None
            self._port = int(self._server.stdout.readline())

    def take_server_away(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
            self._server = None

    # Workers

    def work(self, *command: str) -> None:
        """Start a worker; with a command of ripstop's, that one."""
        program = [sys.executable, "-m", "ripstop", *self._shared, *command]
        if not command:
            program = [sys.executable, "-m", "tests.harness.outage_world", str(self.folder), self.url, str(self.ahead)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(self.folder), str(ROOT)))}
        output = subprocess.DEVNULL
        self._workers.append(
            subprocess.Popen(program, cwd=self.folder, env=environment, stdout=output, stderr=output, text=True)
        )

    def kill(self) -> None:
        """Kill every worker that still runs."""
        for worker in self._workers:
            self.killed += worker.poll() is None
            worker.kill()
            worker.communicate()
        self._workers.clear()

    def command(self, *arguments: str) -> str:
        """Run a command of ripstop's to its end; returns what it says."""
        done = subprocess.run(
            [sys.executable, "-m", "ripstop", *self._shared, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode in (0, 4), f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def close(self) -> None:
        self.kill()
        self.take_server_away()

    @property
    def _shared(self) -> list[str]:
        store = settings_of(self.folder, "").store
        return ["--store", store, "--base-url", self.url, "--tools", "bank", "--json"]

    # Runs

    def app(self) -> App:
        """The journal, for this process, which is not a worker."""
        return App(settings_of(self.folder, self.url), scope=None, clock=clock_ahead(self.ahead))

    async def start(self) -> None:
        async with self.app() as app:
            for order in self.orders:
                self.runs[order] = await self._started(app, order, order.rpartition("-")[2])

    async def ask_for(self, app: App, order: str, times: int) -> None:
        """Send a customer's message for the so manieth time."""
        await Chats(app).tell(self.folder / "bot", order, f"Please pay {order}.", id=f"{order}-{times}")

    async def _started(self, app: App, order: str, style: str) -> str:
        files, goal = self.folder / "files" / order, f"Pay {order}."
        if style == "conversation":
            await self.ask_for(app, order, 1)
            return run_of("bot", order)
        path = {"graph": self.folder / "pay", "pipeline": self.folder / "deliver"}.get(
            style, self.folder / style / order
        )
        if style == "blackboard":
            _write(path, _board(order))
        elif style == "handoff":
            _write(path, OFFICE)
        run = await app.start(path, goal, workspace=None if style == "handoff" else files)
        return run.id

    # The bank

    def ledger(self) -> Counter[tuple[str, str, str]]:
        """How often each step of each order was performed."""
        path = self.folder / "ledger.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return Counter(tuple(json.loads(line)[:3]) for line in lines)


def clock_ahead(seconds: float) -> ProcessClock:
    return ProcessClock(system=lambda: system_time() + round(seconds * 1_000_000))


async def _work(folder: Path, url: str, ahead: float) -> None:
    """Work on the journal until killed, as `ripstop work` does, with a clock of its own."""
    bank: Any = importlib.import_module("bank")
    settings = settings_of(folder, url)
    async with App(settings, tools=[bank.pay, bank.book], scope=None, clock=clock_ahead(ahead)) as app, app.serving():
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
