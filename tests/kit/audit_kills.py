"""
Kill writers of the audit trail at any moment, over and over, and see what is left.

``python -m tests.kit.audit_kills --rounds 100`` does it at full size on both engines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.proof.merkle import Frontier, leaf_hash
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef
from tests.kit.kills import said_by_killed

WRITERS = 4
KEYS = SubjectKeys(b"sixteen bytes or more")


@dataclass
class Tally:
    """
    What was found after all rounds.

    Attributes:
        rounds: How often all writers were killed.
        acknowledged: Events that a writer was told are recorded.
        recorded: Events that are.
        lost: Of the acknowledged, those that are not.
        duplicates: Events that are there twice, or writers' numbers left out in between.
        broken: Events whose chain, hash or number is wrong, or a root that does not fit.
    """

    rounds: int = 0
    acknowledged: int = 0
    recorded: int = 0
    lost: int = 0
    duplicates: int = 0
    broken: int = 0
    seconds: float = 0.0
    by_writer: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.rounds} rounds x {WRITERS} writers, {self.acknowledged:,} acknowledged, "
            f"{self.recorded:,} recorded; lost {self.lost}, duplicates {self.duplicates}, "
            f"broken {self.broken} ({self.seconds:.0f} s)"
        )


def an_event(writer: str, number: int, **fields: Any) -> Event:
    """Return an event of one of fifty customers."""
    return Event(
        writer_id=writer,
        writer_seq=number,
        started_ns=time.time_ns(),
        duration_s=0.01,
        operation="search_memory",
        op_class=OperationClass.RECALL,
        store="mem0",
        method="search",
        status=Status.OK,
        trace=TraceRef(1, 2),
        subject=Subject(f"c-{number % 50}", tenant="acme", keys=KEYS),
        tenant="acme",
        memory_ids=(f"m-{number % 500}",),
        **fields,
    )


def write_for_ever(url: str | Path, writer: str, pipe: int) -> None:
    """Append batches of any size, and tell after each how many events that makes."""
    log, numbers, draw = AuditLog(url, KEYS), count(1), random.Random(writer)  # noqa: S311 - not secret
    done = 0
    while True:
        size = draw.choice((1, 1, 7, 64))
        log.append([an_event(writer, next(numbers)) for _ in range(size)])
        done += size
        os.write(pipe, done.to_bytes(8, "big"))


def run(url: str | Path, rounds: int, *, seed: int = 0, shown: bool = False) -> Tally:
    """Kill all writers so many times, then look at every event."""
    draw = random.Random(seed)  # noqa: S311 - not secret
    tally, began = Tally(), time.monotonic()
    with contextlib.closing(AuditLog(url, KEYS)) as log:
        log.append_log_event("test.began", {"rounds": rounds})
    for number in range(rounds):
        names = [f"{number:08x}{writer:08x}" for writer in range(WRITERS)]
        write, life_s = partial(write_for_ever, url), draw.uniform(0.02, 0.35)
        said = said_by_killed(names, write, life_s, is_begun=number % 2 == 1)
        tally.by_writer.update({name: _latest(each) for name, each in said.items()})
        tally.rounds += 1
        if shown:
            print(f"\r  round {number + 1} of {rounds}", end="", flush=True)  # noqa: T201
    look(AuditLog(url, KEYS), tally)
    tally.seconds = time.monotonic() - began
    return tally


def _latest(said: bytes) -> int:
    whole = len(said) // 8 * 8
    return int.from_bytes(said[whole - 8 : whole], "big") if whole else 0


def look(log: AuditLog, tally: Tally) -> None:
    """Read every event, and fill *tally*."""
    there: dict[str, list[int]] = {name: [] for name in tally.by_writer}
    frontier, prev = Frontier(), "00" * 32
    with log.reading() as snapshot:
        found = snapshot.stream("SELECT seq, header, leaf FROM audit_event ORDER BY seq")
        for seq, header, leaf in found:
            known = orjson.loads(header)
            whole = (known["seq"], known["prev"], leaf) == (seq, prev, leaf_hash(header))
            tally.broken += not (whole and seq == frontier.size)
            frontier.append(leaf)
            prev = leaf.hex()
            if known["wseq"]:
                there.setdefault(known["writer"], []).append(known["wseq"])
        head = snapshot.execute("SELECT size, operations, frontier, prev_leaf FROM audit_log")
        (details,) = snapshot.execute("SELECT count(*) FROM audit_detail").fetchone()
        expected = (frontier.size, details, frontier.to_bytes(), bytes.fromhex(prev))
        tally.broken += tuple(head.fetchone()) != expected
    for name, numbers in there.items():
        told = tally.by_writer.get(name, 0)
        tally.recorded += len(numbers)
        tally.acknowledged += told
        tally.lost += max(0, told - len(set(numbers)))
        tally.duplicates += sorted(numbers) != list(range(1, len(numbers) + 1))


@contextlib.contextmanager
def engines(name: str) -> Iterator[tuple[str, str | Path]]:
    """Return an empty database of the engine of that *name*."""
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        if name == "sqlite":
            yield name, folder / "audit.db"
            return
        from tests.kit.postgres import Postgres

        server = Postgres(folder)
        try:
            yield name, server.new_database()
        finally:
            server.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Do it on both engines and print what was found."""
    from tests.kit import writer_kills  # which is built on this

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", nargs="*", help="of fail_open, durable, outage; default: all")
    given = parser.parse_args()
    wrong = 0
    for name in ("sqlite", "postgres") if given.engine == "both" else (given.engine,):
        with engines(name) as (engine, url):
            tally = run(url, given.rounds, seed=given.seed, shown=True)
        print(f"\r{engine}: {tally}")  # noqa: T201 - a program
        wrong += tally.lost + tally.duplicates + tally.broken
        for mode in writer_kills.MODES if given.modes is None else given.modes:
            with engines(name) as (engine, url), tempfile.TemporaryDirectory() as folder:
                killed = writer_kills.kill_writers(
                    url, Path(folder), mode, given.rounds, seed=given.seed
                )
            print(f"{engine}: {killed}", flush=True)  # noqa: T201
            wrong += killed.wrong
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
