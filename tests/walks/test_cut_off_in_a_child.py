"""An unsafe call in a child, cut off by its parent's time limit: resumed, it is not repeated without a question."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_trust import ripstop

pytestmark = pytest.mark.long  # every story is a dozen processes, one after the other

TOOLS = """\
import asyncio
from pathlib import Path

import ripstop

PAID = Path(__file__).with_name("paid")


@ripstop.tool
async def pay(amount: int) -> str:
    with PAID.open("a") as book:
        book.write(f"{amount}\\n")
    if PAID.read_text().count("\\n") == 1:
        await asyncio.sleep(60)
    return "paid"
"""
INNERMOST = """\
name: till
initial_message: Pay.
max_turns: 3
agents: [{name: buyer, type: ask, tools: [pay]}]
states:
  - name: buy
    agent: buyer
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: bought."
    transitions: [{to: END, condition: bought}]
"""
AROUND = """\
name: NAME
initial_message: Pay.
max_turns: 3
states:
  - name: ask
    workflow: CHILD
    start: true
    transitions: [{to: END}]
"""
SCRIPT = [
    {"calls": [{"tool": "pay", "args": {"amount": 7}}]},
    {"reply": '{"content": "Bought.", "decisions": {"bought": true}}'},
]
OPTIONS = ("--tools", "goods", "--json")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "goods.py").write_text(TOOLS)
    (folder / "till.yaml").write_text(INNERMOST)
    (folder / "shop.yaml").write_text(AROUND.replace("NAME", "shop").replace("CHILD", "till.yaml"))
    (folder / "street.yaml").write_text(AROUND.replace("NAME", "street").replace("CHILD", "shop.yaml"))
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    return folder


def paid(shop: Path) -> int:
    return (shop / "paid").read_text().count("\n")


def result(done: Any) -> dict[str, Any]:
    assert done.stdout, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.mark.parametrize(
    "workflow", ["shop", pytest.param("street", marks=pytest.mark.long)], ids=["child", "grandchild"]
)
def test_a_call_cut_off_in_a_child_is_not_repeated_without_a_question(shop: Path, workflow: str) -> None:
    model = ("--model", "script:s.jsonl")
    stopped = result(ripstop("run", f"{workflow}.yaml", *model, "--max-seconds", "1", *OPTIONS, cwd=shop))
    assert (stopped["outcome"], paid(shop)) == ("limit", 1), stopped
    run = stopped["run"]
    for _ in range(2):
        resumed = result(ripstop("resume", run, "--raise", "seconds=30", *OPTIONS, cwd=shop))
        assert (resumed["outcome"], paid(shop)) == ("waiting", 1), resumed
    (question,) = resumed["waiting"]
    assert "pay" in question["question"] and "may have taken effect" in question["question"]
    done = resumed
    for _ in workflow:  # each run that its own limit has stopped asks for itself; the call is made after the last word
        if done["outcome"] != "waiting":
            break
        (question,) = done["waiting"]
        assert paid(shop) == 1
        answered = ripstop("answer", question["id"], "continue", cwd=shop)
        assert answered.returncode == 0, answered.stderr
        done = result(ripstop("resume", run, *OPTIONS, cwd=shop))
    assert (done["outcome"], paid(shop)) == ("completed", 2), done
