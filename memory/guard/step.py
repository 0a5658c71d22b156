"""
The protocol of a guard's steps.

A guard is an ordered tuple of steps. For each method a step says once, by `Step.faces`, what it
does in a call of it, before the store is asked and after. What must be around the store itself is
an `Around`. Both touch the call and their own state and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from .operation import Arguments, Method

if TYPE_CHECKING:
    from .call import Call

Invoke: TypeAlias = Callable[[Arguments], Any]
"""Calls the store with arguments by name."""

AsyncInvoke: TypeAlias = Callable[[Arguments], Awaitable[Any]]
"""Its coroutine twin."""

BreaksOff: TypeAlias = "Callable[[Call], bool]"
"""
Tells, before a call with a deadline, whether every wait in it ends by `time_left_s`, also one for a
lock, a connection of a pool, a name's address, or between attempts. It stays on its thread then.
"""

Face: TypeAlias = "Callable[[Call], None]"
AsyncFace: TypeAlias = "Callable[[Call], Awaitable[None] | None]"
"""A face that may wait: it returns what is to be awaited, or None where there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """
    How a client that is not thread-safe takes its calls.

    Attributes:
        lock: Held around each synchronous call.
        blocks: Tells, before a call, of a client whose coroutines are synchronous code whether they
            are that now: they are run on threads then. None: they are not.
        enter_now: Enters *lock* and returns True, if that means no wait.
    """

    lock: AbstractContextManager[Any]
    blocks: Callable[[], bool] | None = None
    enter_now: Callable[[], bool] | None = None


class Faces(NamedTuple):
    """
    The functions that a step runs in each call of one method.

    Attributes:
        before: Run before the store is asked, in the order of the steps. Raises to refuse the call:
            neither the steps behind it nor the store are asked then.
        after: Run when the outcome is known, in reverse order, for every step and whatever the
            outcome is. Must not raise: it changes the call's error or result instead.
        abefore: `before` for asynchronous calls. None: `before`, where it does not wait.
        aafter: `after` for asynchronous calls. None: `after`, where it does not wait.
    """

    before: Face | None = None
    after: Face | None = None
    abefore: AsyncFace | None = None
    aafter: AsyncFace | None = None


NOTHING = Faces()
"""The faces of a step in calls that do not concern it."""


class Step(Protocol):
    """One step of a guarded call, for one concern."""

    def faces(self, method: Method, /) -> Faces:
        """Return what the step does in calls of *method*. Asked once for each method."""
        ...


@runtime_checkable
class WaitingWrites(Protocol):
    """
    A step that keeps writes in this process until the store takes them.

    Attributes:
        conflicts: How often somebody else had changed meanwhile what such writes were made on.
        lost: Such writes that ended with the scope.
    """

    conflicts: int
    lost: int

    @property
    def waits(self) -> int:
        """Number of writes waiting in this process."""
        ...

    def finish(self, timeout_s: float, /) -> None:
        """Have the store take what it keeps, in *timeout_s* seconds at most, and keep no more."""
        ...

    def give_up(self) -> None:
        """Report the writes that still wait as lost."""
        ...


@runtime_checkable
class CallKeeper(Protocol):
    """A step that keeps calls, and makes them again later."""

    async def settle(self, until: float, /) -> bool:
        """Make again what waits, until then, monotonic seconds. Return whether nothing does."""
        ...

    def lead(self, steps: Sequence[Step], /) -> None:
        """Take the *steps* behind it, which a call that it makes again goes through as well."""
        ...


class Around(Protocol):
    """A wrapper of the call of the store, on the thread that makes it."""

    def wrap(self, call: Call, invoke: Invoke, /) -> Invoke:
        """Return what calls the store in place of *invoke*."""
        ...

    def awrap(self, call: Call, invoke: AsyncInvoke, /) -> AsyncInvoke:
        """Return what calls the store in place of *invoke*, for an asynchronous call."""
        ...
