"""How the command line says things."""

import shlex
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ripstop.text.plurals import count
from ripstop.text.visible_text import visible_line

if TYPE_CHECKING:
    from ripstop.engine.engine import Engine, View
    from ripstop.kernel.effects import Field
    from ripstop.kernel.run import Run
    from ripstop.kernel.style import Action


# How a run is or has ended: its summary, and the exit code that says the same.


EXIT = {"completed": 0, "failed": 1, "limit": 3, "stopped": 3, "restart": 5, "stuck": 1}
WAITING = 4
GRACE = 3.0
"""Seconds that calls under way get to finish when the process is interrupted."""


def exit_code(status: str) -> int:
    """The exit code of a command that followed a run until it settled: `working` waits for another process."""
    return WAITING if status in ("waiting", "listening", "working", "paused") else EXIT[status]


async def seen_status(engine: "Engine", run_id: str, status: str) -> str:
    """The status of a run as people see it, with regard to whether anybody works on it."""
    from ripstop.history.runs import shown_status

    return shown_status(status, await engine.has_workers(), run_id in await engine.left_waiting())


async def summary(engine: "Engine", view: "View") -> dict[str, Any]:
    """How a run is, as `--json` prints it: with its ways to continue as commands, too."""
    from ripstop.history.runs import run_document

    document = await run_document(engine, view)
    if "guard" in document:
        document["guard"]["ways_on"] = [way_command(view.run.id, way) for way in document["guard"]["ways"]]
    if "ways" in document:
        document["ways_on"] = [way_command(view.run.id, way) for way in document["ways"]]
    return document


def way_command(run_id: str, way: dict[str, Any]) -> str:
    """A way to continue, as a command."""
    if way["action"] == "fork":
        return f"ripstop fork {run_id}" + (f" --at {way['at']}" if "at" in way else "")
    if way["action"] == "restart":
        return f"ripstop modify --from {way['stage']}"
    raises = "".join(f" --raise {name}=+{amount:g}" for name, amount in way.get("raise", {}).items())
    accept = " --accept-edits" if way.get("accept_edits") else ""
    return f"ripstop resume {run_id}{raises}{accept}"


COLOURS = {
    "completed": "green",
    "limit": "yellow",
    "stopped": "yellow",
    "failed": "red",
    "restart": "yellow",
    "working": "cyan",
    "interrupted": "yellow",
    "paused": "yellow",
    "waiting": "magenta",
    "listening": "cyan",
    "stuck": "red",
    "set_aside": "red",
}

PATH_SHOWN = 40
"""Turns of a path that are shown; `--json` has all of them."""


def shown_path(turns: list[str]) -> str:
    """The beginning and the end of a path."""
    names = [first_line(turn, 80) for turn in turns]
    if len(names) > PATH_SHOWN:
        half = PATH_SHOWN // 2
        names[half:-half] = [f"… {len(names) - PATH_SHOWN:,} more …"]
    return " → ".join(names)


def command_for(store: str) -> str:
    """How to call us again, for this journal."""
    from ripstop.app.settings.settings_file import DEFAULT_STORE

    return "ripstop" if store == DEFAULT_STORE else f"ripstop --store {shlex.quote(store)}"


def first_line(text: str, most: int = 200) -> str:
    line = visible_line(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


CHOICE, TEXT = "CHOICE", "TEXT"
"""What a person replaces in a command that answers a question."""


def answer_command(question: str, choices: Collection[str], fields: str = "") -> str:
    """The command that answers a question. A shell makes nothing else of it, even if nothing is replaced in it."""
    return f"answer {question} {CHOICE if choices else TEXT}{fields}"


def answer_words(choice: str, text: str, fields: "Mapping[str, Any]") -> str:
    """What was answered, on one line."""
    given = ", ".join(f"{name}={value}" for name, value in fields.items())
    return "  ".join(filter(None, (choice, first_line(text, 160), given)))


def choices_line(choices: Collection[str]) -> list[str]:
    """The line below that command, which says what can be typed; none for a question without choices."""
    return [f"{CHOICE}: {one_of(choices)}"] if choices else []


def one_of(choices: Collection[str]) -> str:
    """The answers that a question takes, as they are typed."""
    *others, last = map(shlex.quote, choices)
    return f"{', '.join(others)} or {last}" if others else last


def field_words(field: "Field") -> str:
    """What a field of an answer takes: its label, its type or its values, and whether it can be left out."""
    values = ", ".join(field.allowed)
    takes = {
        "one_of": f"one of {values}",
        "some_of": f"some of {values}, with commas between them",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "yes or no",
    }.get(field.type, "text")
    label = f"{first_line(field.label)}: " if field.label else ""
    return f"{label}{takes}{'' if field.required else ' (can be left out)'}"


def field_options(fields: "Mapping[str, Field]") -> str:
    """The options that give fields of an answer or an action, as they are typed."""
    return "".join(f" --field {shlex.quote(name)}=…" for name in fields)


def action_words(action: "Action") -> str:
    """An action as it is typed after `ripstop act RUN`, in the name of the one who may do it."""
    name = f" --as {shlex.quote(action.by)}" if action.by else ""
    return f"{action.name}{name}{field_options(action.fields)}"


def seconds(elapsed: float) -> str:
    if elapsed < 60:
        return f"{elapsed:.1f} s"
    minutes, rest = divmod(round(elapsed), 60)
    return f"{minutes} min {rest} s"


def spent_words(usage: "Mapping[str, Any]", refused: int = 0) -> str:
    """What was spent, in words. Money is a sum of fractions, so it is rounded.

    `refused`: how many of the calls have no reply, because they were refused.
    """
    money = f", {usage['money']:.4f} spent" if usage["money"] else ""
    calls, tokens = count(usage["calls"], "call"), f"{usage['input_tokens']} + {usage['output_tokens']} tokens"
    unanswered = f" ({refused} refused)" if refused else ""
    return f"{calls}{unanswered}, {tokens}{money}"


def refused_calls(run: "Run[Any]") -> int:
    """How many of the calls that a run has made have no reply, because they were refused."""
    from ripstop.kernel.effects import AskAgent

    return sum(isinstance(run.open[one.to].command, AskAgent) for one in run.refused if one.to in run.open)


def local_time(at: int | str) -> str:
    """A moment as people read it; given in microseconds, or as `timeline.iso` writes it."""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at / 1_000_000, UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def outage_commands(question: str, root: str) -> str:
    """What can be done about a call that is refused: the family goes on as a whole, or does without the call."""
    return f"ripstop retry {root}   ·   ripstop answer {question} 'give up'"


def handoff_commands(question: str) -> str:
    """What can be done in a conversation that was handed over: answer the user, or give it back."""
    return f"ripstop answer {question} TEXT   ·   ripstop answer {question} release"


def outage_words(outage: Mapping[str, Any]) -> str:
    """How often a call was refused, since when, and what is next."""
    so_far = f"refused {count(outage['refusals'], 'time')} since {local_time(outage['since'])}"
    if not outage["next_attempt"]:
        return f"{so_far}; it waits for you, and is not tried again by itself"
    at = local_time(outage["next_attempt"])
    if outage["has_workers"]:
        return f"{so_far}; a worker tries again from {at} on"
    return f"{so_far}; no worker is running: `ripstop work` tries again from {at} on"
