"""The tables that grow, partitioned in PostgreSQL."""

from __future__ import annotations

import time
from importlib import import_module

import psycopg
import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.memory.api import Usage
from tests.kit.writer_kills import verify

pytestmark = pytest.mark.xdist_group("postgres")

SMALL = 512
postgres_partitions = import_module("mnemoscope.audit.database.postgres_partitions")
schema = import_module("mnemoscope.audit.database.schema")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Partitions of two tiles."""
    monkeypatch.setattr("mnemoscope.audit.database.postgres_partitions.LEAST_EVENTS", SMALL)


@pytest.fixture
def open_log(postgres_url, subject_keys):
    made = []

    def opened(**options):
        made.append(AuditLog(postgres_url, subject_keys, **options))
        return made[-1]

    yield opened
    for each in made:
        each.close()


@pytest.fixture
def some(event_factory):
    def made(count):
        return [
            event_factory(memory_ids=("m",), scores=(0.5,), usage=Usage(model="m"))
            for _ in range(count)
        ]

    return made


@pytest.fixture
def plain(open_log, some, monkeypatch):
    """Make a log of the version before partitions, with so many events."""

    def made(count):
        with monkeypatch.context() as patch:
            patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:-1])
            log = open_log()
            log.append(some(count))
            log.close()

    return made


def bounds(log, table="audit_event"):
    with log.reading() as snapshot:
        found = snapshot.connection.partitions()
    return [(each.first, each.stop) for each in found if each.table == table]


def test_there_is_one_partition_ahead(open_log, some):
    """It is made when the last one is begun, and rows are in the partition of their number."""
    log = open_log()
    log.append(some(3))
    first = bounds(log)
    for _ in range(4):
        log.append(some(200))

    assert first == [(0, 512), (512, 1024)]
    assert bounds(log)[:3] == [(0, 512), (512, 1024), (1024, 2048)]
    assert {len(bounds(log, each)) for each in postgres_partitions.TABLES} == {3}
    assert (verify(log).state, verify(log).events) == ("ok", 804)


def test_a_second_writer_knows_of_it(open_log, some):
    """Whoever comes to the end of the last one looks for the others' partitions first."""
    one, two = open_log(), open_log()
    for _ in range(6):
        one.append(some(150))
        two.append(some(150))

    stops = [stop for _first, stop in bounds(one)]
    assert stops == sorted(set(stops))
    assert verify(one).state == "ok"


def test_how_many_events_a_partition_takes_follows_the_pace(open_log, some):
    """Twice as many at most as in the one before it, as few as ever where little happens."""
    now_us = [1_800_000_000 * 1_000_000]
    log = open_log(clock_ns=lambda: now_us[0] * 1_000)
    for _ in range(8):
        now_us[0] += 20 * 86_400_000_000
        log.append(some(200))
    slow = bounds(log)
    for _ in range(8):
        log.append(some(400))

    assert {stop - first for first, stop in slow} == {512}
    assert max(stop - first for first, stop in bounds(log)) >= 2048


def test_an_older_log_is_plain_until_the_command(open_log, plain, some):
    """It is written and read as before; then its tables are the first partition."""
    plain(300)
    log = open_log()
    log.append(some(5))
    before = bounds(log), verify(log).state
    log.tables.database.partition()
    after = bounds(log)
    log.close()
    log.append(some(5))

    assert before == ([], "ok")
    assert after == [(0, 2560)]
    assert [first for first, _stop in bounds(log)] == [0, 2560]
    found = verify(log)
    assert (found.state, found.events, found.findings["tampered"]) == ("ok", 311, [])


def test_it_goes_on_where_it_was_broken_off(open_log, plain, postgres_url, some):
    """After its first step nothing is wrong, neither with the log nor with doing it again."""
    plain(300)
    log = open_log()
    log.append(some(1))
    with psycopg.connect(postgres_url) as connection:
        postgres_partitions.bound(connection)
    log.append(some(400))
    halfway = verify(log).findings["tampered"]
    log.tables.database.partition()
    log.tables.database.partition()
    log.append(some(400))

    assert halfway == []
    assert bounds(log)[0] == (0, 2560)
    assert verify(log).state == "ok"


def test_a_bound_that_is_reached_says_what_to_do(open_log, plain, postgres_url, some):
    """A log that nobody partitioned after all does not take what is behind the bound."""
    plain(300)
    log = open_log()
    log.append(some(1))
    with psycopg.connect(postgres_url) as connection:
        postgres_partitions.bound(connection)
    batches = [some(500) for _ in range(6)]
    with pytest.raises(AuditError, match="Run `mnemoscope audit partition`"):
        list(map(log.append, batches))
    log.tables.database.partition()
    for each in batches:
        log.append(each)

    assert verify(log).state == "ok"


def test_rights_stay_as_they_were(open_log, plain, postgres_url, some):
    """Whoever might read the plain table may read the partitioned one."""
    plain(10)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        role = f"reader_{time.monotonic_ns()}"
        connection.execute(f"CREATE ROLE {role}")
        connection.execute(f"GRANT SELECT ON audit_event TO {role}")
        log = open_log()
        log.append(some(1))
        log.tables.database.partition()
        asked = f"SELECT has_table_privilege('{role}', 'audit_event', %s)"
        may = [connection.execute(asked, (each,)).fetchone()[0] for each in ("SELECT", "INSERT")]
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")

    assert may == [True, False]


