"""The things that a process says about itself in the log: that it began, how far it is, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ...telemetry.delivery.numbers import Grant, LetGo, WriterNumbers, without_end
from ...telemetry.process.version import running_version
from ..record.sealing import UnplacedEvent, log_draft
from ..record.writer_events import (
    HEARTBEAT,
    HEARTBEAT_S,
    IDLE_AFTER_S,
    IDLE_EVERY_S,
    STARTED,
    STOPPED,
    about,
    is_durable,
)
from ..store.roll import Roll

Said = tuple[str, Mapping[str, Any]]
"""Name and data of an event about the log itself."""


class Counted(Protocol):
    """
    The identity of a writer, and its counter.

    Attributes:
        writer_id: 16 hex digits.
    """

    writer_id: str

    def taken(self) -> int:
        """Return how many events it has counted."""
        ...

    def rest(self) -> int:
        """Return the same, and ask before another one is counted."""
        ...


def keep_roll(numbers: WriterNumbers, roll: Roll, mode: str) -> None:
    """Have *roll* say how many events this process may count, before it does."""
    numbers.grant = _least(numbers.grant, roll.grant)
    if is_durable(mode):
        numbers.note_let_go = _both(numbers.note_let_go, roll.let_return)


def _least(before: Grant, grant: Grant) -> Grant:
    """Return what asks both: of several logs each has a roll."""
    if before is without_end:
        return grant
    return lambda writer_id, number: min(before(writer_id, number), grant(writer_id, number))


def _both(before: LetGo | None, note: LetGo) -> LetGo:
    if before is None:
        return note

    def noted(number: int) -> None:
        before(number)
        note(number)

    return noted


class Presence:
    """
    What one writer has to say, and when. Says nothing before its first event. Not thread-safe.

    Args:
        clock: Monotonic seconds.
        mode: The durability that it was asked for.
        version: Returns the version of this package that it runs; empty where that is not known.
        roll: Where it has its entry, if anywhere.
    """

    def __init__(
        self,
        numbers: Counted,
        clock: Callable[[], float],
        *,
        mode: str,
        version: Callable[[], str] = running_version,
        roll: Roll | None = None,
    ) -> None:
        self.roll = roll
        self._numbers = numbers
        self._clock = clock
        self._mode = mode
        self._version = version
        self._writer_id = ""
        self._is_idle = False
        self._stopped_at: int | None = None
        self._counter_before = self._tightened_at = 0
        self._said_at = self._busy_at = clock()

    def go_on(self) -> None:
        """Go on where somebody else has said that it began, and perhaps that it is idle."""
        self._writer_id = self.writer_id
        # Its last word is not known here, so that the next one is due at once.
        self._said_at = float("-inf")

    @property
    def writer_id(self) -> str:
        """The writer, 16 hex digits."""
        return self._numbers.writer_id

    @property
    def counter(self) -> int:
        """Events that were counted so far."""
        return self._numbers.taken()

    def note_counter(self) -> None:
        """Note in the roll how many events were counted."""
        if self.roll is not None:
            self.roll.note(self.counter)

    def note_quiet(self) -> None:
        """Note in the roll that no more were counted than a moment ago, if it is so."""
        counter, before = self.counter, self._counter_before
        self._counter_before = counter
        # At rest for a beat: who counts all the time would have to ask for each number.
        if counter == before and self._tightened_at != counter:
            self.tighten()

    def tighten(self) -> int:
        """Note in the roll that no more were counted than now, and return how many."""
        counter = self._tightened_at = self._numbers.rest()
        if self.roll is not None:
            self.roll.tighten(counter)
        return counter

    def note_kept(self, numbers: Iterable[tuple[str, int]]) -> None:
        """Note in the roll, where calls wait for these events, that they wait no longer."""
        if self.roll is not None and is_durable(self._mode):
            own = (number for writer, number in numbers if writer == self.writer_id)
            self.roll.let_return(max(own, default=0))

    def end(self, *, is_said: bool) -> None:
        """End in order, with the roll; *is_said*: the log says so."""
        if self.roll is not None:
            counter = self._stopped_at if is_said else self.counter
            self.roll.end(self.counter if counter is None else counter, is_said=is_said)

    def with_events(self) -> list[Said]:
        """Return what is to be said along with events that are recorded now."""
        self._busy_at = self._clock()
        if not self.counter:
            return []
        if not self._has_begun:
            # With the first event, and not before: most processes import this and write nothing.
            return [self._about(STARTED, mode=self._mode, version=self._version())]
        is_back = self._is_idle or self._stopped_at is not None
        if is_back or self._busy_at - self._said_at >= HEARTBEAT_S:
            return [self._about(HEARTBEAT, idle=False)]
        return []

    def without_events(self) -> list[Said]:
        """Return what is to be said although there is no event: that none came of late."""
        if self._stopped_at is not None:
            return []
        now = self._clock()
        # Said once when it begins to be idle, and now and then: a silence could be a crash.
        is_due = now - self._said_at >= IDLE_EVERY_S or not self._is_idle
        if self._has_begun and is_due and now - self._busy_at >= IDLE_AFTER_S:
            return [self._about(HEARTBEAT, idle=True)]
        return []

    def at_end(self, counter: int) -> list[Said]:
        """Return what is to be said at the end, unless that was said, and nothing came since."""
        is_said = self._stopped_at == counter
        # A scope may be closed twice, by its owner and at exit.
        return [self._about(STOPPED, counter)] if self._has_begun and not is_said else []

    def drafts(self, what: Sequence[Said], now_us: int) -> list[UnplacedEvent]:
        """Return the events that say *what*, for the log."""
        if what:
            self.note_counter()  # the roll is never behind the log
        return [
            log_draft(name, data, writer_id=self.writer_id, occurred_us=now_us)
            for name, data in what
        ]

    def said(self, what: Iterable[Said]) -> None:
        """Note that *what* is in the log."""
        for name, data in what:
            # Said by the parent, before this process was forked off.
            if data.get("writer") != self.writer_id:
                continue
            self._stopped_at = data["counter"] if name == STOPPED else None
            if name in {STARTED, HEARTBEAT}:
                self._writer_id = self.writer_id
                self._is_idle = bool(data.get("idle"))
                self._said_at = self._clock()

    @property
    def _has_begun(self) -> bool:
        return self._writer_id == self.writer_id  # else it is a child that has said nothing yet

    def _about(self, name: str, counter: int | None = None, **more: Any) -> Said:
        return about(name, self.writer_id, self.counter if counter is None else counter, **more)
