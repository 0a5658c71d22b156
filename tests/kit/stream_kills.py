"""
Kill the stream of an audit trail, its writers and the broker at any moment, over and over.

``python -m tests.kit.stream_kills --rounds 100`` does it at full size, and tells what the copy has.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, open_copy, open_target, verify_copy
from tests.kit.audit_kills import KEYS, engines, write_for_ever
from tests.kit.kafka_broker import KafkaBroker
from tests.kit.kills import said_by_killed
from tests.kit.memory_copy import ship_all
from tests.kit.patience import GIVE_UP_S
from tests.kit.verified import verify

WRITERS = 2
SENDS_WITHIN_S = 20.0
"""Seconds for which a stream that is to be killed has time to send, unless the broker is dead."""

_Answer = TypeVar("_Answer")
_SAME = ("origin", "size", "root", "signed", "events", "gaps", "writers", "findings")


@dataclass
class StreamTally:
    """
    What was found after all rounds.

    Attributes:
        rounds: How often the writers were killed.
        streams: How often the stream was.
        brokers: How often the broker was.
        acknowledged: Events that a writer was told are recorded.
        recorded: Events of the log.
        streamed: Of them, those that the killed streams had sent.
        missing: Of them, those that the copy does not have as they are.
        twice: Records of the copy that are there again, the same.
        differ: Records of one key that differ.
        wrong: Verifications that found what was not so.
        unread: How often the copy was asked again, since its broker could not answer yet.
    """

    rounds: int = 0
    streams: int = 0
    brokers: int = 0
    acknowledged: int = 0
    recorded: int = 0
    streamed: int = 0
    missing: int = 0
    twice: int = 0
    differ: int = 0
    wrong: int = 0
    unread: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.rounds} rounds x {WRITERS} writers, {self.streams} streams and {self.brokers} "
            f"brokers killed; {self.acknowledged:,} acknowledged, {self.recorded:,} recorded, "
            f"{self.streamed:,} of them sent by killed streams; missing in the copy "
            f"{self.missing}, twice {self.twice:,}, differ {self.differ}, verifications wrong "
            f"{self.wrong}, asked again {self.unread} ({self.seconds:.0f} s)"
        )


class _Stream:
    """``audit stream --follow``, in a process of its own."""

    def __init__(self, log_url: str | Path, url: str, output: Path) -> None:
        place = str(log_url)
        self._command = [
            *(sys.executable, "-c", "from mnemoscope.adapters.cli.root import main; main()"),
            *("audit", "stream", "--to", url, "--follow", "--audit-url"),
            place if "://" in place else f"sqlite:///{place}",
        ]
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, if it does not run."""
        if self._process is None or self._process.poll() is not None:
            with self._output.open("ab") as output:
                self._process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def kill(self) -> bool:
        """End it, and return whether it ran."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.kill()
        self._process.wait()
        return True


def kill_streams(
    log_url: str | Path,
    broker: KafkaBroker,
    rounds: int,
    *,
    seed: int = 0,
    shown: bool = False,
) -> StreamTally:
    """Kill all of them so many times, then compare copy and log."""
    draw = random.Random(seed)  # noqa: S311 - not secret
    tally, began, url = StreamTally(), time.monotonic(), broker.new_topic()
    stream = _Stream(log_url, url, broker.data.parent / "stream.txt")
    with closing(AuditLog(log_url, KEYS)) as log:
        log.append_log_event("test.began", {"rounds": rounds})
    for number in range(rounds):
        broker.start()
        stream.start()
        victims = [
            each for each, odds in (("stream", 0.7), ("broker", 0.3)) if draw.random() < odds
        ]
        life_s = draw.uniform(0.2, 2.0)
        later = [
            threading.Thread(
                target=_kill, args=(each, draw.uniform(0, life_s), url, stream, broker, tally)
            )
            for each in victims
        ]
        for each in later:
            each.start()
        names = [f"{number:08x}{writer:08x}" for writer in range(WRITERS)]
        said = said_by_killed(names, partial(write_for_ever, log_url), life_s, is_begun=True)
        tally.acknowledged += sum(map(_latest, said.values()))
        for each in later:
            each.join()
        tally.rounds += 1
        if number % 10 == 4:  # while the stream goes on, and whatever was killed
            broker.start()
            tally.wrong += _answered(tally, partial(_verified, url))["state"] == "tampered"
        if shown:
            print(f"\r  round {number + 1} of {rounds}", end="", flush=True)  # noqa: T201
    broker.start()
    stream.kill()
    _compare(log_url, url, tally)
    tally.seconds = time.monotonic() - began
    return tally


def _kill(
    what: str, after_s: float, url: str, stream: _Stream, broker: KafkaBroker, tally: StreamTally
) -> None:
    if what == "broker":
        time.sleep(after_s)
        broker.kill()
        tally.brokers += 1
        return
    # In the middle of its work: it takes longer to start than a round does.
    give_up_at = time.monotonic() + SENDS_WITHIN_S
    first: int | None = None
    while time.monotonic() < give_up_at:
        length = broker.length(url)
        first = length if first is None else first
        if length is not None and first is not None and length > first:
            break
        time.sleep(0.1)
    time.sleep(after_s)
    tally.streams += stream.kill()


def _latest(said: bytes) -> int:
    whole = len(said) // 8 * 8
    return int.from_bytes(said[whole - 8 : whole], "big") if whole else 0


def _verified(url: str) -> dict[str, object]:
    return verify_copy(open_copy(url), time.time_ns() // 1_000).as_document()


def _answered(tally: StreamTally, ask: Callable[[], _Answer]) -> _Answer:
    """Ask as a user does whose command says that it cannot tell: again."""
    # A broker that was killed leads its partitions minutes later, on a machine under load.
    give_up_at = time.monotonic() + GIVE_UP_S
    while True:
        try:
            return ask()
        except CopyError:
            tally.unread += 1
            if time.monotonic() > give_up_at:
                raise


def _compare(log_url: str | Path, url: str, tally: StreamTally) -> None:
    with closing(AuditLog(log_url, KEYS)) as log:
        log.append_log_event("test.ended", {})
        log.checkpoint_now()
        tally.streamed = _answered(tally, partial(_ship_rest, log, url))
        there: dict[tuple[str, int], set[tuple[bytes, bytes]]] = {}
        for each in _answered(tally, lambda: [*open_copy(url).records()]):
            known = there.setdefault((each.kind, each.seq), set())
            record = (each.header, each.leaf)
            tally.twice += record in known
            known.add(record)
        tally.differ = sum(len(each) > 1 for (kind, _), each in there.items() if kind == "event")
        with log.reading() as snapshot:
            rows = snapshot.stream("SELECT seq, header, leaf FROM audit_event ORDER BY seq")
            for seq, header, leaf in rows:
                tally.recorded += 1
                tally.missing += (bytes(header), bytes(leaf)) not in there.get(("event", seq), ())
        tally.missing += max(0, tally.acknowledged - tally.recorded)
        source, copy = verify(log).as_document(), _answered(tally, partial(_verified, url))
        tally.wrong += sum(source[name] != copy[name] for name in _SAME)


def _ship_rest(log: AuditLog, url: str) -> int:
    """Send what is missing, and return how many events were there before."""
    with closing(open_target(url)) as target, log.reading() as snapshot:
        sent = target.resume_at(snapshot.origin)
    with closing(open_target(url)) as target:
        ship_all(log, target)
    return sent


@contextmanager
def a_broker() -> Iterator[KafkaBroker]:
    """Return a broker that ends with the body."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    broker = KafkaBroker(folder)
    try:
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Do it on both engines and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    for name in ("sqlite", "postgres") if given.engine == "both" else (given.engine,):
        with engines(name) as (engine, url), a_broker() as broker:
            tally = kill_streams(url, broker, given.rounds, seed=given.seed, shown=True)
        print(f"\r{engine}: {tally}", flush=True)  # noqa: T201 - a program
        wrong += tally.missing + tally.differ + tally.wrong
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
