"""
Kill sweepers at any moment, over and over, and see whether a thread is damaged.

``python -m tests.kit.keeping_kills --threads 10000 --kills 100`` does it at full size: mixed
threads in three savers, cloned from some that graphs wrote. Of the old ones some go as a whole and
others but for what they need; some are young, and those of one customer are held. Sweepers are
killed at random, two at once; then the clock jumps ahead and back, and two are left to end. What
should be left is told from the names of the threads alone, and each that is left is held against a
copy from before: what it shows, and what comes of it when it goes on.
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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from mnemoscope.memory import Mnemoscope, context
from tests.kit.customer_records import ClientLoop, async_sqlite_at, postgres_pool_at
from tests.kit.elapsed_days import live
from tests.kit.kept_scope import kept_scope
from tests.kit.mixed_threads import KINDS, config_of, graph_of, run_thread, said_in
from tests.kit.patience import GIVE_UP_S
from tests.kit.postgres import Postgres

SAVERS = ("sqlite", "aiosqlite", "postgres")
POLICY = 'purposes: {support: 4d, "*": 400d}\nclasses: {checkpoint: {"*": 5d}}\n'
PURPOSES = ("profile", "support")
TEMPLATES, HELD = 6, 2
"""Threads of a kind, purpose and age that a graph writes, and the one whose customer is held."""

BATCH, SMALL_BATCH = 100, 3
"""Records of a batch; of a sweeper that is killed a few, so that it is killed between many."""
DAYS = 6
TABLES = {
    "sqlite": ("checkpoints", "writes"),
    "postgres": ("checkpoints", "checkpoint_writes", "checkpoint_blobs"),
}


class Place(NamedTuple):
    """
    The database of a saver.

    Attributes:
        saver: One of `SAVERS`.
        address: A file, or a URL.
    """

    saver: str
    address: str

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Yield the bare saver."""
        with ExitStack() as exits:
            if self.saver == "postgres":
                yield PostgresSaver(exits.enter_context(postgres_pool_at(self.address)))
            elif self.saver == "aiosqlite":
                loop = exits.enter_context(ClientLoop())
                clients = AsyncExitStack()
                exits.callback(lambda: loop.run(clients.aclose()))
                yield loop.run(self._of_loop(clients))
            else:
                yield SqliteSaver(exits.enter_context(closing(self._file())))

    async def _of_loop(self, clients: AsyncExitStack) -> AsyncSqliteSaver:
        database = await clients.enter_async_context(async_sqlite_at(Path(self.address)))
        await database.execute(f"PRAGMA busy_timeout = {GIVE_UP_S * 1_000:.0f}")
        return AsyncSqliteSaver(database)

    def _file(self) -> sqlite3.Connection:
        return sqlite3.connect(self.address, check_same_thread=False, timeout=GIVE_UP_S)

    @property
    def synchronous(self) -> Place:
        """The same, for graphs that do not wait in a loop."""
        return self._replace(saver=self.saver.removeprefix("aio"))

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement, whose values stand as in SQLite."""
        if self.saver == "postgres":
            import psycopg

            with psycopg.connect(self.address, autocommit=True) as database:
                found = database.execute(statement.replace("?", "%s"), values)
                return found.fetchall() if found.description else []
        with closing(self._file()) as file, file:
            return file.execute(statement, values).fetchall()

    def ids(self) -> dict[str, set[tuple[str, str]]]:
        """Return namespace and id of the states of each thread."""
        found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for thread, *key in self.rows(
            "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
        ):
            found[thread].add(tuple(key))
        return found

    def clone(self, count: int, like: str) -> None:
        """Copy the threads whose names begin so, in turn, until there are so many more."""
        tables = TABLES[self.synchronous.saver]
        names = [
            name
            for (name,) in self.rows(
                "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id LIKE ? ORDER BY 1",
                f"{like}%",
            )
        ]
        for copy, start in enumerate(range(0, count, len(names))):
            last = names[min(len(names), count - start) - 1]
            for table in tables:
                columns = ", ".join(self._columns(table)[1:])
                self.rows(
                    f"INSERT INTO {table} (thread_id, {columns}) "  # noqa: S608 - our own names
                    f"SELECT thread_id || '-' || ?, {columns} FROM {table} "
                    "WHERE thread_id LIKE ? AND thread_id <= ?",
                    *(f"clone{copy}", f"{like}-%-_", last),
                )

    def _columns(self, table: str) -> list[str]:
        if self.saver == "postgres":
            found = self.rows(
                "SELECT column_name FROM information_schema.columns WHERE table_name = ? "
                "ORDER BY ordinal_position",
                table,
            )
            return [name for (name,) in found]
        return [each[1] for each in self.rows(f"PRAGMA table_info({table})")]

    def twin(self) -> Place:
        """Return a copy of it, which nobody prunes."""
        if self.saver != "postgres":
            shutil.copy(self.address, other := f"{self.address}.twin")
            return self._replace(saver="sqlite", address=other)
        base, _, query = self.address.partition("?")
        name = base.rpartition("/")[2]
        server = Place("postgres", self.address.replace(f"/{name}?", "/postgres?"))
        server.rows(f"CREATE DATABASE {name}_twin TEMPLATE {name}")
        return self._replace(address=f"{base}_twin?{query}")

    def size_bytes(self) -> int:
        """Return the size of its file, or of its tables, rewritten as SQLite's file is."""
        if self.saver != "postgres":
            return Path(self.address).stat().st_size
        for table in TABLES["postgres"]:
            self.rows(f"VACUUM FULL {table}")
        named = ", ".join(f"'{each}'" for each in TABLES["postgres"])
        statement = f"SELECT sum(pg_total_relation_size(c::regclass)) FROM unnest(ARRAY[{named}]) c"  # noqa: S608 - our own names
        return int(self.rows(statement)[0][0])


