"""The audit log on a real SQLite file: what is written, and that it stays."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database.opening import path_of
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.memory.api import OperationClass, Redacted, Status, Usage
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit.patience import GIVE_UP_S

ADA = "ada@example.com"
BOB = "bob@example.com"


def rows_of(log, customer=ADA, tenant="acme"):
    return list(log.history(customer, tenant))


def direct(path):
    """Open the file as any other program would."""
    return closing(sqlite3.connect(path))


class TestAppend:
    def test_every_field_comes_back(self, log, event_factory):
        """A row says what the event said: all of it, in the table's units."""
        event = event_factory(
            waited_s=0.001,
            collection="people",
            status=Status.DEGRADED,
            neutral=True,
            late=True,
            nested=True,
            error="ConnectionError",
            hits=2,
            foreign_hits=1,
            top_score=0.9,
            size_bytes=17,
            memory_ids=("m-1", "m-2"),
            scores=(0.9, 0.5),
            redactions={"EMAIL_ADDRESS": 1},
            agent="sales",
            feature="reply/draft",
            run="thread-1",
            purpose="reply",
            usage=Usage(model="m", namespace=("sub",), input_tokens=3, cost_usd=0.5),
            content=Redacted({"query": "what does <PERSON> like?"}),
        )
        log.append([event])

        (row,) = rows_of(log)
        assert row.event_id == event.event_id
        assert row.occurred_us == 1_700_000_000_123_456
        assert row.recorded_us == 1_800_000_000_000_000
        assert (row.operation, row.op_class, row.status) == (
            "search_memory",
            OperationClass.RECALL,
            Status.DEGRADED,
        )
        assert (row.neutral, row.late, row.nested) == (True, True, True)
        assert (row.duration_us, row.waited_us, row.hits, row.foreign_hits) == (12_500, 1_000, 2, 1)
        assert (row.collection, row.error, row.top_score) == ("people", "ConnectionError", 0.9)
        assert [tuple(each) for each in row.memories] == [("m-1", 1, 0.9), ("m-2", 2, 0.5)]
        assert row.redactions == {"EMAIL_ADDRESS": 1}
        assert (row.tenant, row.agent, row.feature) == ("acme", "sales", "reply/draft")
        assert (row.run, row.purpose, row.size_bytes) == ("thread-1", "reply", 17)
        assert row.usage == event.usage
        assert json.loads(row.content) == {"query": "what does <PERSON> like?"}
        assert (row.trace_id, row.span_id) == (event.trace.trace_hex, event.trace.span_hex)

    def test_a_replay_adds_nothing(self, log, event_factory):
        """An event that was already recorded is recognised by its writer and number."""
        events = [event_factory() for _ in range(3)]
        first = log.append(events)
        again = log.append([*events, event_factory()])

        assert (first, again, log.count()) == (3, 1, 4)

    def test_a_replayed_event_keeps_its_memories_once(self, log, event_factory):
        """Memories and usage of a replayed event are not doubled either."""
        event = event_factory(memory_ids=("m-1",), usage=Usage(model="m", input_tokens=5))
        log.append([event])
        log.append([event])

        (row,) = rows_of(log)
        assert len(row.memories) == 1
        assert log.spend()[0].input_tokens == 5

    def test_a_batch_is_all_or_nothing(self, log, path, event_factory):
        """When a batch fails in the middle, none of it is there."""
        log.append([event_factory()])
        broken = event_factory(memory_ids=("x",), scores=(object(),))
        with pytest.raises(TypeError):
            log.append([event_factory(), broken])
        with direct(path) as connection:
            connection.execute("INSERT INTO audit_memory VALUES (3, 1, x'00', NULL)")
            connection.commit()
        with pytest.raises(AuditError):
            log.append([event_factory(), event_factory(memory_ids=("x",))])

        assert log.count() == 1

    def test_a_failed_batch_does_not_end_the_log(self, log, path, event_factory):
        """The batch after a failed one is recorded, and no number is missing."""
        log.append([event_factory()])
        with direct(path) as connection:
            connection.execute("INSERT INTO audit_memory VALUES (2, 1, x'00', NULL)")
            connection.commit()
        with pytest.raises(AuditError):
            log.append([event_factory(memory_ids=("x",), customer="new")])
        log.append([event_factory(customer="new")])

        assert [row.seq for row in log.rows()] == [1, 2]
        assert len(rows_of(log, "new")) == 1

    def test_odd_values_cost_only_themselves(self, log, event_factory):
        """Lone surrogates, huge numbers and NaN neither raise nor lose the event."""
        event = event_factory(
            run="\ud800",
            hits=2**70,
            top_score=float("nan"),
            duration_s=float("nan"),
            memory_ids=("m-\ud800",),
            scores=(float("inf"),),
            content=Redacted({"text": "\udc80"}),
        )
        log.append([event])

        (row,) = rows_of(log)
        assert (row.run, row.hits, row.top_score, row.duration_us) == ("?", 2**53 - 1, None, 0)
        assert tuple(row.memories[0]) == ("m-?", 1, None)
        assert row.content == '{"text":"?"}'

    def test_nothing_is_opened_before_the_first_event(self, path, subject_keys):
        """A process that never remembers anything has no audit database."""
        AuditLog(path, subject_keys).close()

        assert not path.parent.exists()

    def test_files_are_the_owners_alone(self, log, path, event_factory):
        """Folder 0700, database and its companions 0600, whatever the umask allows."""
        before = os.umask(0)
        try:
            log.append([event_factory()])
        finally:
            os.umask(before)

        assert path.parent.stat().st_mode & 0o777 == 0o700
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
        assert set(modes) == {"audit.db", "audit.db-lock", "audit.db-shm", "audit.db-wal"}
        assert set(modes.values()) == {0o600}

    def test_commits_are_durable(self, log, path, event_factory):
        """Write-ahead log, fsync at each commit, deleted content overwritten."""
        log.append([event_factory()])

        connection = log.tables.database._connection
        settings = ("journal_mode", "synchronous", "secure_delete")
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
        assert found == ["wal", 2, 1]

    def test_it_can_be_used_from_several_threads(self, log, event_factory):
        """Threads take turns; nothing is lost or doubled."""
        batches = [[event_factory() for _ in range(20)] for _ in range(8)]
        threads = [threading.Thread(target=log.append, args=(batch,)) for batch in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert log.count() == 160


class TestAppendOnly:
    @pytest.mark.parametrize("table", ["audit_event", "audit_checkpoint"])
    @pytest.mark.parametrize("change", ["UPDATE {0} SET {1} = 9", "DELETE FROM {0}"])
    def test_sealed_rows_cannot_be_changed_or_deleted(
        self, log, path, event_factory, table, change
    ):
        """The database itself refuses, whoever asks."""
        log.append([event_factory()])
        log.checkpoint_now()
        column = {"audit_event": "status", "audit_checkpoint": "note"}[table]

        with (
            direct(path) as connection,
            pytest.raises(sqlite3.IntegrityError, match="append-only"),
        ):
            connection.execute(change.format(table, column))

    def test_rows_cannot_be_replaced(self, log, path, event_factory):
        """INSERT OR REPLACE, which fires no delete trigger, changes nothing."""
        log.append([event_factory()])
        with direct(path) as connection:
            before = list(connection.iterdump())
            columns = [row[1] for row in connection.execute("PRAGMA table_info(audit_event)")]
            for moved in ({"store": "'forged'"}, {"seq": "seq + 7"}):
                forged = ", ".join(moved.get(name, name) for name in columns)
                with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                    connection.execute(
                        f"INSERT OR REPLACE INTO audit_event SELECT {forged} FROM audit_event"  # noqa: S608 - literals
                        " WHERE kind = 'operation'"
                    )
            after = list(connection.iterdump())

        assert after == before


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("sqlite:///audit.db", "audit.db"),
            ("sqlite:////var/lib/audit.db", "/var/lib/audit.db"),
        ],
    )
    def test_sqlite_urls_name_a_file(self, url, path):
        """Three slashes and a relative path, four for an absolute one."""
        assert str(path_of(url)) == path

    @pytest.mark.parametrize(
        "url",
        ["mysql://u:hunter2@host/db", "sqlite://", "sqlite:///:memory:", "mysql://x", "x.db"],
    )
    def test_others_are_refused_without_being_quoted(self, url, subject_keys):
        """A URL may hold a password."""
        with pytest.raises(ValueError, match="sqlite:///") as caught:
            AuditLog(url, subject_keys)

        assert "hunter2" not in str(caught.value)


class TestSink:
    def test_events_reach_the_table_through_the_drain(self, log, event_factory):
        """Flushed means committed."""
        drain = Drain([AuditSink(log)])
        for _ in range(100):
            drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)
        assert log.count() == 100
        drain.close(GIVE_UP_S)

    def test_a_batch_that_cannot_be_written_raises(self, path, subject_keys, event_factory):
        """The lane is told, so that it can try again and count."""
        path.mkdir(parents=True)
        sink = AuditSink(AuditLog(path, subject_keys))

        with pytest.raises(AuditError):
            sink.write([event_factory()])

    def test_it_is_written_again_without_doubling(self, log, event_factory):
        """The sink says it is idempotent, and is."""
        sink = AuditSink(log)
        batch = [event_factory()]
        sink.write(batch)
        sink.write(batch)

        assert sink.idempotent
        assert log.count() == 1
