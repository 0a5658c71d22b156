"""The audit trail's metrics, made when Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Iterator

from ...telemetry.prometheus.live import Sample
from ..database.errors import AuditError, KeyMissingError
from .backoff import SinkStats

KEY_STATES = ("ok", "generated", "missing")


def figures(
    stats: SinkStats,
    *,
    now_us: int,
    waiting: int,
    spool_bytes: int,
    spool_full: float,
    key_state: str,
) -> Iterator[Sample]:
    """
    Yield the figures of a sink, from memory alone: no file, no database.

    Args:
        stats: Its counts.
        now_us: The time, microseconds since 1970 UTC.
        waiting: Events in its spool.
        spool_bytes: Size of its spool's files.
        spool_full: How full the fullest is.
        key_state: One of `KEY_STATES`.
    """
    yield _counter(
        "mnemoscope_audit_events_total",
        stats.recorded,
        "Events that this process committed to the trail",
    )
    yield _counter(
        "mnemoscope_audit_gap_events_total",
        stats.lost,
        "Events that the audit trail declares as lost",
    )
    yield _newest(
        "mnemoscope_audit_lag_seconds",
        _age_s(stats.oldest_waiting_us, now_us),
        "How long ago the oldest event happened that waits for the audit database",
    )
    yield Sample(
        name="mnemoscope_audit_spool_events",
        value=waiting,
        help="Events that wait in the spool for the audit database",
    )
    yield Sample(
        name="mnemoscope_audit_spool_bytes",
        value=spool_bytes,
        help="Size of the spool's files",
    )
    yield _newest(
        "mnemoscope_audit_spool_full_ratio",
        spool_full,
        "How full the fullest file of the spool is; at 1 events are lost",
    )
    yield _newest(
        "mnemoscope_audit_tree_size", stats.size, "Sealed events of the log, as last seen from here"
    )
    yield _newest(
        "mnemoscope_audit_checkpoint_timestamp_seconds",
        stats.checkpoint_us / 1e6,
        "When this process last signed the log, seconds since 1970; 0: not yet",
    )
    yield from _key_states(key_state)


def _counter(name: str, value: float, said: str) -> Sample:
    return Sample(name=name, value=value, kind="counter", help=said)


def _newest(name: str, value: float, said: str) -> Sample:
    # Of several processes on one machine the largest: sums of ages or sizes mean nothing.
    return Sample(name=name, value=value, merge="max", help=said)


def _key_states(current: str) -> Iterator[Sample]:
    # All of them each time: a state that is over has to be 0, or alerts go on.
    for state in KEY_STATES:
        yield Sample(
            name="mnemoscope_audit_key_state",
            labels={"state": state},
            value=float(state == current),
            merge="max",
            help="1 for the state that the secret behind the trail is in",
        )


def key_state_of(error: AuditError | None, *, is_new: bool) -> str:
    """Return ``missing`` where the trail needs another secret, ``generated`` where it is new."""
    if isinstance(error, KeyMissingError):
        return "missing"
    return "generated" if is_new else "ok"


def _age_s(moment_us: int | None, now_us: int) -> float:
    return 0.0 if moment_us is None else max(0.0, (now_us - moment_us) / 1e6)
