"""The bounds and counters of a lane."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from ..event.event import Event

Weighed: TypeAlias = tuple[Event, int]
"""An event, and what it weighs in a queue, in bytes: made once, and held by all lanes."""


def taken_from(offers: deque[Weighed]) -> Iterator[Weighed]:
    """Take out what is in *offers*, in order, until it is empty, whoever else does so meanwhile."""
    while True:
        try:
            weighed = offers.popleft()
        except IndexError:
            return  # no check before: a signal handler in between may have taken the last
        yield weighed


class LaneLimits(msgspec.Struct, frozen=True, kw_only=True):
    """
    Bounds of one lane.

    Lanes hold the same events, and drop the oldest: what waits in all of them together is what
    waits in the fullest. Only what they are writing may differ, a quarter of `size_bytes` each. So
    five of them hold 16 MiB at most.

    Attributes:
        items: Events held while the sink is slow.
        size_bytes: And their weight, content and what is being written included.
        batch: Most events in one `Sink.write`; a quarter of `size_bytes` ends it as well.
        linger_s: Seconds to gather a batch after the first event.
        attempts: Writes of one batch to an idempotent sink before it is given up. As many as it
            takes where the sink raises `UnavailableError`.
        watch_s: Seconds that the lane looks for further events by itself before it sleeps: to wake
            it costs its caller as much as all else that is done there for this sink.
        spill_patience_s: Seconds that an offer to a full queue waits for the next batch to be kept,
            where its sink keeps on a disk what there is no room for.
        backoff_s: Seconds before the second attempt; doubles for each further one.
    """

    items: int = 8_192
    size_bytes: int = 8 * 1024 * 1024
    batch: int = 512
    linger_s: float = 0.05
    attempts: int = 3
    watch_s: float = 1.0
    spill_patience_s: float = 1.0
    backoff_s: float = 0.2
    backoff_most_s: float = 30.0


class LaneStats(msgspec.Struct, frozen=True):
    """
    The counters of a lane. Always ``offered == delivered + sum(dropped.values()) + queued``.

    Attributes:
        delivered: Events that a `Sink.write` or `SpillingSink.spill` returned for.
        dropped: Events lost, by reason: ``overflow``, ``refused``, ``error``, ``closed``, ``exit``,
            ``thread``.
        queued: Events waiting or being written.
        last_error: Type of the sink's last exception, or None.
        is_up: False while the sink's back end takes nothing.
    """

    sink: str
    offered: int
    delivered: int
    dropped: dict[str, int]
    queued: int
    queued_bytes: int
    last_error: str | None
    is_up: bool = True


class FlushRequest(msgspec.Struct, eq=False):
    """
    A request to be told when the first *target* events are delivered or lost.

    Attributes:
        target: Events offered when it was asked.
        deadline: Monotonic seconds when nobody waits any more.
        complete: The answer: everything was delivered, nothing lost since the last request.
        is_refused: Whether the sink's own flush failed, and nothing else: it may be tried again.
        flushes: Whether the sink is flushed first.
        rests: Whether it is to note then that the process is at its end: see `RestingSink`.
    """

    target: int
    deadline: float
    done: threading.Event
    complete: bool = False
    is_refused: bool = False
    flushes: bool = True
    rests: bool = False
