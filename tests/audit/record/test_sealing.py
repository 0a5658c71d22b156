"""What is sealed of an event, and what may be erased of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import orjson
import pytest

from mnemoscope.audit.proof.merkle import leaf_hash, root_of
from mnemoscope.audit.proof.note import parse_checkpoint, verified
from mnemoscope.audit.record.sealing import commitment
from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.event import OperationClass, Redacted
from mnemoscope.telemetry.event.kinds import Level
from mnemoscope.telemetry.event.usage import Usage
from tests.kit.rfc8785 import canonical

USAGE = Usage(model="m\u00e9", namespace=("a", "b"), cost_usd=0.1, time_to_first_token_s=0.25)


def events_of(path):
    """Return the rows of the sealed table, as any other program would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT * FROM audit_event ORDER BY seq").fetchall()


@pytest.fixture
def varied(event_factory):
    """Return events that differ in all that decides how a header is written."""
    crossing = BudgetEvent(
        budget="b", level=Level.ALERT, unit="usd", spent=1.5, limit=2, period_s=60, burn_per_hour=9
    )
    return [
        event_factory(),
        event_factory(customer=None, tenant=None),
        event_factory(usage=USAGE, redactions={"PERSON": 2, "EMAIL_ADDRESS": 1}),
        event_factory(agent="\u00e9\u4e16\U0001f600", feature='"\\\n\x00\x1f\x7f', top_score=1e-7),
        event_factory(op_class=OperationClass.MODEL, parts=(crossing,)),
        event_factory(hits=2**70, size_bytes=2**60, content=Redacted({"n": 1.5})),
    ]


class TestHeader:
    def test_it_is_canonical_json(self, log, path, varied):
        """What is hashed is what RFC 8785 would write of it, to the byte, keys in order."""
        log.append(varied)

        headers = [row["header"] for row in events_of(path)]
        assert [canonical(json.loads(each)) for each in headers] == headers

    def test_headers_are_chained_and_numbered(self, log, path, varied):
        """Each names its place and its predecessor's hash; numbers are dense from 0."""
        log.append(varied[:2])
        log.append(varied[2:])

        rows = events_of(path)
        headers = [json.loads(row["header"]) for row in rows]
        assert [each["seq"] for each in headers] == list(range(7))
        assert [row["seq"] for row in rows] == list(range(7))
        before = ["00" * 32, *(row["leaf"].hex() for row in rows)]
        assert [each["prev"] for each in headers] == before[:-1]
        assert [row["leaf"] for row in rows] == [leaf_hash(row["header"]) for row in rows]

    def test_columns_repeat_what_is_sealed(self, log, path, varied):
        """Queries see what the hash protects."""
        log.append(varied)

        names = {"writer_id": "writer", "writer_seq": "wseq", "occurred_us": "occurred_at"}
        names["recorded_us"] = "recorded_at"
        for row in events_of(path):
            sealed = json.loads(row["header"])
            for column in set(row.keys()) - {"header", "leaf"}:
                assert row[column] == sealed[names.get(column, column)], column

    def test_the_first_event_opens_the_log(self, log, path, event_factory):
        """It names the key that checks the log's signatures."""
        log.append([event_factory()])

        first = json.loads(events_of(path)[0]["header"])
        assert (first["kind"], first["operation"]) == ("log", "log.opened")
        note = log.checkpoint_now()
        assert verified(note, first["data"]["verifier_key"])

    def test_it_names_nobody(self, log, path, event_factory):
        """No customer, tenant, run, memory, collection or content, not even their plain hashes."""
        log.append(
            [
                event_factory(
                    tenant="tenant-x",
                    run="run-x",
                    collection="place-x",
                    memory_ids=("id-x",),
                    content=Redacted("content-x"),
                )
            ]
        )

        data = b"".join(each.read_bytes() for each in path.parent.iterdir())
        for text in (b"tenant-x", b"run-x", b"place-x", b"id-x", b"content-x", b"ada@"):
            assert text not in data
        assert b"search_memory" in data

    def test_time_never_runs_backwards(self, path, subject_keys, event_factory):
        """A clock that is set back does not disorder the log."""
        from mnemoscope.audit.log import AuditLog

        times = iter([5_000, 5_000, 9_000_000, 9_000_000, 2_000, 2_000, 2_000])
        log = AuditLog(path, subject_keys, clock_ns=lambda: next(times, 1_000))
        for _ in range(3):
            log.append([event_factory()])
        log.close()

        recorded = [row["recorded_us"] for row in events_of(path)]
        assert recorded == sorted(recorded)

    def test_unreadable_values_cost_only_themselves(self, log, path, event_factory):
        """A lone surrogate inside a header does not keep it from being canonical."""
        log.append([event_factory(redactions={"\ud800": 1}, agent="\udfff")])

        header = events_of(path)[-1]["header"]
        assert canonical(json.loads(header)) == header


