"""
The relay: delivers the events of all processes of a machine to the sinks.

Each sink is fed by itself: one that is slow or away delays no other. A file is removed once all
sinks have what is in it. What a sink had not acknowledged when a relay ended, however it ended, the
next one sends again.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..delivery.drain import Drain
from ..delivery.lane import delivering
from ..delivery.lane_stats import LaneLimits
from ..delivery.sink import EXIT_S, DeliveryError, FollowedWriter, WriterSink
from ..event.subject import SubjectKeys
from ..files.file_lock import FileLock
from ..process.faults import Faults
from ..prometheus.live import LiveMetric, Sample, counter, latest
from ..prometheus.own_figures import SINK_DROPPED, of_faults, of_lanes
from ..queue.codec import MakeContent
from ..queue.folder import files_in
from ..queue.source import EventSource, UnreadableError
from .feed import Feed
from .figures import WritersFigures
from .folder import Beat, beat
from .starter import Attendance

logger = logging.getLogger("mnemoscope.relay")

LIMITS = LaneLimits(items=16_384, size_bytes=64 * 1024 * 1024, linger_s=0.01, watch_s=0.0)
"""Of the lanes: above what a feed hands over at once, so that none of it is dropped."""

LOOK_EVERY_S = 0.5
BEAT_EVERY_S = 2.5
MAX_LEFT_BYTES = 1024 * 1024 * 1024
"""Bytes that processes which are gone may have left; sinks that are behind lose the oldest then."""

_ALMOST = 0.5
"""Share of a writer's newest file from which the room of the one before is needed."""

PATIENCE_S = 5.0
"""Seconds that a sink has, while room is needed, before it loses what is left of a file."""

_COLLECT_EVERY = 100_000
"""Objects that are made and not freed again, from one look for garbage to the next."""

_BEAT_AT = latest(
    "mnemoscope_relay_beat_timestamp_seconds", "When the relay gave a sign of life, since 1970"
)
_BEHIND = LiveMetric("mnemoscope_relay_behind_bytes", "Bytes in files that wait for the sink")
_LAG = latest(
    "mnemoscope_relay_lag_seconds", "Age of the oldest event that the sink was given and has not"
)
_WRITERS = LiveMetric("mnemoscope_relay_writers", "Processes whose files are read")
_SKIPPED = counter(
    "mnemoscope_relay_skipped_total", "Events that the sink did not get, to make room for others"
)
_DAMAGED = counter("mnemoscope_relay_damaged_total", "Places in files that could not be read")
_UNREADABLE = LiveMetric(
    "mnemoscope_relay_unreadable_files", "Files that cannot be read with this key and release"
)


def collect_seldom() -> None:
    """
    Have this process look for garbage in cycles seldom, as suits one that is a relay alone.

    It holds thousands of events, which are in none: to look at them took a tenth of its time.
    """
    # What was imported stays: to look through it at each collection is for nothing.
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY)


