"""Files that the audit log cannot use: each is one clear error, and nothing is destroyed."""

from __future__ import annotations

import fcntl
import logging
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database.schema import APPLICATION_ID, newest_version
from tests.kit.patience import GIVE_UP_S


def direct(path):
    """Open the file as any other program would."""
    return closing(sqlite3.connect(path))


class TestFilesThatWillNotDo:
    @pytest.fixture
    def untouched(self, path):
        """Check that the bytes of the file are as they were."""
        path.parent.mkdir()
        yield
        assert path.read_bytes() == self.before

    def write(self, path, statements):
        with direct(path) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        self.before = path.read_bytes()

    def assert_refused(self, log, event, match):
        with pytest.raises(AuditError, match=match) as on_write:
            log.append([event])
        with pytest.raises(AuditError, match=match) as on_read:
            log.count()
        assert "\n" not in str(on_write.value) + str(on_read.value)

    @pytest.mark.usefixtures("untouched")
    def test_not_a_database(self, log, path, event_factory):
        """A file of something else is named and left alone."""
        path.write_bytes(b"somebody's important text, long enough to be a header" * 20)
        self.before = path.read_bytes()

        self.assert_refused(log, event_factory(), "is not an SQLite database")

    @pytest.mark.usefixtures("untouched")
    def test_another_applications_database(self, log, path, event_factory):
        """A database that is not ours is named and left alone."""
        self.write(path, ["CREATE TABLE customers(name)", "INSERT INTO customers VALUES ('x')"])

        self.assert_refused(log, event_factory(), "another application")

    @pytest.mark.usefixtures("untouched")
    def test_a_newer_version(self, log, path, event_factory):
        """A database from tomorrow's library asks for an upgrade and is left alone."""
        version = newest_version() + 1
        self.write(
            path,
            [
                "CREATE TABLE audit_event(seq)",
                f"PRAGMA application_id = {APPLICATION_ID}",
                f"PRAGMA user_version = {version}",
            ],
        )

        self.assert_refused(log, event_factory(), f"schema version {version}")

    def test_a_folder(self, log, path, event_factory):
        """A folder where the file should be is named."""
        path.mkdir(parents=True)

        with pytest.raises(AuditError, match="cannot be opened"):
            log.append([event_factory()])

    def test_no_place_for_a_file(self, subject_keys, tmp_path, event_factory):
        """A path through a file is named, with the reason."""
        (tmp_path / "file").write_text("")
        log = AuditLog(tmp_path / "file" / "audit.db", subject_keys)

        with pytest.raises(AuditError, match="is a file, not a folder"):
            log.append([event_factory()])

    def test_an_empty_file_becomes_a_database(self, log, path, event_factory):
        """A file made by ``touch`` is as good as none."""
        path.parent.mkdir()
        path.touch()
        log.append([event_factory()])

        assert log.count() == 1

    @pytest.mark.fault(72, "audit database locked", expected="an error, no hang; then it works")
    def test_locked_by_another_for_too_long(self, log, path, event_factory, monkeypatch):
        """A lock that is not given back ends in an error, not in a hang; later it works."""
        monkeypatch.setattr("mnemoscope.audit.database.sqlite.BUSY_S", 0.05)
        log.append([event_factory()])
        log.close()
        with direct(path) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(AuditError, match="locked by another process"):
                log.append([event_factory()])
        log.append([event_factory()])

        assert log.count() == 2

    def test_writers_take_turns(self, log, path, event_factory, monkeypatch):
        """Nobody commits while another process has the turn, in which it may run a checkpoint."""
        monkeypatch.setattr("mnemoscope.audit.database.sqlite.BUSY_S", 0.05)
        log.append([event_factory()])
        with path.with_name("audit.db-lock").open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(AuditError, match="locked by another process"):
                log.append([event_factory()])
        log.append([event_factory()])

        assert log.count() == 2

    @pytest.mark.fault(
        77, "audit database deleted while open", expected="said loudly; a new one is begun"
    )
    def test_a_deleted_database_is_noticed(self, log, path, event_factory, caplog):
        """Recording goes on in a new file, and says that the old one is gone."""
        log.append([event_factory()])
        for each in list(path.parent.iterdir()):
            each.unlink()
        with caplog.at_level(logging.ERROR, logger="mnemoscope.audit"):
            log.append([event_factory()])

        assert log.count() == 1
        assert "deleted or replaced" in caplog.text


_READ_ONLY = """
import os, sys
from pathlib import Path
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.database.errors import AuditError
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef

def event(seq):
    return Event(writer_id="0" * 16, writer_seq=seq, started_ns=1, duration_s=0.5,
        operation="search_memory", op_class=OperationClass.RECALL, store="mem0", method="search",
        status=Status.OK, trace=TraceRef(1, 2))

path = Path(sys.argv[1])
log = AuditLog(path, SubjectKeys(b"sixteen bytes or more"))
log.append([event(1)])
log.close()
for each in path.parent.iterdir():
    each.chmod(0o444)
path.parent.chmod(0o555)
os.chdir(path.parent)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    AuditLog(Path(path.name), SubjectKeys(b"sixteen bytes or more")).append([event(2)])
except AuditError as exc:
    print(exc)
"""


@pytest.mark.fault(74, "audit database: permission denied", expected="one clear line")
def test_a_read_only_database_is_one_clear_error(path):
    """Without the right to write, the error names the file in one line."""
    ran = subprocess.run(
        [sys.executable, "-c", _READ_ONLY, str(path)],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )
    path.parent.chmod(0o700)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("\n") == 1
    assert "audit.db" in ran.stdout
    assert "permission denied" in ran.stdout or "read-only" in ran.stdout
