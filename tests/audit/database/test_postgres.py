"""The audit log on a real PostgreSQL: the same log, and what only a server can do to it."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from itertools import count
from pathlib import Path

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database import postgres
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.memory.api import Redacted, Usage
from mnemoscope.memory.privacy.engine.content import content_again
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.xdist_group("postgres")

ADA = ("ada@example.com", "acme")


@pytest.fixture
def log(postgres_url, subject_keys):
    log = AuditLog(postgres_url, subject_keys)
    yield log
    log.close()


def execute(url, statement, values=()):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else None


class TestTheSameLog:
    def test_every_field_comes_back(self, log, event_factory):
        """As from SQLite, characters included that PostgreSQL's text does not hold."""
        event = event_factory(
            run="r\0",
            feature="a\0b",
            collection="people",
            memory_ids=("m-1", "m-2"),
            scores=(0.5, 0.25),
            usage=Usage(model="m", namespace=("n",), input_tokens=3, cost_usd=0.5),
            content=Redacted({"text": "\u00e9"}),
        )
        log.append([event])

        (row,) = log.history(*ADA)
        assert (row.event_id, row.run, row.collection) == (event.event_id, "r\0", "people")
        assert [tuple(each) for each in row.memories] == [("m-1", 1, 0.5), ("m-2", 2, 0.25)]
        assert (row.usage, row.feature) == (event.usage, "a\0b")
        assert row.content == '{"text":"\u00e9"}'

    def test_a_replay_adds_nothing(self, log, event_factory):
        """An event is recognised by its writer and number."""
        events = [event_factory() for _ in range(3)]

        assert (log.append(events), log.append([*events, event_factory()])) == (3, 1)
        assert (log.count(), len(list(log.rows()))) == (4, 4)

    def test_queries_answer_as_on_sqlite(self, log, tmp_path, subject_keys, event_factory):
        """Latency, spend, memories and filters: one SQL, one answer."""
        events = [
            event_factory(
                started_ns=n * 1_000_000,
                duration_s=n / 1e3,
                run=f"r-{n % 3}",
                customer=None if n % 5 == 0 else f"c-{n % 4}",
                memory_ids=(f"m-{n % 7}",),
                usage=Usage(model=f"m-{n % 2}", node="n", input_tokens=n, cost_usd=n / 8),
            )
            for n in range(1, 60)
        ]
        other = AuditLog(tmp_path / "audit.db", subject_keys)
        for each in (log, other):
            each.append(events)

        def answers(asked):
            ids = [row.event_id for row in asked.rows(since_us=9_000, until_us=50_000, run="r-1")]
            histories = [
                [row.event_id for row in asked.history(f"c-{n}", "acme")] for n in range(4)
            ]
            by_memory = [row.event_id for row in asked.rows(memory_id="m-3")]
            return (
                [asked.latency(), asked.spend(), asked.spend("model"), ids, by_memory, histories],
                asked.memories("c-1", "acme"),
            )

        assert answers(log) == answers(other)
        other.close()

    def test_sealed_rows_cannot_be_changed(self, log, postgres_url, event_factory):
        """Not updated, deleted or truncated: the database itself refuses."""
        import psycopg

        log.append([event_factory()])
        log.checkpoint_now()

        for statement in (
            "UPDATE audit_event SET status = 'x'",
            "DELETE FROM audit_event",
            "TRUNCATE audit_event",
            "UPDATE audit_checkpoint SET note = 'x'",
            "DELETE FROM audit_checkpoint",
        ):
            with pytest.raises(psycopg.Error, match="append-only"):
                execute(postgres_url, statement)

    def test_a_history_sees_one_moment_and_streams(self, log, event_factory):
        """Rows come by pages from the server; what is recorded meanwhile is not among them."""
        log.append([event_factory() for _ in range(1_200)])
        reading = log.history(*ADA)
        next(reading)
        log.append([event_factory()])

        assert len(list(reading)) == 1_199

    def test_erased_details_are_in_no_page_of_the_heap(
        self, log, postgres_server, postgres_url, event_factory
    ):
        """Data key and aliases are written over, not only marked as dead; found there before."""
        log.append([event_factory(content=Redacted("x"))])
        uid = log.subjects.resolve(*ADA)
        ((wrapped,),) = execute(postgres_url, "SELECT dek_wrapped FROM audit_subject")
        ((alias,),) = execute(postgres_url, "SELECT alias FROM audit_subject_alias")
        heap = [
            postgres_server.folder / "data" / path
            for name in ("audit_subject", "audit_subject_alias")
            for ((path,),) in [execute(postgres_url, "SELECT pg_relation_filepath(%s)", (name,))]
        ]
        execute(postgres_url, "CHECKPOINT")
        before = b"".join(path.read_bytes() for path in heap)
        assert wrapped in before
        assert alias.encode() in before

        assert log.subjects.erase(uid, "acme") == 1
        execute(postgres_url, "CHECKPOINT")
        for path in heap:
            after = path.read_bytes() if path.exists() else b""
            assert wrapped not in after
            assert alias.encode() not in after

    def test_what_somebody_may_still_see_is_not_called_gone(
        self, log, postgres_url, event_factory, monkeypatch
    ):
        """A transaction that began before the erasure keeps the dead rows in the pages."""
        import psycopg

        monkeypatch.setattr(postgres, "SCRUB_S", 0.0)
        log.append([event_factory()])
        uid = log.subjects.resolve(*ADA)
        with psycopg.connect(postgres_url) as reader:
            reader.execute("SET default_transaction_isolation = 'repeatable read'")
            reader.commit()
            reader.execute("SELECT count(*) FROM audit_log")
            with pytest.raises(AuditError, match="is being read: what was deleted is still"):
                log.subjects.erase(uid, "acme")

        log.scrub()

    def test_a_role_that_may_not_vacuum_is_told_so(self, log, postgres_url, event_factory):
        """The server only warns, and leaves the table as it is."""
        log.append([event_factory()])
        execute(postgres_url, "CREATE ROLE writer LOGIN")
        rights = "SELECT, INSERT, UPDATE, DELETE"
        execute(postgres_url, f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO writer")
        as_writer = f"{postgres_url}&options=-c%20role%3Dwriter"
        other = AuditLog(as_writer, log.ring.current)
        try:
            with pytest.raises(AuditError, match="Have its owner run VACUUM FULL audit_subject"):
                other.scrub()
        finally:
            other.close()
            execute(postgres_url, "DROP OWNED BY writer")
            execute(postgres_url, "DROP ROLE writer")


class TestUrls:
    def test_the_password_is_told_nobody(self, subject_keys):
        """Errors name host and database alone."""
        log = AuditLog("postgresql://u:hunter2@127.0.0.1:1/db", subject_keys)

        assert log.label == "the audit database db at 127.0.0.1"
        with pytest.raises(AuditError, match="cannot be reached") as caught:
            log.count()
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_one_that_makes_no_sense_is_not_quoted(self, subject_keys):
        """It may hold a password, too."""
        with pytest.raises(ValueError, match="none that PostgreSQL understands") as caught:
            AuditLog("postgresql://u:hunter2@h:not-a-port/db?nonsense=1", subject_keys)
        assert "hunter2" not in str(caught.value)


class TestDatabasesThatWillNotDo:
    def assert_refused(self, log, event, match):
        with pytest.raises(AuditError, match=match) as caught:
            log.append([event])
        assert "\n" not in str(caught.value)

    def test_a_newer_version(self, log, postgres_url, event_factory):
        """It is left alone, and an upgrade asked for."""
        log.append([event_factory()])
        execute(postgres_url, "UPDATE audit_schema SET version = version + 1")
        log.close()

        self.assert_refused(log, event_factory(), "Upgrade mnemoscope")
        with pytest.raises(AuditError, match="Upgrade mnemoscope"):
            log.count()

    def test_a_missing_table(self, log, postgres_url, event_factory):
        """One clear error."""
        log.append([event_factory()])
        execute(postgres_url, "DROP TABLE audit_memory")

        self.assert_refused(log, event_factory(memory_ids=("m",)), "a table is missing")

    @pytest.mark.fault(74, "audit database: read-only server", expected="one clear line")
    def test_a_read_only_server(self, log, postgres_url, event_factory):
        """A standby, say."""
        log.append([event_factory()])
        name = postgres_url.split("?")[0].rpartition("/")[2]
        execute(postgres_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        log.close()

        self.assert_refused(log, event_factory(), "is read-only")

    @pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "UTF8"])
    def test_the_encoding_of_a_role_is_not_the_trails(
        self, log, postgres_url, event_factory, encoding
    ):
        """Bytes in place of texts would read as an empty trail."""
        log.append([event_factory()])
        log.close()
        name = postgres_url.split("?")[0].rpartition("/")[2]
        execute(postgres_url, f"ALTER DATABASE {name} SET client_encoding = '{encoding}'")
        log.append([event_factory(collection="\u0438\u043c\u044f")])

        assert [each.collection for each in log.history(*ADA)] == [None, "\u0438\u043c\u044f"]

    def test_a_trail_that_a_role_does_not_find_is_no_empty_one(
        self, log, postgres_url, event_factory
    ):
        """It is said where it is: nothing recorded is another answer."""
        log.append([event_factory()])
        log.close()
        name = postgres_url.split("?")[0].rpartition("/")[2]
        for path in ("nowhere", "aside"):
            execute(postgres_url, f"ALTER DATABASE {name} SET search_path = {path}")
            with pytest.raises(AuditError, match="one in public"):
                next(log.history(*ADA))
            execute(postgres_url, "CREATE SCHEMA IF NOT EXISTS aside")

    def test_an_empty_database_is_an_error_and_not_an_empty_history(self, log):
        """A wrong name must not answer that no data is held."""
        with pytest.raises(AuditError, match="is empty"):
            next(log.history(*ADA))
        assert "made with the first event" in log.check()

    def test_no_step_of_a_migration_comes_into_a_moment(self, log, postgres_url, event_factory):
        """Catalogues have no moments: a renamed column is missed by readers from before it."""
        import psycopg

        log.append([event_factory()])
        with log.tables.database.reading(), psycopg.connect(postgres_url) as other:
            other.execute("SET lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("ALTER TABLE audit_log RENAME COLUMN newest_us TO newest")

    def test_a_lock_that_is_not_given_back(self, log, postgres_url, event_factory, monkeypatch):
        """Ends in an error, not in a hang."""
        import psycopg

        monkeypatch.setattr("mnemoscope.audit.database.postgres.LOCK_MS", 100)
        log.append([event_factory()])
        log.close()
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT * FROM audit_log FOR UPDATE")
            self.assert_refused(log, event_factory(), "locked by another process")
        assert log.append([event_factory()]) == 1


class Between:
    """
    Stands between a client and the server, on a socket of its own, and can cut the line.

    Attributes:
        url: Where it is.
        cut_after: Once a client sends this, the server gets it, and the client no answer.
    """

    def __init__(self, url, folder):
        self.cut_after = self._cut = None
        self._server = f"{url.partition('host=')[2]}/.s.PGSQL.5432"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(f"{folder}/.s.PGSQL.5432")
        self._socket.listen()
        self.url = f"{url.partition('host=')[0]}host={folder}"
        self._sockets = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                client, _address = self._socket.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += (client, server)
            for work in (self._to_server, self._to_client):
                self._threads.append(threading.Thread(target=work, args=(client, server)))
                self._threads[-1].start()

    def _to_server(self, client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                if self.cut_after is not None and self.cut_after in data:
                    self.cut_after, self._cut = None, client
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _to_client(self, client, server):
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if self._cut is client:  # the server has done it, and its answer is lost
                    client.shutdown(socket.SHUT_RDWR)
                else:
                    client.sendall(data)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._threads:
            each.join(GIVE_UP_S)
        for each in self._sockets:
            each.close()


@pytest.fixture
def between(postgres_url):
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        between = Between(postgres_url, folder)
        yield between
        between.close()


class TestTrouble:
    @pytest.mark.fault(78, "six writers race for an empty database", expected="one log, one head")
    def test_writers_that_come_together_found_one_log(
        self, log, postgres_url, subject_keys, event_factory
    ):
        """Of those that find an empty database one makes the log, and the others join it."""
        logs = [AuditLog(postgres_url, subject_keys) for _ in range(6)]
        start = threading.Barrier(6)

        def write(each, event):
            start.wait()
            each.append([event])

        threads = [threading.Thread(target=write, args=(each, event_factory())) for each in logs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert execute(postgres_url, "SELECT count(*), max(size) FROM audit_log") == [(1, 7)]
        assert log.count() == 6
        for each in logs:
            each.close()

    @pytest.mark.fault(73, "PostgreSQL: line cut after COMMIT", expected="each event once")
    def test_a_line_that_is_cut_after_commit_doubles_nothing(
        self, between, log, subject_keys, event_factory
    ):
        """The batch is there although its writer was told it is not; written again, it is known."""
        cut = AuditLog(between.url, subject_keys)
        cut.append([event_factory()])
        batch = [event_factory() for _ in range(5)]
        between.cut_after = b"COMMIT"
        with pytest.raises(AuditError, match="cannot be reached"):
            cut.append(batch)

        assert log.count() == 6
        assert cut.append([*batch, event_factory()]) == 1
        cut.close()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
    def test_parent_and_child_go_on_writing(self, log, event_factory):
        """A child opens a connection of its own; the parent's is neither used nor hung up."""
        log.append([event_factory()])
        code = exit_code_of_child(lambda: log.append([event_factory(writer_id="child")]))
        log.append([event_factory()])

        assert code == 0
        assert log.count() == 3

    @pytest.mark.fault(
        73, "PostgreSQL killed twice under load", expected="each event once, in order"
    )
    def test_a_server_that_is_killed_under_load(
        self, postgres, log, tmp_path, event_factory, eventually
    ):
        """Threads go on writing through two restarts: every event is there once, in order."""
        spool = Spool(Path(tmp_path) / "audit.spool", log.ring, content=content_again)
        sink = AuditSink(log, spool)
        stop, numbers, lock = threading.Event(), count(1), threading.Lock()
        written = []

        def write():
            while not stop.is_set():
                with lock:
                    batch = [event_factory(writer_seq=next(numbers)) for _ in range(5)]
                    sink.write(batch)
                written.append(len(batch))

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()

        def go_on(batches):
            before = len(written)
            assert eventually(lambda: len(written) >= before + batches)

        for _ in range(2):
            go_on(20)
            postgres.kill()
            go_on(20)
            postgres.start()
        go_on(20)
        stop.set()
        for thread in threads:
            thread.join()
        sink.probe()
        assert not sink.waiting

        rows = [int(row.event_id.partition("-")[2]) for row in log.rows()]
        assert rows == list(range(1, sum(written) + 1))
        assert sink.stats.spooled > 0
        sink.close(5.0)
