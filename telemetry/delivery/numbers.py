"""The numbers that one writer gives its events: from 1, none left out."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import count

Grant = Callable[[str, int], int]
"""Takes a writer and the number that it is about to use; returns the last one that it may use."""

LetGo = Callable[[int], None]
"""Takes the number of an event that nobody waits for: its call may be over before it is kept."""

UNBOUNDED = 2**62


def without_end(_writer_id: str, _number: int) -> int:
    """Let a writer use any number."""
    return UNBOUNDED


class WriterNumbers:
    """
    The identity of this process incarnation, and the numbers of its events. Safe from any thread.

    Attributes:
        writer_id: 16 hex digits. Another one after a fork.
        grant: Asked before the first number is used, and whenever those that it gave are used up,
            on the thread that is about to use one: so it must neither take long nor raise.
        note_let_go: Told of each number that nobody waits for, on the same terms. None: nobody is.
    """

    def __init__(self) -> None:
        self.grant: Grant = without_end
        self.note_let_go: LetGo | None = None
        self.begin()

    def begin(self) -> None:
        """Begin anew, as another writer."""
        self.writer_id = secrets.token_hex(8)
        self._given = count(1)
        self._granted = 0

    def take(self) -> int:
        """Return the next number, of an event that nobody waits for."""
        # itertools.count steps in C, so that no lock is held that a signal handler could wait for.
        number = next(self._given)
        if number > self._granted:
            self._granted = self.grant(self.writer_id, number)
        if self.note_let_go is not None:
            self.note_let_go(number)
        return number

    def take_awaited(self) -> int:
        """Return the next number, of an event that its call waits for, where calls wait at all."""
        number = next(self._given)
        if number > self._granted:
            self._granted = self.grant(self.writer_id, number)
        return number

    def rest(self) -> int:
        """Have the next number asked for, and return how many were taken before."""
        self._granted = 0  # first: a number that is taken behind the count is asked for
        return self.taken()

    def let_go(self) -> None:
        """Wait for none of the events so far: some call is over, and its event is not kept yet."""
        if self.note_let_go is not None:
            self.note_let_go(self.taken())

    def taken(self) -> int:
        """Return how many numbers were taken so far."""
        # No other way to look at a counter leaves it as it was, on every release of Python.
        return int(repr(self._given).removeprefix("count(").removesuffix(")")) - 1
