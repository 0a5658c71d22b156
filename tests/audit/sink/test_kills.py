"""Writers that are killed at any moment, in a few rounds: ``make audit-kills`` has a hundred."""

from __future__ import annotations

import os

import pytest

from mnemoscope.audit import AuditLog
from tests.kit.audit_kills import Tally, look, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

ROUNDS = 4


def found_whole(tally):
    assert tally.acknowledged > 0
    assert tally.recorded >= tally.acknowledged
    assert (tally.lost, tally.duplicates, tally.broken) == (0, 0, 0)


@pytest.mark.long
def test_sqlite_keeps_what_was_acknowledged(path):
    """Four processes on one file, killed together: nothing lost, doubled or broken."""
    found_whole(run(path, ROUNDS))


@pytest.mark.xdist_group("postgres")
def test_postgresql_keeps_what_was_acknowledged(postgres_url):
    """The same on a server."""
    found_whole(run(postgres_url, ROUNDS))


def test_the_tally_sees_what_is_missing(path, subject_keys, event_factory):
    """The count that the rounds end with would notice a loss, a double and a break."""
    log = AuditLog(path, subject_keys)
    log.append([event_factory(writer_seq=seq) for seq in (1, 2, 4)])
    tally = Tally(by_writer={"00000000000000aa": 5})
    look(log, tally)
    assert (tally.lost, tally.duplicates, tally.broken) == (2, 1, 0)

    with log.tables.writing() as (connection, _head):
        connection.execute("UPDATE audit_log SET size = size + 1, prev_leaf = ?", (b"x" * 32,))
    tally = Tally()
    look(log, tally)
    assert tally.broken == 1
    log.close()
