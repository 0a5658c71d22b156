"""
The check of a log in ranges, by processes that read it in parallel.

A range is either in order, or has no findings: those are for the one pass over the whole log. So
both find the same, whatever was changed.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pickle import PickleError
from typing import Any, NamedTuple

from ..database.database import blob
from ..database.errors import UNREADABLE, AuditError
from ..database.opening import open_database
from ..proof.merkle import Subtree, leaf_hash
from ..record.keys import Unwrapping
from ..store.snapshot import Moment
from .details import Details
from .events import SELECT, Pass
from .report import Verification
from .tree import cut

LEAST = 50_000
"""Events, with their details, that are worth the second which processes take to start."""

LESS_WORK = 3
"""How many events without their details take as long as one with it."""

EACH = 16_384
"""Events of a range: a multiple of those of a tile."""

_FAILED = (PickleError, OSError, ImportError, RuntimeError, AssertionError, *UNREADABLE)
"""What stands in the way of processes: no semaphores, a daemon that may have no children."""

_PREVIOUS = """
    SELECT seq, header, recorded_us FROM audit_event WHERE seq >= ? AND seq < ?
    ORDER BY seq DESC LIMIT 1
"""


class UnsoundError(Exception):
    """A range is not in order, or could not be read as of the right moment: the text says which."""


class Range(NamedTuple):
    """
    Events ``[start, stop)``.

    Attributes:
        sizes: Of the log, in between, at which the root is wanted.
    """

    start: int
    stop: int
    sizes: list[int]


class RangeResult(NamedTuple):
    """
    The result of a range that is in order.

    Attributes:
        subtrees: What their hashes make.
        usages: How many model calls are listed.
    """

    passed: Pass
    subtrees: list[Subtree]
    details: int
    usages: int


class LogLocation(NamedTuple):
    """
    The address of a log, for another process to read.

    Attributes:
        url: May hold a password.
        moment: `mark` of what is to be read: nothing may have been removed since.
        since: The first event that is checked.
        prev: Hash of the one before it, in hexadecimal.
        with_details: Whether to open each detail.
    """

    url: str | Path
    secrets: Unwrapping
    moment: tuple[str, int, int]
    since: int
    prev: str
    with_details: bool


Each = Callable[
    [Callable[[Range], RangeResult | None], Iterable[Range]], Iterator[RangeResult | None]
]
"""``map``, or what does the same in several processes."""


def mark(moment: Moment) -> tuple[str, int, int]:
    """Return what changes whenever something is removed from a log."""
    return moment.origin, moment.epoch, moment.first_seq


def ranges(start: int, stop: int, sizes_in: Callable[[int, int], list[int]]) -> Iterator[Range]:
    """Yield the ranges of ``[start, stop)``: all but the first begin with a tile."""
    while start < stop:
        # Up to the next multiple, so that no tile is in two ranges.
        end = min(stop, start - start % EACH + EACH)
        yield Range(start, end, sizes_in(start, end))
        start = end


def checked(where: LogLocation, given: Iterable[Range], each: Each) -> Iterator[RangeResult]:
    """
    Check ranges, in order.

    Raises:
        UnsoundError: One of them is not as it should be.
    """
    try:
        for part in each(partial(check_range, where), given):
            if part is None:
                raise UnsoundError("a part of it is not in order, or was changed meanwhile")
            yield part
    except _FAILED as exc:
        raise _unusable(exc) from None


def _unusable(exc: BaseException) -> UnsoundError:
    return UnsoundError(f"other processes could not be used ({type(exc).__name__})")


@contextmanager
def processes(count: int) -> Generator[Each]:
    """
    Return what checks ranges in so many processes, which end with the body.

    Raises:
        UnsoundError: There are none to be had.
    """
    try:
        context = multiprocessing.get_context("spawn")  # a fork would share the database's locks
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_leave_interrupts)
    except _FAILED as exc:
        raise _unusable(exc) from None
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    # Ctrl-C goes to every process of a terminal: the first of them ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_range(where: LogLocation, given: Range) -> RangeResult | None:
    """Check a range in a transaction of its own; None: it is not in order, or not what it was."""
    try:
        with open_database(where.url).reading() as connection:
            moment = Moment(connection, where.secrets, "the audit trail")
            # Each process reads a moment of its own. Events that came since do no harm; removals
            # would.
            return _part(moment, where, given) if mark(moment) == where.moment else None
    except (AuditError, *UNREADABLE):
        return None


def _part(moment: Moment, where: LogLocation, given: Range) -> RangeResult | None:
    start, stop, sizes = given
    passed = _passed_before(moment, where, start)
    grown: list[Subtree] = []
    at = start
    for leaves in passed.leaves(moment.stream(SELECT, (start, stop))):
        grown += cut(at, leaves, [each for each in sizes if at < each < at + len(leaves)])
        at += len(leaves)
    # What is wrong is said by the one pass, which knows what came before.
    if passed.wrong or passed.valid != stop - start:
        return None
    report, usages = Verification(), 0
    if where.with_details:
        details = Details(moment, report, _unheard)
        details.check(start, stop)
        usages = details.check_usages(start, stop)
    return RangeResult(passed, grown, report.details, usages) if report.state == "ok" else None


def _passed_before(moment: Moment, where: LogLocation, start: int) -> Pass:
    """Return a pass that is about to come to event *start*."""
    row: Any = moment.execute(_PREVIOUS, (where.since, start)).fetchone()
    if row is None:
        return Pass(moment.origin, where.since, where.prev)
    seq, header, recorded_us = row
    passed = Pass(moment.origin, seq + 1, leaf_hash(blob(header)).hex())
    passed.last_us = recorded_us
    return passed


def _unheard(_done: int) -> None:
    """Ignore progress, which is reported range by range."""
