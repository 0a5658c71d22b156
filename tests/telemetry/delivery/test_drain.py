"""From the caller to the sinks: bounded, counted, and never waiting."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

from mnemoscope.memory.api import Event, Faults, UnavailableError
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane import Lane, inside_sink
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S, until

QUICK = LaneLimits(linger_s=0.001, backoff_s=0.001)


class ListSink:
    """
    Keeps events; fails and waits when told.

    Attributes:
        events: What was written.
        batches: How often.
        gate: Clear it, and every write waits.
        errors: Raised by the next writes, one each.
        flushes: Whether `flush` succeeds.
        closed_within: What `close` was told, or None.
    """

    def __init__(self, name="list", *, idempotent=False):
        self.name = name
        self.idempotent = idempotent
        self.events = []
        self.batches = 0
        self.gate = threading.Event()
        self.gate.set()
        self.writing = threading.Event()
        self.errors = []
        self.flushes = True
        self.closed_within = None

    def write(self, batch):
        """Keep *batch*."""
        self.batches += 1
        self.writing.set()
        self.gate.wait(GIVE_UP_S)
        if self.errors:
            raise self.errors.pop(0)
        self.events.extend(batch)

    def flush(self, _timeout_s):
        """Do as told."""
        if isinstance(self.flushes, Exception):
            raise self.flushes
        return self.flushes

    def close(self, timeout_s):
        """Note it."""
        self.closed_within = timeout_s


class RefusingSink(ListSink):
    """Answers flushes with *refusals*, one each, before it can."""

    def __init__(self, refusals):
        super().__init__()
        self.refusals = refusals

    def flush(self, timeout_s):
        """Do as told, once for each."""
        self.flushes = self.refusals.pop(0) if self.refusals else True
        return super().flush(timeout_s)


@pytest.fixture
def sink():
    """Return a sink that takes everything."""
    return ListSink()


@pytest.fixture
def make_drain():
    """Return a factory of drains, closed in the end whatever their sinks do."""
    made = []

    def make(*sinks, **given):
        made.append((Drain(sinks, **{"limits": QUICK, **given}), sinks))
        return made[-1][0]

    yield make
    for drain, sinks in made:
        for sink in sinks:
            sink.gate.set()
        drain.close(GIVE_UP_S)


def assert_balanced(drain):
    for books in drain.stats():
        assert books.offered == books.delivered + sum(books.dropped.values()) + books.queued, books


def lanes():
    return [each for each in threading.enumerate() if each.name.startswith("mnemoscope-")]


class TestDelivery:
    def test_every_sink_gets_every_event_in_order(self, make_drain, event_factory):
        """The very objects, batch by batch."""
        sinks = [ListSink("a"), ListSink("b")]
        drain = make_drain(*sinks)
        events = [event_factory() for _ in range(1_500)]
        for event in events:
            drain.emit(event)

        assert drain.flush(GIVE_UP_S)
        for sink in sinks:
            assert all(a is b for a, b in zip(sink.events, events, strict=True))
            assert 3 <= sink.batches <= 1_500

    def test_events_are_gathered_into_batches(self, make_drain, sink, event_factory):
        """No more than the limit in one."""
        drain = make_drain(sink, limits=LaneLimits(batch=10, linger_s=0.2))
        for _ in range(25):
            drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)
        assert sink.batches == 3

    def test_a_sink_that_gathers_gets_what_comes_in_its_time(self, make_drain, sink, event_factory):
        """A request costs more than what is in it; who waits for it does not wait so long."""
        sink.gathers_s = GIVE_UP_S
        drain = make_drain(sink)
        for _ in range(3):
            drain.emit(event_factory())
            time.sleep(5 * QUICK.linger_s)
        before = sink.batches

        assert drain.flush(GIVE_UP_S)
        assert (before, sink.batches, len(sink.events)) == (0, 1, 3)

    def test_a_full_batch_is_gathered_no_longer(self, make_drain, sink, event_factory):
        """Else the queue could be full before it is looked at."""
        sink.gathers_s = 10 * GIVE_UP_S
        drain = make_drain(sink, limits=LaneLimits(batch=10, linger_s=0.001))
        for _ in range(10):
            drain.emit(event_factory())
        until = time.monotonic() + GIVE_UP_S
        while not sink.batches and time.monotonic() < until:
            time.sleep(0.001)

        assert (sink.batches, len(sink.events)) == (1, 10)

    def test_large_events_are_gathered_no_longer(self, make_drain, sink, event_factory):
        """A queue that fills up by its bytes is as full as one of many events."""
        sink.gathers_s = 10 * GIVE_UP_S
        drain = make_drain(sink, limits=LaneLimits(size_bytes=1_000_000, linger_s=0.001))
        for _ in range(10):
            drain.emit(event_factory(size_bytes=30_000))

        assert until(lambda: sink.batches)

    def test_large_events_make_small_batches(self, make_drain, sink, event_factory):
        """A quarter of the bound at once, or a single event that is larger."""
        drain = make_drain(sink, limits=LaneLimits(size_bytes=1_000_000, linger_s=0.2))
        for size_bytes in (*[30_000] * 9, 300_000):
            drain.emit(event_factory(size_bytes=size_bytes))

        assert drain.flush(GIVE_UP_S)
        assert (len(sink.events), sink.batches) == (10, 3)
        assert drain.stats()[0].queued_bytes == 0

    def test_no_thread_starts_before_the_first_event(self, make_drain, sink):
        """A process that never remembers anything does not pay for a sink."""
        before = lanes()
        drain = make_drain(sink)

        assert lanes() == before
        assert drain.flush(GIVE_UP_S)

    def test_names_of_sinks_must_differ(self, sink):
        """Their books are kept by name."""
        with pytest.raises(ValueError, match="list, list"):
            Drain([sink, ListSink()])

    def test_sinks_are_not_observed(self, make_drain, sink, event_factory):
        """Neither by us nor by the host's OpenTelemetry instrumentation."""
        seen = []

        def write(_batch):
            drain.emit(event_factory())
            seen.append(
                (inside_sink(), get_value(_SUPPRESS_INSTRUMENTATION_KEY), drain.flush(GIVE_UP_S))
            )

        sink.write = write
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)
        assert seen == [(True, True, False)]
        assert not inside_sink()
        assert drain.stats()[0].offered == 1


