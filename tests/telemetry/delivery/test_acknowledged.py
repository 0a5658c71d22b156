"""The numbers of what a sink has acknowledged."""

from __future__ import annotations

from random import Random

import pytest

from mnemoscope.memory.api import UnacceptableError
from mnemoscope.telemetry.delivery.acknowledged import MOST_RANGES, Acknowledged, NumberRange
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit.patience import GIVE_UP_S


class Choosy:
    """Refuses events of one feature."""

    name = "choosy"
    idempotent = True

    def write(self, batch):
        if any(each.feature == "bad" for each in batch):
            raise UnacceptableError("not that one")

    def flush(self, timeout_s):
        return True

    def close(self, timeout_s):
        return None


def test_numbers_in_a_row_are_one_range(event_factory):
    """However they were cut into batches."""
    acknowledged = Acknowledged()
    for batch in ([event_factory() for _ in range(size)] for size in (3, 1, 6)):
        acknowledged.add(batch)

    assert acknowledged.take() == {"00000000000000aa": [NumberRange(1, 10, 10)]}
    assert acknowledged.take() == {}


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_bounded_and_never_say_too_little(event_factory, seed):
    """Any order, any holes: each number is in a range, and the counts add up."""
    random = Random(seed)  # noqa: S311 - a seed, not a secret
    numbers = random.sample(range(1, 400), 150)
    acknowledged = Acknowledged()
    while numbers:
        batch, numbers = numbers[:7], numbers[7:]
        acknowledged.add([event_factory(writer_seq=each) for each in batch])
        ranges = acknowledged._ranges["00000000000000aa"]
        assert len(ranges) <= MOST_RANGES
        assert all(any(one.first <= each <= one.last for one in ranges) for each in batch)
    (ranges,) = acknowledged.take().values()
    assert sum(each.n_events for each in ranges) == 150
    assert all(each.n_events <= each.last - each.first + 1 for each in ranges)


def test_what_a_sink_refuses_is_not_acknowledged(event_factory):
    """Of a batch that was halved until the event at fault stood alone, the others are."""
    drain = Drain([Choosy()])
    for number in range(1, 8):
        drain.emit(event_factory(writer_seq=number, feature="bad" if number == 4 else None))
    drain.flush(GIVE_UP_S)
    (deliveries,) = drain.deliveries()
    drain.close()

    taken = deliveries.acknowledged.take()["00000000000000aa"]
    assert taken == [NumberRange(1, 3, 3), NumberRange(5, 7, 3)]
    assert deliveries.acknowledged.output is None