def test_a_role_that_owns_nothing_writes_on(open_log, some, postgres_url, subject_keys, caplog):
    """As long as there is room, and with a warning; the owner makes more."""
    owner = open_log()
    owner.append(some(1))
    role = f"writer_{time.monotonic_ns()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    other = AuditLog(postgres_url.replace("postgres:@", f"{role}@"), subject_keys)
    try:
        for _ in range(3):
            other.append(some(200))
        before = bounds(owner)
        owner.tables.database.partition()
        other.append(some(500))
    finally:
        other.close()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")

    assert before == [(0, 512), (512, 1024)]
    assert len(bounds(owner)) == 3
    assert "no partition could be added behind event 1023" in caplog.text
    assert verify(owner).state == "ok"


def test_rows_of_a_partition_cannot_be_changed(open_log, some, postgres_url):
    """Past the partitioned table as well as through it."""
    log = open_log()
    log.append(some(3))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for table in ("audit_event", "audit_event_0"):
            for statement in (
                f"UPDATE {table} SET store = 'x'",  # noqa: S608 - ours
                f"DELETE FROM {table}",  # noqa: S608 - ours
                f"TRUNCATE {table}",
            ):
                with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                    connection.execute(statement)


WITHIN = "CHECK (seq IS NOT NULL AND seq >= 512 AND seq < 1024)"
ADDED = "CREATE TABLE {} PARTITION OF audit_event FOR VALUES FROM (8192) TO (9984)"
ATTACKS = {
    "detached": ["ALTER TABLE audit_detail DETACH PARTITION audit_detail_0"],
    "dropped": ["DROP TABLE audit_memory_0"],
    "without a trigger": ["DROP TRIGGER audit_event_no_delete_0 ON audit_event_0"],
    "with a trigger disabled": ["ALTER TABLE audit_event_512 DISABLE TRIGGER USER"],
    "with a spy": [
        "CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "CREATE TRIGGER spy BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION spy()",
    ],
    "without an index": ["DROP INDEX audit_event_log_512"],
    "a foreign partition": ["CREATE TABLE other PARTITION OF audit_event DEFAULT"],
    "one of another schema": [
        "CREATE SCHEMA evil",
        ADDED.format("evil.audit_event_8192"),
    ],
    "a gap": [
        ADDED.format("audit_event_8192"),
    ],
    "other bounds": [
        "ALTER TABLE audit_event DETACH PARTITION audit_event_512",
        "ALTER TABLE audit_event ATTACH PARTITION audit_event_512 FOR VALUES FROM (512) TO (99999)",
    ],
    "a row of another": [
        "ALTER TABLE audit_usage DETACH PARTITION audit_usage_512",
        "INSERT INTO audit_usage_512 SELECT * FROM audit_usage_0 WHERE seq = 7",
        f"ALTER TABLE audit_usage_512 ADD CONSTRAINT lie {WITHIN} NOT VALID",
        "UPDATE pg_constraint SET convalidated = true WHERE conname = 'lie'",
        "ALTER TABLE audit_usage ATTACH PARTITION audit_usage_512 FOR VALUES FROM (512) TO (1024)",
        "ALTER TABLE audit_usage_512 DROP CONSTRAINT lie",
    ],
    "a check that calls": [
        "CREATE FUNCTION calls(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "ALTER TABLE audit_detail_512 ADD CONSTRAINT audit_detail_bound CHECK (calls(seq))",
    ],
    "partitioned by a function": [
        "CREATE TABLE hidden (LIKE audit_usage) PARTITION BY RANGE ((seq + 0))",
        "ALTER TABLE audit_usage RENAME TO audit_usage_other",
        "ALTER TABLE hidden RENAME TO audit_usage",
    ],
}


SAID = {
    "detached": "audit_detail_0 is no partition any more",
    "dropped": "audit_memory has other partitions than audit_event",
    "a foreign partition": "other is no partition that was made here",
    "a gap": "the partitions of audit_event are not all there",
    "other bounds": "audit_detail has other partitions than audit_event",
    "a row of another": "audit_usage_512 has rows of other partitions",
    "partitioned by a function": "audit_usage is not a plain table",
    "with a spy": "the trigger spy of audit_event is defined otherwise than it was made",
}


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_is_done_to_partitions_shows(attack, open_log, some, postgres_url):
    """To them, or past them: by definitions alone, before an answer about anybody."""
    log = open_log()
    log.append(some(200))
    with log.reading() as snapshot:
        before = snapshot.connection.wrong_definitions()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET allow_system_table_mods = on")
        for each in ATTACKS[attack]:
            connection.execute(each)
    with log.reading() as snapshot:
        after = snapshot.connection.wrong_definitions()

    assert before == []
    assert any(SAID.get(attack, "") in each for each in after)
    assert verify(log).state == "tampered"
