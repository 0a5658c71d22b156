"""
What every sink that reaches over the network keeps to: a time, and silence.

Client libraries tell success from failure and no more. What the back end answered is noted here, on
its way through `BoundedSession`, so that `failure` can say which kind of failure it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import Final

from .sink import DeliveryError, UnacceptableError, UnavailableError

_REFUSED: Final = frozenset({400, 413, 422})
"""HTTP statuses that are about what was sent: asking again for the same is no use."""


class _Lane(threading.local):
    """What is going on on this thread."""

    deadline: float = inf
    hushed: bool = False
    said: tuple[object, ...] = ()
    asked: bool = False
    status: int | None = None
    retry_after_s: float | None = None


_lane = _Lane()


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Let all requests of a `BoundedSession` in the body take *seconds*, together."""
    before = _lane.deadline
    _lane.deadline = min(before, time.monotonic() + seconds)
    _lane.asked, _lane.status, _lane.retry_after_s, _lane.said = False, None, None, ()
    try:
        yield
    finally:
        _lane.deadline = before


def left_s() -> float:
    """
    Return the seconds that `within` leaves this thread; infinite outside of it.

    Raises:
        TimeoutError: There are none.
    """
    left = _lane.deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for this delivery is up")
    return left


def asking() -> None:
    """Note that a request goes out."""
    _lane.asked, _lane.status, _lane.retry_after_s = True, None, None


def answered(status: int, retry_after_s: float | None) -> None:
    """Note what the request was answered."""
    _lane.status, _lane.retry_after_s = status, retry_after_s


def failure(back_end: str) -> DeliveryError:
    """Return what a delivery over HTTP that failed in the last `within` is to raise."""
    if not _lane.asked:
        return UnacceptableError(f"the batch could not be put into a form that {back_end} takes")
    if _lane.status is None:
        return UnavailableError(f"{back_end} did not answer")
    if _lane.status in _REFUSED:
        return UnacceptableError(f"{back_end} refused the batch with {_lane.status}")
    return UnavailableError(f"{back_end} answered {_lane.status}", _lane.retry_after_s)


def said() -> tuple[object, ...]:
    """Return the arguments of all that was hushed in the last `within`."""
    return _lane.said


class _Hush(logging.Filter):
    """Drops what this thread logs inside `hushed`, and nothing else."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _lane.hushed and isinstance(record.args, tuple):
            _lane.said += record.args
        return not _lane.hushed


_HUSH = _Hush()


@contextmanager
def hushed(*loggers: str) -> Generator[None]:
    """
    Keep *loggers* quiet on this thread for the body.

    Exporters log every failed batch, at length. The lane counts the same failures and says so once
    a minute.
    """
    for name in loggers:
        logger = logging.getLogger(name)
        if _HUSH not in logger.filters:
            # The first: OpenTelemetry's own drops what it has seen before, and we are to see it.
            logger.filters.insert(0, _HUSH)
    _lane.hushed = True
    try:
        yield
    finally:
        _lane.hushed = False
