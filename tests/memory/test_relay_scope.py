"""A scope whose events a relay delivers, and the relay that the same settings make."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial

import orjson
import pytest
from prometheus_client import REGISTRY

from mnemoscope.audit.record.writer_events import ABOUT_WRITERS, HEARTBEAT, STARTED, STOPPED
from mnemoscope.audit.sink import presence
from mnemoscope.audit.sink.heartbeat import Heartbeat
from mnemoscope.memory import (
    AuditUnavailableError,
    ConfigurationError,
    Mnemoscope,
    context,
    load_settings,
)
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.queue import writer
from mnemoscope.telemetry.queue.event_file import EventFile
from mnemoscope.telemetry.queue.folder import files_in
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S
from tests.kit.relay_kills import back_ends


@pytest.fixture
def chosen(tmp_path):
    """Return a function that returns settings with a relay."""

    def choose(**more):
        given = {
            "relay": tmp_path / "relay",
            "sinks": "logs,audit",
            "audit_pseudonym_key": "ab" * 32,
            "audit_url": f"sqlite:///{tmp_path / 'audit.db'}",
            "audit_spool": tmp_path / "spool",
            "log_file": tmp_path / "events.jsonl",
            "pii_model": "none",
        }
        return load_settings(**(given | more))

    return choose


@pytest.fixture
def started():
    """Return a function that starts a scope; all are closed at the end."""
    scopes = []

    def start(settings, **given):
        scopes.append(Mnemoscope(settings, **given))
        return scopes[-1]

    yield start
    for each in scopes:
        each.close()


def recaller(scope):
    """Return a guarded function."""
    guarded = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
    return guarded(lambda: [1])


def relayed(settings):
    """Have a relay deliver all that is there."""
    relay = build_relay(settings, settings.relay)
    relay.look()
    while files_in(settings.relay) and sum(feed.turn() for feed in relay.feeds):
        relay.look()
    for feed in relay.feeds:
        feed.turn()
    relay.look()
    relay.close()


def test_events_reach_the_sinks_through_the_relay(chosen, started, tmp_path):
    """With the customer as each of them knows them, and with content in the audit trail."""
    settings = chosen()
    scope = started(settings)
    with context(tenant="acme", customer="ada"):
        for _ in range(5):
            recaller(scope)()
    before = (tmp_path / "events.jsonl").exists()
    relayed(settings)

    assert not before
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 5
    with scope.audit.reading() as snapshot:
        found = snapshot.execute("SELECT count(*) FROM audit_event WHERE kind = 'operation'")
        assert found.fetchone() == (5,)


def test_the_process_starts_no_thread(chosen, started):
    """There is nothing that could hold the agent's lock, or its exit."""
    before = set(threading.enumerate())
    recaller(started(chosen()))()

    assert set(threading.enumerate()) <= before  # those that other tests have left may end


def lives(scope):
    """Return what the audit trail says of writers."""
    with scope.audit.reading() as snapshot:
        rows = snapshot.stream(
            "SELECT operation, header FROM audit_event WHERE kind = 'log' ORDER BY seq"
        )
        said = [(name, orjson.loads(header)["data"]) for name, header in rows]
    told = ("counter", "idle", "mode", "version")
    return [
        (name, *(data.get(each) for each in told if (name, each) != (STOPPED, "mode")))
        for name, data in said
        if name in ABOUT_WRITERS
    ]


def live(scope, deliver, beat):
    """Begin, go on, be idle, go on, and end."""
    for _ in range(2):
        recaller(scope)()
        deliver()
    beat()
    beat()
    recaller(scope)()
    deliver()
    scope.close()
    deliver()


def test_the_audit_trail_tells_of_the_same_life(chosen, started, monkeypatch, tmp_path):
    """That a process began, how far it is, that it is idle and that it ended."""
    monkeypatch.setattr(presence, "HEARTBEAT_S", 0.0)
    monkeypatch.setattr(presence, "IDLE_AFTER_S", 0.0)
    monkeypatch.setattr(Heartbeat, "start", lambda _self: None)  # the test beats
    url = f"sqlite:///{tmp_path / 'alone.db'}"
    alone = started(chosen(relay=None, audit_url=url, audit_mode="durable"))
    sinks = alone._parts.drain.sinks
    live(alone, lambda: alone.flush(GIVE_UP_S), next(s for s in sinks if s.name == "audit").beat)
    settings = chosen(audit_mode="durable")
    relay, beside = build_relay(settings, settings.relay), started(settings)

    def deliver():
        relay.look()
        while sum(feed.turn() for feed in relay.feeds):
            pass
        relay.look()

    sinks = relay._drain.sinks
    live(beside, deliver, next(s for s in sinks if s.name == "audit").beat)
    relay.close()

    assert [name for name, *_ in lives(alone)] == [STARTED, *[HEARTBEAT] * 3, STOPPED]
    assert lives(alone) == lives(beside)


def test_each_forked_worker_has_files_of_its_own(chosen, started, tmp_path):
    """Whose events reach the sinks as the parent's do."""
    settings = chosen()
    recall = recaller(started(settings))
    recall()
    for _ in range(4):
        assert exit_code_of_child(recall) == 0
    found = len(files_in(settings.relay))
    relayed(settings)

    assert found == 5
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 5


