"""A copy in ClickHouse, run in this process: what is stored, gone on from, read and found out."""

# ruff: noqa: S608 - all of it is written here

from __future__ import annotations

from contextlib import closing

import orjson
import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, open_copy, open_target, verify_copy
from mnemoscope.telemetry.event.event import OperationClass
from mnemoscope.telemetry.event.usage import Usage
from tests.kit import tampering
from tests.kit.clickhouse import clickhouse
from tests.kit.memory_copy import MemoryCopy, ship_all

__all__ = ["clickhouse"]

NOW_NS = 1_800_000_000_000_000_000
SENT = "origin, seq, run, header, leaf"
OTHER = "replaceOne(header, 'search', 'seArch')"
DOUBLE = f"SELECT origin, seq, run, {OTHER}, leaf FROM audit_event"


@pytest.fixture
def log(tmp_path, subject_keys, event_factory):
    """Return a log of 40 operations, two checkpoints and all that goes with them."""
    path = tmp_path / "audit.db"
    tampering.build(path, subject_keys, event_factory, 40)
    log = AuditLog(path, subject_keys, clock_ns=lambda: NOW_NS)
    yield log
    log.close()


@pytest.fixture
def target(clickhouse):
    target = open_target(clickhouse.url)
    yield target
    target.close()


@pytest.fixture
def verified(clickhouse):
    """Return what verifies the copy as it is now."""

    def verified():
        return verify_copy(open_copy(clickhouse.url), NOW_NS // 1_000)

    return verified


def stored(clickhouse):
    """Return number, header and leaf of all events that the copy shows."""
    return clickhouse.ask("SELECT seq, header, leaf FROM audit_event FINAL ORDER BY seq")


def records_of(clickhouse):
    """Return all records of the copy."""
    return open_copy(clickhouse.url).records()


def every_record(log, **options):
    """Return what a stream sends of a log."""
    copy = MemoryCopy()
    ship_all(log, copy, **options)
    return copy.kept


def origin_of(log):
    """Return the name of a log."""
    with log.reading() as snapshot:
        return snapshot.origin


def sealed(log):
    """Return number, header and leaf of all events of a log."""
    with log.reading() as snapshot:
        return snapshot.execute("SELECT seq, header, leaf FROM audit_event ORDER BY seq").fetchall()


def test_the_copy_has_every_event_as_it_was_sealed(log, target, clickhouse):
    """Header and leaf to the byte."""
    ship_all(log, target)

    assert stored(clickhouse) == sealed(log)


def test_the_copy_verifies_from_itself_alone(log, target, verified):
    """Chain, tree and checkpoints, and the columns that dashboards read."""
    ship_all(log, target)

    found = verified()
    assert found.findings["tampered"] == []
    assert found.valid_events == len(sealed(log))
    assert found.valid_checkpoints > 0


def test_columns_are_what_the_headers_say(log, target, clickhouse):
    """For events of every kind, those about the log itself too."""
    ship_all(log, target)

    names = ("operation", "op_class", "store", "status", "agent", "feature", "hits", "size_bytes")
    rows = clickhouse.ask(f"SELECT header, {', '.join(names)} FROM audit_event FINAL")
    assert len(rows) > 40
    for header, *columns in rows:
        known = orjson.loads(header)
        assert columns == [known.get(name) for name in names]


def test_what_a_model_call_used_is_in_columns(tmp_path, subject_keys, event_factory, clickhouse):
    """Fractions are text in a header, and numbers here."""
    usage = Usage(model="m-1", node="draft", input_tokens=70, output_tokens=9, cost_usd=0.125)
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    log.append([event_factory(op_class=OperationClass.MODEL, parts=(usage,), top_score=0.75)])
    with closing(log), closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)

    asked = "SELECT model, node, input_tokens, output_tokens, cost_usd, top_score FROM audit_event"
    assert clickhouse.ask(f"{asked} WHERE model IS NOT NULL") == [
        ("m-1", "draft", 70, 9, 0.125, 0.75)
    ]


def test_what_is_sent_twice_is_there_once(log, target, clickhouse):
    """Before a merge as after it: FINAL hides the other one."""
    ship_all(log, target)
    records = list(records_of(clickhouse))
    target.send([each for each in records if each.kind == "event"][5:30])

    assert stored(clickhouse) == sealed(log)
    clickhouse.change("OPTIMIZE TABLE audit_event FINAL")
    assert stored(clickhouse) == sealed(log)