class Swept(NamedTuple):
    """
    An application whose threads are swept.

    Attributes:
        folder: Of its trail and policy.
        threads: Where they are.
    """

    folder: Path
    threads: Place

    @contextmanager
    def scope(self, now_s: list[float]) -> Iterator[tuple[Mnemoscope, Any]]:
        """Yield a scope whose trail has the clock *now_s*, and its bare saver, which it guards."""
        turned = partial(kept_scope, self.folder, lambda: int(now_s[0] * 1e9))
        with self.threads.opened() as bare, turned(deadline_forget_s=GIVE_UP_S) as scope:
            yield scope, bare

    def build(self, count: int) -> float:
        """Write so many threads, hold a customer, let days pass; return the time of the trail."""
        (self.folder / "retention.yaml").write_text(POLICY)
        now_s, young = [time.time()], count // 5
        synchronous = self._replace(threads=self.threads.synchronous)
        with synchronous.scope(now_s) as (scope, bare):
            bare.setup()
            guarded = scope.checkpointer(bare)
            _write(guarded, "old", TEMPLATES)
            scope.retention().holds.add("customer", f"c-{HELD}")
            assert scope.flush(GIVE_UP_S)
            live(scope.audit, now_s, DAYS, every_days=1)
            _write(guarded, "young", 1 + (young > TEMPLATES * len(KINDS)))
            assert scope.flush(GIVE_UP_S)
        made = len(self.threads.ids())
        self.threads.clone(young, "young")
        self.threads.clone(max(0, count - made - young), "old")
        return now_s[0]

    def start(self, now_s: float, batch: int) -> subprocess.Popen[str]:
        """Start a sweeper."""
        words = ("--sweep", str(self.folder), *self.threads, str(now_s), str(batch))
        command = [sys.executable, "-W", "ignore", "-m", "tests.kit.keeping_kills", *words]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def sweep(self, now_s: float, batch: int) -> None:
        """Run one sweeper, and print its steps, and what came of it."""
        with (
            pytest.MonkeyPatch.context() as patch,
            self.scope([now_s]) as (scope, bare),
        ):
            patch.setattr("mnemoscope.memory.retention.sweep.BATCH", batch)
            guarded = scope.checkpointer(bare)
            sweeper = scope.retention().sweeper
            sweeper.tell = partial(print, flush=True)
            result = sweeper.run()
            said = f"gone={sum(result.removed.values())} left={result.left}"
            print(*result.remarks, guarded)  # noqa: T201 - a program
            print(f"{said} overdue={result.overdue}")  # noqa: T201

    def kill_some(self, now_s: float, kills: int, rng: random.Random) -> int:
        """Kill so many sweepers, two of them at once, and return how many were."""
        killed = 0
        while killed < kills:
            running = [self.start(now_s, SMALL_BATCH) for _ in range(2)]
            # Most of them in the middle of removing, some before.
            if rng.random() < 0.9:
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

    def live_on(self, now_s: float, days: float) -> float:
        """Have days pass by a clock that is right again, and return the time then."""
        moment = [now_s]
        with self.scope(moment) as (scope, _bare):
            live(scope.audit, moment, days, every_days=0.25)
        return moment[0]


def _write(guarded: Any, age: str, numbers: int) -> None:
    for purpose in PURPOSES:
        for kind in KINDS:
            for number in range(numbers):
                with context(customer=f"c-{number}"):
                    name = f"{age}-{purpose}-{kind}-{number}"
                    run_thread(guarded, name, kind, runs=1 + number % 3, purpose=purpose)


def _await_removal(sweeper: subprocess.Popen[str]) -> None:
    """Wait until a sweeper removes, or ends."""
    for line in sweeper.stdout or ():
        if line.rstrip().endswith("removed"):
            return


def wrongly_swept(
    before: dict[str, set[tuple[str, str]]], after: dict[str, set[tuple[str, str]]]
) -> list[str]:
    """Return the threads of which more or less is left than their names say."""
    wrong: list[str] = []
    counts: defaultdict[str, set[int]] = defaultdict(set)
    for thread, states in before.items():
        age, purpose, kind, number, *_clone = thread.split("-")
        left = after.get(thread, set())
        if age == "young" or kind == "interrupts" or int(number) == HELD:
            is_right = left == states
        elif purpose == "support":
            is_right = not left
        else:
            counts[f"{kind}-{number}"].add(len(left))
            newest = max(each for each in states if not each[0])
            # Without forks, subgraphs and delta channels the newest state is all that is needed.
            is_right = newest in left and left <= states and (kind != "plain" or len(left) == 1)
        if not is_right:
            wrong.append(thread)
    # Threads that were written alike are pruned alike.
    return wrong + [each for each, found in counts.items() if len(found) > 1]