class TestDetail:
    def test_the_header_commits_to_it(self, log, event_factory):
        """With salt and plaintext anybody can check; without the salt nobody can guess."""
        log.append([event_factory(content=Redacted({"text": "likes tea"}), run="r")])

        (row,) = log.rows()
        sealed = json.loads(row.header)["detail_commit"]
        assert sealed == commitment(row.salt, row.detail.plaintext)
        assert orjson.loads(row.detail.plaintext)["content"] == {"text": "likes tea"}

    def test_two_equal_details_look_different(self, log, path, event_factory):
        """Neither commitment nor ciphertext tell that two events say the same."""
        log.append([event_factory(content=Redacted("x")) for _ in range(2)])

        first, second = (json.loads(row["header"]) for row in events_of(path)[1:])
        assert first["detail_commit"] != second["detail_commit"]
        with closing(sqlite3.connect(path)) as connection:
            (sealed,) = connection.execute("SELECT count(DISTINCT sealed) FROM audit_detail")
        assert sealed == (2,)

    def test_an_exchanged_detail_does_not_open(self, log, path, event_factory):
        """A ciphertext is bound to its event: moved to another one, it is an error, not a lie."""
        from mnemoscope.audit.database.errors import AuditError

        log.append([event_factory(content=Redacted("a")), event_factory(content=Redacted("b"))])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "UPDATE audit_detail SET sealed = (SELECT sealed FROM audit_detail WHERE seq = 1)"
            )
            connection.commit()

        with pytest.raises(AuditError, match="the detail of event 2 does not open"):
            list(log.rows())

    def test_what_names_nobody_is_encrypted_too(self, log, event_factory):
        """Such events belong to their tenant's nobody, each tenant's its own."""
        log.append(
            [
                event_factory(customer=None, tenant=tenant, content=Redacted("x"))
                for tenant in ("acme", "acme", "globex", None)
            ]
        )

        uids = [row.subject_uid for row in log.rows()]
        assert uids[0] == uids[1]
        assert len(set(uids)) == 3


class TestTree:
    def test_checkpoints_sign_the_root_of_all_leaves(self, log, path, event_factory):
        """The frontier in the head row gives the same root as all leaves do."""
        for size in (1, 5, 300, 700):
            log.append([event_factory() for _ in range(size)])
            claimed = parse_checkpoint(log.checkpoint_now())

            leaves = [row["leaf"] for row in events_of(path)]
            assert (claimed.size, claimed.root) == (len(leaves), root_of(leaves))

    def test_stored_tiles_are_those_of_the_tree(self, log, path, event_factory):
        """Every complete subtree of 256 events is there, and its hash is right."""
        log.append([event_factory() for _ in range(600)])

        leaves = [row["leaf"] for row in events_of(path)]
        with log.hashes() as hashes:
            assert hashes.tile(1, 0) == root_of(leaves[:256])
            assert hashes.tile(1, 1) == root_of(leaves[256:512])
            assert hashes.tile(1, 2) is None
            assert list(hashes.leaves(3, 9)) == leaves[3:9]
