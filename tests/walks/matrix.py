"""Small workflows of the five styles, each as one that starts another and as one that is started.

A child comes to `WORDS`, with a person's answer in it if it asks one first; a parent hands on what the child came to.
"""

import json
from pathlib import Path
from typing import Any

STYLES = ("graph", "blackboard", "pipeline", "handoff", "conversation")
WORDS = "The sea is salty."
GOAL = "Why is the sea salty?"
QUESTION = "May I say so?"

Replies = list[dict[str, Any]]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _reply(agent: str, value: Any) -> dict[str, Any]:
    return {"agent": agent, "reply": value if isinstance(value, str) else json.dumps(value)}


# Parents: each starts `../child`, and says what came of it.


def graph_parent(_folder: Path) -> tuple[dict[str, str], Replies]:
    text = f"""\
name: parent
initial_message: {GOAL}
max_turns: 4
states:
  - name: delegate
    workflow: ../child
    start: true
    transitions: [{{to: END, condition: always}}]
"""
    return {"workflow.yaml": text}, []


POLICY = json.dumps(
    {
        "extends": "base-en",
        "report_rules": {"apply_to": [], "verdict_allowed": ["OK"]},
        "max_iterations": 6,
    }
)


def _board(specialist: str, prompt: str, front: str = "") -> dict[str, str]:
    return {
        "memory/verification_policy.json": POLICY,
        "memory/dev_plan.md": "# Plan\n\n- T1: find out (status: TODO)\n",
        "memory/prompts/subagent_prompt_main.md": f"{front}You decide.\n",
        f"memory/prompts/subagent_prompt_{specialist}.md": prompt,
    }


def board_parent(_folder: Path) -> tuple[dict[str, str], Replies]:
    calls = _reply("MAIN", {"next_agent": "DIVER", "reason": "It is not known.", "task": GOAL})
    ends = _reply("MAIN", {"next_agent": "FINISH", "reason": "The diver has found out."})
    return _board("diver", "---\nworkflow: ../child\n---\n"), [calls, ends]


def pipeline_parent(_folder: Path) -> tuple[dict[str, str], Replies]:
    return {"pipeline.yaml": "name: parent\nstages: [{name: dive, workflow: ../child}]\n"}, []


def handoff_parent(_folder: Path) -> tuple[dict[str, str], Replies]:
    return {"handoff.yaml": "first: diver\n", "roles/diver.md": "---\nworkflow: ../child\n---\nFind out.\n"}, []


def _bot(flows: str) -> str:
    return f"name: Pearl\nsop: Answer.\ngreeting: Hello.\napology: Sorry, that did not work.\n{flows}"


def bot_parent(_folder: Path) -> tuple[dict[str, str], Replies]:
    flows = "flows: [{id: dive, type: keyword, keywords: [salty], match_type: contains, workflow: ../child}]\n"
    return {"bot.yaml": _bot(flows)}, []


# Children: each comes to `WORDS`; with `asks` a person has to answer first, with `twice` it takes more than one call.


def graph_child(_folder: Path, asks: bool, twice: bool) -> tuple[dict[str, str], Replies]:
    text = f"""\
name: child
initial_message: {GOAL}
max_turns: 4
agents: [{{name: clerk, type: ask}}]
states:
  - name: write
    agent: clerk
    start: true
    prompt: "{{{{COLLABORATION_GUIDE}}}} {{{{initial_message}}}}"
    transitions: [{{to: END, condition: done}}]
"""
    first: Replies = []
    if asks:  # after two turns a guard asks a person
        text = text.replace("max_turns: 4", "max_turns: 1") + "guards: {then: ask}\n"
    if asks or twice:
        text = text.replace("[{to: END", '[{to: write, condition: "NOT done"}, {to: END')
        first = [_reply("clerk", {"content": "Wait.", "decisions": {"done": False}})]
    return {"workflow.yaml": text}, [*first, _reply("clerk", {"content": WORDS, "decisions": {"done": True}})]