def damaged(kept: Place, twin: Place) -> list[str]:
    """Return the threads that show something else than their twins, or do as they go on."""
    wrong: list[str] = []
    with kept.synchronous.opened() as one, twin.opened() as other:
        for saver in (one, other):
            if isinstance(saver, SqliteSaver):
                saver.conn.execute("PRAGMA synchronous = OFF")
        for thread in sorted(kept.ids()):
            kind = thread.split("-")[2]
            shown, before = (_states(kind, each, thread) for each in (one, other))
            new = [each for each in shown if each not in before]
            # At a state whose writes reset a channel what came before it is gone.
            is_whole = shown[0] == before[0] and (not new or kind == "resets")
            if not is_whole or _goes_on(kind, one, thread) != _goes_on(kind, other, thread):
                wrong.append(thread)
    return wrong


def _states(kind: str, saver: Any, thread: str) -> list[Any]:
    history = graph_of(kind, saver).get_state_history(config_of(thread))
    return [(each.metadata["step"], each.values, each.next) for each in history]


def _goes_on(kind: str, saver: Any, thread: str) -> Any:
    graph = graph_of(kind, saver)
    is_waiting = bool(graph.get_state(config_of(thread)).next)
    given = {"said": [said_in(kind, "on")], "asks": False}
    result = graph.invoke(Command(resume="yes") if is_waiting else given, config_of(thread))
    return {name: value for name, value in result.items() if name != "__interrupt__"}


def try_saver(swept: Swept, count: int, kills: int, rng: random.Random) -> bool:
    """Try one saver, print the figures, and return whether all was well."""
    now_s = swept.build(count)
    twin, before = swept.threads.twin(), swept.threads.ids()
    began_s = time.monotonic()
    killed = swept.kill_some(now_s, kills, rng)
    middle = swept.threads.ids()
    refused = 0
    for jump_days in (400, -3):
        jumped = swept.start(now_s + jump_days * 86_400, BATCH)
        said, _nothing = jumped.communicate()
        refused += "RetentionRefusedError" in said or "gone=0 " in said
    untouched = swept.threads.ids() == middle
    now_s = swept.live_on(now_s, 2)
    last = [swept.start(now_s, BATCH) for _ in range(2)]
    ended = [each.communicate()[0].strip().splitlines()[-1] for each in last]
    again = swept.start(now_s, BATCH).communicate()[0].strip().splitlines()[-1]
    took_s = time.monotonic() - began_s
    after = swept.threads.ids()
    wrong = wrongly_swept(before, after)
    sizes = [each.size_bytes() for each in (twin, swept.threads)]
    states = [sum(map(len, each.values())) for each in (before, middle, after)]
    broken = damaged(swept.threads, twin)
    print(  # noqa: T201 - a program
        f"{swept.threads.saver}: {len(before):,} threads, {killed} kills, {took_s:,.0f} s\n"
        f"  threads {len(before):,} -> {len(after):,}; states {states[0]:,} -> {states[1]:,} "
        f"(as the last one was killed) -> {states[2]:,}; bytes {sizes[0]:,} -> {sizes[1]:,}\n"
        f"  clock ahead and back: {refused} of 2 removed nothing, untouched: {untouched}\n"
        f"  two at once: {ended}; one more: {again}\n"
        f"  wrongly swept: {len(wrong)}; damaged: {len(broken)} of {len(after):,} that went on",
        flush=True,
    )
    is_complete = again.startswith("gone=0 left=0 overdue=0")
    return not wrong and not broken and untouched and refused == 2 and is_complete


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=10_000, help="of all savers together")
    parser.add_argument("--kills", type=int, default=100, help="of all savers together")
    parser.add_argument("--savers", nargs="+", choices=SAVERS, default=SAVERS)
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--sweep", nargs=5, metavar=("DIR", "SAVER", "ADDRESS", "NOW", "BATCH"))
    options = parser.parse_args(arguments)
    if options.sweep:
        folder, saver, address, now_s, batch = options.sweep
        Swept(Path(folder), Place(saver, address)).sweep(float(now_s), int(batch))
        return 0
    rng = random.Random(options.seed)  # noqa: S311 - no secret
    share = [-(-each // len(options.savers)) for each in (options.threads, options.kills)]
    is_well = True
    with tempfile.TemporaryDirectory(prefix="keep-") as made, ExitStack() as exits:
        for saver in options.savers:
            (folder := Path(made) / saver).mkdir()
            address = str(folder / "threads.db")
            if saver == "postgres":
                server = exits.enter_context(closing(Postgres(Path(made))))
                address = server.new_database()
            is_well &= try_saver(Swept(folder, Place(saver, address)), *share, rng)
    return 0 if is_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
