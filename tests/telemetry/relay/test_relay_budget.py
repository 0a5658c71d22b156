"""
What an event costs its process and the relay's, counted and not timed.

Budgets are what was seen on Python 3.13, and a fiftieth. `make bench-relay` has the microseconds.
"""

from __future__ import annotations

import threading

import pytest
from prometheus_client import CollectorRegistry

from mnemoscope.memory.api import Faults, Subject
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.lane import Lane
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from mnemoscope.telemetry.event.sink_pseudonyms import SinkPseudonyms
from mnemoscope.telemetry.langsmith.direct import DirectRuns
from mnemoscope.telemetry.langsmith.runs import runs_of
from mnemoscope.telemetry.logs.sink import LogSink
from mnemoscope.telemetry.otlp.fast.wire import span_of
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from mnemoscope.telemetry.queue.event_file import PAGE_BYTES
from mnemoscope.telemetry.queue.folder import files_in
from mnemoscope.telemetry.queue.source import EventSource
from mnemoscope.telemetry.relay.sink import RelaySink
from tests.kit.call_costs import cost_of, counted_here

from .conftest import KEYS

BATCH = 64


@pytest.fixture
def events(event_factory):
    """Return recalls of one customer that found a memory each."""
    return [
        event_factory(
            writer_id="a" * 16,
            writer_seq=number + 1,
            subject=Subject("customer", tenant="acme", keys=KEYS),
            tenant="acme",
            run="run",
            hits=1,
            memory_ids=("memory",),
            scores=(0.5,),
        )
        for number in range(BATCH)
    ]


def appended(events, folder, _tmp_path):
    """Return the appending of them by their process."""
    sink = RelaySink(folder, KEYS, shows=True)
    sink._teller.has_begun = True
    return lambda: [sink.take(each) for each in events]


def read(events, folder, _tmp_path):
    """Return the reading of them by the relay."""
    sink = RelaySink(folder, KEYS)
    sink.write(events)
    source = EventSource(files_in(folder)[0], [KEYS], content_again)
    return lambda: source._read(PAGE_BYTES, BATCH)


def queued(events, _folder, _tmp_path):
    """Return the queueing of them for one sink, up to its batch, and its acknowledgement."""
    lane = Lane(CapturingSink(), LaneLimits(), Faults())
    lane._thread = threading.current_thread()  # else it would start one, and be two
    weighed = [(each, 1_000) for each in events]

    def call():
        lane._offers.extend(weighed)
        lane._admit()
        lane.acknowledged.add(lane._take())
        lane._settle()

    return call


def renamed(events, _folder, _tmp_path):
    """Return what is done with names for one sink."""
    pseudonyms = SinkPseudonyms(KEYS, "otlp")
    return lambda: [*map(pseudonyms.event, events)]


def sent(events, _folder, _tmp_path):
    """Return the body of a request to LangSmith."""
    direct = DirectRuns(None, b"boundary")
    return lambda: direct.body(runs_of(events, "project", content=False))


def spanned(events, _folder, _tmp_path):
    """Return their spans, as OTLP has them."""
    return lambda: [span_of(each, lambda _ref: b"", content=False) for each in events]


def logged(events, _folder, tmp_path):
    """Return the lines of a log file."""
    sink = LogSink(file=tmp_path / "events.jsonl")
    return lambda: sink.write(events)


def counted(events, _folder, _tmp_path):
    """Return their counting for Prometheus."""
    sink = PrometheusSink(registry=CollectorRegistry())
    return lambda: sink.write(events)


@counted_here
@pytest.mark.parametrize(
    ("work", "instructions"),
    [
        pytest.param(appended, 294, id="append"),
        pytest.param(read, 216, id="read"),
        pytest.param(queued, 22, id="queue"),
        pytest.param(renamed, 46, id="pseudonyms"),
        pytest.param(sent, 649, id="langsmith"),
        pytest.param(spanned, 831, id="otlp"),
        pytest.param(logged, 440, id="logs"),
        pytest.param(counted, 807, id="prometheus"),
    ],
)
def test_an_event_stays_within_its_budget(work, instructions, events, folder, tmp_path):
    """In each part of the way that is the relay's."""
    cost = cost_of(work(events, folder, tmp_path))

    assert cost.instructions / BATCH <= instructions
