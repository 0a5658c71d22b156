"""A log that is partitioned while writers of the version before go on, and whoever does it dies."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import closing
from importlib import import_module

import pytest

from mnemoscope.audit import AuditLog
from tests.kit.audit_kills import KEYS, Tally, an_event, look, write_for_ever
from tests.kit.kills import said_by_killed
from tests.kit.writer_kills import verify

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.long]

schema = import_module("mnemoscope.audit.database.schema")
MIGRATIONS = schema.MIGRATIONS
PARTITIONER = "f" * 16


def partitioned(url, seed, times):
    """Partition a log again and again, killed in the middle; then for good."""
    draw = random.Random(seed)  # noqa: S311 - not secret
    for attempt in range(times + 1):
        child = os.fork()
        if not child:
            AuditLog(url, KEYS).tables.database.partition()
            os._exit(0)
        if attempt < times:
            time.sleep(draw.uniform(0.01, 0.15))
            os.kill(child, signal.SIGKILL)
        _pid, status = os.waitpid(child, 0)
    return status


@pytest.mark.parametrize("seed", range(3))
def test_writers_go_on_and_nothing_is_lost(postgres_url, seed, monkeypatch):
    """Old writers keep their connections, new ones come; each acknowledged event is there once."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", MIGRATIONS[:-1])
        with closing(AuditLog(postgres_url, KEYS)) as log:
            log.append([an_event("e" * 16, number) for number in range(1, 4_001)])
    said: dict[str, int] = {}

    def work(name, pipe):
        if name == PARTITIONER:
            time.sleep(0.5)
            status = partitioned(postgres_url, seed, 6)
            os.write(pipe, bytes([status == 0]))
            time.sleep(60)
        if name.startswith("0"):  # of the version before
            schema.MIGRATIONS = MIGRATIONS[:-1]
        write_for_ever(postgres_url, name, pipe)

    names = ["0" * 15 + "1", "0" * 15 + "2", "a" * 16, PARTITIONER]
    found = said_by_killed(names, work, 6, is_begun=True)
    done = found.pop(PARTITIONER)
    said.update(
        {name: int.from_bytes(each[len(each) // 8 * 8 - 8 :][:8]) for name, each in found.items()}
    )
    tally = Tally(by_writer={"e" * 16: 4_000, **said})
    with closing(AuditLog(postgres_url, KEYS)) as log:
        log.append([an_event("d" * 16, number) for number in range(1, 10)])
        look(log, tally)
        log.checkpoint_now()
        with log.reading() as snapshot:
            parts = snapshot.connection.partitions()

        assert done == b"\1"
        assert (tally.lost, tally.duplicates, tally.broken) == (0, 0, 0), tally
        assert len(parts) == 8
        assert verify(log).findings["tampered"] == []
    assert said["a" * 16]
