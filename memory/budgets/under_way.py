"""
Model calls under way, and their expected cost to a budget with a stop.

What a call uses is known when it has ended. Until then as much of the budget is kept back for it as
calls have used so far on average; before the first has ended nobody knows, and the others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import msgspec

if TYPE_CHECKING:
    from concurrent.futures import Future

LONGEST_S: Final = 600.0
"""Seconds after which a call is taken for abandoned, and keeps nothing back any more."""


class Reservation(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """
    What is kept back for one model call, until it is released.

    Attributes:
        begun: When, monotonic seconds.
        release: Takes it back, once the call has ended and its usage is counted.
    """

    call: object
    begun: float
    release: Callable[[Reservation], None]


class UnderWay:
    """The calls under way that one budget covers. Not thread-safe."""

    def __init__(self) -> None:
        self._reservations: dict[Reservation, None] = {}
        self._waiting: WeakSet[Future[None]] = WeakSet()
        self._used = 0
        self._ended = 0

    @property
    def is_expectation_known(self) -> bool:
        """Whether a finished call has reported its usage, to estimate the next ones by."""
        return self._ended > 0

    def learn(self, amount: int) -> None:
        """Take into the average that a call has used *amount*."""
        self._used += amount
        self._ended += 1

    def expected(self) -> float:
        """Return what the calls under way are expected to use."""
        return len(self._reservations) * self._used / max(1, self._ended)

    def is_any_but(self, around: Collection[object], now: float) -> bool:
        """Tell whether any call is under way but *around*, and so may end while others wait."""
        for each in list(self._reservations):
            if each.begun < now - LONGEST_S:
                self._reservations.pop(each, None)
        # A copy: one may be released by the garbage collector meanwhile.
        return any(each.call not in around for each in list(self._reservations))

    def add(self, reservation: Reservation) -> None:
        """Keep something back for a call that begins."""
        self._reservations[reservation] = None

    def remove(self, reservation: Reservation) -> Iterable[Future[None]]:
        """Cancel *reservation*, and return the futures of the calls that waited for room."""
        self._reservations.pop(reservation, None)
        return self.all_waiting()

    def wait(self) -> Future[None]:
        """Return what is done when a call has ended."""
        from concurrent.futures import Future  # noqa: PLC0415 - see above

        ended = Future[None]()
        self._waiting.add(ended)
        return ended

    def all_waiting(self) -> Iterable[Future[None]]:
        """Return the futures of all waiting calls, and forget them: the caller wakes them."""
        waiting, self._waiting = list(self._waiting), WeakSet()
        return waiting


def wake(waiting: Iterable[Future[None]]) -> None:
    """Let calls that wait ask again."""
    for each in waiting:
        # Not where its caller has left, or leaves just now.
        if each.set_running_or_notify_cancel():
            each.set_result(None)
