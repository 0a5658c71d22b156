"""A relay that is driven by hand, and sinks that fail when they are told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mnemoscope.memory.api import Event, UnavailableError
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.sink import LookAtWriters
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.queue.writer import QueueWriter
from mnemoscope.telemetry.relay import relay
from mnemoscope.telemetry.relay.folder import take_folder

KEYS = SubjectKeys(b"sixteen bytes or more")
MIB = 1024 * 1024


class ListedSink:
    """A sink that keeps what it takes, while it is not away."""

    idempotent = True

    def __init__(self, name: str = "listed") -> None:
        self.name = name
        self.is_away = False
        self.events: list[Event] = []

    @property
    def numbers(self) -> list[int]:
        return [each.writer_seq for each in self.events]

    def write(self, batch: Sequence[Event], /) -> None:
        if self.is_away:
            raise UnavailableError("away")
        self.events += batch

    def flush(self, _timeout_s: float, /) -> bool:
        return True

    def close(self, _timeout_s: float, /) -> None:
        return


class KeepingSink(ListedSink):
    """One that accounts for writers."""

    def __init__(self, name: str = "keeping") -> None:
        super().__init__(name)
        self.look: LookAtWriters = dict
        self.ended: list[tuple[str, int, bool]] = []

    def follow_writers(self, look: LookAtWriters) -> None:
        self.look = look

    def end_writer(self, writer_id: str, counter: int, *, ended: bool) -> None:
        if self.is_away:
            raise UnavailableError("away")
        self.ended.append((writer_id, counter, ended))


class Driven:
    """A relay whose threads are not started: it does what it is told to."""

    def __init__(self, folder: Path, sinks: Sequence[object]) -> None:
        self.drain = Drain(sinks, limits=relay.LIMITS, keys=KEYS)
        self.lock = take_folder(folder)
        self.now, self.ticks = 1_700_000_060.0, 60.0
        self.relay = relay.Relay(
            *(folder, self.lock, self.drain),
            rings=[KEYS],
            content=content_again,
            clock=lambda: self.now,
            ticks=lambda: self.ticks,
        )

    def step(self, *sinks: str) -> bool:
        """Look, and feed the named sinks, or all, once; return whether anything was done."""
        self.relay.look()
        chosen = [each for each in self.relay.feeds if not sinks or each.sink in sinks]
        moved = [each.turn() for each in chosen]  # each of them, whatever the others say
        return any(moved)

    def work(self, *sinks: str) -> None:
        """Feed the named sinks, or all, until nothing is left."""
        while self.step(*sinks):
            pass
        self.step(*sinks)
        self.relay.look()

    def kill(self) -> None:
        """End without another word to anybody."""
        self.lock.release()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "relay"


@pytest.fixture
def driven(folder: Path) -> Iterator[Callable[..., Driven]]:
    """Return a function that starts a relay with these sinks."""
    made: list[Driven] = []

    def start(*sinks: object) -> Driven:
        made.append(Driven(folder, sinks))
        return made[-1]

    yield start
    for each in made:
        each.relay.close()


@pytest.fixture
def writers(folder: Path) -> Iterator[Callable[[], QueueWriter]]:
    """Return a function that makes the writer of one more process."""
    made: list[QueueWriter] = []

    def make() -> QueueWriter:
        made.append(QueueWriter(folder, KEYS, 2 * MIB, mode="durable"))
        return made[-1]

    yield make
    for each in made:
        each.close()
