"""The demonstration's folder, settings and runs. Its runs have fixed names, so that pages and tests can name them.

workflows/          graphs, boards and a bot, as a project has them
scripts/            what the agents say; `everyone.jsonl` is the default model
.workflows/ roles/  hand-off documents, and who works on them
projects/todo/      a delivery project
.ripstop/           the journal, the workspaces, and the consents of this world
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec import Struct

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.definitions.loading import find
from ripstop.definitions.reader import Environment
from ripstop.engine.clock import ProcessClock, system_time
from ripstop.engine.engine import View
from ripstop.engine.live import Appended, Began, LiveEvent
from ripstop.kernel.effects import AskAgent, CallTool, Limits, Say
from ripstop.kernel.events import Asked, Event
from ripstop.kernel.run import Run
from ripstop.security.files import OURS

EVERYONE = "everyone"
"""The script with every agent's lines: what a person starts in the demonstration is answered, too."""

RUNS = {
    "completed": "review-t2p6h",
    "fork": "review-wc48z",
    "family": "newsletter-d6m2x",
    "poem": "haiku-n6k2y",
    "failed": "haiku-q5w2z",
    "limit": "debate-b7n3k",
    "stopped": "translate-h5c9r",
    "guard": "essay-m9t4d",
    "doubt": "deploy-r8v4n",
    "board": "tdd-x4qv7",
    "question": "haibao-p2c8w",
    "review": "cowork-h7d2n",
    "document": "task-s6f2p",
    "unclear_document": "task-v5k8m",
    "handoff": "chat:shop:4711",
    "ready": "chat:shop:4698",
    "closed": "chat:shop:4655",
    "outage": "haiku-z3m8c",
    "stuck": "import-j9x5e",
    "set_aside": "review-f4b9j",
    "working": "review-k3f9x",
}
"""The runs worth a look, by what they show."""


class DemoWorld(Struct, frozen=True):
    folder: Path
    """Absolute, without links."""
    settings: Settings
    """What an `App` on this world needs: its journal, and scripted agents as the default model."""
    runs: dict[str, str]
    """`RUNS`."""

    @property
    def project(self) -> Path:
        """The folder of the delivery project."""
        return self.folder / "projects" / "todo"

    @property
    def journal(self) -> Path:
        return journal_in(self.folder)

    @property
    def is_built(self) -> bool:
        """Whether it was built to its end."""
        return self._mark.exists()

    def mark_as_built(self) -> None:
        self._mark.touch()

    @property
    def _mark(self) -> Path:
        return self.folder / OURS / "demonstration"

    def script(self, name: str) -> str:
        """The model that says what a script says."""
        return _script(self.folder, name)

    def workflow(self, name: str) -> Path:
        return self.folder / "workflows" / name

    def workspace(self, run_id: str) -> Path:
        """The folder of a run that has no other: inside this world, whatever the current folder is."""
        return self.folder / OURS / "workspaces" / run_id


def world_in(folder: Path) -> DemoWorld:
    """The world of a folder, built or not."""
    folder = folder.resolve()
    settings: dict[str, Any] = {"store": f"sqlite:{journal_in(folder)}", "models": Models(_script(folder, EVERYONE))}
    return DemoWorld(folder, Settings(**settings), dict(RUNS))


def journal_in(folder: Path) -> Path:
    return folder / OURS / "journal.db"


def _script(folder: Path, name: str) -> str:
    return f"script:{folder / 'scripts' / name}.jsonl"


MINUTE, HOUR, DAY = 60, 3600, 86_400


class Scene(NamedTuple):
    """Something that happened in the demonstration."""

    ago: float
    """Seconds."""
    play: Callable[[App, DemoWorld], Awaitable[None]]


# A clock in the past, moved on from scene to scene, so that the world looks as if people had worked in it for days.
#
# Scripted agents answer at once. So the clock runs ahead while a command is performed, by as long as such a call takes
# elsewhere: a few seconds, different ones, and always the same ones. Likewise while a customer reads an answer.


SECOND = 1_000_000
SHORTEST_CALL, LONGEST_CALL = 3, 14
"""Seconds of a model's call."""
TOOL_CALL = 0.4
READING = 41
ANSWER = "answer"
"""The purpose of a message that somebody reads before they say more."""


