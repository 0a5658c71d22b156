"""A trail that has outlived what it held of a person: their details are gone by its retention."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemoscope.audit import AuditLog


def outlive(path: Path, keys: Any, make_event: Callable[..., Any]) -> None:
    """Write a year to the trail at *path*, the first event somebody's, and let January go."""
    now_ns = 0

    def clock_ns() -> int:
        return now_ns

    def on(month: int, day: int) -> int:
        return round(datetime(2025, month, day, tzinfo=UTC).timestamp()) * 10**9

    now_ns = on(1, 10)
    with closing(AuditLog(path, keys, clock_ns=clock_ns, retention_days=200)) as log:
        log.append([make_event()])
        for month in range(1, 13):
            now_ns = on(month, 11)
            log.append([make_event(subject=None) for _ in range(300)])
            log.checkpoint_now()
        now_ns = on(12, 20)
        assert log.prune()