class TestBounds:
    def test_the_oldest_events_are_dropped_and_counted(self, make_drain, sink, event_factory):
        """What happened last is worth more than what happened first."""
        sink.gate.clear()
        drain = make_drain(sink, limits=LaneLimits(items=10, batch=1, linger_s=0))
        drain.emit(event_factory())
        assert sink.writing.wait(GIVE_UP_S)
        events = [event_factory() for _ in range(25)]
        for event in events:
            drain.emit(event)
        (books,) = drain.stats()
        sink.gate.set()

        assert (books.offered, books.queued, books.dropped) == (26, 11, {"overflow": 15})
        assert not drain.flush(GIVE_UP_S)
        assert sink.events[1:] == events[-10:]
        assert_balanced(drain)

    def test_content_and_ids_weigh(self, make_drain, sink, event_factory):
        """The bound is in bytes as well as in events."""
        sink.gate.clear()
        drain = make_drain(sink, limits=LaneLimits(size_bytes=50_000, batch=1, linger_s=0))
        drain.emit(event_factory())
        assert sink.writing.wait(GIVE_UP_S)
        for _ in range(8):
            drain.emit(event_factory(size_bytes=10_000))
        large = drain.stats()[0]
        drain.emit(event_factory(memory_ids=("m",) * 1_000))
        many = drain.stats()[0]

        assert (large.queued, large.dropped) == (5, {"overflow": 4})
        assert many.dropped["overflow"] == 9
        assert max(large.queued_bytes, many.queued_bytes) <= 50_000
        assert_balanced(drain)

    @pytest.mark.parametrize(("size_bytes", "at_most"), [(0, 10 + 33), (10_000, 10)])
    def test_nobody_need_look_for_the_bounds_to_hold(
        self, make_drain, sink, event_factory, size_bytes, at_most
    ):
        """What is held and not counted yet is a few events, and small ones, however many come."""
        sink.gate.clear()
        drain = make_drain(sink, limits=LaneLimits(items=10, batch=1, linger_s=0))
        drain.emit(event_factory())
        assert sink.writing.wait(GIVE_UP_S)
        for number in range(1_000):
            drain.emit(event_factory(run=f"bounded-{number}", size_bytes=size_bytes))
        gc.collect()
        runs = [each.run for each in gc.get_objects() if type(each) is Event]

        assert 10 <= sum((run or "").startswith("bounded-") for run in runs) <= at_most
        assert_balanced(drain)

    def test_an_event_over_the_bound_is_dropped_itself(self, make_drain, sink, event_factory):
        """It does not stay because it is the newest."""
        drain = make_drain(sink, limits=LaneLimits(size_bytes=5_000))
        drain.emit(event_factory(size_bytes=10_000_000))

        assert drain.stats()[0].dropped == {"overflow": 1}
        assert drain.stats()[0].queued_bytes == 0

    def test_what_an_event_weighs_is_not_understated(self, event_factory):
        """Measured, with ids and scores, for the bound to mean what it says."""
        tracemalloc = pytest.importorskip("tracemalloc")
        from mnemoscope.telemetry.delivery.drain import _weight

        def make(n):
            ids = tuple(f"0c5e0b7e-0000-0000-0000-{n:06}{i:06}" for i in range(20))
            scores = tuple(i / 21 + n for i in range(20))
            return event_factory(memory_ids=ids, scores=scores, run=f"run-{n}" * 4, agent="a" * 30)

        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            events = [make(n) for n in range(200)]
            used = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        assert used <= sum(map(_weight, events))

    def test_emitting_takes_microseconds_whatever_sinks_do(self, make_drain, event_factory):
        """A hung and a failing sink cost the caller nothing."""
        hung, failing = ListSink("hung"), ListSink("failing")
        hung.gate.clear()
        failing.errors = [OSError() for _ in range(100_000)]
        drain = make_drain(hung, failing)
        events = [event_factory() for _ in range(2_000)]
        took = []
        for event in events:
            started = time.perf_counter()
            drain.emit(event)
            took.append(time.perf_counter() - started)

        assert sorted(took)[1_000] < 0.0005


