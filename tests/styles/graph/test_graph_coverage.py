"""Which cases a state's conditions cover: found by rule, and compared with trying values one by one."""

import itertools
import random
from typing import Any

import pytest

from ripstop.styles.graph import condition
from ripstop.styles.graph.coverage import MOST_CASES, can_hold, cover
from ripstop.styles.graph.definition import END, Agent, ExitCondition, Graph, State, Transition


def graph(*conditions: str, exits: tuple[tuple[str, str], ...] = (), max_turns: int = 10) -> Graph:
    transitions = tuple(Transition(to=END, condition=text, line=10 + n) for n, text in enumerate(conditions))
    return Graph(
        name="g",
        start="s",
        agents=(Agent(name="a"),),
        states=(State(name="s", agent="a", prompt="p", transitions=transitions),),
        max_turns=max_turns,
        exit_conditions=tuple(ExitCondition(condition=text, action=action) for text, action in exits),
    )


def gap(*conditions: str, **more: Any) -> dict[str, Any] | None:
    made = graph(*conditions, **more)
    found = cover(made, made.states[0])
    assert found is not None
    return found.gap


def dead(*conditions: str, **more: Any) -> dict[int, tuple[int, ...]]:
    made = graph(*conditions, **more)
    found = cover(made, made.states[0])
    assert found is not None
    return {each.index: each.because for each in found.dead}


@pytest.mark.req("S1-83")
@pytest.mark.parametrize(
    ("conditions", "example"),
    [
        (["done"], {"done": False}),
        (["done", "NOT done"], None),
        (["done", ""], None),
        (["a AND b", "NOT (a AND b)"], None),
        (["a AND b", "NOT a"], {"a": True, "b": False}),
        (["approved OR score >= 8"], {"approved": False, "score": 7}),
        (["score < 8", "score >= 8"], None),
        (["score < 8", "score > 8"], {"score": 8}),
        (["score <= 7", "score >= 8"], {"score": 7.5}),
        (['v == "pass"', 'v == "fail"'], {"v": "something else"}),
        (['v == "pass"', 'v != "pass"'], None),
        (["done == true", "done == false"], None),
        (["n", "n > 3"], {"n": -1 + 1}),
        (["a == b", "a != b"], None),
        (["a < b", "a > b"], {"a": -2, "b": -2}),
        (["a <= b", "a > b"], None),
        (["(a AND b) == true", "(a AND b) == false"], None),
        (["needs AND score < 8 AND NOT ok", "ok OR score >= 8"], {"needs": False, "score": 7, "ok": False}),
    ],
)
def test_a_case_that_nothing_covers_is_shown_by_an_example(
    conditions: list[str], example: dict[str, Any] | None
) -> None:
    assert gap(*conditions) == example


def test_the_turn_limit_leaves_no_gap_and_neither_does_an_exit() -> None:
    assert gap("done AND NOT max_turns_exceeded", "NOT done") is None
    assert gap("done", exits=(("NOT done", "force_end"),)) is None
    assert gap("turns < 5", "turns >= 5") is None
    assert gap("turns < 5", "turns > 5") == {"turns": 5}
    assert gap("turns < 5", max_turns=5) is None, "in turn 5 the run ends anyway"
    assert gap("turns < 5", max_turns=5, exits=(("error_occurred", "save_and_end"),)) == {"turns": 5}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["a", "a AND b"], {1: (0,)}),
        (["a", "NOT a", "b"], {2: (0, 1)}),
        (["", "b"], {1: (0,)}),
        (["a AND NOT a"], {0: ()}),
        (["score > 8 AND score < 7"], {0: ()}),
        (["score > 3", "score >= 4"], {1: (0,)}),
        (["score >= 4", "score > 3"], {}),
        (["score > 3 AND score < 4", "x"], {}),
        (['v == "a"', 'v == "a" AND b'], {1: (0,)}),
        (['v == "a" AND v == "b"'], {0: ()}),
        (["turns > 10"], {0: ()}),
        (["turn_count_s > 10"], {0: ()}),
        (["turns >= 10 AND NOT max_turns_exceeded"], {0: ()}),
        (["error_occurred"], {0: ()}),
        (["never", "true"], {0: ()}),
        (["a > true"], {0: ()}),
        (["a", "max_turns_exceeded AND a", "NOT a AND max_turns_exceeded"], {1: (0,)}),
    ],
)
def test_a_transition_that_never_fires_is_found(conditions: list[str], expected: dict[int, tuple[int, ...]]) -> None:
    assert dead(*conditions) == expected


def test_an_exit_condition_can_keep_a_transition_from_firing() -> None:
    made = graph("stop AND NOT max_turns_exceeded", "NOT stop", exits=(("stop", "force_end"),))
    found = cover(made, made.states[0])
    assert found is not None and [(d.index, d.because, d.by_exit) for d in found.dead] == [(0, (), True)]


def test_too_many_cases_are_not_looked_at() -> None:
    many = " AND ".join(f"d{n}" for n in range(20))
    made = graph(many)
    assert MOST_CASES < 2**20 and cover(made, made.states[0]) is None
    assert can_hold(made, many) == (True, True)
    huge = graph(f"a < {'9' * 400}")
    assert cover(huge, huge.states[0]) is None


def test_whether_a_condition_can_hold_or_fail() -> None:
    made = graph("a")
    assert can_hold(made, "") == (True, False)
    assert can_hold(made, "a OR NOT a") == (True, False)
    assert can_hold(made, "max_turns_exceeded OR error_occurred") == (False, True)
    assert can_hold(made, "a") == (True, True)


VALUES: dict[str, list[Any]] = {
    "a": [False, True],
    "b": [False, True],
    "n": [half / 2 for half in range(-4, 14)],
    "v": ["x", "y", "z"],
}
ATOMS = ["a", "b", "a == b", "n > 2", "n >= 3", "n < 5", "n == 4", 'v == "x"', 'v != "y"', "true", "a == false"]


def _random_condition(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(4) if depth else 0
    if kind == 0:
        return chance.choice(ATOMS)
    if kind == 1:
        return f"NOT ({_random_condition(chance, depth - 1)})"
    word = "AND" if kind == 2 else "OR"
    return f"({_random_condition(chance, depth - 1)}) {word} ({_random_condition(chance, depth - 1)})"


def test_agrees_with_trying_every_value() -> None:
    chance = random.Random(7)
    everything = [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]
    for _ in range(300):
        texts = [_random_condition(chance, 3) for _ in range(chance.randrange(1, 5))]
        nodes = [condition.parse(text) for text in texts]
        table = [[bool(condition.evaluate(node, case.__getitem__)) for node in nodes] for case in everything]
        fired = {next((i for i, held in enumerate(row) if held), None) for row in table}
        made = graph(*texts)
        found = cover(made, made.states[0])
        assert found is not None
        assert {each.index for each in found.dead} == set(range(len(texts))) - fired, texts
        assert (found.gap is not None) == (None in fired), texts
        if found.gap is not None:
            for rest in everything[:: len(everything) // 7]:
                case = {**rest, **found.gap}
                assert not any(condition.evaluate(node, case.__getitem__) for node in nodes), (texts, found.gap)
