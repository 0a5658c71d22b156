"""
Time limits and silence for sinks that reach over the network.

Client libraries report success or failure and no more. `BoundedSession` notes the status here, so
that `failure` can tell which kind of failure it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from typing import Final

from ..delivery.sink import DeliveryError, UnacceptableError, UnavailableError

_REFUSED: Final = frozenset({400, 413, 422})
"""HTTP statuses that are about what was sent: asking again for the same is no use."""


# Client libraries pass nothing of ours down to the session, so that it goes by the thread: theirs
# start none for a request.
class _Exchange(threading.local):
    """The exchange with a back end that this thread is in."""

    deadline: float = inf
    quiet: bool = False
    log_args: tuple[object, ...] = ()
    is_sent: bool = False
    status: int | None = None
    retry_after_s: float | None = None
    body: Callable[[], bytes] = bytes


_exchange = _Exchange()


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Let all requests of a `BoundedSession` in the body take *seconds*, together."""
    before = _exchange.deadline
    # One inside of another cannot make it longer.
    _exchange.deadline = min(before, time.monotonic() + seconds)
    _exchange.is_sent, _exchange.log_args = False, ()
    _exchange.status, _exchange.retry_after_s, _exchange.body = None, None, bytes
    try:
        yield
    finally:
        _exchange.deadline = before


def remaining_s() -> float:
    """
    Return the seconds that `time_limit` leaves this thread; infinite outside of it.

    Raises:
        TimeoutError: There are none.
    """
    left = _exchange.deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for this delivery is up")
    return left


def note_request() -> None:
    """Note that a request goes out."""
    _exchange.is_sent, _exchange.status, _exchange.retry_after_s = True, None, None


def note_response(
    status: int | None, retry_after_s: float | None, body: Callable[[], bytes] = bytes
) -> None:
    """Note the response to the request: of gRPC without a status, which its exporter logs."""
    _exchange.status, _exchange.retry_after_s, _exchange.body = status, retry_after_s, body


def answered() -> tuple[int | None, float | None]:
    """Return status and ``Retry-After``, in seconds, of the last `time_limit`; None for none."""
    return _exchange.status, _exchange.retry_after_s


def answered_body() -> bytes:
    """Return what the last response of the last `time_limit` had in it."""
    return _exchange.body()


def failure(back_end: str) -> DeliveryError:
    """Return the error of a delivery over HTTP that failed within the last `time_limit`."""
    if not _exchange.is_sent:
        return UnacceptableError(f"the batch could not be encoded for {back_end}")
    if _exchange.status is None:
        return UnavailableError(f"{back_end} did not answer")
    # All others may pass: 401 once the key is changed, 404 once the back end is up.
    if _exchange.status in _REFUSED:
        return UnacceptableError(f"{back_end} refused the batch with {_exchange.status}")
    return UnavailableError(f"{back_end} answered {_exchange.status}", _exchange.retry_after_s)


def suppressed_args() -> tuple[object, ...]:
    """Return the arguments of the log records dropped within the last `time_limit`."""
    return _exchange.log_args


class _QuietFilter(logging.Filter):
    """Drops records that this thread logs inside `quiet`."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _exchange.quiet and isinstance(record.args, tuple):
            # OpenTelemetry's exporters say only there why they failed.
            _exchange.log_args += record.args
        return not _exchange.quiet


_QUIET = _QuietFilter()


@contextmanager
def quiet(*loggers: str) -> Generator[None]:
    """
    Keep *loggers* quiet on this thread for the body.

    Exporters log every failed batch, at length. The lane counts the same failures and says so once
    a minute.
    """
    for name in loggers:
        logger = logging.getLogger(name)
        if _QUIET not in logger.filters:
            # The first: OpenTelemetry's own drops what it has seen before, and we are to see it.
            logger.filters.insert(0, _QUIET)
    _exchange.quiet = True
    try:
        yield
    finally:
        _exchange.quiet = False