class InlineListSink(ListSink):
    """One that could take events where they are made, and does if it says so."""

    def __init__(self, *, takes_inline=None):
        super().__init__("inline")
        self.threads = []
        if takes_inline is not None:
            self.takes_inline = takes_inline

    def take(self, event):
        """Keep *event*."""
        self.write([event])

    def sync(self):
        """Do nothing: there is no disk."""

    def write(self, batch):
        """Keep *batch*, and who wrote it."""
        self.threads.append(threading.current_thread())
        super().write(batch)


@pytest.mark.parametrize(
    ("said", "is_inline"), [(True, True), (False, False), (None, False)], ids=str
)
def test_a_sink_says_whether_it_takes_events_inline(make_drain, event_factory, said, is_inline):
    """Methods of those names alone are no reason to run it on the caller's thread."""
    sink = InlineListSink(takes_inline=said)
    drain = make_drain(sink)
    drain.emit(event_factory())

    assert drain.flush(GIVE_UP_S)
    assert [each is threading.current_thread() for each in sink.threads] == [is_inline]


class TestSinksThatFail:
    def test_one_sink_delays_no_other(self, make_drain, sink, event_factory, eventually):
        """One hangs, one raises, one is slow: the fourth has everything at once."""
        hung, broken, slow = ListSink("hung"), ListSink("broken"), ListSink("slow")
        hung.gate.clear()
        broken.errors = [OSError() for _ in range(1_000)]
        goes_on = threading.Event()
        slow.write = lambda _batch: goes_on.wait(GIVE_UP_S)
        drain = make_drain(hung, broken, slow, sink)
        for _ in range(100):
            drain.emit(event_factory())

        assert eventually(lambda: len(sink.events) == 100)
        assert_balanced(drain)
        goes_on.set()

    def test_an_idempotent_sink_is_tried_again(self, make_drain, event_factory):
        """With the same batch; nothing is lost."""
        sink = ListSink(idempotent=True)
        sink.errors = [OSError(), OSError()]
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)
        assert (len(sink.events), sink.batches) == (1, 3)

    def test_a_back_end_that_is_away_costs_nothing(self, make_drain, event_factory, eventually):
        """However long: events wait, the books say so, and all arrive once it is up."""
        sink = ListSink(idempotent=True)
        sink.errors = [UnavailableError("away") for _ in range(50)]
        limits = LaneLimits(linger_s=0.001, backoff_s=0.001, backoff_most_s=0.002)
        drain = make_drain(sink, limits=limits)
        for _ in range(100):
            drain.emit(event_factory())
        down = eventually(lambda: not drain.stats()[0].is_up)

        assert down
        assert eventually(lambda: len(sink.events) == 100)
        assert drain.stats()[0].is_up
        assert drain.stats()[0].dropped == {}

    def test_closing_does_not_wait_for_it(self, make_drain, event_factory):
        """One attempt more, without a pause, and what it does not take is counted."""
        sink = ListSink(idempotent=True)
        sink.errors = [UnavailableError("away", 3_600.0) for _ in range(99)]
        drain = make_drain(sink)
        drain.emit(event_factory())
        assert sink.writing.wait(GIVE_UP_S)
        started = time.monotonic()
        drain.close(GIVE_UP_S)

        assert time.monotonic() - started < GIVE_UP_S / 2
        assert drain.stats()[0].dropped == {"error": 1}

    def test_it_is_given_up_after_so_many_attempts(self, make_drain, event_factory):
        """And the loss counted, with the type of the error."""
        sink, faults = ListSink(idempotent=True), Faults()
        sink.errors = [OSError("ada@example.com") for _ in range(3)]
        drain = make_drain(sink, faults=faults)
        drain.emit(event_factory())

        assert not drain.flush(GIVE_UP_S)
        assert (sink.events, sink.batches) == ([], 3)
        assert drain.stats()[0].dropped == {"error": 1}
        assert drain.stats()[0].last_error == "OSError"
        assert faults.counts == {"sink.list": 3}

    def test_other_sinks_are_not_tried_again(self, make_drain, sink, event_factory):
        """A part of the batch may have arrived, and would be counted twice."""
        sink.errors = [OSError()]
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert not drain.flush(GIVE_UP_S)
        assert sink.batches == 1

    @pytest.mark.parametrize("exc", [SystemExit(1), KeyboardInterrupt(), MemoryError()])
    def test_no_exception_ends_the_lane(self, make_drain, sink, event_factory, exc):
        """A library that calls sys.exit() in its trouble costs its batch, not all that follow."""
        sink.errors = [exc]
        drain = make_drain(sink)
        drain.emit(event_factory())
        lost = drain.flush(GIVE_UP_S)
        drain.emit(event_factory())

        assert (lost, drain.flush(GIVE_UP_S)) == (False, True)
        assert len(sink.events) == 1
        assert_balanced(drain)

    def test_a_lane_that_broke_starts_anew(self, make_drain, sink, event_factory, monkeypatch):
        """What was being written is counted as lost, what waits is delivered."""
        drain, take = make_drain(sink), Lane._take
        failures = [MemoryError()]

        def fails_once(lane):
            batch = take(lane)
            if batch and failures:
                raise failures.pop()
            return batch

        monkeypatch.setattr(Lane, "_take", fails_once)
        drain.emit(event_factory())
        lost = drain.flush(GIVE_UP_S)
        drain.emit(event_factory())

        assert (lost, drain.flush(GIVE_UP_S)) == (False, True)
        assert len(sink.events) == 1
        assert drain.stats()[0].dropped == {"error": 1}

    def test_without_threads_events_are_dropped_and_counted(
        self, make_drain, sink, event_factory, monkeypatch
    ):
        """The next event tries again."""

        def refuse(_thread):
            raise RuntimeError("can't start new thread")

        drain = make_drain(sink)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            drain.emit(event_factory())
        lost = drain.flush(GIVE_UP_S)
        drain.emit(event_factory())

        assert (lost, drain.flush(GIVE_UP_S)) == (False, True)
        assert drain.stats()[0].dropped == {"thread": 1}


