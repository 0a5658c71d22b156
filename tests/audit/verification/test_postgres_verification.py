"""The same log, verified and exported, in PostgreSQL."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.verify import check
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.api import Usage

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def log(postgres_url, subject_keys, event_factory):
    """Return a log of a few hundred events, one erased customer and a model call among them."""
    log = AuditLog(postgres_url, subject_keys)
    seen = {"memory_ids": ("m-1", "m-2"), "scores": (0.1, 0.2), "run": "r", "collection": "c"}
    log.append([event_factory(**seen) for _ in range(300)])
    log.append([event_factory(customer="eve"), event_factory(customer=None)])
    log.append([event_factory(usage=Usage(model="m", namespace=("a",), cost_usd=0.1))])
    log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
    log.checkpoint_now()
    yield log
    log.close()


def test_a_log_in_order_is_in_order(log):
    """Events, tiles, checkpoints, details, memories and usages."""
    found = verify(log)

    assert (found.state, found.erased) == ("ok", 1)
    assert found.valid_events == found.events == 305


def test_a_changed_row_is_found(log, postgres_url):
    """By whoever owns the tables, past the triggers."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE audit_event_0 DISABLE TRIGGER ALL")
        connection.execute("UPDATE audit_event SET store = 'x' WHERE seq = 7")
        connection.execute("ALTER TABLE audit_event_0 ENABLE TRIGGER ALL")

    found = verify(log)
    assert found.state == "tampered"
    assert found.findings["tampered"] == ["event 7: column store is not what was sealed"]


def test_an_export_verifies(log, tmp_path):
    """A history of more than one tile, streamed."""
    request = Request(request_id="r", generated_us=1_800_000_000_000_000, version="0")
    with source(log, "ada@example.com", "acme") as found:
        bundle = write_bundle(tmp_path / "x.zip", request, found.evidence, history=found.history)

    report = check(bundle.path)
    assert (report.events, report.problem) == (301, None)
