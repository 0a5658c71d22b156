"""A log with everything in it, and a copy of it that may be changed."""

from __future__ import annotations

from contextlib import closing, nullcontext

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.verification import ranges, whole
from mnemoscope.audit.verification.events import Pass
from mnemoscope.audit.verification.whole import verify
from tests.kit import tampering


@pytest.fixture
def sealed(tmp_path, subject_keys, event_factory):
    """Return the path of a log of 40 operations and all that goes with them."""
    path = tmp_path / "audit.db"
    tampering.build(path, subject_keys, event_factory, 40)
    return path


@pytest.fixture
def copy(sealed, tmp_path):
    """Return the path of a copy that does not defend itself."""
    return tampering.copy_of(sealed, tmp_path / "copy.db")


@pytest.fixture
def tamper(copy):
    """Return what changes the copy."""
    with closing(tampering.Tampering(copy)) as tamper:
        yield tamper


@pytest.fixture
def in_ranges(monkeypatch):
    """Return what verifies a log by ranges of it, here rather than in several processes."""
    monkeypatch.setattr(whole, "LEAST", 1)
    monkeypatch.setattr(whole, "processes", lambda _count: nullcontext(map))
    monkeypatch.setattr(ranges, "EACH", 64)

    def in_ranges(log, **options):
        return verify(log, jobs=2, **options).as_document()

    return in_ranges


@pytest.fixture
def alike(in_ranges, monkeypatch):
    """Return what verifies a log at once, and sees that ranges, event by event, find the same."""

    def alike(log, **options):
        found = verify(log, **options)
        with monkeypatch.context() as patch:
            patch.setattr(Pass, "_in_order", lambda _self, _rows: None)
            assert in_ranges(log, **options) == found.as_document()
        return found

    return alike


@pytest.fixture
def state(copy, subject_keys, alike):
    """Return what tells the state of the copy: ok, loss, tampered or unverifiable."""
    log = AuditLog(copy, subject_keys)

    def state(**options):
        found = alike(log, **options)
        return found.state if found.state != "loss" else "ok"

    yield state
    log.close()
