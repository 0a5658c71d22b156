"""
Kill sweepers at any moment, over and over, and see whether a thread is damaged.

``python -m tests.kit.keeping_kills --threads 10000 --kills 100`` does it at full size: mixed
threads in SQLite, cloned from some that graphs wrote, of which the older states are due and some
are held. Sweepers are killed at random, two at once; then one is left to end. Each thread is held
against a copy of the file from before.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from mnemoscope.audit import AuditLog
from mnemoscope.memory import Mnemoscope, load_settings
from tests.kit.elapsed_days import live
from tests.kit.mixed_threads import KINDS, config_of, graph_of, run_thread
from tests.kit.patience import GIVE_UP_S

POLICY = 'purposes: {support: 30d, "*": 400d}\nclasses: {checkpoint: {"*": 5d}}\n'
TEMPLATES, HELD = 10, 5
BATCH, SMALL_BATCH = 100, 3
"""Records of a batch; of a sweeper that is killed a few, so that it is killed between many."""
DAYS = 6


@contextmanager
def application(folder: Path, now_s: list[float]) -> Iterator[tuple[Mnemoscope, SqliteSaver]]:
    """Yield a scope whose trail has the clock *now_s*, and its bare saver, which it guards."""
    with pytest.MonkeyPatch.context() as patch:
        clock = partial(AuditLog, clock_ns=lambda: int(now_s[0] * 1e9))
        patch.setattr("mnemoscope.audit.sink.factory.AuditLog", clock)
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        scope = Mnemoscope(
            load_settings(
                sinks="audit",
                audit_url=f"sqlite:///{folder}/audit.db",
                audit_pseudonym_key="ab" * 32,
                audit_retention_days=2_000,
                pii_model="none",
                retention=folder / "retention.yaml",
                deadline_forget_s=GIVE_UP_S,
            )
        )
        path, timeout_s = folder / "threads.db", GIVE_UP_S
        connection = sqlite3.connect(path, check_same_thread=False, timeout=timeout_s)
        with closing(connection), closing(scope):
            yield scope, SqliteSaver(connection)


def build(folder: Path, threads: int) -> float:
    """Write so many threads, hold some, let days pass, and return the time of the trail."""
    (folder / "retention.yaml").write_text(POLICY)
    now_s = [time.time()]
    with application(folder, now_s) as (scope, bare):
        guarded = scope.checkpointer(bare)
        for kind in KINDS:
            for number in range(TEMPLATES):
                run_thread(guarded, f"{kind}-{number}", kind, runs=1 + number % 3)
        assert scope.flush(GIVE_UP_S)
        _clone(bare.conn, threads)
        for kind in KINDS[:HELD]:
            scope.retention().holds.add("run", f"{kind}-2")
        live(scope.audit, now_s, DAYS, every_days=1)
    return now_s[0]


def _clone(connection: sqlite3.Connection, threads: int) -> None:
    rows = connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1").fetchall()
    names = [name for (name,) in rows]
    for number in range(max(0, threads - len(names))):
        name = names[number % len(names)]
        for table in ("checkpoints", "writes"):
            columns = [each[1] for each in connection.execute(f"PRAGMA table_info({table})")]
            others = ", ".join(columns[1:])
            connection.execute(
                f"INSERT INTO {table} SELECT ? || '-' || thread_id, {others} FROM {table} "  # noqa: S608 - our own names
                "WHERE thread_id = ?",
                (f"clone-{number:06}", name),
            )
    connection.commit()


def sweep(folder: Path, now_s: float, batch: int) -> None:
    """Run one sweeper, and print its steps, and what came of it."""
    with (
        pytest.MonkeyPatch.context() as patch,
        application(folder, [now_s]) as (scope, bare),
    ):
        patch.setattr("mnemoscope.memory.retention.sweep.BATCH", batch)
        guarded = scope.checkpointer(bare)
        sweeper = scope.retention().sweeper
        sweeper.tell = partial(print, flush=True)
        result = sweeper.run()
        said = f"gone={sum(result.removed.values())} left={result.left} overdue={result.overdue}"
        print(said, *result.remarks, guarded)  # noqa: T201 - a program


def _start(folder: Path, now_s: float, batch: int) -> subprocess.Popen[str]:
    words = ("--sweep", str(folder), str(now_s), str(batch))
    command = [sys.executable, "-W", "ignore", "-m", "tests.kit.keeping_kills", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _await_removal(sweeper: subprocess.Popen[str]) -> None:
    """Wait until a sweeper removes, or ends."""
    for line in sweeper.stdout or ():
        if line.rstrip().endswith("removed"):
            return


def kill_some(folder: Path, now_s: float, kills: int, rng: random.Random) -> int:
    """Kill so many sweepers, two of them at once, and return how many were."""
    killed = 0
    while killed < kills:
        running = [_start(folder, now_s, SMALL_BATCH) for _ in range(2)]
        # Most of them in the middle of removing, some before.
        if rng.random() < 0.8:
            _await_removal(running[0])
        time.sleep(rng.uniform(0.0, 0.5))
        for each in running:
            if each.poll() is None:
                os.kill(each.pid, signal.SIGKILL)
                killed += 1
            each.communicate()
        if all(each.returncode == 0 for each in running):
            return killed
    return killed


def damaged(folder: Path) -> tuple[int, int, list[str]]:
    """Return how many states there were and are, and the threads that show something else."""
    wrong: list[str] = []
    with (
        closing(sqlite3.connect(folder / "threads.db", check_same_thread=False)) as one,
        closing(sqlite3.connect(folder / "twin.db", check_same_thread=False)) as other,
    ):
        kept, twin = SqliteSaver(one), SqliteSaver(other)
        count = "SELECT count(*) FROM checkpoints"
        counts = [each.execute(count).fetchone()[0] for each in (other, one)]
        rows = other.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1").fetchall()
        for (thread,) in rows:
            kind = next(each for each in KINDS if f"{each}-" in thread)
            shown, before = (_states(kind, each, thread) for each in (kept, twin))
            new = [each for each in shown if each not in before]
            # At a state whose writes reset a channel what came before it is gone.
            if not shown or shown[0] != before[0] or (new and kind != "resets"):
                wrong.append(thread)
    return counts[0], counts[1], wrong


def _states(kind: str, saver: Any, thread: str) -> list[Any]:
    history = graph_of(kind, saver).get_state_history(config_of(thread))
    return [(each.metadata["step"], each.values, each.next) for each in history]


def _held(folder: Path) -> list[int]:
    with closing(sqlite3.connect(folder / "threads.db")) as connection:
        statement = "SELECT count(*) FROM checkpoints WHERE thread_id = ?"
        return [connection.execute(statement, (f"{k}-2",)).fetchone()[0] for k in KINDS[:HELD]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--sweep", nargs=3, metavar=("DIR", "NOW", "BATCH"))
    options = parser.parse_args(arguments)
    if options.sweep:
        folder, now_s, batch = options.sweep
        sweep(Path(folder), float(now_s), int(batch))
        return 0
    rng = random.Random(options.seed)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        now_s = build(folder, options.threads)
        shutil.copy(folder / "threads.db", folder / "twin.db")
        held, began_s = _held(folder), time.monotonic()
        killed = kill_some(folder, now_s, options.kills, rng)
        last = _start(folder, now_s, BATCH)
        said, _nothing = last.communicate()
        took_s = time.monotonic() - began_s
        before, after, wrong = damaged(folder)
        sizes = [(folder / name).stat().st_size for name in ("twin.db", "threads.db")]
        print(f"{options.threads:,} threads, {killed} kills, {took_s:,.0f} s")  # noqa: T201
        print(f"last run: {said.strip().splitlines()[-1:]}")  # noqa: T201
        print(f"states {before:,} -> {after:,}; bytes in the file {sizes[0]:,} -> {sizes[1]:,}")  # noqa: T201
        print(f"damaged: {len(wrong)}; held untouched: {held == _held(folder)}")  # noqa: T201
        return 1 if wrong or last.returncode or held != _held(folder) else 0


if __name__ == "__main__":
    raise SystemExit(main())
