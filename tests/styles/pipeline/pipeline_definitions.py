"""Small pipelines for tests, in a field of work that nobody ships."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.definitions.problems import Problem, WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.styles.pipeline.definition import Pipeline
from ripstop.styles.pipeline.reader import READER

RIGHT = """\
name: bakery
description: A cake from a wish.
rate_limit: 0.5
max_reviews: 3
stages:
  - name: wish
    instructions: Write down the wish.
    draft: artifacts/wish.md
  - name: recipe
    title: The recipe
    agent: baker
    instructions: Write a recipe.
    inputs: [artifacts/wish.md]
    draft: artifacts/recipe.md
    review: true
    outputs: [data/recipe.json]
    tools: [write_recipe]
    critic:
      instructions: Taste it.
      tools: [provide_feedback]
    max_iterations: 2
  - name: oven
    inputs: [data/recipe.json]
    workflow: baking
    outputs: [data/cake.json]
  - name: taste
    kind: check
    instructions: Judge.
    inputs: [data/cake.json]
    tools: [goto_stage]
  - name: serve
    kind: delivery
    instructions: Describe.
    inputs: [artifacts/check_report.md]
    tools: [save_delivery_report]
"""
RECIPE = RIGHT[RIGHT.index("  - name: recipe") : RIGHT.index("  - name: oven")]


def changed(*pairs: tuple[str, str]) -> str:
    """The right pipeline with some words in place of others."""
    text = RIGHT
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def write(root: Path, text: str = RIGHT, file: str = "pipeline.yaml") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text, encoding="utf-8")
    return root / file


def read(path: Path) -> Pipeline:
    """A pipeline as a run gets it: read, pinned, loaded again, and checked."""
    name, content = READER.read(path, Environment())
    found = msgspec.json.decode(content, type=Pipeline)
    assert found.name == name
    READER.check_pinned(found)
    return found


def said(problems: list[Problem]) -> list[str]:
    """Each problem in a line, without its folder and without its hint."""
    found = [one.place for one in problems]
    places = [f"{Path(place.file).name}:{place.line}:{place.column}" for place in found]
    return [f"{place}: {one.severity}: {one.text}" for place, one in zip(places, problems, strict=True)]


def checked(path: Path, environment: Environment = Environment()) -> list[str]:
    return said(READER.check(path, environment))


def wrong(root: Path, text: str, file: str = "pipeline.yaml") -> list[str]:
    """What is wrong with a file that cannot be read."""
    path = write(root, text, file)
    with pytest.raises(WrongDefinition) as raised:
        READER.read(path, Environment())
    assert READER.check(path, Environment()) == raised.value.problems
    return said(raised.value.problems)


def flow(root: Path, stages: list[Any], files: dict[str, Any] | None = None, **others: Any) -> Path:
    """A flow in JSON, with the files of its stages beside it."""
    (root / "stages").mkdir(parents=True, exist_ok=True)
    for name, stage in (files or {}).items():
        text = stage if isinstance(stage, str) else json.dumps({"id": name, **stage}, indent=1)
        (root / "stages" / f"{name}.json").write_text(text, encoding="utf-8")
    written = {"id": "quick", "stages": stages, **others}
    return write(root / "flows", json.dumps(written, indent=1), "quick.json")
