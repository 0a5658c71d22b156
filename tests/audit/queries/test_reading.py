"""What the audit log is asked: histories, memories, latency and spend."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from mnemoscope.audit import AmbiguousSubjectError, AuditError, AuditLog, UnknownSubjectError
from mnemoscope.audit.record.coverage import summed_tables
from mnemoscope.audit.store.snapshot import Moment
from mnemoscope.memory.api import OperationClass, Redacted, Status, Usage
from mnemoscope.telemetry.event.subject import SubjectKeys

ADA = "ada@example.com"
BOB = "bob@example.com"


def rows_of(log, customer=ADA, tenant="acme"):
    return list(log.history(customer, tenant))


def direct(path):
    """Open the file as any other program would."""
    return closing(sqlite3.connect(path))


def statements(monkeypatch):
    """Return a list that every statement and its values is written to from now on."""
    asked = []

    def spied(real):
        def call(of, statement, values=()):
            asked.append((statement, values))
            return real(of, statement, values)

        return call

    monkeypatch.setattr(Moment, "execute", spied(Moment.execute))
    monkeypatch.setattr(Moment, "stream", spied(Moment.stream))
    return asked


class TestHistory:
    def test_it_is_oldest_first(self, log, event_factory):
        """By the time things happened, whatever order they arrived in."""
        for started in (3, 1, 2):
            log.append([event_factory(started_ns=started * 1_000_000, run=str(started))])

        assert [row.run for row in rows_of(log)] == ["1", "2", "3"]

    def test_same_moment_keeps_the_order_of_recording(self, log, event_factory):
        """Events of one microsecond come as they were recorded."""
        log.append([event_factory(run=str(number)) for number in range(5)])

        assert [row.run for row in rows_of(log)] == list("01234")

    def test_other_customers_are_not_in_it(self, log, event_factory):
        """One person's history holds that person's events."""
        log.append([event_factory(run="ada"), event_factory(customer=BOB, run="bob")])

        assert [row.run for row in rows_of(log, BOB)] == ["bob"]

    def test_the_same_id_under_another_tenant_is_another_person(self, log, event_factory):
        """Tenants cannot see each other, even where their customers share an id."""
        log.append([event_factory(tenant="acme"), event_factory(tenant="globex", run="other")])

        assert [row.run for row in rows_of(log, ADA, "globex")] == ["other"]
        assert len(rows_of(log, ADA, "acme")) == 1
        with pytest.raises(AmbiguousSubjectError):
            rows_of(log, ADA, None)

    def test_no_table_of_events_is_read_as_a_whole(self, log, path, event_factory, monkeypatch):
        """A log of any size answers alike; of customers and their identifiers each is checked."""
        log.append([event_factory(memory_ids=("m",)), event_factory(customer=None)])
        asked = statements(monkeypatch)
        found = rows_of(log)
        with direct(path) as connection:
            plans = [
                step[-1]
                for statement, values in asked
                for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
            ]

        assert len(found) == 1
        assert len(plans) > 5
        read = {each.split()[1] for each in plans if each.startswith("SCAN audit_")}
        assert read <= {"audit_log", *summed_tables()}

    def test_an_unknown_customer_is_an_error(self, log, event_factory):
        """That nothing is held would be an answer; that nobody is known by that id is none."""
        log.append([event_factory()])

        with pytest.raises(UnknownSubjectError, match="cannot tell"):
            rows_of(log, "eve@example.com")

    def test_no_raw_id_is_in_the_files(self, log, path, event_factory):
        """The customer's id is in no byte of the database, its log or its index."""
        log.append([event_factory() for _ in range(50)])
        log.close()
        log.append([event_factory()])

        content = b"".join(each.read_bytes() for each in path.parent.iterdir())
        assert b"search_memory" in content
        assert b"ada@example" not in content

    def test_what_was_done_by_id_alone_to_a_memory_of_theirs_is_in_it(self, log, event_factory):
        """A delete that names only the memory is part of that person's history."""
        written = {"op_class": OperationClass.REMEMBER, "memory_ids": ("m-1",)}
        log.append(
            [
                event_factory(run="write", **written),
                event_factory(run="delete", customer=None, tenant=None, memory_ids=("m-1",)),
                event_factory(run="elsewhere", customer=None, store="qdrant", memory_ids=("m-1",)),
                event_factory(run="other", customer=None, memory_ids=("m-2",)),
            ]
        )

        assert [row.run for row in rows_of(log)] == ["write", "delete"]

    def test_ids_that_people_share_bring_nothing_of_others(self, log, event_factory):
        """A key like ``profile`` or a document's id makes nobody's operation somebody's."""
        shared = {"memory_ids": ("profile",), "store": "langgraph.store"}
        log.append(
            [
                event_factory(run="ada", **shared),
                event_factory(run="bob", customer=BOB, **shared),
                event_factory(run="unnamed", customer=None, **shared),
            ]
        )

        assert [row.run for row in rows_of(log)] == ["ada"]
        assert [row.run for row in rows_of(log, BOB)] == ["bob"]

    def test_it_sees_one_moment(self, log, event_factory):
        """What is recorded while a history is read is not in it."""
        log.append([event_factory() for _ in range(3)])
        reading = log.history(ADA, "acme")
        next(reading)
        log.append([event_factory()])

        assert len(list(reading)) == 2

    def test_a_history_that_is_given_up_blocks_nobody(self, log, event_factory):
        """A reader that stops half-way lets go of the database."""
        log.append([event_factory() for _ in range(3)])
        reading = log.history(ADA, "acme")
        next(reading)
        reading.close()
        log.append([event_factory()])

        assert log.count() == 4

    def test_it_streams(self, log, path, event_factory):
        """A long history is read by the index, without sorting or gathering it first."""
        from mnemoscope.audit.queries.reading import BY_SUBJECT

        log.append([event_factory()])
        with direct(path) as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {BY_SUBJECT}", ("x",)).fetchall()

        steps = " ".join(step[-1] for step in plan)
        assert "audit_detail_subject" in steps
        assert "TEMP B-TREE" not in steps

    def test_what_is_said_of_the_log_is_found_without_reading_all(self, log, path, event_factory):
        """Gaps are few among millions of events: an index leads to them."""
        log.append([event_factory()])
        asked = "SELECT header FROM audit_event WHERE kind = 'log' AND operation = 'audit.gap'"
        with direct(path) as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {asked} ORDER BY seq").fetchall()

        assert [step[-1].split(" (")[0] for step in plan] == [
            "SEARCH audit_event USING INDEX audit_event_log"
        ]

    def test_another_key_is_an_error_and_not_an_empty_history(self, log, path, event_factory):
        """Who cannot be looked up is not the same as nobody being there."""
        log.append([event_factory()])
        stranger = AuditLog(path, SubjectKeys(b"another secret of 16"))

        with pytest.raises(AuditError, match="another pseudonym key"):
            next(stranger.history(ADA, "acme"))

    def test_a_missing_database_is_an_error_and_not_an_empty_history(self, log, path):
        """A wrong path must not answer that no data is held."""
        with pytest.raises(AuditError, match="there is no audit database"):
            next(log.history(ADA, "acme"))

        assert not path.parent.exists()

    def test_a_closed_database_can_be_read(self, log, path, subject_keys, event_factory):
        """After a clean exit, when the write-ahead log is gone, another process reads it."""
        log.append([event_factory()])
        log.close()

        assert len(rows_of(AuditLog(path, subject_keys))) == 1


