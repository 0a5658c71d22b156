"""
Kill writers of a trail while a shard is added to it, and see what is left.

Half of the processes write so many shards as before, half one more, in mode ``durable``: a call is
over when its event is on a disk. Then exports and erasures of customers who are in several shards
are killed, and done, on SQLite and PostgreSQL.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import orjson

from mnemoscope.audit import AuditLog, UnknownSubjectError
from mnemoscope.audit.shards.verification import verify_shards
from mnemoscope.memory import context
from tests.kit.audit_kills import engines
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.sharded_trails import TENANTS, ShardedTrail, recaller

OLD, NEW = 2, 3
WRITERS = 4
INCOMPLETE, NOBODY_KNOWN = 3, 6
"""Exit codes."""

LONGEST_S = 1.5
"""Seconds within which a command is killed: about what it takes."""

ERASED_WITHIN_S = 0.3
"""Seconds within which an erasure is killed once it has written something."""

_APPLICATION = "from mnemoscope.memory import configure\n\nscope = configure()\n"


Number = tuple[str, int]
"""Of an event: its writer, and its number there."""


@dataclass
class ShardTally:
    """
    What was found after all rounds.

    Attributes:
        old: How many shards half of the processes had.
        acknowledged: Events whose call was over with them on a disk.
        given_up: Events whose call returned without, since it had waited as long as a call does.
        missing: Acknowledged events that are in no shard.
        declared: Events that some shard declares as lost, none of which was under way.
        falsely: Those of them that were acknowledged, or are in a shard.
        ended: Ends of killed writers that shards tell: each in every shard that it wrote.
        states: What `verify` finds in each shard.
        expected: What it should find: a loss where one is declared.
        findings: The first of it.
    """

    rounds: int = 0
    old: int = OLD
    acknowledged: int = 0
    given_up: int = 0
    missing: int = 0
    declared: int = 0
    falsely: int = 0
    ended: int = 0
    states: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """
        Whether all that was acknowledged is there, and nothing of it is called lost.

        An event that was not acknowledged may be lost, if it is said.
        """
        each_round = WRITERS // 2 * (self.old + self.old + 1)
        has_ends = self.ended >= self.rounds * each_round
        return not (self.missing or self.falsely) and self.states == self.expected and has_ends


def kill_writers(trail: ShardedTrail, rounds: int, seed: int = 0, old: int = OLD) -> ShardTally:
    """Kill writers so many times; let one more process of the new number come; then look."""
    draw, tally = random.Random(seed), ShardTally(rounds, old)  # noqa: S311 - not secret
    acknowledged: set[Number] = set()
    for _ in range(rounds):
        life_s = draw.choice((0.0, 0.1, draw.uniform(0.1, 1.0)))
        for told in _killed(trail, old, life_s):
            acknowledged |= told.acknowledged
            tally.given_up += told.given_up
    _come_after(trail, old + 1)
    log = trail.log(old + 1)
    recorded = set[Number]().union(*map(_recorded, log.shards))
    declared = [_declared(each) for each in log.shards]
    tally.acknowledged = len(acknowledged)
    tally.missing = len(acknowledged - recorded)
    tally.declared = len(set[Number]().union(*declared))
    tally.falsely = len(set[Number]().union(*declared) & (acknowledged | recorded))
    tally.expected = tuple("loss" if each else "ok" for each in declared)
    tally.ended = sum(map(_ended, log.shards))
    reports, _notes = verify_shards(log)
    tally.states = tuple(each.state for each in reports)
    tally.findings = tuple(
        line for each in reports for lines in each.findings.values() for line in lines[:3]
    )
    log.close()
    return tally


def _recorded(log: AuditLog) -> set[Number]:
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT header FROM audit_event").fetchall()
        known = [orjson.loads(bytes(header)) for (header,) in found]
        return {(each["writer"], each["wseq"]) for each in known if each["wseq"]}


def _declared(log: AuditLog) -> set[Number]:
    """Return the events that a shard calls lost: whose tenant's they were, nobody knows."""
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT header FROM audit_event WHERE operation = 'audit.gap'")
        data = [orjson.loads(bytes(header))["data"] for (header,) in found.fetchall()]
        return {
            (each["writer"], number)
            for each in data
            if each["reason"] != "under_way"
            for number in range(each["from_wseq"], each["to_wseq"] + 1)
        }


