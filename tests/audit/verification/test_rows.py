"""
Whoever has the database and no key: what they do to any row, index or trigger shows.

A sample of what `make audit-sweep` tries: there it is every column of several rows of each table.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database import schema
from mnemoscope.audit.database.errors import TamperedError
from tests.kit import database_attacks, tampering
from tests.kit.verified import verify


def is_shown(url, keys, verify=verify, attack=None):
    """Return whether a log does not verify, or is refused: for its definitions, as changed."""
    log = AuditLog(url, keys)
    is_of_definitions = attack is not None and database_attacks.is_of_definitions(attack)
    try:
        state = verify(log).state
    except TamperedError:
        return True
    except AuditError:
        return not is_of_definitions or attack.name in REFUSED
    finally:
        log.close()
    return state == "tampered" if is_of_definitions else state not in {"ok", "loss"}


REFUSED = {"version changed", "id changed"}
"""What makes it a database of another version or application, as far as anybody can tell."""


@pytest.mark.fault(80, "any row, index or trigger changed without the key", expected="found")
def test_all_of_it_shows_in_sqlite(sealed, tmp_path, subject_keys, alike):
    """One attack of each kind, and one on each column, index and trigger, by whatever way."""
    with closing(database_attacks.SqliteTarget(sealed)) as target:
        attacks = database_attacks.attacks_on(target, each=3)
    chosen = database_attacks.one_of_each(attacks, targets=True)
    made = database_attacks.attacked_files(sealed, chosen, tmp_path / "copy.db")
    shown = [(attack, is_shown(url, subject_keys, alike, attack)) for attack, url in made]

    assert not is_shown(sealed, subject_keys)
    assert [attack[:2] for attack, found in shown if not found] == []
    columns = {f"{table}.{each}" for table in schema.tables() for each in schema.columns_of(table)}
    assert columns <= {attack.target for attack, _found in shown}


@pytest.mark.xdist_group("postgres")
@pytest.mark.long
def test_all_of_it_shows_in_postgresql(postgres, postgres_url, subject_keys, event_factory):
    """One attack of each kind."""
    tampering.build(postgres_url, subject_keys, event_factory, 30)
    with closing(database_attacks.PostgresTarget(postgres_url)) as target:
        attacks = database_attacks.attacks_on(target, each=2)
    chosen = database_attacks.one_of_each(attacks, targets=False)
    made = database_attacks.attacked_databases(postgres.url, postgres_url, chosen)
    missed = [attack[:2] for attack, url in made if not is_shown(url, subject_keys, attack=attack)]

    assert not is_shown(postgres_url, subject_keys)
    assert missed == []


def test_a_table_that_is_added_later_is_summed(log, subject_keys, event_factory, monkeypatch):
    """By a migration, in whatever module it is written; and `verify` looks at it."""
    added = ("CREATE TABLE audit_added(name TEXT PRIMARY KEY, number INTEGER)",)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, added))
    log.append([event_factory()])
    with log.tables.writing() as (connection, _head):
        connection.execute("INSERT INTO audit_added(name, number) VALUES (?, ?)", ("a", 1))
        connection.insert("audit_added", ("name", "number"), [("b", 2), ("c", None)])
        connection.execute("UPDATE audit_added SET number = ? WHERE name = ?", (7, "b"))
        connection.execute("DELETE FROM audit_added WHERE number = ?", (1,))
    log.checkpoint_now()
    before = verify(log).state
    log.close()
    with closing(database_attacks.SqliteTarget(log.path)) as target:
        target.run("UPDATE audit_added SET number = 8 WHERE name = 'b'")

    assert before == "ok"
    assert verify(log).findings["tampered"] == [
        "rows of audit_added were changed, added, removed or put back by somebody else"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO audit_subject_alias SELECT * FROM audit_subject_alias",
        "INSERT OR REPLACE INTO audit_subject_alias(alias) VALUES (?)",
        "UPDATE audit_subject_alias SET alias = 'x' WHERE alias = 'y'",
    ],
)
def test_a_change_that_no_sum_can_follow_is_refused(log, event_factory, statement):
    """Where it is written, not where a log no longer verifies."""
    log.append([event_factory()])
    with log.tables.writing() as (connection, _head), pytest.raises(ValueError, match="its sum"):
        connection.execute(statement)

    assert verify(log).state == "ok"