class TestFlush:
    def test_it_waits_for_everything_so_far(self, make_drain, sink, event_factory):
        """False while the sink is still at it, true when it has everything."""
        sink.gate.clear()
        drain = make_drain(sink)
        drain.emit(event_factory())
        early = drain.flush(0.05)
        sink.gate.set()

        assert (early, drain.flush(GIVE_UP_S)) == (False, True)

    def test_it_does_not_wait_for_what_comes_after(self, make_drain, sink, event_factory):
        """A busy application can flush."""
        drain, stop = make_drain(sink), threading.Event()

        def chatter():
            while not stop.wait(0.0005):
                drain.emit(event_factory())

        thread = threading.Thread(target=chatter)
        thread.start()
        try:
            assert all(drain.flush(GIVE_UP_S) for _ in range(20))
        finally:
            stop.set()
            thread.join()

    def test_it_does_not_wait_for_the_batch_to_gather(self, make_drain, sink, event_factory):
        """Somebody waits."""
        drain = make_drain(sink, limits=LaneLimits(linger_s=2 * GIVE_UP_S))
        drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)

    @pytest.mark.parametrize("flushes", [False, OSError()], ids=["false", "raises"])
    def test_a_sink_that_cannot_flush_is_not_complete(
        self, make_drain, sink, event_factory, flushes
    ):
        """What it buffers may be lost."""
        sink.flushes = flushes
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert not drain.flush(0.1)

    @pytest.mark.parametrize("refusal", [False, OSError()], ids=["false", "raises"])
    def test_a_sink_that_cannot_flush_for_a_moment_is_tried_again(
        self, make_drain, event_factory, refusal
    ):
        """What is left of the time is for it: a lock or a server may be free again."""
        sink = RefusingSink([refusal, refusal])
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert drain.flush(GIVE_UP_S)
        assert sink.refusals == []

    def test_it_tells_of_a_loss_once(self, make_drain, sink, event_factory):
        """False after a loss; then it is true again of what came later."""
        sink.errors = [OSError()]
        drain = make_drain(sink)
        drain.emit(event_factory())

        assert [drain.flush(GIVE_UP_S), drain.flush(GIVE_UP_S)] == [False, True]

    def test_a_hung_sink_holds_it_no_longer_than_said(self, make_drain, sink, event_factory):
        """All sinks share the time; requests that nobody waits for are not kept."""
        hung = [ListSink("a"), ListSink("b"), ListSink("c")]
        for each in hung:
            each.gate.clear()
        drain = make_drain(sink, *hung)
        drain.emit(event_factory())
        started = time.monotonic()

        assert [drain.flush(0.05) for _ in range(4)] == [False] * 4
        assert time.monotonic() - started < 1
        assert all(len(lane._flushes) <= 1 for lane in drain._lanes)


