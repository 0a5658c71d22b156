"""A log to be copied."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from tests.kit import tampering


@pytest.fixture
def path(tmp_path, subject_keys, event_factory):
    """Return the path of a log of 40 operations, two checkpoints and all that goes with them."""
    path = tmp_path / "audit.db"
    tampering.build(path, subject_keys, event_factory, 40)
    return path


@pytest.fixture
def log(path, subject_keys):
    """Return that log, at one moment."""
    log = AuditLog(path, subject_keys, clock_ns=lambda: 1_800_000_000_000_000_000)
    yield log
    log.close()
