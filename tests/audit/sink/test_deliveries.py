"""The log says which sink has acknowledged which events."""

from __future__ import annotations

import json
import threading

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.sink.deliveries import DELIVERED, EVERY_S, FIRST_S
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.memory.api import SinkOutput
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit.patience import GIVE_UP_S


class Other:
    """Another sink, which may fail, and says what it passes on, if anything."""

    idempotent = False

    def __init__(self, name, *, fails=False):
        self.name = name
        self.fails = fails

    def write(self, batch):
        if self.fails:
            raise ConnectionError

    def flush(self, timeout_s):
        return True

    def close(self, timeout_s):
        return None


class Described(Other):
    def output(self):
        return SinkOutput("file", content=True)


class Mistaken(Other):
    def output(self):
        raise RuntimeError


@pytest.fixture
def clock():
    class Clock:
        now_s = 0.0

        def __call__(self):
            return self.now_s

    return Clock()


@pytest.fixture
def log(tmp_path, subject_keys):
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield log
    log.close()


@pytest.fixture
def make_drain(log, clock):
    """Return what makes a drain of an audit sink and others."""
    made = []

    def make(*others):
        sink = AuditSink(log, clock=clock)
        made.append(Drain([sink, *others]))
        sink.attach(made[-1])
        return sink, made[-1]

    yield make
    for each in made:
        each.close()


def noted(log):
    """Return what was noted, in order."""
    with log.reading() as snapshot:
        found = snapshot.execute(
            "SELECT header FROM audit_event WHERE operation = ? ORDER BY seq", (DELIVERED,)
        ).fetchall()
    return [json.loads(header)["data"] for (header,) in found]


def test_each_sink_is_noted_with_its_output_and_numbers(make_drain, log, event_factory):
    """One that does not say what it passes on, or fails to, is noted all the same."""
    sink, drain = make_drain(Described("logs"), Other("mine"), Mistaken("odd"))
    for _ in range(5):
        drain.emit(event_factory())
    assert drain.flush(GIVE_UP_S)
    sink.note_deliveries()

    (note,) = noted(log)
    assert note["writer"] == "00000000000000aa"
    output = {"kind": "file", "content": True, "subject": "keyed hash", "part": "all"}
    assert {each["name"]: (each["output"], each["ranges"]) for each in note["sinks"]} == {
        "logs": (output, [[1, 5, 5]]),
        "mine": (None, [[1, 5, 5]]),
        "odd": (None, [[1, 5, 5]]),
    }


def test_what_a_sink_did_not_take_is_not_noted(make_drain, log, event_factory):
    """It was offered, and never acknowledged."""
    sink, drain = make_drain(Described("logs"), Other("dead", fails=True))
    drain.emit(event_factory())
    drain.flush(GIVE_UP_S)
    sink.note_deliveries()

    (note,) = noted(log)
    assert [each["name"] for each in note["sinks"]] == ["logs"]


def test_it_is_noted_rarely_and_only_where_there_is_something(
    make_drain, log, event_factory, clock
):
    """A second beat notes nothing; one after the interval, what came since."""
    sink, drain = make_drain(Described("logs"))
    drain.emit(event_factory())
    assert drain.flush(GIVE_UP_S)
    counts = []
    for seconds in (0, FIRST_S, 1, EVERY_S, EVERY_S):
        clock.now_s += seconds
        sink.beat()
        counts.append(len(noted(log)))
        if len(counts) == 2:
            drain.emit(event_factory())
            assert drain.flush(GIVE_UP_S)

    assert counts == [0, 1, 1, 2, 2]


def test_the_end_is_noted(make_drain, log, event_factory):
    """A process that lives for a moment leaves what it knows."""
    _sink, drain = make_drain(Described("logs"))
    for _ in range(3):
        drain.emit(event_factory())
    drain.close()

    (note,) = noted(log)
    assert [each["ranges"] for each in note["sinks"]] == [[[1, 3, 3]]]


def test_what_could_not_be_noted_is_noted_later(make_drain, log, event_factory, monkeypatch):
    """The database was away for a moment."""
    from mnemoscope.audit import AuditError

    sink, drain = make_drain(Described("logs"))
    drain.emit(event_factory())
    assert drain.flush(GIVE_UP_S)

    def away(*_args):
        raise AuditError("away")

    with monkeypatch.context() as patched:
        patched.setattr(log, "append_log_event", away)
        sink.note_deliveries()
    sink.note_deliveries()

    assert [each["sinks"][0]["ranges"] for each in noted(log)] == [[[1, 1, 1]]]


def test_the_end_waits_for_the_other_sinks_and_not_for_ever(make_drain, log, event_factory):
    """What a slow one still takes is noted; one that hangs delays nobody for long."""
    release = threading.Event()

    class Slow(Described):
        def write(self, batch):
            release.wait(GIVE_UP_S)

    _sink, drain = make_drain(Slow("slow"))
    drain.emit(event_factory())
    threading.Timer(0.1, release.set).start()
    drain.close(60)
    assert [each["name"] for each in noted(log)[0]["sinks"]] == ["slow"]

    release.clear()
    hung, drain = make_drain(Slow("hung"))
    drain.emit(event_factory())
    hung._deliveries.await_others(0.05)
    release.set()
    assert drain.flush(GIVE_UP_S)