class TestClose:
    def test_what_is_queued_is_delivered(self, make_drain, sink, event_factory):
        """And the sink is closed, with the time that is left."""
        drain = make_drain(sink)
        for _ in range(5_000):
            drain.emit(event_factory())
        drain.close(GIVE_UP_S)

        assert len(sink.events) == 5_000
        assert 0 < sink.closed_within <= GIVE_UP_S
        assert not any(each.name == "mnemoscope-list" for each in threading.enumerate())

    def test_an_event_just_before_it_is_not_lost(self, event_factory):
        """However the two fall together with the lane's own steps."""
        for n in range(300):
            sink = ListSink()
            drain = Drain([sink], limits=LaneLimits(linger_s=0))
            for _ in range(n % 4 + 1):
                drain.emit(event_factory())
            drain.close(GIVE_UP_S)

            assert len(sink.events) == n % 4 + 1

    def test_an_event_between_the_last_look_and_the_end_is_not_lost(
        self, make_drain, sink, event_factory, monkeypatch
    ):
        """It was taken while the lane was open, so it is delivered."""
        drain, empty = make_drain(sink), Lane._empty
        late = [event_factory()]

        def emptied_just_before(lane):
            empty(lane)
            if late:
                drain.emit(late.pop())
                drain.begin_close(5)

        monkeypatch.setattr(Lane, "_empty", emptied_just_before)
        monkeypatch.setattr("mnemoscope.telemetry.delivery.drain.inside_sink", lambda: False)
        drain.emit(event_factory())
        drain.flush(GIVE_UP_S)
        drain.close(GIVE_UP_S)

        assert len(sink.events) == 2

    def test_events_after_it_are_counted(self, make_drain, sink, event_factory):
        """No thread starts again for them; flushing and closing again do nothing."""
        drain = make_drain(sink)
        drain.emit(event_factory())
        drain.close(GIVE_UP_S)
        drain.emit(event_factory())

        assert drain.stats()[0].dropped == {"closed": 1}
        assert not drain.flush(GIVE_UP_S)
        assert drain.flush(GIVE_UP_S)
        drain.close(GIVE_UP_S)
        assert_balanced(drain)

    def test_a_hung_sink_holds_it_no_longer_than_said(
        self, make_drain, sink, event_factory, eventually, caplog
    ):
        """What waits is lost and counted; with what it is at, it is logged. Others have all."""
        hung = ListSink("hung")
        hung.gate.clear()
        drain = make_drain(hung, sink, limits=LaneLimits(batch=1, linger_s=0))
        for _ in range(10):
            drain.emit(event_factory())
        assert hung.writing.wait(GIVE_UP_S)
        assert eventually(lambda: len(sink.events) == 10)
        started = time.monotonic()
        drain.close(0.2)
        took = time.monotonic() - started

        assert took < GIVE_UP_S / 2
        assert drain.stats()[0].dropped == {"exit": 9}
        assert caplog.messages[-1] == (
            "closing: sink hung did not acknowledge 10 events in time, which may be missing there: "
            "`mnemoscope doctor` tells whether it answers"
        )
        assert_balanced(drain)

    def test_what_a_dead_sink_is_left_with_is_logged(self, make_drain, event_factory, caplog):
        """A back end that refuses at once loses as much as one that hangs, and so it is said."""
        sink = ListSink("dead", idempotent=True)
        sink.errors = [ValueError()] * 3
        drain = make_drain(sink, limits=LaneLimits(batch=4, linger_s=0, backoff_s=0))
        drain.emit(event_factory())
        drain.flush(GIVE_UP_S)
        sink.errors = [UnavailableError("away") for _ in range(99)]
        for _ in range(7):
            drain.emit(event_factory())
        drain.close(GIVE_UP_S)

        assert drain.stats()[0].dropped == {"error": 8}
        assert "closing: sink dead did not acknowledge 7 events in time" in caplog.messages[-1]

    def test_what_comes_while_a_sink_opens_goes_out_together(self, make_drain, event_factory):
        """In one batch: a process that ends soon has no time for a second exchange."""
        opening, opened = threading.Event(), threading.Event()

        class SlowToOpen(ListSink):
            def open_ahead(self):
                opening.set()
                assert opened.wait(GIVE_UP_S)

        sink = SlowToOpen()
        drain = make_drain(sink, limits=LaneLimits(linger_s=0))
        drain.emit(event_factory())
        assert opening.wait(GIVE_UP_S)
        for _ in range(299):
            drain.emit(event_factory())
        opened.set()
        drain.close(GIVE_UP_S)

        assert (sink.batches, len(sink.events)) == (1, 300)

    def test_a_failing_sink_is_not_tried_for_ever(self, make_drain, event_factory):
        """Once for each batch, without pauses."""
        sink = ListSink(idempotent=True)
        sink.errors = [OSError() for _ in range(1_000)]
        drain = make_drain(sink, limits=LaneLimits(batch=1, linger_s=0, backoff_s=GIVE_UP_S))
        for _ in range(50):
            drain.emit(event_factory())
        started = time.monotonic()
        drain.close(GIVE_UP_S)

        assert time.monotonic() - started < GIVE_UP_S / 2
        assert sink.closed_within is not None

    def test_a_sink_that_cannot_close_is_no_matter(self, make_drain, sink, event_factory):
        """It is counted."""

        def close(_timeout_s):
            raise OSError

        sink.close, faults = close, Faults()
        drain = make_drain(sink, faults=faults)
        drain.emit(event_factory())
        drain.close(GIVE_UP_S)

        assert faults.counts == {"sink.list": 1}

    def test_five_hundred_drains_leave_no_threads(self, event_factory, eventually):
        """Closed or forgotten."""
        before = set(threading.enumerate())
        for n in range(500):
            drain = Drain([ListSink()], limits=QUICK)
            drain.emit(event_factory())
            if n % 2:
                drain.close(GIVE_UP_S)
        del drain
        gc.collect()

        assert eventually(lambda: set(threading.enumerate()) <= before)


