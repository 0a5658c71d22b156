"""
Fan-out of each event to one `Lane` per sink.

A slow or dead sink delays nobody but itself: its lane fills up, drops its oldest events and counts
them. All lanes together end within one deadline.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TypeAlias

from msgspec.structs import replace

from ..event.event import Event
from ..event.sink_pseudonyms import SinkPseudonyms
from ..event.subject import SubjectKeys
from ..process.exit_deadline import end_sources, exiting, remaining_s
from ..process.faults import Faults
from ..process.fork import reset_after_fork
from .acknowledged import SinkDeliveries
from .fan_out import FanOut
from .inline_lane import InlineLane
from .lane import Lane, inside_sink
from .lane_stats import FlushRequest, LaneLimits, LaneStats, Weighed
from .numbers import WriterNumbers
from .sink import EXIT_S, InlineSink, Sink, StoreLinkedSink

Offer: TypeAlias = Callable[[Weighed], None]
"""Offers an event to a lane, or to several."""

LaneRequest: TypeAlias = tuple[Lane | InlineLane, FlushRequest]
"""A lane, and what was asked of it."""

logger = logging.getLogger("mnemoscope")

_EVENT_BYTES = 1_152
"""Weight of an event without content in a queue, measured with `tracemalloc`, rounded up."""

_ID_BYTES = 128
"""Weight of one memory id and its score."""

_LOOK_S = 0.002

_AGAIN_S = 0.25
"""Pause before a sink that could not flush is tried again, in seconds."""

_UNACKNOWLEDGED = (
    "closing: sink %s did not acknowledge %s in time, which may be missing there: "
    "`mnemoscope doctor` tells whether it answers"
)


class Drain:
    """
    Fans events out to sinks.

    Args:
        sinks: Where events go. Their names differ.
        limits: Bounds of each lane.
        faults: Where errors of sinks are noted.
        keys: Of the pseudonyms that each sink is given. None: those of the stores.
        clock: Monotonic seconds.
        are_kept: Files that are read again have the events: what no sink acknowledged is not lost.

    Attributes:
        sinks: Where events go, in the order of `stats`.
        numbers: The identity of this process incarnation, and the numbers of its events.
        next_seq: Returns the number of its next event, which nobody waits for.
        next_awaited_seq: Returns the number of one that its call waits for, in ``durable``.

    Raises:
        ValueError: Two sinks have the same name.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        limits: LaneLimits | None = None,
        faults: Faults | None = None,
        keys: SubjectKeys | None = None,
        clock: Callable[[], float] = time.monotonic,
        are_kept: bool = False,
    ) -> None:
        self._are_kept = are_kept
        names = [sink.name for sink in sinks]
        if len(set(names)) < len(names):
            raise ValueError(f"two sinks have the same name: {', '.join(sorted(names))}")
        self.sinks = tuple(sinks)
        self._clock = clock
        faults = faults or Faults()
        limits = limits or LaneLimits()
        self._lanes: list[Lane | InlineLane] = [
            InlineLane(sink, sink.name, faults, clock)
            if isinstance(sink, InlineSink) and sink.takes_inline
            else Lane(sink, limits, faults, clock, _pseudonyms(sink, keys))
            for sink in sinks
        ]
        inline = [each for each in self._lanes if isinstance(each, InlineLane)]
        self._fan_out = FanOut([each for each in self._lanes if isinstance(each, Lane)])
        self._offer = _offer_to([each.offer for each in inline], self._fan_out)
        self.numbers = WriterNumbers()
        self.next_seq = self.numbers.take
        self.next_awaited_seq = self.numbers.take_awaited
        self._lost_before: dict[str, int] = {}
        self._dismissal = weakref.finalize(self, _dismiss, self._lanes, clock)
        self._dismissal.atexit = False  # it would come before handlers that still make events
        reset_after_fork(self)

    @property
    def writer_id(self) -> str:
        """This process incarnation, 16 hex digits. Another one after a fork."""
        return self.numbers.writer_id

    def emit(self, event: Event) -> None:
        """Hand *event* to every sink. Never blocks, never raises for a sink's sake."""
        # A sink that calls a guarded store makes an event that would have it call again, for ever.
        if inside_sink():
            return
        # As `_weight`, which would be a call for each event.
        size_bytes = event.size_bytes or 0
        self._offer((event, _EVENT_BYTES + size_bytes + _ID_BYTES * len(event.memory_ids)))

    def emit_to_others(self, event: Event, *, sender: str) -> tuple[str, ...]:
        """
        Hand *event* to every sink but *sender*, from which this may be called.

        Returns:
            The names of those that were given it: those that are not closing.
        """
        weighed = event, _weight(event)
        others = [
            lane
            for lane in self._lanes
            if not _is_of(lane.sink_name, sender) and not lane.is_closing()
        ]
        for lane in others:
            lane.offer(weighed)
        return tuple(lane.sink_name for lane in others)

    def emit_to(self, sink: str, events: Iterable[Event]) -> threading.Event:
        """Hand *events* to one sink alone, as the relay does; return what it sets once it has."""
        (lane,) = (each for each in self._lanes if each.sink_name == sink)
        return lane.offer_all([(event, _weight(event)) for event in events]).done

    def settle(self, sink: str, timeout_s: float) -> bool:
        """
        Wait until one sink has taken or lost everything so far; False after *timeout_s*.

        Of a sink in parts, such as ``audit.1`` beside ``audit``, all parts.
        """
        if inside_sink():
            return False
        deadline = self._clock() + timeout_s
        requests = [lane.settle(deadline) for lane in self._lanes if _is_of(lane.sink_name, sink)]
        return all(each.done.wait(max(0.0, deadline - self._clock())) for each in requests)

    def flush(self, timeout_s: float) -> bool:
        """
        Wait until every sink has everything so far.

        False after *timeout_s*, after a loss since the last flush, and from inside a sink, which
        would wait for itself. A sink that cannot flush is tried again until then: a database that
        was locked for a moment has nothing a moment later, and everything soon after.
        """
        if inside_sink():
            return False
        deadline = self._clock() + timeout_s
        lanes: Sequence[Lane | InlineLane] = self._lanes
        while True:
            # All are asked before one is waited for, so that sinks deliver side by side.
            requests = [(lane, lane.flush(deadline)) for lane in lanes]
            done = [each.done.wait(max(0.0, deadline - self._clock())) for _, each in requests]
            lanes = [lane for lane, each in requests if not each.complete]
            if not lanes:
                return True
            left_s = deadline - self._clock()
            may_come = all(each.complete or each.is_refused for _, each in requests)
            if left_s <= 0 or not all(done) or not may_come:
                return False
            time.sleep(min(left_s, _AGAIN_S))

    def rest(self, timeout_s: float) -> bool:
        """
        Flush, and have sinks note that this process is at its end, as far as they know.

        It can go on: what comes afterwards is delivered as before. A sink whose back end takes
        nothing is not waited for: that time would be missing for what is to come.
        """
        return _rest([self], timeout_s, self._clock)

    def ask_lanes(self, deadline: float, *, rests: bool) -> list[LaneRequest]:
        """Ask every lane to deliver everything so far, and to flush and rest. Does not wait."""
        return [(lane, lane.flush(deadline, rests=rests, flushes=rests)) for lane in self._lanes]

    def close(self, timeout_s: float = EXIT_S) -> None:
        """Deliver what is queued and let go, all sinks side by side, within *timeout_s*."""
        deadline = self._clock() + timeout_s
        self.begin_close(timeout_s)
        for lane in self._lanes:
            lane.join(deadline)
        for each in self.stats():
            # Of what is being written nobody knows whether it arrives.
            stayed = each.offered - each.delivered - self._lost_before[each.sink]
            if stayed > 0 and not self._are_kept:
                events = "1 event" if stayed == 1 else f"{stayed:,} events"
                logger.warning(_UNACKNOWLEDGED, each.sink, events)

    def begin_close(self, timeout_s: float) -> None:
        """Take no more events, and let go within *timeout_s*. Does not wait; `close` may follow."""
        deadline = self._clock() + timeout_s
        for stats in self.stats():
            self._lost_before.setdefault(stats.sink, sum(stats.dropped.values()))
        for lane in self._lanes:
            lane.close(deadline)
        self._dismissal.detach()  # it holds the sinks, which may hold whoever holds this

    def close_at_exit(self) -> None:
        """Close this at exit, together with all others, before the exit deadline."""
        _closed_at_exit.add(self)

    def stats(self) -> list[LaneStats]:
        """Return the counters of every lane."""
        return [lane.stats for lane in self._lanes]

    def is_up(self, sink: str) -> bool:
        """Return whether the back end of one sink takes anything."""
        return all(lane.is_up() for lane in self._lanes if lane.sink_name == sink)

    def queued(self, sink: str) -> int:
        """Return how many events wait for one sink, or are being written."""
        return sum(lane.stats.queued for lane in self._lanes if lane.sink_name == sink)

    def deliveries(self) -> tuple[SinkDeliveries, ...]:
        """Return what each sink acknowledges from now on, and what it passes on."""
        return tuple(
            SinkDeliveries(lane.sink_name, lane.acknowledged, lane.is_idle) for lane in self._lanes
        )

    def forked(self) -> None:
        """Start anew in a forked child, as another writer."""
        self.numbers.begin()
        self._fan_out.forked()
        self._lost_before.clear()
        for lane in self._lanes:
            lane.forked()


