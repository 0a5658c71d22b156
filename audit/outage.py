"""The audit sink's books, and what it remembers of a database that takes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import AuditError

BACKOFF_S = 0.25
BACKOFF_MOST_S = 15.0
HURRY_SHARE = 10


@dataclass(slots=True)
class SinkStats:
    """
    What has become of events here.

    Attributes:
        recorded: Events that were committed.
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
class Outage:
    """
    The database takes nothing. Monotonic seconds.

    Attributes:
        error: Why, as it last said.
        retry_at: When it is asked again.
        hurry_at: When it may be asked before that, if somebody waits for it: so seldom that asking
            takes a small part of the time, however long an answer takes.
        failures: How often it was asked.
    """

    error: AuditError
    retry_at: float
    hurry_at: float
    failures: int = 1


def outage_after(
    error: AuditError, before: Outage | None, *, asked_at: float, now: float
) -> Outage:
    """Return the outage that goes on, or begins, with *error*, which took from *asked_at* on."""
    failures = 1 if before is None else before.failures + 1
    pause_s = min(BACKOFF_S * 2.0 ** min(failures - 1, 30), BACKOFF_MOST_S)
    hurry_at = now + max(BACKOFF_S, HURRY_SHARE * (now - asked_at))
    return Outage(error, now + pause_s, hurry_at, failures)
