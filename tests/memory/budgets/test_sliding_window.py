"""A sum over a sliding window, in constant memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.memory.limits.sliding_window import SlidingSum

HOUR = 3_600.0


@pytest.mark.parametrize("begun", [0.0, 7.0, 1e9 + 0.25])
def test_an_amount_counts_for_a_period_and_not_for_two(begun):
    """It leaves between one period and a sixtieth of one later."""
    amounts = SlidingSum(HOUR, begun)
    amounts.add(5, begun)

    assert amounts.total(begun) == 5
    assert amounts.total(begun + HOUR - 0.001) == 5
    assert amounts.total(begun + HOUR + HOUR / 60 + 0.001) == 0


@given(
    steps=st.lists(
        st.tuples(st.floats(0, 2 * HOUR, allow_nan=False), st.integers(0, 1_000)), max_size=60
    )
)
def test_it_is_the_sum_over_the_window_whatever_the_rhythm(steps):
    """Never less than the last period's amounts, and never more than those of a bucket longer."""
    amounts, now, added = SlidingSum(HOUR, 0.0), 0.0, []
    for pause, amount in steps:
        now += pause
        amounts.add(amount, now)
        added.append((now, amount))

        least = sum(each for at, each in added if now - at < HOUR)
        most = sum(each for at, each in added if now - at <= HOUR * 61 / 60)
        assert least <= amounts.total(now) <= most


def test_memory_does_not_grow():
    """A million amounts take the place of one."""
    amounts = SlidingSum(HOUR, 0.0)
    size = len(amounts._amounts)
    for second in range(10_000):
        amounts.add(1, float(second))

    assert len(amounts._amounts) == size == 61


def test_the_pace_is_that_of_the_last_tenth_of_a_period():
    """Ten units a second for the last six minutes are ten a second, whatever was before."""
    amounts = SlidingSum(HOUR, 0.0)
    for second in range(3_000):
        amounts.add(1, float(second))
    for second in range(3_000, 3_600):
        amounts.add(10, float(second))

    assert amounts.per_second(3_599.999) == pytest.approx(10, rel=1e-3)


def test_the_pace_of_a_first_moment_is_not_infinite():
    """A single amount at the beginning is spread over a bucket, not over no time at all."""
    amounts = SlidingSum(HOUR, 100.0)
    amounts.add(60, 100.0)

    assert amounts.per_second(100.0) == pytest.approx(1)


def test_a_clock_that_goes_back_forgets_nothing():
    """An amount of a moment ago is counted now."""
    amounts = SlidingSum(HOUR, 1_000.0)
    amounts.add(1, 1_000.0)
    amounts.add(1, 900.0)

    assert amounts.total(1_000.0) == 2
