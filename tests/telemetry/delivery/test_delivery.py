"""One batch and one sink: whether it is asked again, when, and for how much."""

from __future__ import annotations

from collections import Counter

import pytest

from mnemoscope.memory.api import PartialError, UnacceptableError, UnavailableError
from mnemoscope.telemetry.delivery.delivery import RETRY_AFTER_MOST_S, SPLITS, Delivery
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits


class Sink:
    """
    Takes what it is not told to fail for.

    Attributes:
        errors: Raised by the next writes, one each.
        poison: Events that it refuses a batch for.
    """

    name = "sink"

    def __init__(self, *errors, poison=(), idempotent=True):
        self.errors = list(errors)
        self.poison = set(poison)
        self.idempotent = idempotent
        self.taken = []
        self.writes = 0

    def write(self, batch):
        """Take *batch*, or fail as told."""
        self.writes += 1
        if self.errors:
            raise self.errors.pop(0)
        if self.poison & set(batch):
            raise UnacceptableError("no")
        self.taken += batch


class Bench:
    """A delivery whose pauses are noted and not waited for."""

    def __init__(self, sink, **limits):
        self.pauses = []
        self.closing = False
        self.delivery = Delivery(
            sink,
            LaneLimits(**limits),
            attempt=self._attempt,
            pause=self.pauses.append,
            is_closing=lambda: self.closing,
        )

    @staticmethod
    def _attempt(step):
        try:
            step()
        except Exception as exc:  # noqa: BLE001 - as the lane does
            return exc
        return None

    def deliver(self, batch):
        return dict(self.delivery.deliver(batch))


def test_what_is_taken_is_delivered():
    """Once, without a pause."""
    sink = Sink()
    bench = Bench(sink)

    assert bench.deliver([1, 2]) == {"delivered": 2}
    assert (sink.writes, bench.pauses) == (1, [])


def test_a_back_end_that_is_away_is_waited_for():
    """Whatever it takes; the same batch, and each pause about double the last, up to a bound."""
    sink = Sink(*[UnavailableError("away")] * 2_000)
    bench = Bench(sink, backoff_s=1.0, backoff_most_s=30.0)

    assert bench.deliver([1, 2]) == {"delivered": 2}
    assert sink.taken == [1, 2]
    assert len(bench.pauses) == 2_000
    for pause, expected in zip(bench.pauses, [1, 2, 4, 8, 16, *[30] * 1_995], strict=True):
        assert 0.8 * expected <= pause <= 1.2 * expected


def test_it_is_asked_one_thing_at_a_time():
    """It shows meanwhile that it is away, and afterwards that it is back."""
    sink, seen = Sink(UnavailableError("away"), UnavailableError("away")), []
    bench = Bench(sink)
    bench.delivery._pause = lambda _s: seen.append((bench.delivery.is_up, sink.writes))
    bench.deliver([1])

    assert seen == [(False, 1), (False, 2)]
    assert bench.delivery.is_up


@pytest.mark.parametrize(("asked", "pause"), [(60.0, 60.0), (3_600.0, RETRY_AFTER_MOST_S)])
def test_it_is_left_alone_for_as_long_as_it_asks(asked, pause):
    """Within reason."""
    bench = Bench(Sink(UnavailableError("busy", asked)), backoff_s=0.001)
    bench.deliver([1])

    assert bench.pauses == [pause]


def test_only_the_event_to_blame_is_lost():
    """The others of its batch arrive, in order."""
    batch = list(range(512))
    sink = Sink(poison={313})
    bench = Bench(sink)

    assert bench.deliver(batch) == {"delivered": 511, "refused": 1}
    assert sink.taken == [each for each in batch if each != 313]
    assert sink.writes < 25
    assert bench.pauses == []


def test_a_back_end_that_refuses_everything_is_not_asked_for_ever():
    """So many questions a batch, and the rest of it is lost as well."""
    batch = list(range(512))
    sink = Sink(poison=batch)

    assert Bench(sink).deliver(batch) == {"refused": 512}
    assert sink.writes <= 2 * SPLITS + 1


def test_a_part_may_have_to_wait_too():
    """An outage in the middle of finding the event to blame loses nothing."""
    sink = Sink(UnacceptableError("no"), UnavailableError("away"), poison={0})
    bench = Bench(sink)

    assert bench.deliver([0, 1, 2, 3]) == {"delivered": 3, "refused": 1}
    assert len(bench.pauses) == 1


@pytest.mark.parametrize(("said", "refused"), [(1, 1), (4, 4), (9, 4)])
def test_a_back_end_that_took_a_part_is_not_sent_it_again(said, refused):
    """What it rejected is counted, of spans at most as many as there were events."""
    sink = Sink(PartialError("some", said))
    bench = Bench(sink)

    outcome = bench.deliver([1, 2, 3, 4])
    assert (outcome["delivered"], outcome["refused"]) == (4 - refused, refused)
    assert (sink.writes, bench.pauses) == (1, [])
    assert bench.delivery.is_up


def test_what_fails_for_no_known_reason_is_tried_so_often():
    """And given up, for it may never succeed."""
    sink = Sink(*[OSError()] * 3)
    bench = Bench(sink, attempts=3, backoff_s=1.0)

    assert bench.deliver([1, 2]) == {"error": 2}
    assert (sink.writes, len(bench.pauses)) == (3, 2)


@pytest.mark.parametrize("error", [OSError(), UnavailableError("away")])
def test_a_sink_that_would_count_twice_is_not_asked_twice(error):
    """A part of the batch may have arrived."""
    sink = Sink(error, idempotent=False)

    assert Bench(sink).deliver([1, 2]) == {"error": 2}
    assert sink.writes == 1


def test_a_sink_that_would_count_twice_is_halved_all_the_same():
    """It said that it took nothing of the batch."""
    sink = Sink(poison={1}, idempotent=False)

    assert Bench(sink).deliver([1, 2]) == {"delivered": 1, "refused": 1}


def test_nobody_waits_while_closing():
    """One attempt, and no pause."""
    sink = Sink(*[UnavailableError("away")] * 9)
    bench = Bench(sink)
    bench.closing = True

    assert Counter(bench.deliver([1])) == Counter(error=1)
    assert (sink.writes, bench.pauses) == (1, [])
