"""Our own errors: counted, told once a minute, and never the host's problem."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from mnemoscope.memory.api import Faults
from tests.kit.patience import GIVE_UP_S


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    """Return a clock at zero."""
    return Clock()


@pytest.fixture
def faults(clock):
    """Return counts that trip at the third error in a minute."""
    return Faults(limit=3, window_s=60, clock=clock)


def test_errors_are_counted_by_where_they_happened(faults):
    """Those that trip and those that do not."""
    faults.note("guard.scope", ValueError())
    faults.note("guard.scope", ValueError(), trips=True)
    faults.note("sink.otlp", OSError())
    faults.count("guard.unreported")

    assert faults.counts == {"guard.scope": 2, "sink.otlp": 1, "guard.unreported": 1}


def test_they_are_told_by_type_and_never_by_message(faults, caplog):
    """The message may quote what the user wrote."""
    faults.note("guard.scope", ValueError("ada@example.com"))

    assert "guard.scope (ValueError" in caplog.text
    assert "ada@" not in caplog.text


def test_each_place_is_told_of_once_a_minute(faults, caplog, clock):
    """A broken path cannot flood the host's log."""
    for _ in range(50):
        faults.note("guard.scope", ValueError())
        faults.note("sink.otlp", OSError())
    at_first = len(caplog.records)
    clock.now += 60
    faults.note("guard.scope", ValueError())

    assert (at_first, len(caplog.records)) == (2, 3)
    assert "51 times so far" in caplog.text


def test_a_host_without_logging_reads_warnings():
    """On stderr, as Python prints warnings where nobody has set logging up; and nothing below."""
    code = (
        "import logging\n"
        "from mnemoscope.telemetry.process.faults import Faults\n"
        "logging.getLogger('mnemoscope').info('ordinary')\n"
        "Faults().note('guard.scope', ValueError('ada@example.com'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=GIVE_UP_S
    )

    (line,) = run.stderr.splitlines()
    assert "guard.scope (ValueError" in line


@pytest.mark.parametrize("name", ["two\nlines", "\udcff", "\x1b[2J", "fine %s"])
def test_a_line_of_the_log_is_one_line_of_valid_text(caplog, name):
    """A name or a path in it may hold what no file and no screen takes."""
    logging.getLogger("mnemoscope").warning("%s cannot be used", name)

    (record,) = caplog.records
    assert record.message.encode().decode().isprintable()
    assert record.message.endswith(" cannot be used")


def test_a_logging_handler_may_fail(faults):
    """It is foreign code on the caller's thread."""

    class Broken(logging.Handler):
        def handle(self, _record):
            raise RuntimeError

    logger, handler = logging.getLogger("mnemoscope"), Broken()
    logger.addHandler(handler)
    try:
        faults.note("guard.scope", ValueError())
    finally:
        logger.removeHandler(handler)

    assert faults.counts == {"guard.scope": 1}


def test_a_logging_handler_may_come_back_to_us(faults):
    """A host that remembers its own log lines gets one level of them, not a loop."""
    calls = []

    class Remembering(logging.Handler):
        def emit(self, _record):
            calls.append(1)
            faults.note("guard.scope", ValueError())

    logger, handler = logging.getLogger("mnemoscope"), Remembering()
    logger.addHandler(handler)
    try:
        faults.note("guard.scope", ValueError())
    finally:
        logger.removeHandler(handler)

    assert (len(calls), faults.counts["guard.scope"]) == (1, 2)


def test_it_trips_when_too_many_come_in_a_window(faults, clock, caplog):
    """Says so once, and recovers when they are past."""
    seen = []
    for _ in range(5):
        faults.note("guard.report", ValueError(), trips=True)
        seen.append(faults.tripped)
    clock.now += 60

    assert seen == [False, False, True, True, True]
    assert not faults.tripped
    assert caplog.text.count("stops observing") == 1


def test_it_does_not_trip_when_they_are_far_between(faults, clock):
    """One error a minute is a nuisance, not a state."""
    for _ in range(10):
        faults.note("guard.report", ValueError(), trips=True)
        clock.now += 31

    assert not faults.tripped


def test_sinks_do_not_trip_it(faults):
    """A dead sink is its own lane's concern: the others go on."""
    for _ in range(100):
        faults.note("sink.otlp", OSError())

    assert not faults.tripped


def test_none_is_lost_between_threads():
    """Eight threads that fail at once."""
    faults = Faults()
    threads = [
        threading.Thread(target=lambda: [faults.count("guard.scope") for _ in range(5_000)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert faults.counts == {"guard.scope": 40_000}