def test_metrics_of_all_workers_are_in_one_place(chosen, started):
    """Sums are right although one was killed, and another took its place."""
    settings = chosen(sinks="prometheus")
    guarded = started(settings).observe(
        store="workers", operation="search_memory", neutral=list, inline=True
    )
    recall = guarded(list)

    def work(calls, *, is_killed=False):
        for _ in range(calls):
            recall()
        if is_killed:
            os.kill(os.getpid(), signal.SIGKILL)

    for calls in (3, 4, 5):
        exit_code_of_child(partial(work, calls))
    exit_code_of_child(partial(work, 6, is_killed=True))
    exit_code_of_child(partial(work, 7))
    relayed(settings)
    labels = {"store": "workers", "class": "recall", "operation": "search_memory"}
    found = REGISTRY.get_sample_value(
        "mnemoscope_operation_duration_seconds_count", {**labels, "status": "empty"}
    )

    assert found == 3 + 4 + 5 + 6 + 7


def test_a_process_shows_its_way_to_the_relay_alone(chosen, started):
    """All else the relay shows: in both places it would count twice."""
    settings = chosen(sinks="prometheus")
    guarded = started(settings).observe(
        store="shown once", operation="search_memory", neutral=list, inline=True
    )
    before = REGISTRY.get_sample_value("mnemoscope_sink_events_total", {"sink": "relay"}) or 0
    guarded(list)()
    after = REGISTRY.get_sample_value("mnemoscope_sink_events_total", {"sink": "relay"})
    labels = {"store": "shown once", "class": "recall"}

    assert after - before == 1
    assert REGISTRY.get_sample_value("mnemoscope_relay_silent_seconds") is not None
    assert REGISTRY.get_sample_value("mnemoscope_operations_in_flight", labels) is None


def _open_to_others(folder):
    folder.mkdir(mode=0o755)


def _file(folder):
    folder.write_text("")


def _file_above(folder):
    folder.parent.rmdir()
    folder.parent.write_text("")


def _link_to_nowhere(folder):
    folder.symlink_to(folder.parent / "nothing" / "there")


def test_sinks_that_the_application_passes_are_its_own(chosen, started):
    """The relay knows nothing of them."""
    capture = CapturingSink()
    scope = started(chosen(), extra_sinks=[capture])
    recaller(scope)()
    scope.flush(GIVE_UP_S)

    assert len(capture.events) == 1


def test_a_durable_call_returns_when_its_event_is_on_the_disk(chosen, started, monkeypatch):
    """Not only in the kernel's memory."""
    synced = []
    monkeypatch.setattr(EventFile, "sync", lambda self: synced.append(self.size_bytes))
    recall = recaller(started(chosen(audit_mode="durable")))
    recall()
    recall()

    assert len(synced) == 2
    assert synced == sorted(set(synced))


def test_a_strict_call_is_refused_where_its_event_cannot_be_kept(
    chosen, started, tmp_path, monkeypatch
):
    """As where the audit database and its spool take nothing."""
    monkeypatch.setattr(writer, "RETRY_S", 0.0)
    folder = tmp_path / "relay"
    folder.mkdir(mode=0o700)
    recall = recaller(started(chosen(audit_mode="strict")))
    folder.chmod(0o755)

    with pytest.raises(AuditUnavailableError):
        recall()
    folder.chmod(0o700)
    assert recall() == [1]


@pytest.mark.parametrize("spoil", [_open_to_others, _file, _file_above, _link_to_nowhere])
def test_a_process_whose_folder_is_refused_delivers_itself(
    chosen, started, tmp_path, caplog, spoil
):
    """Nothing is lost, and it says so once: as soon as it is known."""
    folder = tmp_path / "above" / "relay"
    folder.parent.mkdir()
    spoil(folder)
    scope = started(chosen(relay=folder))
    recaller(scope)()
    assert scope.flush(GIVE_UP_S)

    assert scope.audit.count() == 1
    (message,) = [each for each in caplog.messages if "MNEMOSCOPE_RELAY" in each]
    assert "delivers its events itself" in message


def test_a_relay_says_why_it_cannot_read_a_folder(chosen, tmp_path):
    """In one line."""
    (tmp_path / "relay").mkdir(mode=0o755)

    with pytest.raises(ConfigurationError, match="is open to other users"):
        build_relay(chosen(), tmp_path / "relay")


def test_health_tells_that_nobody_reads_the_folder(chosen, started):
    """And what is to be done."""
    scope = started(chosen())
    recaller(scope)()
    (found,) = [each for each in scope.health(GIVE_UP_S).checks if each.name == "sink.relay"]

    assert found.state == "failed"
    assert "start `mnemoscope relay" in found.detail


def test_a_batch_is_one_request_of_each_sink(chosen, started):
    """Whatever is in it. Metrics have an interval, and are not sent with each batch."""
    with back_ends() as ends:
        settings = chosen(sinks="otlp,logs,langsmith,audit")
        recall = recaller(started(settings))
        relay = build_relay(settings, settings.relay)
        for _ in range(3):
            with context(tenant="acme", customer="ada"):
                for _ in range(100):
                    recall()
            relay.look()
            for feed in relay.feeds:
                feed.turn()
        seen = [path for path, _headers, _body in ends.otlp.requests]
        runs = [path for path, _headers, _body in ends.langsmith.http.requests if "runs" in path]
        relay.close()

    assert (seen.count("/v1/traces"), seen.count("/v1/metrics"), len(runs)) == (3, 1, 3)
