"""Logical replication of the trail in PostgreSQL: what writes is found, what copies is not."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from mnemoscope.audit import AuditLog
from tests.kit.tampering import build
from tests.kit.verified import verify

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def trail(postgres_url, subject_keys, event_factory):
    """Return the URL of a trail with some events."""
    build(postgres_url, subject_keys, event_factory, 5)
    return postgres_url


def changed(url, keys):
    """Return what is found to be otherwise than it was written."""
    with closing(AuditLog(url, keys)) as log:
        return [*verify(log).findings["tampered"]]


@pytest.mark.parametrize("table", ["audit_event", "audit_detail", "audit_subject", "audit_log"])
def test_a_subscription_that_writes_a_table_is_found(table, postgres, trail, subject_keys):
    """Triggers do not fire for what it writes, so it may remove sealed rows, one by one."""
    source = postgres.new_database()
    with psycopg.connect(source, autocommit=True) as elsewhere:
        elsewhere.execute(f"CREATE TABLE {table}()".encode())
        elsewhere.execute(f"CREATE PUBLICATION honest FOR TABLE {table}".encode())
    before = changed(trail, subject_keys)
    with psycopg.connect(trail, autocommit=True) as ours:
        made = (
            f"CREATE SUBSCRIPTION sly CONNECTION '{source}' PUBLICATION honest "
            "WITH (create_slot = false, slot_name = NONE, enabled = false)"
        )
        ours.execute(made.encode())
        after = changed(trail, subject_keys)
        ours.execute("DROP SUBSCRIPTION sly")  # or its database could not be dropped

    assert before == []
    assert any(each.startswith(f"{table} is not a plain table") for each in after)


ONLY_COPIES = {
    "a publication of all tables": ["CREATE PUBLICATION p FOR ALL TABLES"],
    "one of events, by the root": [
        "CREATE PUBLICATION p FOR TABLE audit_event WITH (publish_via_partition_root = true)"
    ],
    "one of a schema": ["CREATE PUBLICATION p FOR TABLES IN SCHEMA public"],
    "replica identity": [
        "ALTER TABLE audit_subject REPLICA IDENTITY FULL",
        "ALTER TABLE audit_checkpoint REPLICA IDENTITY NOTHING",
    ],
    "an event trigger": [
        "CREATE FUNCTION seen() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$",
        "CREATE EVENT TRIGGER seen ON ddl_command_end EXECUTE FUNCTION seen()",
    ],
}


@pytest.mark.parametrize("name", ONLY_COPIES)
def test_what_only_copies_rows_or_watches_definitions_is_no_finding(name, trail, subject_keys):
    """Services of others have such in each database, and no row of ours is changed or hidden."""
    with psycopg.connect(trail, autocommit=True) as ours:
        for each in ONLY_COPIES[name]:
            ours.execute(each.encode())

    assert changed(trail, subject_keys) == []


def test_a_published_trail_is_written_and_erased_from(trail, subject_keys, event_factory):
    """Each table has a key by which a deletion is sent, or the server would refuse to delete."""
    with psycopg.connect(trail, autocommit=True) as ours:
        ours.execute("CREATE PUBLICATION p FOR ALL TABLES")
    with closing(AuditLog(trail, subject_keys)) as log:
        log.append([event_factory(customer="ada")])
        log.subjects.erase(log.subjects.resolve("ada", "acme"), "acme")

    assert changed(trail, subject_keys) == []