def _ended(log: AuditLog) -> int:
    with log.reading() as snapshot:
        statement = "SELECT count(*) FROM audit_event WHERE operation = 'writer.ended'"
        return int(snapshot.execute(statement).fetchone()[0])


class _Told:
    """
    What a writer tells while it lives, in memory that outlives it.

    For each number of its events, from 1, there is a byte: what became of the call.
    """

    _WRITER = slice(0, 16)
    _OVER, _GIVEN_UP = 1, 2

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 16)

    def begin(self, writer_id: str) -> None:
        self._memory[self._WRITER] = writer_id.encode()

    def note(self, numbers: range, *, is_over: bool) -> None:
        for number in numbers:
            self._memory[16 + number] = self._OVER if is_over else self._GIVEN_UP

    @property
    def _fates(self) -> bytes:
        return self._memory[16:]

    def has_written(self) -> bool:
        return any(self._fates)

    @property
    def acknowledged(self) -> set[Number]:
        writer = self._memory[self._WRITER].decode()
        return {(writer, n) for n, fate in enumerate(self._fates) if fate == self._OVER}

    @property
    def given_up(self) -> int:
        return self._fates.count(self._GIVEN_UP)


def _killed(trail: ShardedTrail, old: int, life_s: float) -> list[_Told]:
    """Let writers live a while after each has written, kill them, and return what they told."""
    told = [_Told() for _ in range(WRITERS)]
    children: list[int] = []
    for number, each in enumerate(told):
        with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
            child = os.fork()
        if not child:
            try:
                _write_for_ever(trail, old + number % 2, each)
            finally:
                os._exit(1)
        children.append(child)
    until(lambda: all(each.has_written() for each in told))
    time.sleep(life_s)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return told


def _write_for_ever(trail: ShardedTrail, shards: int, told: _Told) -> None:
    scope = trail.scope(shards, audit_mode="durable")
    recall, faults = recaller(scope), scope._parts.faults.counts
    numbers, draw = scope._parts.drain.numbers, random.Random(os.getpid())  # noqa: S311 - not secret
    told.begin(numbers.writer_id)
    while True:
        taken, given_up = numbers.taken(), faults["audit_gate.settle"]
        with context(tenant=draw.choice(TENANTS), customer="ada"):
            recall()
        is_over = faults["audit_gate.settle"] == given_up
        told.note(range(taken + 1, numbers.taken() + 1), is_over=is_over)


def _come_after(trail: ShardedTrail, shards: int) -> None:
    """Take in what the killed have left: they look at once, and each minute."""
    scope = trail.scope(shards)
    recall = recaller(scope)
    for tenant in TENANTS:
        with context(tenant=tenant):
            recall()
    scope.flush(GIVE_UP_S)
    rolls = f"roll-*{trail.settings['audit_spool'].name}.*"
    until(lambda: len([*trail.folder.glob(rolls)]) <= shards)
    scope.close(30)


@dataclass
class RequestTally:
    """
    What was found of exports and erasures that were killed at any moment, and then done.

    Attributes:
        exports: How often one was killed in the middle.
        erasures: Likewise.
        halfway: How often an erasure was left with some of its shards done.
        damaged: Bundles that a killed export left, and that do not verify; halves of one.
        incomplete: Exports that, once done, had not all events of their customer.
        left: Customers who are known still when their erasure is done.
        missing: Events of somebody else that are gone.
        wrong: Verifications of the trail that found something changed.
    """

    exports: int = 0
    erasures: int = 0
    halfway: int = 0
    damaged: int = 0
    incomplete: int = 0
    left: int = 0
    missing: int = 0
    wrong: int = 0

    @property
    def is_good(self) -> bool:
        """Whether all was done as it was wanted, and nothing else."""
        return not (self.damaged or self.incomplete or self.left or self.missing or self.wrong)


