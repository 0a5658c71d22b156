"""The thread that takes events out of all files, in their order, to the lane of one sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path

from ..delivery.drain import Drain
from ..event.event import Event
from ..process.faults import Faults
from ..queue.event_file import PAGE_BYTES
from ..queue.source import EventSource
from .positions import Positions

_MOST, _LEAST = 2_048, 32
_MOST_BYTES = 4 * 1024 * 1024
_AHEAD_BYTES = 2 * 1024 * 1024
_FULL = 512
"""Events that make a batch. Fewer gather until the relay looks again."""

_LOOK_S, _LOOK_MOST_S = 0.02, 0.5
_FAILED_S = 1.0

_writer_of = attrgetter("writer_id")

PACE_S = 100e-6
"""Seconds an event that a feed waits at most for others that are behind it."""


class Feed:
    """
    Feeds one sink. It is nowhere further than the sink: what the sink has not taken waits in files.

    Args:
        sources: Returns the files, the older ones of each writer first.
        faults: Where errors of its own are noted.
        clock: Seconds since 1970.

    Attributes:
        skipped: Events that it left out to make room.
        woken: Set where there may be something to take.
        others: The feeds of the other sinks, with which it keeps pace: what is read for one is
            there for all that are not far behind.
    """

    def __init__(
        self,
        sink: str,
        drain: Drain,
        *,
        folder: Path,
        sources: Callable[[], Sequence[EventSource]],
        faults: Faults,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sink = sink
        self.skipped = 0
        self.others: Sequence[Feed] = ()
        self._drain = drain
        self._positions = Positions(folder, sink)
        self._sources = sources
        self._faults = faults
        self._clock = clock
        self._finished: set[str] = set()
        self._oldest_ns: int | None = None
        self._is_full = False
        self.woken = threading.Event()
        self._stopping = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mnemoscope-feed-{sink}")
        self._thread.daemon = True

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping.set()
        self.woken.set()

    def join(self, until: float) -> None:
        """Wait until its sink has what it was given, or *until*, in monotonic seconds."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        self._given_up.set()

    def is_past(self, source: EventSource) -> bool:
        """Return whether nothing of a file, which is sealed, is wanted any more."""
        return source.name in self._finished

    def skip(self, source: EventSource) -> None:
        """Leave out what is left of a file: its room is needed."""
        if not self.is_past(source):
            self.skipped += source.count(self._at(source))
            self._finished.add(source.name)

    def behind_bytes(self) -> int:
        """Return how much waits for the sink."""
        return sum(
            each.waiting_bytes(self._at(each)) for each in self._sources() if not self.is_past(each)
        )

    def lag_s(self) -> float:
        """Return how long ago the oldest event happened that the sink was given and has not."""
        oldest_ns = self._oldest_ns
        return 0.0 if oldest_ns is None else max(0.0, self._clock() - oldest_ns / 1e9)

    def turn(self) -> bool:
        """Take what is there to the sink, once; return whether there was anything."""
        sources = self._sources()
        self._finished &= {each.name for each in sources}
        events, ends = self._next(sources)
        # Nothing more comes into a sealed file, and nobody wakes this to see that it is at its end.
        is_sealed = any(each.is_sealed and each.name in ends for each in sources)
        self._is_full = len(events) >= _FULL or is_sealed
        if not ends:
            return False
        if not self._delivered(events):
            return False
        # Last: after a crash the batch is sent again, which sinks that count twice have to know by
        # its ids.
        self._positions.advance(ends, {each.name for each in sources})
        self._keep_pace(len(events))
        return True

    def _at(self, source: EventSource) -> int:
        return max(self._positions.at(source.name), PAGE_BYTES)

    def _next(self, sources: Sequence[EventSource]) -> tuple[list[Event], dict[str, int]]:
        events: list[Event] = []
        ends: dict[str, int] = {}
        unfinished: set[str] = set()
        # A share of each: one process that floods must not hold up the others.
        share, room_bytes = max(_LEAST, _MOST // max(1, len(sources))), _MOST_BYTES
        for source in sources:
            # The next file of a writer only behind the one before: the audit trail takes numbers in
            # order.
            if source.writer in unfinished or self.is_past(source) or room_bytes <= 0:
                continue
            is_sealed, at = source.is_sealed, self._at(source)
            batch = source.read(at, share)
            if batch.end > at:
                events += batch.events
                ends[source.name] = batch.end
                room_bytes -= batch.end - at
            elif is_sealed:
                self._finished.add(source.name)
                continue
            unfinished.add(source.writer)
        return events, ends

    def _delivered(self, events: Sequence[Event]) -> bool:
        """Hand *events* to the sink, and wait until it has taken or refused them."""
        if not events:
            return True
        # Each file has its events in the order in which they ended.
        firsts = dict(zip(map(_writer_of, reversed(events)), reversed(events), strict=True))
        self._oldest_ns = min(each.ended_ns for each in firsts.values())
        taken = self._drain.emit_to(self.sink, events)
        # Looked at as well: a lane that broke off says so, too.
        while not taken.wait(_LOOK_MOST_S) or self._drain.queued(self.sink):
            if self._given_up.wait(_LOOK_S if taken.is_set() else 0.0):
                return False
        self._oldest_ns = None
        return True

    def _keep_pace(self, n_events: int) -> None:
        """Wait for slower feeds: briefly, and only for those of sinks that are up."""
        until = time.monotonic() + n_events * PACE_S
        while self._is_ahead() and time.monotonic() < until:
            if self._stopping.wait(_LOOK_S):
                return

    def _is_ahead(self) -> bool:
        nearest = self.behind_bytes() + _AHEAD_BYTES
        return any(
            each.behind_bytes() > nearest and self._drain.is_up(each.sink) for each in self.others
        )

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._is_full:
                self.woken.wait()
            self.woken.clear()  # before the turn: what comes meanwhile is looked at again
            try:
                self.turn()
            except Exception as exc:  # noqa: BLE001 - a full disk, say: it is tried again
                self._faults.note(f"relay.{self.sink}", exc)
                self._is_full = self._stopping.wait(_FAILED_S) is False
