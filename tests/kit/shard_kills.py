"""
Kill writers of a trail while a shard is added to it, and see what is left.

Half of the processes write so many shards as before, half one more, in mode ``durable``: a call is
over when its event is on a disk. ``python -m tests.kit.shard_kills --rounds 30`` at full size.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import struct
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import orjson

from mnemoscope.audit import AuditLog
from mnemoscope.audit.shards.verification import verify_shards
from mnemoscope.memory import context
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.sharded_trails import TENANTS, ShardedTrail, recaller

OLD, NEW = 2, 3
WRITERS = 4


@dataclass
class ShardTally:
    """
    What was found after all rounds.

    Attributes:
        acknowledged: Calls that were over.
        recorded: Events that are in the trail, in whichever shard.
        declared: Events that a shard declares as lost, none of which was under way.
        ended: Ends of killed writers that shards tell: each in every shard that it wrote.
        states: What `verify` finds in each shard.
        findings: The first of it.
    """

    rounds: int = 0
    acknowledged: int = 0
    recorded: int = 0
    declared: int = 0
    ended: int = 0
    states: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing that was acknowledged is missing, and every shard verifies."""
        is_whole = self.recorded >= self.acknowledged and not self.declared
        each_round = WRITERS // 2 * (OLD + NEW)
        return is_whole and set(self.states) == {"ok"} and self.ended >= self.rounds * each_round


def kill_writers(trail: ShardedTrail, rounds: int, seed: int = 0) -> ShardTally:
    """Kill writers so many times; let one more process of the new number come; then look."""
    draw, tally = random.Random(seed), ShardTally(rounds)  # noqa: S311 - not secret
    for _ in range(rounds):
        tally.acknowledged += _killed(trail, draw.choice((0.0, 0.1, draw.uniform(0.1, 1.0))))
    _come_after(trail)
    log = trail.log(NEW)
    tally.recorded = log.count()
    tally.declared = sum(map(_declared, log.shards))
    tally.ended = sum(map(_ended, log.shards))
    reports, _notes = verify_shards(log)
    tally.states = tuple(each.state for each in reports)
    tally.findings = tuple(
        line for each in reports for lines in each.findings.values() for line in lines[:3]
    )
    log.close()
    return tally


def _declared(log: AuditLog) -> int:
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT header FROM audit_event WHERE operation = 'audit.gap'")
        data = [orjson.loads(bytes(header))["data"] for (header,) in found.fetchall()]
        return sum(each["count"] for each in data if each["reason"] != "under_way")


def _ended(log: AuditLog) -> int:
    with log.reading() as snapshot:
        statement = "SELECT count(*) FROM audit_event WHERE operation = 'writer.ended'"
        return int(snapshot.execute(statement).fetchone()[0])


def _killed(trail: ShardedTrail, life_s: float) -> int:
    """Let writers live a while after each has written; kill them; return the calls that ended."""
    told = [mmap.mmap(-1, 4_096) for _ in range(WRITERS)]
    children: list[int] = []
    for number, each in enumerate(told):
        with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
            child = os.fork()
        if not child:
            try:
                _write_for_ever(trail, (OLD, NEW)[number % 2], each)
            finally:
                os._exit(1)
        children.append(child)
    until(lambda: all(any(each[:8]) for each in told))
    time.sleep(life_s)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return sum(struct.unpack("<Q", each[:8])[0] for each in told)


def _write_for_ever(trail: ShardedTrail, shards: int, told: mmap.mmap) -> None:
    recall = recaller(trail.scope(shards, audit_mode="durable"))
    draw, done = random.Random(os.getpid()), 0  # noqa: S311 - not secret
    while True:
        with context(tenant=draw.choice(TENANTS), customer="ada"):
            recall()
        done += 1
        told[:8] = struct.pack("<Q", done)


def _come_after(trail: ShardedTrail) -> None:
    """Take in what the killed have left: they look at once, and each minute."""
    scope = trail.scope(NEW)
    recall = recaller(scope)
    for tenant in TENANTS:
        with context(tenant=tenant):
            recall()
    scope.flush(GIVE_UP_S)
    rolls = f"roll-*{trail.settings['audit_spool'].name}.*"
    until(lambda: len([*trail.folder.glob(rolls)]) <= NEW)
    scope.close(30)


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(kill_writers(ShardedTrail(Path(folder)), given.rounds))  # noqa: T201


if __name__ == "__main__":
    main()
