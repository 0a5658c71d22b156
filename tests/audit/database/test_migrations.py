"""How an older database becomes one of today: tried on a step that is made up."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database import postgres, schema
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.subject import SubjectKeys

NOW = schema.newest_version()
STEP = ("ALTER TABLE audit_usage ADD COLUMN region TEXT", "CREATE TABLE audit_region(name TEXT)")


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def url(request, path):
    return path if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def open_log(url, subject_keys):
    made = []

    def opened():
        made.append(AuditLog(url, subject_keys))
        return made[-1]

    yield opened
    for each in made:
        each.close()


def state(log):
    """Return the version that the log says it has, and whether the step was made."""
    with log.reading() as snapshot:
        (version,) = snapshot.execute("SELECT schema_version FROM audit_log").fetchone()
        try:
            snapshot.execute("SELECT region FROM audit_usage").fetchall()
        except Exception:  # noqa: BLE001 - of two libraries
            return version, False
        return version, True


def test_a_step_is_made_once_and_nothing_is_lost(open_log, event_factory, monkeypatch):
    """The first writer of the new version brings the database to it; the log goes on."""
    old = open_log()
    old.append([event_factory(), event_factory()])
    before = state(old)
    old.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, STEP))
    new = open_log()
    new.append([event_factory()])
    open_log().append([event_factory()])

    assert before == (NOW, False)
    assert state(new) == (NOW + 1, True)
    assert [row.seq for row in new.rows()] == [1, 2, 3, 4]


def test_writers_that_come_together_make_it_once(open_log, event_factory, monkeypatch):
    """Whoever is second finds it made."""
    first = open_log()
    first.append([event_factory()])
    first.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, STEP))
    logs = [open_log() for _ in range(4)]
    threads = [threading.Thread(target=each.append, args=([event_factory()],)) for each in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert logs[0].count() == 5
    assert state(logs[0]) == (NOW + 1, True)


def test_a_step_that_fails_changes_nothing(open_log, event_factory, monkeypatch):
    """All of it or none of it; the library of before still reads the database."""
    old = open_log()
    old.append([event_factory()])
    old.close()
    failing = (*STEP, "SELECT nonsense FROM nowhere")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, failing))
    with pytest.raises(AuditError):
        open_log().append([event_factory()])
    monkeypatch.undo()

    again = open_log()
    again.append([event_factory()])
    assert state(again) == (NOW, False)
    assert again.count() == 2


def test_a_library_of_before_leaves_it_alone(open_log, event_factory, monkeypatch):
    """It asks for an upgrade."""
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, STEP))
    new = open_log()
    new.append([event_factory()])
    new.close()
    monkeypatch.undo()

    with pytest.raises(AuditError, match=f"schema version {NOW + 1}, this library knows {NOW}"):
        open_log().append([event_factory()])


@pytest.fixture
def old_url(url):
    """Return the URL of a log of version 3, as the library of that time wrote it."""
    script = (Path(__file__).parent / "log_of_version_3.sql").read_text()
    if isinstance(url, Path):
        url.parent.mkdir()
        with closing(sqlite3.connect(url)) as connection:
            connection.executescript(script)
        url.chmod(0o600)
        return url
    with closing(sqlite3.connect(":memory:")) as old, psycopg.connect(url) as connection:
        old.executescript(script)
        connection.execute("CREATE TABLE audit_schema(version bigint NOT NULL)")
        connection.execute("INSERT INTO audit_schema VALUES (3)")
        for statement in schema.statements_of(3):
            connection.execute(postgres._in_its_words(statement))
        for table in schema.tables(3):
            columns = schema.columns_of(table, 3)
            rows = old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()  # noqa: S608
            marks = ", ".join(["%s"] * len(columns))
            insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
            for row in rows:
                connection.execute(insert, row)
        for statement in postgres._TRIGGERS:
            connection.execute(statement)
    return url


@pytest.fixture
def old_log(old_url):
    """Return that log, with its key."""
    a_little_later_ns = 1_800_000_010 * 10**9
    log = AuditLog(old_url, SubjectKeys(bytes(range(32))), clock_ns=lambda: a_little_later_ns)
    yield log
    log.close()


def content(log):
    """Return what each event has as content."""
    return [row.content for row in log.rows()]


class TestOfVersion3:
    """A log of the first release: nothing in its rows was sealed."""

    def test_it_can_be_read_and_verified_as_it_is(self, old_log):
        """Nothing is changed by that; what is covered less is said."""
        found = verify(old_log)

        assert (found.state, found.valid_details, found.erased) == ("ok", 7, 2)
        assert found.covered_less[0].startswith("all 11 events are of an older version")
        assert len([each for each in content(old_log) if each]) == 7
        assert state(old_log) == (3, False)

    def test_it_is_sealed_with_the_next_event(self, old_log, event_factory):
        """What is older is covered less, and what that is is told."""
        before = content(old_log)
        old_log.append([event_factory(writer_seq=10)])
        found = verify(old_log)

        assert state(old_log) == (NOW, False)
        assert content(old_log)[: len(before)] == before
        assert (found.state, found.size) == ("ok", 13)
        assert found.covered_less[0].startswith("the first 11 events are of an older version")

    def test_it_goes_on_as_any_other(self, old_log):
        """Customers of before are found, erased and merged; all of it verifies."""
        subjects = old_log.subjects
        ada, bob = (subjects.resolve(name, "acme") for name in ("ada", "bob"))
        subjects.merge(bob, ada)
        assert subjects.erase(ada, "acme") == 5

        assert verify(old_log).state == "ok"

    def test_it_is_sealed_once(self, old_log, event_factory, old_url):
        """Whoever makes a sealed log look like one that never was is found out by its writer."""
        old_log.append([event_factory(writer_seq=10)])
        old_log.close()
        forget = "UPDATE audit_log SET seal = NULL, sums = NULL, sealed_from = NULL"
        if isinstance(old_url, Path):
            with closing(sqlite3.connect(old_url)) as connection, connection:
                connection.execute(forget)
        else:
            with psycopg.connect(old_url) as connection:
                connection.execute(forget)
        assert verify(old_log).state == "tampered"

        old_log.append([event_factory(writer_seq=10)])
        assert "had been changed by somebody else" in verify(old_log).findings["tampered"][0]

    def test_a_process_of_before_does_not_write_on(self, old_log, old_url, event_factory):
        """It would not seal what it wrote: it fails, and keeps its events."""
        old_log.append([event_factory(writer_seq=10)])
        old = "SELECT origin, size, operations, prev_leaf, frontier, recorded_us FROM audit_log"

        with old_log.reading() as snapshot, pytest.raises(Exception, match="recorded_us"):
            snapshot.execute(old)
