"""Attacks by commands of agents: a few of each kind; `make soak-commands` tries all of them."""

import asyncio
from collections import defaultdict

import pytest

from ripstop.tools.commands.sandbox import Sandboxes
from tests.harness.command_attack import Attack
from tests.harness.command_attack_table import attacks
from tests.harness.command_attacks import SECRET, attack_all, sandboxes_of

LEAST = 500
EVERY = attacks()
BY_KIND: dict[str, list[Attack]] = defaultdict(list)
for _one in EVERY:
    BY_KIND[_one.kind].append(_one)
SLOW = ("without end", "npm", "npx", "network")
QUICK = [ones[len(ones) // 2] for kind, ones in BY_KIND.items() if kind not in SLOW][::3]
LONGER = [one for kind, ones in BY_KIND.items() for one in ones[:: max(1, len(ones) // 2)][: 1 if kind in SLOW else 2]]


def attack(kind: str, chosen: list[Attack], monkeypatch: pytest.MonkeyPatch) -> None:
    sandboxes = sandboxes_of(kind)
    if sandboxes is None:
        pytest.skip(f"this machine has no {kind}")
    monkeypatch.setenv("HARNESS_API_KEY", SECRET)
    found = asyncio.run(attack_all(sandboxes, chosen))
    assert (found.effects, found.left, found.broken) == ([], [], [])
    assert found.attacks + found.harmless == len(chosen)


def test_there_are_many_different_attacks() -> None:
    distinct = {repr((one.command, one.folder, one.files)) for one in EVERY if not one.works}
    assert len(distinct) >= LEAST


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ("open('{outside}', 'a').write('x')", "changed"),
        ("import os; os.unlink('{base}/outside/deep/x.txt')", "changed"),
        ("open('{base}/outside/new', 'w')", "is new"),
        ("open('.git/config', 'a').write('x')", ".git changed"),
        ("print(open('{home}').read())", "a secret was read"),
        ("import socket; socket.create_connection(('127.0.0.1', {port}))", "was reached"),
        ("import os; os.kill({victim}, 9)", "was killed"),
    ],
)
def test_an_attack_that_gets_through_is_seen(code: str, effect: str) -> None:
    chosen = [Attack("seen", ["python3", "-c", code])]
    found = asyncio.run(attack_all(Sandboxes(), chosen, unconfined=True))
    assert any(effect in one for one in found.effects)


@pytest.mark.req("S3-87", "S3-88", "S3-89")
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_a_few_attacks_have_no_effect(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attack(kind, QUICK, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_attacks_of_every_kind_have_no_effect(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attack(kind, LONGER, monkeypatch)
