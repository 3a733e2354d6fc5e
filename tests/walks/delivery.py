"""What the stories about delivery projects share: a folder, a script, and a person who answers."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli

SCRIPT = Path(__file__).parents[2] / "examples" / "delivery" / "script.jsonl"
IDEA = "a to-do list in the browser"


def ripstop(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def answer_of(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = ripstop("--json", *arguments)
    return done.exit_code, json.loads(done.stdout)


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SCRIPT.read_text(encoding="utf-8").splitlines()]


def write_script(folder: Path, replies: Iterable[dict[str, Any]], name: str = "script.jsonl") -> str:
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in replies), encoding="utf-8")
    return f"script:{folder / name}"


def questions() -> list[dict[str, Any]]:
    done = ripstop("--json", "desk")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def say(*answer: str) -> None:
    """Answer the question that waits."""
    (question,) = questions()
    done = ripstop("answer", question["id"], *answer)
    assert done.exit_code == 0, done.output


def pass_all(code: int, result: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    """Pass every draft until the run has ended."""
    while code == 4:
        say("pass")
        code, result = answer_of(*options, "resume")
    return code, result


def deliver(model: str = f"script:{SCRIPT}") -> tuple[int, dict[str, Any]]:
    """The whole project, every draft taken as it is."""
    return pass_all(*answer_of("--model", model, "new", IDEA))


def data(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(".cowork", "data", name).read_text(encoding="utf-8"))
    return found


def meta() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(".cowork/session/meta.json").read_text(encoding="utf-8"))
    return found


def artifact(name: str) -> str:
    return Path(".cowork", "artifacts", name).read_text(encoding="utf-8")
