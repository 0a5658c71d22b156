"""Several processes on one audit log: side by side, killed, forked."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError
from tests.kit.children import exit_code_of_child, somebody_inside
from tests.kit.patience import GIVE_UP_S


def direct(path):
    """Open the file as any other program would."""
    return closing(sqlite3.connect(path))


_WRITER = f"""
import sys, itertools
from pathlib import Path
from mnemoscope.audit.database import sqlite
from mnemoscope.audit.log import AuditLog
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef

sqlite.BUSY_S = {GIVE_UP_S}
path, writer, batches = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
log = AuditLog(path, SubjectKeys(b"sixteen bytes or more"))
seq = itertools.count(1)
for batch in range(batches):
    log.append([Event(writer_id=writer, writer_seq=next(seq), started_ns=1, duration_s=0.5,
        operation="search_memory", op_class=OperationClass.RECALL, store="mem0", method="search",
        status=Status.OK, trace=TraceRef(1, 2), memory_ids=("m",)) for _ in range(10)])
    print(10 * (batch + 1), flush=True)
log.close()
"""


def start_writer(path, writer, batches):
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), writer, str(batches)], stdout=subprocess.PIPE
    )


def recorded(path):
    with direct(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return dict(
            connection.execute(
                "SELECT writer_id, count(DISTINCT writer_seq) FROM audit_event "
                "WHERE kind = 'operation' GROUP BY writer_id"
            ).fetchall()
        )


@pytest.mark.fault(78, "two processes race for the head", expected="one waits; nothing lost")
def test_two_processes_append_side_by_side(path):
    """Two writers that begin on the same missing file lose nothing and agree on one schema."""
    writers = [start_writer(path, name, 40) for name in ("aa", "bb")]
    codes = []
    for writer in writers:
        writer.communicate(timeout=GIVE_UP_S)
        codes.append(writer.returncode)

    assert codes == [0, 0]
    assert recorded(path) == {"aa": 400, "bb": 400}


def test_a_killed_writer_loses_nothing_that_it_acknowledged(path):
    """``kill -9`` at any moment: every acknowledged event is there, and the database is whole."""
    for number in range(4):
        writer = start_writer(path, f"w{number}", 100_000)
        acknowledged = 0
        for _ in range(5 + 7 * number):
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.communicate(timeout=GIVE_UP_S)[0].split()
        acknowledged = int(rest[-1]) if rest else acknowledged

        found = recorded(path)[f"w{number}"]
        assert found >= acknowledged
        assert found % 10 == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
class TestFork:
    def test_parent_and_child_go_on_writing(self, log, path, event_factory):
        """A child opens a connection of its own; the parent's is not disturbed."""
        log.append([event_factory()])
        status = exit_code_of_child(lambda: log.append([event_factory(writer_id="child")]))
        log.append([event_factory()])

        assert status == 0
        assert log.count() == 3

    def test_a_child_that_only_exits_does_not_touch_the_database(self, log, path, event_factory):
        """The inherited connection is neither used nor closed."""
        log.append([event_factory()])
        inherited = log.tables.database
        closed = []

        def look():
            closed.append(log)
            assert inherited._connection is None
            assert inherited._turn_fd is None

        status = exit_code_of_child(look)
        log.append([event_factory()])

        assert status == 0
        assert recorded(path) == {"00000000000000aa": 2}

    @pytest.mark.long
    def test_a_fork_in_the_middle_of_a_commit(self, log, event_factory, monkeypatch):
        """Children forked while a thread commits can write at once, and nothing is lost."""
        # Who asks for a turn on a busy machine may have to ask for long, and so does a fork.
        monkeypatch.setattr("mnemoscope.audit.database.sqlite.BUSY_S", GIVE_UP_S)
        monkeypatch.setattr(log.tables.database._inside, "patience_s", GIVE_UP_S)
        stop = threading.Event()
        appended = []

        def append_on():
            while not stop.is_set():
                log.append([event_factory() for _ in range(20)])
                appended.append(20)

        thread = threading.Thread(target=append_on)
        thread.start()
        try:
            statuses = []
            for number in range(10):
                event = event_factory(writer_id=f"child-{number}")
                statuses.append(exit_code_of_child(lambda event=event: log.append([event])))
        finally:
            stop.set()
            thread.join()

        assert statuses == [0] * 10
        assert log.count() == sum(appended) + 10

    def test_a_fork_in_the_middle_of_a_stuck_commit(self, log, path, event_factory, monkeypatch):
        """The child is refused at once and says why; it takes no turn, so others write on."""
        monkeypatch.setattr(log.tables.database._inside, "patience_s", 0.01)
        log.append([event_factory()])

        def is_refused():
            try:
                log.append([event_factory(writer_id="child")])
            except AuditError as exc:
                return "was being written when this process was forked" in str(exc)
            return False

        with somebody_inside(log.tables.writing()):
            status = exit_code_of_child(is_refused)
        log.append([event_factory()])

        assert status == 0
        assert recorded(path)["00000000000000aa"] == 2