class TestStress:
    def test_the_books_balance_under_many_threads(self, make_drain, event_factory):
        """While eight threads emit, sinks fail and overflow, and others look."""
        flaky, hung = ListSink("flaky"), ListSink("hung")
        flaky.errors = [OSError() for _ in range(20)]
        hung.gate.clear()
        sinks = [ListSink("good"), flaky, hung]
        drain = make_drain(*sinks, limits=LaneLimits(items=500, batch=64, linger_s=0.001))
        event = event_factory()
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [
                threading.Thread(target=lambda: [drain.emit(event) for _ in range(2_000)])
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                assert_balanced(drain)
        finally:
            sys.setswitchinterval(before)
        for thread in threads:
            thread.join()
        hung.gate.set()
        drain.flush(GIVE_UP_S)

        assert_balanced(drain)
        assert [books.offered for books in drain.stats()] == [16_000] * 3
        assert [books.delivered for books in drain.stats()] == [len(each.events) for each in sinks]
        assert all(books.queued == books.queued_bytes == 0 for books in drain.stats())

    def test_a_signal_handler_may_emit(self, make_drain, sink, event_factory):
        """Also in the middle of an emit on the same thread: no deadlock, nothing lost."""
        drain, event, handled = make_drain(sink), event_factory(), []

        def handle(_signal, _frame):
            drain.emit(event)
            handled.append(1)

        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        try:
            until, emitted = time.monotonic() + 0.4, 0
            while time.monotonic() < until:
                drain.emit(event)
                emitted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        drain.flush(GIVE_UP_S)

        assert len(handled) > 10
        assert drain.stats()[0].offered == emitted + len(handled)
        assert_balanced(drain)

    def test_a_caller_waits_for_nobody_who_holds_the_lanes_lock(
        self, make_drain, sink, event_factory
    ):
        """To take it costs more than all else; whoever holds it next counts the event."""
        drain = make_drain(sink)
        drain.emit(event_factory())
        drain.flush(GIVE_UP_S)
        (lane,) = drain._lanes
        emitting = threading.Thread(target=drain.emit, args=(event_factory(),))
        with lane._lock:
            emitting.start()
            emitting.join(GIVE_UP_S)
            waited = emitting.is_alive()
        emitting.join()

        assert not waited
        assert drain.stats()[0].offered == 2
        assert drain.flush(GIVE_UP_S)

    def test_a_finaliser_may_emit_inside_the_lanes_lock(self, make_drain, sink, event_factory):
        """The collector runs whenever it likes, on whichever thread."""
        drain = make_drain(sink)
        drain.emit(event_factory())
        drain.flush(GIVE_UP_S)
        (lane,) = drain._lanes

        class Finalised:
            def __del__(self):
                drain.emit(event_factory())

        with lane._lock:
            Finalised()

        assert drain.flush(GIVE_UP_S)
        assert len(sink.events) == 2

    def test_a_handler_during_the_first_emit_starts_no_second_thread(
        self, make_drain, sink, event_factory, monkeypatch
    ):
        """A sink is called from one thread only."""
        drain, start, started = make_drain(sink), threading.Thread.start, []

        def interrupted(thread):
            started.append(thread)
            if len(started) == 1:
                drain.emit(event_factory())
                drain.close(0.1)
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", interrupted)
        drain.emit(event_factory())
        monkeypatch.undo()

        assert len(started) == 1


class TestFork:
    def test_a_child_is_another_writer_with_lanes_of_its_own(self, tmp_path, event_factory):
        """What the parent queued the parent delivers; nothing is delivered twice."""
        sink = FileSink(tmp_path)
        drain = Drain([sink], limits=LaneLimits(linger_s=0.3))
        for _ in range(3):
            drain.emit(event_factory(writer_id=drain.writer_id))
        status = exit_code_of_child(lambda: _emit_as_child(drain, event_factory))
        drain.close(GIVE_UP_S)

        written = sorted((tmp_path / "events").read_text().split())
        writers = {line.partition("-")[0] for line in written}
        assert status == 0
        assert len(written) == len(set(written)) == 5
        assert len(writers) == 2
        assert drain.writer_id in writers

    def test_a_child_works_whatever_locks_were_held(self, sink, event_factory):
        """Another thread may be anywhere in an emit while the process forks."""
        drain, release, held = Drain([sink], limits=QUICK), threading.Event(), threading.Event()
        drain.emit(event_factory())
        drain.flush(GIVE_UP_S)
        (lane,) = drain._lanes

        def hold():
            with lane._lock:
                held.set()
                release.wait(GIVE_UP_S)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(GIVE_UP_S)

        def child():
            drain.emit(event_factory())
            return drain.flush(GIVE_UP_S) and len(sink.events) == 2

        try:
            assert exit_code_of_child(child) == 0
        finally:
            release.set()
            thread.join()
            drain.close(GIVE_UP_S)


class TestExit:
    def test_a_process_with_a_hung_sink_ends(self):
        """All sinks together hold it for two seconds at most."""
        script = dedent(
            """
            import atexit, time
            from mnemoscope.telemetry.delivery.drain import Drain
            from mnemoscope.telemetry.event.event import Event, OperationClass, Status
            from mnemoscope.telemetry.event.trace import TraceRef

            class Hung:
                idempotent = True
                def __init__(self, name): self.name = name
                def write(self, batch): time.sleep(600)
                def flush(self, timeout_s): time.sleep(600)
                def close(self, timeout_s): time.sleep(600)

            drain = Drain([Hung(name) for name in "abcde"])
            atexit.register(lambda: (drain.close(), print(time.monotonic() - started)))
            drain.emit(Event(
                writer_id="a", writer_seq=1, started_ns=0, duration_s=0, operation="search_memory",
                op_class=OperationClass.RECALL, store="mem0", method="search", status=Status.OK,
                trace=TraceRef(1, 1),
            ))
            started = time.monotonic()
            """
        )
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=True,
        )

        assert float(done.stdout) < 2.3
        assert time.monotonic() - started < 10
        assert done.stderr.splitlines() == [
            f"closing: sink {name} did not acknowledge 1 event in time, which may be missing "
            "there: `mnemoscope doctor` tells whether it answers"
            for name in "abcde"
        ]

    def test_a_forgotten_drain_does_not_hold_the_exit(self):
        """Its threads are daemons."""
        script = dedent(
            """
            import time
            from mnemoscope.telemetry.delivery.drain import Drain
            from mnemoscope.telemetry.event.event import Event, OperationClass, Status
            from mnemoscope.telemetry.event.trace import TraceRef

            class Hung:
                name, idempotent = "hung", True
                def write(self, batch): time.sleep(600)

            drain = Drain([Hung()])
            drain.emit(Event(
                writer_id="a", writer_seq=1, started_ns=0, duration_s=0, operation="search_memory",
                op_class=OperationClass.RECALL, store="mem0", method="search", status=Status.OK,
                trace=TraceRef(1, 1),
            ))
            """
        )

        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=True,
        )
        assert done.stderr == ""


class FileSink:
    """Appends the id of each event to a file, so that two processes can be told apart."""

    name, idempotent = "file", False

    def __init__(self, folder):
        self.path = folder / "events"

    def write(self, batch):
        with self.path.open("a") as out:
            out.write("".join(f"{event.writer_id}-{event.writer_seq}\n" for event in batch))

    def flush(self, _timeout_s):
        return True

    def close(self, _timeout_s):
        return


def _emit_as_child(drain: Drain, event_factory) -> bool:
    for _ in range(2):
        event: Event = event_factory(writer_id=drain.writer_id, writer_seq=drain.next_seq())
        drain.emit(event)
    flushed = drain.flush(GIVE_UP_S)
    drain.close(GIVE_UP_S)
    return flushed and drain.stats()[0].offered == 2


def test_a_sink_without_events_is_closed_too():
    """What it has opened as it was made, a port say, it lets go."""

    class Opened:
        name = "opened"
        idempotent = True
        closed = 0

        def write(self, batch, /):
            raise AssertionError

        def flush(self, timeout_s, /):
            return True

        def close(self, timeout_s, /):
            self.closed += 1

    sink = Opened()
    drain = Drain([sink])
    drain.close(1.0)
    drain.close(1.0)

    assert sink.closed == 1
