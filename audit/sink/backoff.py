"""The audit sink's counts, and its backoff while the database is unavailable."""

from __future__ import annotations

from dataclasses import dataclass

from ..database.errors import AuditError

BACKOFF_S = 0.25
BACKOFF_MOST_S = 15.0
HURRY_SHARE = 10


@dataclass(slots=True)
class SinkStats:
    """
    Counts of the events that passed here.

    Attributes:
        spooled: Events that had to wait in the spool.
        lost: Events that were declared as lost.
        size: Sealed events of the log, as last seen.
        checkpoint_us: When it was last signed from here, microseconds since 1970 UTC.
        newest_us: When the newest committed event happened.
        oldest_waiting_us: When the oldest that waits happened; None: none does.
    """

    recorded: int = 0
    spooled: int = 0
    lost: int = 0
    size: int = 0
    checkpoint_us: int = 0
    newest_us: int = 0
    oldest_waiting_us: int | None = None


@dataclass(slots=True)
class Backoff:
    """
    The state of retries while the database is unavailable. Monotonic seconds.

    Attributes:
        retry_at: When the next attempt is due.
        hurry_at: When an attempt may be made before that, if somebody waits for it: so seldom that
            attempts take a small part of the time, however long one takes.
    """

    error: AuditError
    retry_at: float
    hurry_at: float
    failures: int = 1


def backoff_after(
    error: AuditError, before: Backoff | None, *, asked_at: float, now: float
) -> Backoff:
    """Return the backoff after *error*, of an attempt that began at *asked_at*."""
    failures = 1 if before is None else before.failures + 1
    # After a thousand failures the power itself would be too large for a float.
    pause_s = min(BACKOFF_S * 2.0 ** min(failures - 1, 30), BACKOFF_MOST_S)
    # By how long the attempt took: a database that takes seconds to refuse is not asked all the
    # time.
    hurry_at = now + max(BACKOFF_S, HURRY_SHARE * (now - asked_at))
    return Backoff(error, now + pause_s, hurry_at, failures)
