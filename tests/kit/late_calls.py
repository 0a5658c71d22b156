"""Calls that outlive their deadlines, on threads of which each moves only when it is told to."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from mnemoscope.memory.limits.workers import Expired


class Killed(BaseException):
    """The process ends here."""


class Flight:
    """
    One call of a store.

    Args:
        work: The call, as a guard hands it to its workers.
        late: What the guard does when it ends after its caller has gone.

    Attributes:
        call: The guard's record of it.
        ends_at: Seconds at which the store goes on with it.
        is_over: It has ended.
        is_killed: Its process has, and the store has it still.
    """

    def __init__(self, work: Any, late: Callable[[], None]) -> None:
        self._work = work
        self._late = late
        self.call: Any = next(iter(getattr(work, "args", ())), None)
        self.ends_at = 0.0
        self.is_over = self.is_killed = False
        self._is_late = self._vanishes = False
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._result: Any = None
        self._error: BaseException | None = None
        target = contextvars.copy_context().run
        self._thread = threading.Thread(target=target, args=(self._run,), daemon=True)

    def begin(self) -> None:
        """Make the call, until the store hangs or answers."""
        self._thread.start()
        self._stands.acquire()

    def hang(self) -> None:
        """Stand still, on the flight's own thread, until it `lands`."""
        self._is_late = True
        self._stands.release()
        self._go.acquire()
        if self._vanishes:
            raise Killed

    def land(self) -> None:
        """
        Have the store go on with it.

        Raises:
            Killed: Its process ended as it was told.
        """
        self._go.release()
        self._stands.acquire()
        if isinstance(self._error, Killed) and not self.is_killed:
            raise Killed

    def vanish(self) -> None:
        """End it: the store never had it."""
        self.is_killed = self._vanishes = True
        self._go.release()
        self._stands.acquire()

    def answer(self) -> Any:
        """Return what the store returned in time, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        _here.flight = self
        try:
            self._result = self._work()
        except BaseException as exc:  # noqa: BLE001 - carried to whoever waits
            self._error = exc
        try:
            if self._is_late and not self.is_killed and not isinstance(self._error, Killed):
                self._late()
        except Killed as exc:
            self._error = exc
        self.is_over = True
        self._stands.release()


_here = threading.local()


def flight_here() -> Flight | None:
    """Return the flight whose thread this is."""
    return getattr(_here, "flight", None)


class Wire:
    """
    The workers of one process, without a clock of their own.

    Args:
        hangs: Tells for how many seconds stores hang now. None: they do not.
        clock: Returns the time.
        wait: Has so many seconds pass.

    Attributes:
        flights: Calls that a store is still at work on.
    """

    def __init__(
        self,
        hangs: Callable[[], float | None],
        clock: Callable[[], float],
        wait: Callable[[float], None],
    ) -> None:
        self._hangs = hangs
        self._clock = clock
        self._wait = wait
        self.flights: list[Flight] = []

    def run(self, work: Callable[[], Any], timeout_s: float, late: Callable[[], None]) -> Any:
        """Return what *work* does, or raise `Expired` where a store hangs in it."""
        hangs_s = self._hangs()
        if hangs_s is None:
            return work()
        flight = Flight(work, late)
        flight.begin()
        if flight.is_over:
            return flight.answer()
        flight.ends_at = self._clock() + timeout_s + hangs_s
        self.flights.append(flight)
        self._wait(timeout_s)
        raise Expired