class TestMemories:
    def test_when_it_was_written_and_when_read(self, log, event_factory):
        """Writes, reads, the last content and a delete are joined by memory id."""
        common = {"memory_ids": ("m-1",)}
        log.append(
            [
                event_factory(
                    started_ns=1_000,
                    op_class=OperationClass.REMEMBER,
                    content=Redacted("old"),
                    **common,
                ),
                event_factory(started_ns=2_000, **common),
                event_factory(
                    started_ns=3_000,
                    op_class=OperationClass.REMEMBER,
                    content=Redacted("new"),
                    **common,
                ),
                event_factory(started_ns=4_000, **common),
                event_factory(started_ns=5_000, status=Status.TIMEOUT, **common),
            ]
        )

        (memory,) = log.memories(ADA, "acme")
        assert (memory.store, memory.memory_id, memory.content) == ("mem0", "m-1", '"new"')
        assert memory.written_us == (1, 3)
        assert (memory.reads, memory.last_read_us, memory.forgotten_us) == (2, 4, None)

    def test_a_forgotten_memory_says_when(self, log, event_factory):
        """After a delete the content is not shown as remembered."""
        log.append(
            [
                event_factory(
                    op_class=op_class,
                    started_ns=started,
                    memory_ids=("m",),
                    content=Redacted("x"),
                )
                for op_class, started in (
                    (OperationClass.REMEMBER, 1_000),
                    (OperationClass.FORGET, 9_000),
                )
            ]
        )

        (memory,) = log.memories(ADA, "acme")
        assert (memory.content, memory.forgotten_us) == (None, 9)

    def test_a_delete_that_failed_forgot_nothing(self, log, event_factory):
        """Only what the store confirmed is claimed."""
        log.append(
            [
                event_factory(op_class=OperationClass.REMEMBER, memory_ids=("m",)),
                event_factory(
                    op_class=OperationClass.FORGET, status=Status.ERROR, memory_ids=("m",)
                ),
            ]
        )

        assert log.memories(ADA, "acme")[0].forgotten_us is None