_closed_at_exit: weakref.WeakSet[Drain] = weakref.WeakSet()

_dismissed: list[Lane | InlineLane] = []
"""Lanes of drains that were collected. What had been offered to them may be under way still."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_dismissed.clear)  # their threads are the parent's

_SOURCES_SHARE = 0.2
"""Of the time there is at exit, for what makes events by itself: a store may hang with a write."""

_FLUSH_SHARE = 0.8
"""Of the time there is at exit. The rest is for closing: a sink that hangs takes all of a flush."""


def _deliver_all() -> None:
    with exiting():
        end_sources(_SOURCES_SHARE * remaining_s())
        _rest([*_closed_at_exit], _FLUSH_SHARE * remaining_s(), time.monotonic, _dismissed)


def _rest(
    drains: Iterable[Drain],
    timeout_s: float,
    clock: Callable[[], float],
    closing: Sequence[Lane | InlineLane] = (),
) -> bool:
    """
    Have all *drains* rest, side by side, and wait for lanes that are *closing*.

    Twice: a sink that rests makes events for the others. At exit they have to be through before
    other libraries close their connections, or each of them would have to open one more.
    """
    deadline = clock() + timeout_s
    answers: list[FlushRequest] = []
    for rests in (True, False):
        requests = [each for drain in drains for each in drain.ask_lanes(deadline, rests=rests)]
        answers += [request for _lane, request in requests]
        while (left_s := deadline - clock()) > 0:
            if all(map(_is_settled, requests)) and not any(map(_is_at_work, closing)):
                break
            time.sleep(min(left_s, _LOOK_S))
    return all(each.done.is_set() and each.complete for each in answers)


def _is_settled(asked: LaneRequest) -> bool:
    """Return whether a request need not be waited for: nothing can be hoped of a dead back end."""
    lane, request = asked
    return request.done.is_set() or not lane.is_up()


def _is_at_work(lane: Lane | InlineLane) -> bool:
    """Return whether a lane that is closing is not through, and may get through."""
    return lane.is_alive() and lane.is_up()


# Whoever is imported first ends last; and at exit this cannot be imported any more.
import_module("concurrent.futures.thread")

# Exporters and clients are opened with the first event, and may want an executor for that: in a
# process that ends at once, there would be none at exit. Nothing public runs before they end. It
# also runs before everybody's exit handlers, which may take long, and in the children that
# `multiprocessing` forks, where none of those runs.
_before_executors_end: Callable[[Callable[[], None]], None] | None
_before_executors_end = getattr(threading, "_register_atexit", None)
if _before_executors_end is not None:
    _before_executors_end(_deliver_all)


@atexit.register
def _close_all() -> None:
    drains = list(_closed_at_exit)
    with exiting():
        for drain in drains:
            drain.begin_close(remaining_s())
        for drain in drains:
            drain.close(remaining_s())


def _is_of(name: str, sink: str) -> bool:
    """Return whether *name* is that of *sink*, or of a part of it."""
    return name.partition(".")[0] == sink


def _offer_to(inline: Sequence[Offer], fan_out: FanOut) -> Offer:
    """Return what offers an event to every lane."""
    offers = [*inline, fan_out.offer] if fan_out.lanes or not inline else inline
    if len(offers) == 1:
        return offers[0]

    def offer(weighed: Weighed) -> None:
        for each in offers:
            each(weighed)

    return offer


def _pseudonyms(sink: Sink, keys: SubjectKeys | None) -> SinkPseudonyms | None:
    if keys is None or (isinstance(sink, StoreLinkedSink) and sink.keeps_pseudonyms):
        return None
    return SinkPseudonyms(keys, sink.name)


def _weight(event: Event) -> int:
    if event.answer is not None or event.given is not None:
        shown = [each.size_bytes for each in (event.answer, event.given) if each is not None]
        return _weight(replace(event, answer=None, given=None)) + sum(shown)
    return _EVENT_BYTES + (event.size_bytes or 0) + _ID_BYTES * len(event.memory_ids)


def _dismiss(lanes: Sequence[Lane | InlineLane], clock: Callable[[], float]) -> None:
    """Close the lanes of a collected drain, so that their threads deliver the rest and end."""
    deadline = clock() + EXIT_S
    _dismissed[:] = [*filter(_is_at_work, _dismissed), *lanes]
    for lane in lanes:
        lane.close(deadline)
