"""The audit trail's figures, as Prometheus reads them when it asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..telemetry.prometheus_live import Sample
from .errors import KeyMissingError

if TYPE_CHECKING:
    from .sink import AuditSink

KEY_STATES = ("ok", "generated", "missing")


def figures(sink: AuditSink) -> Iterator[Sample]:
    """Yield every figure of *sink*, from memory alone: no file, no database."""
    stats, spool = sink.stats, sink.spool
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
        _age_s(stats.oldest_waiting_us, sink.log.now_us()),
        "How long ago the oldest event happened that waits for the audit database",
    )
    yield Sample(
        name="mnemoscope_audit_spool_events",
        value=sink.waiting,
        help="Events that wait in the spool for the audit database",
    )
    yield Sample(
        name="mnemoscope_audit_spool_bytes",
        value=spool.size_bytes if spool is not None else 0,
        help="Size of the spool's file",
    )
    yield _newest(
        "mnemoscope_audit_tree_size", stats.size, "Sealed events of the log, as last seen from here"
    )
    yield _newest(
        "mnemoscope_audit_checkpoint_timestamp_seconds",
        stats.checkpoint_us / 1e6,
        "When this process last signed the log, seconds since 1970; 0: not yet",
    )
    yield from _key_states(key_state(sink))


def _counter(name: str, value: float, said: str) -> Sample:
    return Sample(name=name, value=value, kind="counter", help=said)


def _newest(name: str, value: float, said: str) -> Sample:
    return Sample(name=name, value=value, merge="max", help=said)


def _key_states(current: str) -> Iterator[Sample]:
    for state in KEY_STATES:
        yield Sample(
            name="mnemoscope_audit_key_state",
            labels={"state": state},
            value=float(state == current),
            merge="max",
            help="1 for the state that the secret behind the trail is in",
        )


def key_state(sink: AuditSink) -> str:
    """Return ``missing`` where the trail needs another secret, ``generated`` where it is new."""
    if isinstance(sink.error, KeyMissingError):
        return "missing"
    return "generated" if sink.key_made else "ok"


def _age_s(moment_us: int | None, now_us: int) -> float:
    return 0.0 if moment_us is None else max(0.0, (now_us - moment_us) / 1e6)
