"""What an erasure finds in the audit spool: events that wait, and not the files by themselves."""

from __future__ import annotations

import pytest

from mnemoscope.audit.sink.spool import spool_files
from mnemoscope.memory import Mnemoscope, load_settings
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def scope(tmp_path):
    settings = load_settings(
        audit_url=f"sqlite:///{tmp_path}/audit.db",
        audit_spool=tmp_path / "audit.spool",
        audit_pseudonym_key="ab" * 32,
        pii_model="none",
        sinks="audit",
    )
    scope = Mnemoscope(settings)
    yield scope
    scope.close(GIVE_UP_S)


def waiting(scope):
    """Return what an erasure of a customer is told of the spool."""
    return scope.customer_data("c-42").sealed()["audit spool"].waiting


def test_a_file_is_counted_while_events_wait_in_it(scope, event_factory, tmp_path):
    """A file that was made and has none, as where it was asked whether there is room, is not."""
    (sink,) = scope._parts.drain.sinks
    assert sink.spool.accepts()
    assert len(spool_files(tmp_path / "audit.spool")) == 1
    assert waiting(scope) == ()
    sink.spool.append([event_factory()])
    (line,) = waiting(scope)
    assert "events wait in 1 files of the audit spool" in line


def test_one_that_cannot_be_read_may_have_some(scope, tmp_path):
    """It is cut within its first page."""
    (tmp_path / "audit.spool.0.events").write_bytes(b"cut")

    assert len(waiting(scope)) == 1


def test_events_of_another_database_hold_up_nobody(tmp_path, event_factory, monkeypatch):
    """Two applications share the user's data folder: each looks at its own, and names the other."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    urls = [f"sqlite:///{tmp_path}/{each}.db" for each in ("one", "two")]
    made = [
        Mnemoscope(
            load_settings(
                audit_url=each, audit_pseudonym_key="ab" * 32, pii_model="none", sinks="audit"
            )
        )
        for each in urls
    ]
    try:
        (sink,) = made[1]._parts.drain.sinks
        sink.spool.append([event_factory()])
        one, two = (each.customer_data("c-42").sealed()["audit spool"] for each in made)
    finally:
        for each in made:
            each.close(GIVE_UP_S)

    assert (one.waiting, two.others) == ((), ())
    (line,), (waits,) = one.others, two.waiting
    assert line.endswith(f": {sink.spool.path.name}")
    assert "events wait in 1 files of the audit spool" in waits