def test_a_stream_goes_on_where_the_copy_ends(log, clickhouse, event_factory):
    """It asks the copy: there is no file that could be lost."""
    with closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)
    log.append([event_factory(writer_seq=500)])

    with closing(open_target(clickhouse.url)) as target:
        assert target.resume_at(origin_of(log)) == len(sealed(log)) - 1
        ship_all(log, target)
    assert stored(clickhouse) == sealed(log)


def test_a_stream_goes_on_before_what_an_interrupted_batch_left_out(log, target, clickhouse):
    """A batch of two months is two parts, and ClickHouse may have taken one of them."""
    ship_all(log, target)
    clickhouse.change("DELETE FROM audit_event WHERE seq BETWEEN 12 AND 20")

    assert target.resume_at(origin_of(log)) == 12
    ship_all(log, target)
    assert stored(clickhouse) == sealed(log)


def test_two_logs_have_one_place(log, tmp_path, subject_keys, event_factory, clickhouse):
    """Each goes on by itself."""
    other = AuditLog(tmp_path / "other.db", subject_keys)
    other.append([event_factory()])
    with closing(other), closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)
        ship_all(other, target)
        assert target.resume_at(origin_of(log)) == len(sealed(log))
        assert target.resume_at(origin_of(other)) == len(sealed(other))

    ends = clickhouse.ask("SELECT origin, max(seq) + 1 FROM audit_event GROUP BY origin")
    assert dict(ends) == {origin_of(each): len(sealed(each)) for each in (log, other)}


def test_details_are_left_out_unless_they_are_wanted(log, target, clickhouse):
    """As the log has them, encrypted, and read back so."""
    ship_all(log, target)
    assert clickhouse.ask("SELECT count() FROM audit_event WHERE detail != ''") == [(0,)]

    target.send([*every_record(log, with_details=True)])

    with log.reading() as snapshot:
        kept = snapshot.execute(
            "SELECT seq, subject_uid, dek_id, sealed, expires_us FROM audit_detail"
        )
        wanted = {seq: tuple(detail) for seq, *detail in kept.fetchall()}
    found = {each.seq: tuple(each.detail) for each in records_of(clickhouse) if each.detail}
    assert found == wanted


def test_details_go_from_the_copy_when_they_expire(log, target, clickhouse):
    """Header and leaf stay, so that the proofs do."""
    first, *others = [each for each in every_record(log, with_details=True) if each.detail]
    expired = first._replace(detail=first.detail._replace(expires_us=1_000_000))
    target.resume_at(origin_of(log))
    target.send([expired, *others])

    clickhouse.change("OPTIMIZE TABLE audit_event FINAL")

    rows = clickhouse.ask("SELECT seq, header, detail FROM audit_event FINAL ORDER BY seq")
    assert rows[0] == (first.seq, first.header, b"")
    assert all(detail for _seq, _header, detail in rows[1:])


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(
    "change",
    [
        f"ALTER TABLE audit_event UPDATE header = {OTHER} WHERE seq = 9",
        "ALTER TABLE audit_event UPDATE leaf = reverse(leaf) WHERE seq = 9",
        "ALTER TABLE audit_event DELETE WHERE seq = 9",
        f"INSERT INTO audit_event ({SENT}) {DOUBLE} WHERE seq = 9",
        "ALTER TABLE audit_event UPDATE hits = 99 WHERE seq = 9",
        "ALTER TABLE audit_event UPDATE cost_usd = 0.5 WHERE seq = 9",
        "ALTER TABLE audit_event UPDATE recorded_at = recorded_at + 1 WHERE seq = 9",
        "ALTER TABLE audit_checkpoint UPDATE proof = replaceOne(proof, 'index', 'indeX') WHERE 1",
    ],
)
def test_what_somebody_changes_is_found(log, target, clickhouse, verified, change):
    """One byte, one row, one column of one row."""
    ship_all(log, target)
    assert verified().findings["tampered"] == []
    if "recorded_at" in change:  # ClickHouse does not let the column of partitions be updated
        clickhouse.change("CREATE TABLE other AS audit_event")
        clickhouse.change(
            "INSERT INTO other "
            "SELECT * REPLACE (recorded_at + (seq = 9) AS recorded_at) FROM audit_event"
        )
        clickhouse.change("EXCHANGE TABLES other AND audit_event")
    else:
        clickhouse.change(change)

    assert verified().findings["tampered"]


