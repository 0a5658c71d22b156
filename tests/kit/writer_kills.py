"""
Kill processes whose events go through a sink, as an application's do, and see what is declared.

``fail_open``: a call is over when its event is queued, so a kill may lose some; each must be within
a gap that the log declares. ``durable``: a call is over when its event is on a disk; none is lost.
``outage``: as ``durable``, but the database is away, so that events are in the spool alone.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import signal
import struct
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.record.writer_events import ENDED
from mnemoscope.audit.sink.sink import CHECKPOINT_EVERY_S, AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit.audit_kills import KEYS, an_event

MODES = ("fail_open", "durable", "outage")
WRITERS = 2
PATIENCE_S = 30.0
AWAY = "sqlite:////proc/nowhere/audit.db"


@dataclass
class WriterTally:
    """
    What was found after all rounds.

    Attributes:
        acknowledged: Events whose call was over.
        lost: Of those, how many are not in the log.
        declared: Of those, how many are in a gap that the log declares, by number.
        bounded: How many more are among those that the log says a killed writer may have counted.
        undeclared: How many it says nothing about.
        under_way: Events that the log says were under way: no call of theirs was over.
        killed: Processes that the log says were killed.
        state: What `verify` finds.
    """

    mode: str = "fail_open"
    rounds: int = 0
    acknowledged: int = 0
    lost: int = 0
    declared: int = 0
    bounded: int = 0
    undeclared: int = 0
    under_way: int = 0
    killed: int = 0
    state: str = ""
    seconds: float = 0.0
    by_writer: dict[str, int] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """The number of losses that must not be or are not said, and of ends that are not."""
        unseen = len(self.by_writer) - self.killed
        if self.mode == "fail_open":
            return unseen + self.undeclared
        return unseen + self.lost + (self.state != "ok")

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.mode}: {self.rounds} rounds x {WRITERS} processes, {self.acknowledged:,} "
            f"acknowledged, {self.lost:,} lost: {self.declared:,} in declared gaps, "
            f"{self.bounded:,} within the bound of a killed writer, {self.undeclared} "
            f"undeclared; {self.under_way} under way; {self.killed} said to be killed, "
            f"verify: {self.state} ({self.seconds:.0f} s)"
        )


def attached(url: str | Path, folder: Path, mode: str) -> tuple[AuditSink, Drain]:
    """Return a sink as an application has it, with its drain."""
    log = AuditLog(url, KEYS)
    spool = Spool(folder / "audit.spool", log.ring, content=content_again)
    sink = AuditSink(log, spool, mode=mode, checkpoint_every_s=CHECKPOINT_EVERY_S)
    return sink, drain_of(sink)


def drain_of(*sinks: AuditSink) -> Drain:
    """Return a drain that *sinks* are attached to, as those of an application are."""
    drain = Drain(sinks)
    for each in sinks:
        each.attach(drain)
    return drain


def write_for_ever(url: str | Path, folder: Path, mode: str, told: mmap.mmap) -> None:
    """Emit events, in bursts, and tell after each call that it is over."""
    asked = "fail_open" if mode == "fail_open" else "durable"
    _sink, drain = attached(AWAY if mode == "outage" else url, folder, asked)
    writer = drain.writer_id
    told[8:24] = writer.encode()
    draw = random.Random(writer)  # noqa: S311 - not secret
    while True:
        number = drain.next_awaited_seq()
        drain.emit(an_event(writer, number))
        if asked == "durable" and not drain.settle("audit", PATIENCE_S):
            raise TimeoutError
        told[:8] = struct.pack("<Q", number)
        if draw.random() < 0.1:
            time.sleep(draw.uniform(0.0, 0.01))


def killed(url: str | Path, folder: Path, mode: str, life_s: float) -> dict[str, int]:
    """Let writers live a while after their first event, kill them; return what each was told."""
    told = [mmap.mmap(-1, 4_096) for _ in range(WRITERS)]
    children: list[int] = []
    for each in told:
        with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
            child = os.fork()
        if not child:
            try:
                write_for_ever(url, folder, mode, each)
            finally:
                os._exit(1)
        children.append(child)
    deadline = time.monotonic() + PATIENCE_S
    while not all(any(each[:8]) for each in told) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(life_s)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return {each[8:24].decode(): struct.unpack("<Q", each[:8])[0] for each in told}


def kill_writers(url: str | Path, folder: Path, mode: str, rounds: int, seed: int) -> WriterTally:
    """Kill writers so many times; let one more process come; then look at every event."""
    draw = random.Random(seed)  # noqa: S311 - not secret
    tally, began = WriterTally(mode, rounds), time.monotonic()
    for _ in range(rounds):
        life_s = draw.choice((0.0, draw.uniform(0.0, 0.1), draw.uniform(0.0, 1.5)))
        tally.by_writer.update(killed(url, folder, mode, life_s))
    come_after(url, folder)
    look(url, tally)
    tally.seconds = time.monotonic() - began
    return tally


def come_after(url: str | Path, folder: Path) -> None:
    """Be the next process of the application, which finds what was left behind."""
    sink, drain = attached(url, folder, "fail_open")
    drain.emit(an_event(drain.writer_id, drain.next_seq()))
    drain.flush(PATIENCE_S)
    drain.close(PATIENCE_S)
    sink.log.close()


def look(url: str | Path, tally: WriterTally) -> None:
    """Hold what each writer was told against what the log has and says, and fill *tally*."""
    there: dict[str, set[int]] = {}
    declared: dict[str, set[int]] = {}
    at_most: dict[str, tuple[int, int]] = {}
    with contextlib.closing(AuditLog(url, KEYS)) as log:
        with log.reading() as snapshot:
            for (header,) in snapshot.stream("SELECT header FROM audit_event ORDER BY seq"):
                known = orjson.loads(header)
                if known["wseq"]:
                    there.setdefault(known["writer"], set()).add(known["wseq"])
                elif known["operation"] == "audit.gap":
                    gap = known["data"]
                    numbers = range(gap["from_wseq"], gap["to_wseq"] + 1)
                    declared.setdefault(gap["writer"], set()).update(numbers)
                elif known["operation"] == ENDED:
                    ended = known["data"]
                    at_most[ended["writer"]] = ended["counter"], ended["at_most"]
        log.checkpoint_now()
        found = verify(log)
        tally.state, tally.under_way = found.state, found.under_way
    tally.killed = len(at_most)
    for writer, told in tally.by_writer.items():
        lost = set(range(1, told + 1)) - there.get(writer, set())
        counter, most = at_most.get(writer, (0, 0))
        beyond = {number for number in lost if counter < number <= most}
        numbered = lost & declared.get(writer, set())
        tally.acknowledged += told
        tally.lost += len(lost)
        tally.declared += len(numbered)
        tally.bounded += len(beyond - numbered)
        tally.undeclared += len(lost - beyond - numbered)