def board_child(folder: Path, asks: bool, twice: bool) -> tuple[dict[str, str], Replies]:
    asked = [_reply("MAIN", {"next_agent": "USER", "reason": "To be sure.", "question": QUESTION})] if asks else []
    calls = _reply("MAIN", {"next_agent": "CHEMIST", "reason": "Ask the chemist.", "task": GOAL})
    report = _reply("CHEMIST", f"iteration: {1 + asks}\nVerdict: OK\nRivers bring the salt.")
    ends = _reply("MAIN", {"next_agent": "FINISH", "reason": WORDS})
    lines = "".join(f"{json.dumps(one)}\n" for one in (*asked, calls, report, ends))
    own = f"---\nmodel: script:{folder}/own.jsonl\n---\n"  # its MAIN is not the parent's
    return {**_board("chemist", f"{own}You report.\n", own), "own.jsonl": lines}, []


def pipeline_child(_folder: Path, asks: bool, twice: bool) -> tuple[dict[str, str], Replies]:
    draft = ", draft: artifacts/answer.md, review: true" if asks else ", tools: [write_file]"
    text = f"name: child\nstages: [{{name: answer, agent: clerk{draft}, instructions: Answer.}}]\n"
    notes = {"calls": [{"tool": "write_file", "args": {"path": "notes.md", "content": "Salt."}}]}
    return {"pipeline.yaml": text}, [*([{"agent": "clerk", **notes}] if twice else []), _reply("clerk", WORDS)]


def handoff_child(_folder: Path, asks: bool, twice: bool) -> tuple[dict[str, str], Replies]:
    done = {"action": "complete", "to": "", "next_action": "", "result": WORDS}
    replies = [_reply("clerk", {"content": "Done.", "decisions": done})]
    broken = [_reply("clerk", "I do not know.")] * (2 if asks else int(twice))
    rules = f"first: clerk\nattempts: {1 + twice}\n"
    return {"handoff.yaml": rules, "roles/clerk.md": "You answer.\n"}, [*broken, *replies]


def bot_child(_folder: Path, asks: bool, twice: bool) -> tuple[dict[str, str], Replies]:
    plan = {"name": "Pearl", "tone": "calm", "greeting": "Hello.", "sop": "Answer.", "timers": None, "constraints": ""}
    says: dict[str, Any] = {"next_status": "typing", "action": None, "response": WORDS}
    if asks:
        says = {"next_status": "transferred", "action": None, "response": "A person answers."}
    thinks = {"next_status": "processing", "action": None, "response": None}
    more = [_reply("assistant", says)] if twice else []
    return {"bot.yaml": _bot("")}, [_reply("planner", {"plan": plan, "decision": thinks if twice else says}), *more]


PARENTS = dict(zip(STYLES, (graph_parent, board_parent, pipeline_parent, handoff_parent, bot_parent), strict=True))
CHILDREN = dict(zip(STYLES, (graph_child, board_child, pipeline_child, handoff_child, bot_child), strict=True))


def make_cell(folder: Path, parent: str, child: str, asks: bool = False, twice: bool = False) -> None:
    """Write a parent and its child, and the settings with the script that plays their agents."""
    above, before_and_after = PARENTS[parent](folder / "parent")
    below, replies = CHILDREN[child](folder / "child", asks, twice)
    write(folder / "parent", above)
    write(folder / "child", below)
    first, last = before_and_after[:1], before_and_after[1:]  # a board's MAIN speaks before and after its specialist
    lines = [json.dumps(one) for one in (*first, *replies, *last, _reply("nobody", "Nothing."))]
    (folder / "s.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "ripstop.toml").write_text('[models]\ndefault = "script:s.jsonl"\n')


def say_otherwise(folder: Path, said: str, instead: str) -> None:
    """Have the agents of a cell say something else, as it is in the JSON of their replies."""
    for script in (folder / "s.jsonl", folder / "child" / "own.jsonl"):
        if script.exists():
            text = script.read_text()
            script.write_text(text.replace(json.dumps(said)[1:-1], json.dumps(instead)[1:-1]))


def fail(folder: Path, agent: str) -> None:
    """Have the calls of an agent of a cell fail."""
    script = folder / "s.jsonl"
    lines = [json.loads(line) for line in script.read_text().splitlines()]
    lines = [{"agent": agent, "error": "refused"} if one["agent"] == agent else one for one in lines]
    script.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