def kill_requests(trail: ShardedTrail, kills: int, seed: int = 0) -> RequestTally:
    """Kill so many exports, and so many erasures, of customers in several shards."""
    draw, tally = random.Random(seed), RequestTally()  # noqa: S311 - not secret
    name = f"application_{trail.folder.name}"
    (trail.folder / f"{name}.py").write_text(_APPLICATION, encoding="utf-8")
    number = 0
    while min(tally.exports, tally.erasures) < kills:
        customer, tenant, number = f"customer-{number}", draw.choice(TENANTS), number + 1
        for shards in (OLD, NEW + 1):  # tenants move to the one that came
            for each in (customer, "somebody"):
                trail.write(shards, [tenant, *TENANTS], customer=each)
        their, others = [
            len([*trail.log().history(each, tenant)]) for each in (customer, "somebody")
        ]
        out = trail.folder / f"bundles-{number}"
        chosen = ("--customer", customer, "--tenant", tenant, "--scope", f"{name}:scope")
        out.mkdir()
        export = ("audit", "export", *chosen, "--out", str(out / "bundle.zip"))
        tally.exports += _killed_midway(trail, export, draw)
        tally.damaged += sum(_is_damaged(trail, each) for each in out.rglob("*.zip"))
        tally.damaged += len([*out.rglob(".*")])
        assert _ends(trail, export) == INCOMPLETE  # nobody has stated what a controller knows
        tally.damaged += sum(_is_damaged(trail, each) for each in out.rglob("*.zip"))
        tally.incomplete += sum(map(_events_of, out.rglob("*.zip"))) != their
        erase = ("audit", "erase", *chosen, "--yes", "--receipt", str(out))
        shards_of = len(trail.log().parts_of(trail.log().person(customer, tenant)))
        tally.erasures += _killed_midway(trail, erase, draw, writes=True)
        with suppress(UnknownSubjectError):
            left = len(trail.log().parts_of(trail.log().person(customer, tenant)))
            tally.halfway += 0 < left < shards_of
        tally.wrong += _is_tampered(trail)
        assert _ends(trail, erase) in {0, NOBODY_KNOWN}
        with suppress(UnknownSubjectError):
            trail.log().person(customer, tenant)
            tally.left += 1
        tally.missing += others != len([*trail.log().history("somebody", tenant)])
        tally.wrong += _is_tampered(trail)
    return tally


def _is_damaged(trail: ShardedTrail, bundle: Path) -> bool:
    return _ends(trail, ("audit", "verify", "--bundle", str(bundle))) != INCOMPLETE


def _events_of(bundle: Path) -> int:
    with ZipFile(bundle) as zipped:
        return int(orjson.loads(zipped.read("manifest.json"))["counts"]["events"])


def _is_tampered(trail: ShardedTrail) -> bool:
    reports, _notes = verify_shards(trail.log(), jobs=1)
    return "tampered" in {each.state for each in reports}


def _killed_midway(
    trail: ShardedTrail, command: Sequence[str], draw: random.Random, *, writes: bool = False
) -> bool:
    """Kill a command at any moment of its life, and return whether it had not ended by then."""
    with closing(trail.log()) as log:
        before = log.count()
    child = _begun(trail, command)
    # Of an erasure that takes a second, shards are erased in the last tenth.
    if writes and draw.random() < 0.7:
        with closing(trail.log()) as log:
            until(lambda: log.count() > before or _has_ended(child))
        time.sleep(draw.uniform(0, ERASED_WITHIN_S))
    else:
        time.sleep(draw.uniform(0, LONGEST_S))
    ended, _status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return not ended


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ends(trail: ShardedTrail, command: Sequence[str]) -> int:
    _child, status = os.waitpid(_begun(trail, command), 0)
    return os.waitstatus_to_exitcode(status)


def _begun(trail: ShardedTrail, command: Sequence[str]) -> int:
    with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ |= trail.environment(NEW + 1)
        os.environ |= {"MNEMOSCOPE_SINKS": "audit", "MNEMOSCOPE_PII_MODEL": "none"}
        sys.path.insert(0, str(trail.folder))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = run(list(command))
    finally:
        os._exit(code)


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--old", type=int, nargs="*", default=[1, OLD], help="shards before")
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    given = parser.parse_args()
    kills: list[Callable[[ShardedTrail], ShardTally | RequestTally]] = [
        partial(kill_writers, rounds=given.rounds, old=old) for old in given.old if given.rounds
    ]
    kills += [partial(kill_requests, kills=given.requests)] if given.requests else []
    wrong = 0
    for name in ("sqlite", "postgres") if given.engine == "both" else (given.engine,):
        for kill in kills:
            with engines(name) as (_name, at), TemporaryDirectory(prefix="shards-") as folder:
                url = None if name == "sqlite" else str(at)
                tally = kill(ShardedTrail(Path(folder), url))
            print(f"{name}: {tally}", flush=True)  # noqa: T201 - a program
            wrong += not tally.is_good
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
