"""An audit log in a folder of its own."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "audit.db"


@pytest.fixture
def log(path, subject_keys):
    log = AuditLog(path, subject_keys, clock_ns=lambda: 1_800_000_000_000_000_000)
    yield log
    log.close()
