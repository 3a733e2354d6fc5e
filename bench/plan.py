"""Who takes part in which measure, with how much work.

Everybody gets the same amount unless a comment says why not. `quick` is for a look in passing, `full`
spares nobody the long run.
"""

from typing import Any, Literal, NamedTuple

Scale = Literal["quick", "normal", "full"]
Arguments = dict[str, Any]


class Contestant(NamedTuple):
    title: str
    module: str
    suffix: str = ""
    """Added to the measure's name: a variant of the same module."""
    peer: bool = False
    """Lives in the peers' environment."""


CONTESTANTS = {
    "ripstop": Contestant("ripstop", "ripstop_engine"),
    "inline": Contestant("bare inline", "bare_inline"),
    "group": Contestant("bare group", "bare_group_commit"),
    "group-thread": Contestant("… in a thread", "bare_group_commit", "-thread"),
    "langgraph": Contestant("LangGraph", "langgraph_sqlite", peer=True),
    "langgraph-delta": Contestant("… delta (beta)", "langgraph_sqlite", "-delta", peer=True),
    "dbos": Contestant("DBOS", "dbos_sqlite", peer=True),
    "ripstop-chats": Contestant("ripstop", "ripstop_chats"),
    "langgraph-chats": Contestant("LangGraph", "langgraph_chats", peer=True),
    "burr-chats": Contestant("Burr", "burr_chats", peer=True),
}

REPEATS = {"quick": 1, "normal": 3, "full": 3}


def plan(scale: Scale) -> dict[str, dict[str, Arguments]]:
    """Measure → contestant → arguments. The contestants' order is the order in which they take turns."""
    quick = scale == "quick"
    everybody = ("ripstop", "inline", "group", "group-thread", "langgraph", "dbos")
    users = ("ripstop", "langgraph", "dbos")
    return {
        "concurrent": _same(everybody, runs=100 if quick else 200, steps=6 if quick else 20),
        "single": _same(everybody, steps=300 if quick else 1000),
        "growth": _growth(scale),
        "bytes": _same(("ripstop", "inline", "langgraph", "dbos"), steps=400, size=1024),
        "resume": _same(users, steps=1000),
        "waiting": _waiting(quick),
        "startup": {"ripstop": {"times": 5 if quick else 15}},
        **_chats(quick),
    }


def _chats(quick: bool) -> dict[str, dict[str, Arguments]]:
    talkers = ("ripstop-chats", "langgraph-chats", "burr-chats")
    closed = _same(talkers, sessions=200 if quick else 1000, messages=4 if quick else 10)
    if not quick:
        # LangGraph writes the whole conversation with every message, at 5 to 10 ms each
        closed["langgraph-chats"]["messages"] = 4
    return {
        "chats": closed,
        "chats-open": _same(talkers, sessions=200 if quick else 1000, rate=300, seconds=5 if quick else 20),
        "chats-idle": _same(("ripstop-chats",), sessions=1000 if quick else 10_000, seconds=10 if quick else 60),
    }


def _same(names: tuple[str, ...], **arguments: Any) -> dict[str, Arguments]:
    return {name: dict(arguments) for name in names}


def _growth(scale: Scale) -> dict[str, Arguments]:
    chosen = _same(("ripstop", "inline", "langgraph", "langgraph-delta", "dbos"), steps=5000, window=100)
    if scale != "full":
        # LangGraph writes its whole state at every step: 5,000 steps are 6.6 GB and more than a minute
        chosen["langgraph"]["steps"] = 1500
        chosen["langgraph-delta"]["steps"] = 1500
    if scale == "quick":
        for name, steps in {"ripstop": 5000, "langgraph": 400, "langgraph-delta": 400, "dbos": 600}.items():
            chosen[name]["steps"] = steps
    return chosen


def _waiting(quick: bool) -> dict[str, Arguments]:
    chosen = _same(("ripstop", "langgraph", "dbos"), runs=5000, seconds=2 if quick else 5)
    # the peers take 3 to 7 ms to start a run, and DBOS polls for each. The fewer runs, the more of what all runs
    # share counts for each; the table says how many there were
    chosen["langgraph"]["runs"] = 300 if quick else 1000
    chosen["dbos"]["runs"] = 100 if quick else 500
    return chosen
