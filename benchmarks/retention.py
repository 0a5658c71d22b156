"""
Measure what a sweep of retention costs a service beside it, in blocks that take turns.

    python -m benchmarks.retention [--rows 100000] [--due 20000]

A service calls its guarded SqliteStore at a steady pace: puts, gets and searches. Another process
sweeps the same file: it lists all rows, judges each, and removes those that are due, one sealed
event each. It is let go and held in turns, between two pages or batches, so that both kinds of
blocks see the same machine. An attempt begins when its turn by the clock has come: a call that
waits for one before it counts as late.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.store.sqlite import SqliteStore

from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.retention.judging import RecordJudge
from tests.kit.kept_scope import kept_scope

POLICY = 'purposes: {"*": 400d}\nunrecorded: 2d\nfloors: {"*": 1d}\n'
DAY_S = 86_400
BLOCK_S = 2.0
SPEEDS = (50, 100, 200)
"""Calls a second."""


@contextmanager
def service(folder: Path, clock_ns: Any = time.time_ns) -> Iterator[tuple[Mnemoscope, Any]]:
    """Yield the scope of one process, and its guarded store."""
    file = sqlite3.connect(
        folder / "store.db", isolation_level=None, check_same_thread=False, timeout=60
    )
    file.execute("PRAGMA journal_mode = WAL")
    with closing(file), kept_scope(folder, clock_ns, deadline_forget_s=600.0) as scope:
        bare = SqliteStore(file)
        bare.setup()
        yield scope, scope.store(bare, customer_at=1)


def build(folder: Path, rows: int, due: int) -> None:
    """Have a trail that has lived ten days, and rows of which some are older than is allowed."""
    (folder / "retention.yaml").write_text(POLICY)
    now_s = [time.time() - 10 * DAY_S]
    with service(folder, lambda: int(now_s[0] * 1e9)) as (scope, store):
        with context(customer="c-0"):
            store.put(("notes", "c-0"), "first", {"text": "of a trail"})
        scope.flush(30)
        for _ in range(10):
            now_s[0] += DAY_S
            scope.audit.append_log_event("verify.ran", {"result": "ok"})
    with closing(sqlite3.connect(folder / "store.db")) as file, file:
        file.executemany(
            "INSERT INTO store (prefix, key, value, created_at, updated_at) "
            "VALUES (?, ?, ?, datetime('now', ?), datetime('now', ?))",
            (
                (
                    f"notes.c-{number % 1_000}",
                    f"old-{number}",
                    '{"text": "the kettle leaks and the lid is loose again"}',
                    *(["-5 days"] * 2 if number < due else ["-1 hours"] * 2),
                )
                for number in range(rows)
            ),
        )


def sweep(folder: Path) -> None:
    """Sweep, and stand still between two pages or batches while the file *hold* is there."""
    judge = RecordJudge.judge

    def held(self: RecordJudge, store: str, records: Any) -> Any:
        while (folder / "hold").exists():
            time.sleep(0.01)
        return judge(self, store, records)

    RecordJudge.judge = held  # type: ignore[method-assign]
    with service(folder) as (scope, _store):
        result = scope.retention().sweeper.run()
        gone, left = sum(result.removed.values()), result.left
        print(f"removed {gone:,}, left {left}, overdue {result.overdue}")  # noqa: T201 - a program


def block(store: Any, per_s: float, rng: random.Random) -> list[float]:
    """Return the seconds that each call of a block took, from when it was to begin."""
    took: list[float] = []
    began = time.perf_counter()
    for turn in range(int(BLOCK_S * per_s)):
        due = began + turn / per_s
        time.sleep(max(0.0, due - time.perf_counter()))
        customer = f"c-{rng.randrange(1_000)}"
        with context(customer=customer, purpose="reply"):
            match turn % 3:
                case 0:
                    store.put(("notes", customer), f"new-{turn}", {"text": "likes green tea"})
                case 1:
                    store.get(("notes", customer), f"new-{turn - 1}")
                case _:
                    store.search(("notes", customer), limit=5)
        took.append(time.perf_counter() - due)
    return took


def measure(folder: Path, per_s: float) -> tuple[list[float], list[float], str]:
    """Return what calls took while the sweeper was held, and while it worked, and what it said."""
    hold, rng = folder / "hold", random.Random(29)  # noqa: S311 - no secret
    took: dict[bool, list[float]] = {True: [], False: []}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.retention", "--sweep", str(folder)]
    hold.touch()
    with (
        service(folder) as (_scope, store),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sweeper,
    ):
        block(store, per_s, rng)
        time.sleep(3)  # it has begun
        while sweeper.poll() is None:
            for is_held in rng.sample((True, False), 2):
                hold.touch() if is_held else hold.unlink(missing_ok=True)
                time.sleep(0.2)
                took[is_held] += block(store, per_s, rng)
        said = sweeper.stdout.read() if sweeper.stdout else ""
    return took[True], took[False], said.strip()


def share(took: Sequence[float], of: float) -> float:
    """Return the milliseconds that *of* all calls took at most."""
    return sorted(took)[int(of * (len(took) - 1))] * 1_000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--due", type=int, default=20_000)
    parser.add_argument("--calls-per-s", type=float, default=100.0)
    parser.add_argument("--sweep", type=Path)
    options = parser.parse_args()
    if options.sweep:
        os.nice(10)
        sweep(options.sweep)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        build(folder, options.rows, options.due)
        held, working, said = measure(folder, options.calls_per_s)
    print(f"{options.rows:,} rows; the sweeper {said}")  # noqa: T201 - a program
    for name, of in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        without, beside = share(held, of), share(working, of)
        print(  # noqa: T201
            f"{name}: {without:.2f} ms without, {beside:.2f} ms beside it ({beside / without:.2f}x)"
        )
    print(f"{len(held):,} and {len(working):,} calls, in blocks of {BLOCK_S:.0f} s in turns")  # noqa: T201


if __name__ == "__main__":
    main()