class Relay:
    """
    Reads the files of a folder, and feeds the sinks of a drain.

    Args:
        content: Makes the content of what was content.
        faults: Where errors of its own are noted.
        clock: Seconds since 1970.
        ticks: Monotonic seconds.
    """

    def __init__(
        self,
        folder: Path,
        lock: FileLock,
        drain: Drain,
        *,
        rings: Sequence[SubjectKeys],
        content: MakeContent,
        faults: Faults | None = None,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._drain = drain
        self._rings = rings
        self._content = content
        self._clock, self._ticks = clock, ticks
        self._lock = lock
        self._sources: dict[str, EventSource] = {}
        self._unreadable: dict[str, str] = {}
        self._dropped: dict[str, int] = {}
        self._needed: dict[str, float] = {}
        self._damaged = 0
        self._figures = WritersFigures(folder, ticks)
        self._faults = faults = faults or Faults()
        self.feeds = [
            Feed(sink.name, drain, folder=folder, sources=self.sources, faults=faults, clock=clock)
            for sink in drain.sinks
        ]
        for each in self.feeds:
            each.others = [other for other in self.feeds if other is not each]
        self._keepers = [each for each in drain.sinks if isinstance(each, WriterSink)]
        for keeper in self._keepers:
            keeper.follow_writers(self.writers)

    def sources(self) -> Sequence[EventSource]:
        """Return the files that are read, the older ones of each writer first."""
        return [each for _name, each in sorted(self._sources.items())]

    def writers(self) -> dict[str, FollowedWriter]:
        """Return the writers whose files are read, alive or not."""
        return {
            each.writer: FollowedWriter(each.state().counter, each.mode, each.version)
            for each in self.sources()
        }

    def run(self, stopping: threading.Event, attendance: Attendance | None = None) -> None:
        """Deliver until *stopping* is set, or *attendance* says so; then end within `EXIT_S`."""
        self.look()
        for feed in self.feeds:
            feed.start()
        beat_at, before, has_changed = float("-inf"), None, True
        while not stopping.wait(LOOK_EVERY_S):
            try:
                self.look()
                ends = [(each.name, each.is_sealed, each.state().end) for each in self.sources()]
                # Once more behind a change: what seems damaged is read again.
                for feed in self.feeds if ends != before or has_changed else ():
                    feed.woken.set()
                has_changed, before = ends != before, ends
                if time.monotonic() - beat_at >= BEAT_EVERY_S:
                    self.beat()
                    beat_at = time.monotonic()
                if attendance is not None and attendance.is_over(self.feeds, time.monotonic()):
                    break
            except OSError as exc:
                logger.error("the relay's folder %s: %s", self._folder, exc.strerror)  # noqa: TRY400 - one line
        self.close()

    def close(self) -> None:
        """Let the sinks take what they were given, and let go."""
        until = time.monotonic() + EXIT_S
        for feed in self.feeds:
            feed.stop()
        for feed in self.feeds:
            # Half of the time for what the sinks were given, half for closing them.
            feed.join(until - EXIT_S / 2)
        self._drain.close(max(0.0, until - time.monotonic()))
        self._figures.close()
        self._lock.release()

    # -- what is done over and over ----------------------------------------------------------------

    def look(self) -> None:
        """Find new files, seal finished ones, and remove files that every sink is past."""
        self._find()
        self._figures.look()
        for writer, files in self._by_writer().items():
            self._seal(files)
            for each in files:
                if each.is_sealed and all(feed.is_past(each) for feed in self.feeds):
                    self._finish(writer, each, is_last=each is files[-1])
        self._make_room()

    def beat(self) -> None:
        """Give a sign of life."""
        behind = ((each.lag_s(), each.behind_bytes(), each.sink) for each in self.feeds)
        lag_s, size, sink = max(behind, default=(0.0, 0, ""))
        said = Beat(pid=os.getpid(), at=self._clock(), behind_bytes=size, lag_s=lag_s, slowest=sink)
        beat(self._folder, said)

    def samples(self) -> Iterator[Sample]:
        """Yield the relay's own figures, those of its lanes, and those of the processes."""
        yield from self._figures.samples()
        yield from of_lanes(self._drain.stats())
        yield from of_faults(self._faults)
        yield _BEAT_AT.sample(self._clock())
        for feed in self.feeds:
            yield _BEHIND.sample(feed.behind_bytes(), sink=feed.sink)
            yield _LAG.sample(feed.lag_s(), sink=feed.sink)
            yield _SKIPPED.sample(feed.skipped, sink=feed.sink)
        yield _WRITERS.sample(len(self._by_writer()))
        yield _DAMAGED.sample(self._damaged + sum(each.damaged for each in self.sources()))
        yield _UNREADABLE.sample(len(self._unreadable))
        yield SINK_DROPPED.sample(sum(self._dropped.values()), sink="relay", reason="full")

    def _find(self) -> None:
        there = {path.name: path for path in files_in(self._folder)}
        self._sources = {key: each for key, each in self._sources.items() if key in there}
        self._unreadable = {key: why for key, why in self._unreadable.items() if key in there}
        for name in sorted(there.keys() - self._sources.keys() - self._unreadable.keys()):
            try:
                found = EventSource(there[name], self._rings, self._content)
            except FileNotFoundError:
                continue
            except UnreadableError as exc:
                self._unreadable[name] = str(exc)
                logger.error("%s", exc)  # noqa: TRY400 - one line
                continue
            # Replaced and not changed: each feed goes through it on a thread of its own.
            self._sources = {**self._sources, name: found}
        for each in self._sources.values():
            # Kept when the file is gone: a counter does not go down.
            self._dropped[each.writer] = max(
                self._dropped.get(each.writer, 0), each.state().dropped
            )

    def _by_writer(self) -> dict[str, list[EventSource]]:
        found: defaultdict[str, list[EventSource]] = defaultdict(list)
        for each in self.sources():
            found[each.writer].append(each)
        return found

    def _seal(self, files: Sequence[EventSource]) -> None:
        for each in files[:-1]:
            each.is_sealed = True  # its writer has begun the next
        last = files[-1]
        if last.is_sealed or not last.is_free():
            return
        # Its writer may have begun the next since it was looked for: then it is there by now.
        begun = any(
            path.name > last.name and path.name.startswith(f"{last.writer}-")
            for path in files_in(self._folder)
        )
        if not begun:
            last.trim()
            last.is_sealed = True

    def _finish(self, writer: str, source: EventSource, *, is_last: bool) -> None:
        """Remove a file that all sinks have; the last of a writer when its end is declared."""
        # Before its end is declared nothing of the writer may be forgotten: its counter is in this
        # file.
        if is_last:
            if not source.is_free():
                return
            state = source.state()
            try:
                with delivering():
                    for each in self._keepers:
                        each.end_writer(writer, state.counter, ended=bool(state.is_ended))
            except DeliveryError:
                return  # the next look tries again
        self._damaged += source.damaged
        source.path.unlink(missing_ok=True)
        self._sources = {key: each for key, each in self._sources.items() if each is not source}

    def _make_room(self) -> None:
        """Have sinks that are behind leave out files whose room is needed."""
        by_writer = self._by_writer().values()
        needed = [each[0] for each in by_writer if _is_room_needed(each)]
        left = [each for files in by_writer for each in files if each.is_sealed]
        excess = sum(each.size_bytes() for each in left) - MAX_LEFT_BYTES
        for each in sorted(left, key=EventSource.changed_at):
            if excess > 0:
                needed.append(each)
            excess -= each.size_bytes()
        now = self._ticks()  # what is left out is lost: not on a wall clock's word
        self._needed = {each.name: self._needed.get(each.name, now) for each in needed}
        for each in needed:
            if now - self._needed[each.name] >= PATIENCE_S:
                self._skip(each)

    def _skip(self, source: EventSource) -> None:
        """Have all sinks leave out a file, once those that account for writers have it."""
        keepers = {each.name for each in self._drain.sinks if isinstance(each, WriterSink)}
        if all(feed.is_past(source) for feed in self.feeds if feed.sink in keepers):
            for feed in self.feeds:
                feed.skip(source)


def _is_room_needed(files: Sequence[EventSource]) -> bool:
    """Return whether a writer that lives will soon need the room of its older file."""
    return len(files) > 1 and not files[-1].is_sealed and files[-1].fullness() >= _ALMOST
