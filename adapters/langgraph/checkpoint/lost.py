"""Events of what waits and will never be written, and of threads that were changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar

from ....memory.errors import MnemoscopeError
from ....memory.guard.operation import Arguments, Method, Operation
from ....telemetry.event.event import Journalled
from .followed import PendingWrite


class NotWrittenError(Exception):
    """A reason why a waiting write is not made. Seen in events, by its name."""


class SupersededError(NotWrittenError):
    """A later step has its channels."""


class ThreadDeletedError(NotWrittenError):
    """Its thread was deleted, here or by somebody else."""


class ThreadChangedError(NotWrittenError, MnemoscopeError):
    """
    Its thread was changed by somebody else.

    Raised to a run that goes on from what was given up for that reason: its checkpoints lack what
    the saver never had.
    """

    def __init__(self) -> None:
        super().__init__(
            "somebody else changed this thread while its database was away, and what this run had "
            "written meanwhile was given up; begin a new run, which reads the thread as it is now"
        )


class ScopeClosedError(NotWrittenError):
    """The scope was closed while the database was away."""


_reason: ContextVar[type[NotWrittenError]] = ContextVar(
    "mnemoscope_not_written", default=NotWrittenError
)


def reason() -> NotWrittenError:
    """Return why the operation that is being told of is not made."""
    return _reason.get()()


def tell_lost(writes: Iterable[PendingWrite], why: type[NotWrittenError]) -> None:
    """Have an event for each of *writes*, which the saver will never have."""
    for each in writes:
        tell(each, each.row, each.arguments, why)


def tell(
    write: PendingWrite, row: Method, arguments: Arguments, why: type[NotWrittenError]
) -> None:
    """Have an event of an operation that is not made, in the name of whoever made *write*."""
    # By the guard itself, so that every sink, the trail among them, has the event of a write that
    # was lost.
    write.context.copy().run(_report, write, Operation(row, arguments, Journalled.LOST), why)


def _report(write: PendingWrite, operation: Operation, why: type[NotWrittenError]) -> None:
    _reason.set(why)
    # Beside its own reason, a step before may refuse it: strict auditing, say. It has its event.
    with suppress(NotWrittenError, MnemoscopeError):
        write.guard.call(operation, _never)


def _never(_given: Arguments) -> None:
    return
