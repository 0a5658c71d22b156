"""What Prometheus is told of the audit trail."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import MAX_BYTES, Spool
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.subject import SubjectKeys

NOW_NS = 1_700_000_010_000_000_000


@pytest.fixture
def make_sink(tmp_path, path, subject_keys):
    made = []

    def make(keys=subject_keys):
        log = AuditLog(path, keys, clock_ns=lambda: NOW_NS)
        sink = AuditSink(
            log, Spool(tmp_path / f"{len(made)}.spool", log.ring, content=content_again)
        )
        sink._heartbeat.start = lambda **_how: None
        made.append(sink)
        return sink

    yield make
    for each in made:
        each.close(1.0)


def told(sink):
    """Return the figures by name, those with labels by name and label."""
    return {
        "/".join((each.name.removeprefix("mnemoscope_audit_"), *each.labels.values())): each.value
        for each in sink.samples()
    }


def test_before_anything_happens(make_sink):
    """Every figure is there, and says nothing."""
    assert told(make_sink()) == {
        "events_total": 0,
        "lag_seconds": 0,
        "spool_events": 0,
        "spool_bytes": 0,
        "spool_full_ratio": 0,
        "gap_events_total": 0,
        "tree_size": 0,
        "checkpoint_timestamp_seconds": 0,
        "key_state/ok": 1,
        "key_state/generated": 0,
        "key_state/missing": 0,
    }


def test_while_events_are_recorded(make_sink, event_factory):
    """Events, the tree's size with the log's own event, and the last signature."""
    sink = make_sink()
    sink._every_s = 60.0
    sink.write([event_factory(), event_factory(writer_seq=9)])
    sink.close(1.0)

    figures = told(sink)
    assert (figures["events_total"], figures["gap_events_total"]) == (2, 7)
    assert figures["tree_size"] == 4
    assert figures["checkpoint_timestamp_seconds"] == NOW_NS / 1e9


def test_while_the_database_is_away(make_sink, path, event_factory):
    """What waits, how much of it, and for how long: from when the oldest happened."""
    sink = make_sink()
    path.parent.touch()
    sink.write([event_factory(), event_factory()])

    figures = told(sink)
    assert (figures["events_total"], figures["spool_events"]) == (0, 2)
    assert figures["spool_bytes"] > 1_000
    assert figures["spool_full_ratio"] == figures["spool_bytes"] / MAX_BYTES
    assert figures["lag_seconds"] == pytest.approx(10 - 0.123456)


def test_the_state_of_the_key(make_sink, event_factory):
    """Made by this process and nowhere kept, or not the one that the log was written with."""
    sink = make_sink()
    sink.key_made = True
    sink.write([event_factory()])
    stranger = make_sink(SubjectKeys(b"another sixteen bytes"))
    stranger.write([event_factory()])

    assert told(sink)["key_state/generated"] == 1
    assert told(stranger)["key_state/missing"] == 1
    assert told(stranger)["spool_events"] == 1


def test_they_reach_the_metrics_page(tmp_path, monkeypatch):
    """A scope with both sinks serves them beside its own."""
    from prometheus_client import generate_latest

    from mnemoscope.memory import Mnemoscope, load_settings

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    settings = load_settings(
        sinks="prometheus,audit", pii_model="none", audit_pseudonym_key="00" * 16
    )
    scope = Mnemoscope(settings)
    page = generate_latest().decode()
    scope.close()

    assert "\nmnemoscope_audit_tree_size " in page
    assert 'mnemoscope_audit_key_state{state="ok"}' in page
