"""The closed sets of values that classify an event."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["usd", "tokens"]


class Level(StrEnum):
    """
    The degree to which a budget is spent. Closed: safe as a metric label.

    Attributes:
        WITHIN: Below all levels.
        EXPECTED: More than is usual.
        ALERT: Somebody should look.
        EXCEEDED: All of it, or more.
    """

    WITHIN = "within"
    EXPECTED = "expected"
    ALERT = "alert"
    EXCEEDED = "exceeded"


class OperationClass(StrEnum):
    """The class of an operation, which decides how it fails (the README has the table)."""

    RECALL = "recall"
    REMEMBER = "remember"
    FORGET = "forget"
    RESUME = "resume"
    CHECKPOINT = "checkpoint"
    MODEL = "model"


class Status(StrEnum):
    """
    The outcome of an operation. Closed: safe as a metric label.

    Attributes:
        OK: The store answered.
        EMPTY: A recall was answered, with nothing in it.
        PARTIAL: A write was answered, and a part of it was left out: see docs/hygiene.md.
        DEGRADED: The store failed and the caller was given a neutral value.
        TIMEOUT: The deadline passed before the store answered.
        REJECTED: Not attempted: the breaker is open or the bulkhead is full.
        ERROR: The caller was given the exception.
        REFUSED: Not attempted: what could not be redacted is not written.
        DENIED: Not attempted: the scope of the call is missing or not the caller's.
        CANCELLED: The caller went away.
    """

    OK = "ok"
    EMPTY = "empty"
    PARTIAL = "partial"
    DEGRADED = "degraded"
    TIMEOUT = "timeout"
    REJECTED = "rejected"
    ERROR = "error"
    REFUSED = "refused"
    DENIED = "denied"
    CANCELLED = "cancelled"

    @property
    def is_normal(self) -> bool:
        """True when the store itself answered."""
        return self in {Status.OK, Status.EMPTY, Status.PARTIAL}


class Deletes(StrEnum):
    """
    How much a deletion deletes.

    Attributes:
        IDS: The memories that it selects, by ids or by a filter.
        SCOPE: Every memory of the customer, session or thread that the call names.
        EVERYTHING: Every memory of the store, or of the collection that the call names, whoever
            they belong to.
    """

    IDS = "ids"
    SCOPE = "scope"
    EVERYTHING = "everything"

    @property
    def is_whole(self) -> bool:
        """True where all memories that it is about are gone, and none has to be listed."""
        return self is not Deletes.IDS


class Journalled(StrEnum):
    """
    The fate of a write that the store did not take at once. Closed: safe as a metric label.

    Attributes:
        NO: The store took it or may still be taking it, it is being redacted still, or the call was
            no write.
        APPENDED: It waits in the write journal.
        REPLAYED: It waited there, and the store has it now.
        LOST: Nothing will bring it there.
        FORGOTTEN: It waited, or came late, and what it would write has been deleted since.
        SUPERSEDED: It waited, and a later write of the same record was made meanwhile.
    """

    NO = ""
    APPENDED = "appended"
    REPLAYED = "replayed"
    LOST = "lost"
    FORGOTTEN = "forgotten"
    SUPERSEDED = "superseded"

    @property
    def is_afterwards(self) -> bool:
        """Whether the event tells of a write whose caller was answered before."""
        return self in _AFTERWARDS


_AFTERWARDS = frozenset({Journalled.REPLAYED, Journalled.FORGOTTEN, Journalled.SUPERSEDED})