class PastClock:
    def __init__(self, seconds: float) -> None:
        """`seconds`: how long ago it is."""
        self._behind = round(seconds * SECOND)

    def __call__(self) -> int:
        return system_time() - self._behind

    def as_process_clock(self) -> ProcessClock:
        return ProcessClock(system=self, elapsed=self)

    def move_on(self, seconds: float) -> None:
        """It is so long ago now, unless that would be back in time."""
        self._behind = min(self._behind, round(seconds * SECOND))

    def watch(self, event: LiveEvent) -> None:
        """Run ahead while something takes its time; never into the future."""
        self._behind = max(0, self._behind - round(_duration(event) * SECOND))


def _duration(event: LiveEvent) -> float:
    match event:
        case Began(number=number, command=AskAgent()):
            return SHORTEST_CALL + number * 7 % (LONGEST_CALL - SHORTEST_CALL)
        case Began(command=CallTool()):
            return TOOL_CALL
        case Appended(records=records) if any(_is_answer(record.event) for record in records):
            return READING
    return 0.0


def _is_answer(event: Event) -> bool:
    return isinstance(event, Asked) and isinstance(event.command, Say) and event.command.purpose == ANSWER


# Starts runs of the demonstration under their own names, as `ripstop run` would.


async def start(
    app: App,
    world: DemoWorld,
    run_id: str,
    workflow: Path,
    script: str,
    input: str = "",
    values: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    workspace: Path | None = None,
) -> Run[Any]:
    """Start a run whose agents say what a script says."""
    found = find(app.plugins.readers, str(workflow), Environment(goal=input))
    style = app.plugins.registry.kits[found.style].style
    definition = app.plugins.registry.load(found.style, found.content)
    given = style.arguments_from(definition, values or {})
    place = workspace or (None if style.uses(definition).workspace else world.workspace(run_id))
    return await app.launch(found, run_id, input, given, limits, place, model=world.script(script))


async def play(app: App, world: DemoWorld, run_id: str, workflow: str, script: str, input: str = "") -> View:
    """Start a run of one of the world's workflows, and wait until it has ended or waits for a person."""
    run = await start(app, world, run_id, world.workflow(workflow), script, input)
    return await app.wait(run)


# Scripts of the demonstration: written in YAML for people, and turned into the JSONL that scripted agents read.
#
#     - agent: writer
#       text: Words, or a file with its path above it.
#       json: {content: …, decisions: …}      # the object that ends a reply, or is all of it
#       calls: [{tool: …, args: {…}}]
#       delay: 3                              # seconds that the reply takes
#       tokens: 900                           # of the prompt; left out: more from reply to reply, as talks grow
#       times: 3                              # the same line so often
#
# A script NAME.VARIANT.yaml is for one run. All others together are the script of whatever a visitor starts; its
# replies take time. What a reply costs is made up, but in proportion: to its length, and to that of a prompt.


FIRST_PROMPT, GROWTH, LONGEST_PROMPT = 420, 130, 6000
"""Tokens of a script's first prompt, by how many the next one is longer, and of the longest."""
BYTES_PER_TOKEN = 4
INPUT_PRICE, OUTPUT_PRICE = 3.0, 15.0
"""Dollars per million tokens."""
VISITORS_DELAY = 3


def write_scripts(source: Path, folder: Path, everyone: str) -> None:
    """Write every script of a folder as JSONL into another one, and one with the lines of all of them."""
    folder.mkdir(parents=True)
    together: list[str] = []
    for path in sorted(source.glob("*.yaml")):
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        _write(folder / f"{path.stem}.jsonl", _lines(entries))
        if "." not in path.stem:
            together += _lines([{"delay": VISITORS_DELAY, **entry} for entry in entries])
    _write(folder / f"{everyone}.jsonl", together)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _lines(entries: list[dict[str, Any]]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        line: dict[str, Any] = {key: entry[key] for key in ("agent", "calls", "delay", "error") if key in entry}
        reply = _reply(entry)
        if reply or "calls" not in entry:
            line["reply"] = reply
        prompt = entry.get("tokens", min(FIRST_PROMPT + GROWTH * number, LONGEST_PROMPT))
        line["usage"] = _usage(prompt, len(json.dumps(line, ensure_ascii=False).encode()) // BYTES_PER_TOKEN)
        for _ in range(entry.get("times", 1)):
            yield json.dumps(line, ensure_ascii=False)


def _reply(entry: dict[str, Any]) -> str:
    parts = [entry.get("text", "").strip(), json.dumps(entry["json"], ensure_ascii=False) if "json" in entry else ""]
    return "\n\n".join(part for part in parts if part)


def _usage(prompt: int, reply: int) -> dict[str, float]:
    money = (prompt * INPUT_PRICE + reply * OUTPUT_PRICE) / 1_000_000
    return {"input_tokens": prompt, "output_tokens": reply, "money": round(money, 6)}
