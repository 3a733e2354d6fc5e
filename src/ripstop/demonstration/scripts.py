"""Scripts of the demonstration: written in YAML for people, and turned into the JSONL that scripted agents read.

    - agent: writer
      text: Words, or a file with its path above it.
      json: {content: …, decisions: …}      # the object that ends a reply, or is all of it
      calls: [{tool: …, args: {…}}]
      delay: 3                              # seconds that the reply takes
      tokens: 900                           # of the prompt; left out: more from reply to reply, as talks grow
      times: 3                              # the same line so often

A script NAME.VARIANT.yaml is for one run. All others together are the script of whatever a visitor starts; its replies
take time. What a reply costs is made up, but in proportion: to its length, and to that of a prompt.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

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
