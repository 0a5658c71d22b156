"""Blame: which operation a second belongs to."""

import pytest

from mnemoscope.memory.api import TraceRef
from mnemoscope.telemetry.event.self_time import SelfTime

OUTER = TraceRef(0xA, 0x1)
INNER = TraceRef(0xA, 0x2, parent_span_id=0x1)


@pytest.fixture
def inner(event_factory):
    """Return Qdrant's part of a recall: 0.9 s."""
    return event_factory(store="qdrant", duration_s=0.9, nested=True, trace=INNER)


@pytest.fixture
def outer(event_factory):
    """Return mem0's recall around it: 1 s."""
    return event_factory(store="mem0", duration_s=1.0, trace=OUTER)


def test_what_ran_inside_is_not_ones_own(inner, outer):
    """Qdrant is slow inside mem0: nearly all of mem0's second is Qdrant's."""
    own = SelfTime().self_seconds([inner, outer])

    assert own == pytest.approx([0.9, 0.1])


def test_a_parent_may_come_in_a_later_batch(inner, outer):
    """Batches end anywhere."""
    time = SelfTime()

    assert [*time.self_seconds([inner]), *time.self_seconds([outer])] == pytest.approx([0.9, 0.1])


def test_a_parent_that_gave_up_first_is_not_to_blame(inner, outer):
    """Its deadline ran out while the store below hung, which is reported a moment later."""
    own = SelfTime().self_seconds([outer, inner])

    assert own == pytest.approx([0.1, 0.9])


def test_a_span_of_the_hosts_own_takes_nothing_away(outer, event_factory):
    """An operation below the host's span is nobody's part."""
    below = event_factory(duration_s=0.9, trace=INNER)

    assert SelfTime().self_seconds([below, outer]) == [0.9, 1.0]


def test_two_at_once_inside_never_make_less_than_nothing(outer, event_factory):
    """Parallel calls may take longer together than the one that made them."""
    both = [
        event_factory(duration_s=0.9, nested=True, trace=TraceRef(0xA, span, parent_span_id=0x1))
        for span in (2, 3)
    ]

    assert SelfTime().self_seconds([*both, outer])[-1] == 0.0


@pytest.mark.parametrize("odd", [-1.0, float("nan")])
def test_a_duration_that_is_none_counts_for_nothing(odd, event_factory):
    """One NaN would spoil a counter for good."""
    assert SelfTime().self_seconds([event_factory(duration_s=odd)]) == [0.0]


def test_orphans_are_forgotten(inner, outer, event_factory):
    """What waits for a parent is bounded; the oldest goes first."""
    time = SelfTime(pending=1)
    later = event_factory(nested=True, trace=TraceRef(0xB, 0x2, parent_span_id=0x1))

    time.self_seconds([inner, later])

    assert time.self_seconds([outer]) == [1.0]