@pytest.mark.long
def test_each_column_that_is_read_off_a_header_is_held_against_it(
    log, target, clickhouse, verified
):
    """One is changed in each event; all that a dashboard reads is among them."""
    ship_all(log, target)
    columns = clickhouse.ask(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() "
        "AND table = 'audit_event' AND default_expression LIKE '%JSONExtract(header%' "
        "AND NOT is_in_partition_key"
    )
    for seq, (name, of) in enumerate(columns):
        others = {"String": f"concat(ifNull({name}, ''), 'x')", "Bool": f"NOT {name}"}
        other = next((others[each] for each in others if each in of), f"ifNull({name} + 1, 1)")
        clickhouse.change(f"ALTER TABLE audit_event UPDATE {name} = {other} WHERE seq = {seq}")

    assert len(columns) == 23
    assert f"{len(columns)} events have a column" in "".join(verified().findings["tampered"])


@pytest.mark.long
def test_what_a_later_row_hides_is_found_too(log, target, clickhouse, verified):
    """It is there until a merge, and who reads without FINAL sees it."""
    target.resume_at(origin_of(log))
    records = every_record(log)
    target.send([each._replace(header=each.header + b" ") for each in records if each.seq == 9])
    ship_all(log, target)
    target.send(records)
    assert stored(clickhouse) == sealed(log)

    assert "differs" in "".join(verified().findings["tampered"])


def test_a_month_that_is_gone_is_found(tmp_path, subject_keys, event_factory, clickhouse, verified):
    """Dropping a partition is one command, and no row of it is left to say so."""
    now_ns = [NOW_NS]
    log = AuditLog(tmp_path / "audit.db", subject_keys, clock_ns=lambda: now_ns[0])
    for month in range(3):
        now_ns[0] = NOW_NS + month * 31 * 86_400 * 10**9
        log.append([event_factory(writer_seq=10 * month + each) for each in range(1, 6)])
        log.checkpoint_now()
    with closing(log), closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)
    assert verified().findings["tampered"] == []
    months = clickhouse.ask(
        "SELECT DISTINCT toYYYYMM(recorded_at) AS month FROM audit_event ORDER BY month"
    )
    assert len(months) == 3

    clickhouse.change(f"ALTER TABLE audit_event DROP PARTITION {months[1][0]}")

    assert "missing" in verified().findings["tampered"][0]


def test_what_a_ttl_removed_is_said_to_have_expired(
    tmp_path, subject_keys, event_factory, clickhouse, verified
):
    """The user's own setting is no tampering; it is a loss that is declared."""
    now_ns = [NOW_NS - 800 * 86_400 * 10**9]
    log = AuditLog(tmp_path / "audit.db", subject_keys, clock_ns=lambda: now_ns[0])
    log.append([event_factory(writer_seq=each) for each in range(1, 6)])
    now_ns[0] = NOW_NS
    log.append([event_factory(writer_seq=each) for each in range(6, 12)])
    log.checkpoint_now()
    with closing(log), closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)
    clickhouse.change("DELETE FROM audit_event WHERE recorded_at < '2026-01-01'")
    assert not verified().findings["loss"]

    clickhouse.change(
        "ALTER TABLE audit_event MODIFY TTL toDateTime(recorded_at) + INTERVAL 50 YEAR"
    )

    found = verified().findings
    assert not found["tampered"]
    assert "expired" in found["loss"][0]


def test_a_copy_that_cannot_be_reached_is_named_without_its_password():
    """In one line."""
    with pytest.raises(CopyError) as failed:
        open_target("clickhouse://somebody:pass-word-1@127.0.0.1:9/audit?secure=true")

    assert (
        str(failed.value) == "clickhouse://127.0.0.1:9/audit cannot be reached (OperationalError)"
    )


def test_a_url_that_is_none_is_refused_without_quoting_it():
    """What stands where a port should be may be a password."""
    with pytest.raises(ValueError, match="a ClickHouse is at clickhouse://") as failed:
        open_target("clickhouse://somebody:pass-word-1")

    assert "pass-word" not in str(failed.value)


def test_an_error_of_the_server_quotes_nothing_of_a_row(log, target, clickhouse):
    """ClickHouse's own words may have the values in them."""
    ship_all(log, target)
    clickhouse.change("DROP TABLE audit_event")

    with pytest.raises(CopyError) as failed:
        target.send(every_record(log)[-1:])
    assert str(failed.value) == f"{clickhouse.url} cannot be written (UNKNOWN_TABLE)"


def test_what_reads_a_copy_writes_nothing_into_it(log, clickhouse, verified):
    """Whoever verifies needs no right to write."""
    with closing(open_target(clickhouse.url)) as target:
        ship_all(log, target)
    parts = "SELECT name FROM system.parts WHERE active AND table LIKE 'audit%' ORDER BY name"
    before = clickhouse.ask(parts)
    verified()

    assert clickhouse.ask(parts) == before