class TestSummaries:
    def test_latency_by_store_with_percentiles_and_statuses(self, log, event_factory):
        """Nearest-rank percentiles, nested calls and statuses for each store."""
        log.append([event_factory(duration_s=ms / 1e3) for ms in range(1, 101)])
        log.append([event_factory(store="qdrant", duration_s=2.0, nested=True)])
        log.append([event_factory(status=Status.DEGRADED, duration_s=0.0005)])

        mem0, qdrant = log.latency()
        assert (mem0.store, mem0.operations, mem0.nested) == ("mem0", 101, 0)
        assert (mem0.p50_ms, mem0.p95_ms, mem0.max_ms) == (50.0, 95.0, 100.0)
        assert mem0.statuses == {"ok": 100, "degraded": 1}
        assert (qdrant.store, qdrant.nested, qdrant.p50_ms, qdrant.total_s) == (
            "qdrant",
            1,
            2000.0,
            2.0,
        )

    def test_latency_of_one_class(self, log, event_factory):
        """Recalls can be told from writes; model calls are in neither."""
        log.append(
            [
                event_factory(duration_s=0.001),
                event_factory(op_class=OperationClass.REMEMBER, duration_s=5.0),
                event_factory(op_class=OperationClass.MODEL, store="model", duration_s=9.0),
            ]
        )

        (recall,) = log.latency(OperationClass.RECALL)
        assert (recall.store, recall.max_ms) == ("mem0", 1.0)
        assert [each.store for each in log.latency()] == ["mem0"]

    def test_spend_by_feature_dearest_first(self, log, event_factory):
        """Tokens and cost add up; what has no price is told apart."""
        log.append(
            [
                event_factory(feature="cheap", usage=Usage(model="m", cost_usd=0.1)),
                event_factory(
                    feature="dear",
                    usage=Usage(model="m", input_tokens=10, cached_tokens=4, cost_usd=2.0),
                ),
                event_factory(feature="dear", usage=Usage(model="m", output_tokens=5, cost_usd=1)),
                event_factory(feature="dear", usage=Usage(model="new", input_tokens=7)),
            ]
        )

        dear, cheap = log.spend()
        assert (dear.name, dear.calls, dear.input_tokens, dear.output_tokens) == ("dear", 3, 17, 5)
        assert (dear.cached_tokens, dear.cost_usd, dear.unpriced_tokens) == (4, 3.0, 7)
        assert cheap.name == "cheap"

    @pytest.mark.parametrize(("by", "names"), [("node", ["n"]), ("model", ["m"])])
    def test_spend_by_node_or_model(self, log, event_factory, by, names):
        """The same figures, cut another way."""
        log.append([event_factory(usage=Usage(model="m", node="n", cost_usd=1.0))])

        assert [each.name for each in log.spend(by)] == names
