"""What a batch costs, in statements and hashes, which are the same on any machine."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from mnemoscope.audit.proof import merkle
from mnemoscope.audit.record import sealing
from mnemoscope.audit.store import writer

SEEN = {"memory_ids": ("m-1",), "scores": (0.5,), "run": "r", "collection": "c"}


@pytest.fixture
def statements(log, event_factory, monkeypatch):
    """Return what counts the statements that recording so many events takes, once all is warm."""
    log.append([event_factory(**SEEN) for _ in range(256)])
    connection = log.tables._writer._database._connection
    found = []

    def counted(size):
        batch = [event_factory(**SEEN) for _ in range(size)]
        found.clear()
        log.append(batch)
        return Counter(found)

    class Counting:
        def __getattr__(self, name):
            return getattr(connection, name)

        def execute(self, statement, *values):
            found.append(statement.split()[0])
            return connection.execute(statement, *values)

        def executemany(self, statement, rows):
            found.append("executemany")
            return connection.executemany(statement, rows)

    monkeypatch.setattr(log.tables._writer._database, "_connection", Counting())
    return counted


@pytest.mark.parametrize("size", [1, 64, 200])
def test_statements_do_not_grow_with_the_batch(statements, size):
    """One for each table, one for the head, one that looks for what was recorded before."""
    found = statements(size)

    assert found["executemany"] <= 4  # events, details, memories, and a tile now and then
    assert found["SELECT"] == 2
    assert sum(found.values()) <= 11


def test_hashes_of_an_event(log, event_factory, monkeypatch):
    """One of its header, one that commits to its detail, and one of the tree, all by C."""
    log.append([event_factory(**SEEN) for _ in range(255)])
    found = Counter()

    def counting(name, original):
        def counted(*given):
            found[name] += 1
            return original(*given)

        return counted

    monkeypatch.setattr(writer, "sha256", counting("leaf", writer.sha256))
    monkeypatch.setattr(merkle, "sha256", counting("node", merkle.sha256))
    monkeypatch.setattr(sealing.hmac, "digest", counting("keyed", sealing.hmac.digest))
    log.append([event_factory(**SEEN) for _ in range(256)])

    assert found["leaf"] == 256
    assert found["node"] <= 256 + 16
    assert found["keyed"] <= 256 + 16


def test_an_event_with_a_memory_is_in_seven_trees(log, path, event_factory):
    """Three tables, and indexes of writers, of customers, of runs and of memories."""
    log.append([event_factory(**SEEN)])

    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE tbl_name IN "
            "('audit_event', 'audit_detail', 'audit_memory') AND type IN ('table', 'index')"
        ).fetchall()
    others = {"audit_event_log", "audit_event_verdict"}  # of the log itself, and of rules
    kept = {name for (name,) in found} - others
    assert {each for each in kept if not each.startswith("sqlite_")} == {
        *("audit_event", "audit_event_writer"),
        *("audit_detail", "audit_detail_subject", "audit_detail_run"),
        *("audit_memory", "audit_memory_ref"),
    }
