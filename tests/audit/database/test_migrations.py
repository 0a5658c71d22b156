"""How an older database becomes one of today: tried on a step that is made up."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.audit.database import schema
from mnemoscope.audit.database.errors import AuditError
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.store.heads import HeadSigner
from mnemoscope.audit.verification.whole import verify

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


def test_a_log_of_the_first_version_becomes_one_of_today(open_log, event_factory, monkeypatch):
    """Every step so far, on a log that was made before the first of them."""
    monkeypatch.setattr(schema, "MIGRATIONS", ())
    monkeypatch.setattr(HeadSigner, "sign", lambda *_given, **_options: None)
    old = open_log()
    old.append([event_factory(customer=None)])  # a later column is written for customers alone
    old.close()
    monkeypatch.undo()
    new = open_log()
    new.append([event_factory()])

    assert state(new) == (NOW, False)
    assert new.count() == 2
    assert verify(new).state == "ok"
