"""`make bench`: ripstop beside its limits and its peers, on the same disk, in one run.

Every figure comes from a process of its own with a fresh folder. Contestants take turns (a, b, c, a, b, c …), so
that a busy moment of the machine meets all of them; the median of the repeats counts, and ratios are medians of
the ratios within a turn. The exit code is 0 unless something crashed: a bench reports, it does not judge.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import machine
import setup_peers
import startup
from bars import Results, verdicts
from plan import CONTESTANTS, REPEATS, Arguments, Scale, plan
from processes import RESULTS, Crashed, Figures, Runner, scratch
from table import render

UNSTEADY = 1.5
"""A spread of repeats beyond this is worth a word: the disk, most likely, was busy."""


def main() -> int:
    options = _options()
    scale: Scale = "quick" if options.quick else "full" if options.full else "normal"
    measures = {name: who for name, who in plan(scale).items() if not options.only or name in options.only}
    peers = not options.without_peers
    failed = False
    if peers and not options.peers_python and any(CONTESTANTS[n].peer for who in measures.values() for n in who):
        failed = setup_peers.main() != 0
        peers = not failed
    peers_python = options.peers_python or str(setup_peers.python_of(setup_peers.VENV))
    with scratch() as folder:
        facts = machine.facts(folder)
        disk = machine.Disk(folder)
    if peers:
        facts["peers"] = machine.versions_of_peers(peers_python)
    print("; ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    if facts["filesystem"] == "tmpfs":
        print("This folder is on tmpfs, where fsync costs nothing: the figures say nothing about durability.")
    runner = Runner(sys.executable, peers_python, disk)
    results: Results = {}
    for measure, contestants in measures.items():
        chosen = {name: given for name, given in contestants.items() if peers or not CONTESTANTS[name].peer}
        results[measure] = _measure(runner, measure, chosen, options.repeats or REPEATS[scale])
    _report(scale, facts, results)
    return 1 if failed or any("error" in r for who in results.values() for r in who.values()) else 0


def _options() -> argparse.Namespace:
    names = list(plan("normal"))
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat of less work, about a minute; not to quote")
    parser.add_argument("--full", action="store_true", help="LangGraph grows over 5,000 steps too: some 7 GB of disk")
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help="only: " + ", ".join(names))
    parser.add_argument("--without-peers", action="store_true", help="only ripstop and the bare limits")
    parser.add_argument("--repeats", type=int, metavar="N", help="how often each contestant takes its turn (3)")
    parser.add_argument("--peers-python", metavar="PATH", help="a Python that has the peers, instead of .venv-bench")
    return parser.parse_args()


def _measure(runner: Runner, measure: str, contestants: dict[str, Arguments], repeats: int) -> Results:
    taken: dict[str, list[Figures]] = {name: [] for name in contestants}
    results: Results = {name: {"arguments": given} for name, given in contestants.items()}
    if measure == "startup":
        repeats = 1  # repeats itself
    for turn in range(1, repeats + 1):
        for name, arguments in contestants.items():
            if "error" in results[name]:
                continue
            began = time.perf_counter()
            try:
                figures = _once(runner, measure, name, arguments)
            except (Crashed, startup.NotThere) as trouble:
                results[name]["error"] = str(trouble)
                print(f"{measure} {turn}/{repeats} {name}: crashed\n{trouble}", file=sys.stderr, flush=True)
                continue
            taken[name].append(figures)
            said = "  ".join(f"{key} {value:,.4g}" for key, value in figures.items())
            print(f"{measure:10} {turn}/{repeats} {name:16} {time.perf_counter() - began:5.1f} s   {said}", flush=True)
    for name, all_figures in taken.items():
        if all_figures and "error" not in results[name]:
            results[name]["repeats"] = all_figures
            results[name]["median"] = {
                key: statistics.median(figures[key] for figures in all_figures) for key in all_figures[0]
            }
    return results


def _once(runner: Runner, measure: str, name: str, arguments: Arguments) -> Figures:
    if measure == "startup":
        return startup.measure(sys.executable, arguments["times"])
    return runner.measure(CONTESTANTS[name], measure, arguments)


def _report(scale: Scale, facts: dict[str, Any], results: Results) -> None:
    judged = verdicts(results)
    print(f"\n{render(results, judged)}\n")
    for line in _unsteady(results):
        print(line)
    if scale == "quick":
        print("Quick: one repeat of less work. Figures to quote come from a run without --quick.")
    if scale != "full" and "langgraph" in results.get("growth", {}):
        print("Growing conversation: LangGraph takes fewer steps than the others (see `steps`) unless you say --full.")
    document = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "scale": scale,
        "machine": facts,
        "results": results,
        "bars": [verdict._asdict() for verdict in judged],
    }
    path: Path = RESULTS / "latest.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Written to {path.relative_to(RESULTS.parent.parent)}.")


def _unsteady(results: Results) -> list[str]:
    """Where the repeats differ so much that the machine, most likely, was busy with something else."""
    found = []
    for measure, contestants in results.items():
        for name, result in contestants.items():
            unit = {"concurrent": "steps", "single": "steps", "chats": "messages"}.get(measure)
            if unit is None or "repeats" not in result:
                continue
            rates = [figures[f"{unit}_per_second"] for figures in result["repeats"]]
            if max(rates) > UNSTEADY * min(rates):
                low, high = f"{min(rates):,.0f}", f"{max(rates):,.0f}"
                found.append(f"Unsteady: {measure} of {name} went from {low} to {high} {unit}/s.")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
