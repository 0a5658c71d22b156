"""
Record runs of graphs of eight shapes, and replay their routes: ``make bench-replay``.

Each run is replayed on the graph that it is of, and on one whose router decides otherwise where a
certain die comes. What that one would have done is found by running it with the same dice.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.console import Console
from rich.table import Table

from mnemoscope.adapters.langgraph.routes import GraphReplay
from mnemoscope.audit.queries.routes import DIFFERS, Superstep, recorded_runs, route_of
from mnemoscope.memory import Mnemoscope, load_settings
from tests.kit.graph_shapes import SHAPES, play
from tests.kit.patience import GIVE_UP_S

CHANGED = 2
"""The die that the changed routers take for another."""

COLUMNS = ("runs", "supersteps", "decided", "same", "changed", "found", "wrong")


def first_difference(old: list[Superstep], new: list[Superstep]) -> Superstep | None:
    """Return the first superstep of *old* that *new* has not, or its last one."""
    for here, there in zip_longest(old, new):
        if here is None or there is None or here.names != there.names:
            return here or old[-1]
    return None


def measured(folder: Path, runs: int) -> dict[str, Counter[str]]:
    """Return by shape what was recorded, replayed and found."""
    settings = load_settings(
        sinks="audit", audit_url=f"sqlite:///{folder}/audit.db", pii_model="none"
    )
    scope = Mnemoscope(settings)
    states = SqliteSaver(sqlite3.connect(folder / "states.db", check_same_thread=False))
    saver = scope.checkpointer(states)
    begun = time.perf_counter()
    for number in range(runs):
        shape = [*SHAPES][number % len(SHAPES)]
        for kind, changed, kept in (("old", 0, saver), ("new", CHANGED, InMemorySaver())):
            graph: Any = SHAPES[shape](changed).compile(checkpointer=kept)
            play(scope.runnable(graph), f"{kind} {shape} {number}", number)
    assert scope.flush(timeout_s=GIVE_UP_S)
    sys.stderr.write(f"recorded in {time.perf_counter() - begun:.0f} s\n")
    begun = time.perf_counter()
    found = {each.run: route_of(rows) for each, rows in recorded_runs(scope.audit.rows()).items()}
    sys.stderr.write(f"derived {len(found):,} routes in {time.perf_counter() - begun:.1f} s\n")
    begun = time.perf_counter()
    totals = {shape: Counter[str]() for shape in SHAPES}
    for number in range(runs):
        shape = [*SHAPES][number % len(SHAPES)]
        old, new = (found[f"{kind} {shape} {number}"] for kind in ("old", "new"))
        totals[shape].update(replayed(shape, states, f"old {shape} {number}", old, new))
    sys.stderr.write(f"replayed twice in {time.perf_counter() - begun:.0f} s\n")
    scope.close()
    return totals


def replayed(
    shape: str, saver: Any, run: str, old: list[Superstep], new: list[Superstep]
) -> dict[str, int]:
    """Return what a replay on the run's own graph finds, and on the changed one."""
    own = GraphReplay(SHAPES[shape](0).compile(checkpointer=saver), run)
    is_same = not [*own.check(old)] and not +own.undecided
    changed = GraphReplay(SHAPES[shape](CHANGED).compile(checkpointer=saver), run)
    findings, wanted = [*changed.check(old)], first_difference(old, new)
    is_named = bool(findings) and findings[0].answer == DIFFERS and findings[0].at == wanted
    return {
        "runs": 1,
        "supersteps": len(old),
        "decided": own.decided,
        "same": is_same,
        "changed": wanted is not None,
        "found": wanted is not None and is_named,
        "wrong": wanted is None and bool(findings),
    }


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        totals = measured(Path(folder), runs)
    table = Table("shape", *COLUMNS)
    for shape, found in totals.items():
        table.add_row(shape, *(f"{found[each]:,}" for each in COLUMNS))
    together = sum(totals.values(), Counter[str]())
    table.add_row("together", *(f"{together[each]:,}" for each in COLUMNS))
    Console().print(table)
    is_well = together["same"] == together["runs"] and together["found"] == together["changed"]
    sys.exit(not is_well or bool(together["wrong"]))


if __name__ == "__main__":
    main()
