"""The record of which events a sink has acknowledged, for those who must say who received data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from ..event.event import Event
from .sink import SinkOutput

MOST_RANGES = 16
"""Ranges of one writer's numbers that are told apart; beyond, the oldest two become one."""


_writer_of, _number_of = attrgetter("writer_id"), attrgetter("writer_seq")


class NumberRange(NamedTuple):
    """
    Numbers of one writer, `first` to `last`.

    Attributes:
        n_events: How many of them were acknowledged. Fewer than there are: it is not known which.
    """

    first: int
    last: int
    n_events: int

    def joined(self, other: NumberRange) -> NumberRange:
        """Return one range of both and what is between."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return NumberRange(first, last, self.n_events + other.n_events)

    def touches(self, other: NumberRange) -> bool:
        """Return whether nothing is between the two."""
        return self.first <= other.last + 1 and other.first <= self.last + 1


class Acknowledged:
    """
    The numbers of the events that one sink has acknowledged since they were last taken.

    Args:
        describe: Returns what the sink passes on, and to where. Called on the sink's own thread:
            one that hangs holds up nobody else. None: it does not say.

    Attributes:
        output: What it returned last. None: nothing.
    """

    def __init__(self, describe: Callable[[], SinkOutput] | None = None) -> None:
        self._describe = describe
        self.output: SinkOutput | None = None
        self.forked()

    def forked(self) -> None:
        """Begin anew, also in a forked child: the parent's are the parent's to tell."""
        self._lock = threading.Lock()
        self._ranges: dict[str, list[NumberRange]] = {}

    def add(self, batch: Sequence[Event]) -> None:
        """Note that all of *batch* was acknowledged."""
        if self._describe is not None and not self._ranges:
            # Once for all that is taken together: some look the host's environment through.
            with suppress(BaseException):  # a sink may fail in any way: that it has them is noted
                self.output = self._describe()
        numbers: dict[str, list[int]] = {}
        for writer_id, events in groupby(batch, _writer_of):
            # What has none is counted by nobody: a checkpoint of the audit trail.
            numbers.setdefault(writer_id, []).extend(filter(None, map(_number_of, events)))
        with self._lock:
            for writer_id, counted in numbers.items():
                if not counted:
                    continue
                new = NumberRange(min(counted), max(counted), len(counted))
                _add(self._ranges.setdefault(writer_id, []), new)

    def take(self) -> dict[str, list[NumberRange]]:
        """Return the ranges by writer, and begin anew."""
        with self._lock:
            taken, self._ranges = self._ranges, {}
        return taken


def _add(ranges: list[NumberRange], new: NumberRange) -> None:
    while ranges and ranges[-1].touches(new):
        new = new.joined(ranges.pop())
    ranges.append(new)
    if len(ranges) > MOST_RANGES:
        # Bounded by telling less of the oldest: which numbers were in the hole is no longer known.
        ranges[:2] = [ranges[0].joined(ranges[1])]


class SinkDeliveries(NamedTuple):
    """
    The deliveries of one sink.

    Attributes:
        acknowledged: What it has, and what it passes on.
        is_idle: Returns whether nothing is on its way to it.
    """

    sink: str
    acknowledged: Acknowledged
    is_idle: Callable[[], bool]
