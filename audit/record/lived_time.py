"""
The time that a log has lived through, as far as its own events bear it out.

A clock may be wrong by years, and what is removed cannot be put back. So a span counts only where
events are spread over it. The events of a log are in the order in which they were recorded,
whatever the clocks of their writers said. Split where time goes back, or ahead by more than one
silence, they are stretches, and the age of an event is what those behind it have lived through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

CLOCK_JUMPED = "clock.jumped"
"""Event: the clock of whoever records the next events disagrees with the log's newest one."""

DAY_US = 86_400_000_000

SILENCE_US = 31 * DAY_US
"""The longest time without an event that the clock of one process is believed."""

SKEW_US = 3_600_000_000
"""
How far the clocks of processes may be apart.

A clock that is less behind is not followed, and an event may claim to have happened so much later
than it was recorded.
"""

SETTLED_US = DAY_US
"""Time that a log lives through after a clock jumped before anything is removed from it."""

CONFIRMED_US = 7 * DAY_US
"""Time that it lives through after one went ahead before that is taken for time that passed."""


LATEST_US = 253_402_300_799_999_999
"""The end of the year 9999: no date is written behind it, and none before 1970."""


class Stretch(NamedTuple):
    """
    Consecutive events whose times go on without a jump.

    Attributes:
        first: Number of its first event.
        last: And of its last.
        began_us: When the first was recorded, microseconds since 1970 UTC.
        ended_us: And the last.
    """

    first: int
    last: int
    began_us: int
    ended_us: int

    def is_followed_by(self, later: Stretch) -> bool:
        """Return whether *later*, which comes next, goes on from where this one ended."""
        return goes_on(self.ended_us, later.began_us)


class Cut(NamedTuple):
    """
    A place in a log before which everything is of some age.

    Attributes:
        stretch: Where it is.
        before_us: In it, events of before that time.
    """

    stretch: Stretch
    before_us: int


def of_calendar(clock_us: int) -> int:
    """Return the time that a clock tells, or the nearest to it of which a date can be written."""
    return min(max(clock_us, 0), LATEST_US)


def goes_on(before_us: int, after_us: int) -> bool:
    """Return whether time may have gone on from one event to the next."""
    return 0 <= after_us - before_us <= SILENCE_US


def agrees(newest_us: int, clock_us: int) -> bool:
    """Return whether a clock may be right after the newest event of a log."""
    return -SKEW_US <= clock_us - newest_us <= SILENCE_US


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return *stretches*, in order, with those that go on made one."""
    found: list[Stretch] = []
    for each in stretches:
        if found and found[-1].is_followed_by(each):
            found[-1] = found[-1]._replace(last=each.last, ended_us=each.ended_us)
        else:
            found.append(each)
    return found


def aged(
    stretches: Sequence[Stretch],
    now_us: int,
    age_us: int,
    *,
    before_us: int,
    between_us: int = SILENCE_US,
) -> Cut | None:
    """
    Return the latest place before which all events are so old; None: there is none.

    Args:
        stretches: Of the log, oldest first.
        now_us: The time, microseconds since 1970 UTC.
        age_us: What has to be lived through since.
        before_us: Only events of before that time.
        between_us: What a jump of the clock counts as at most.
    """
    for each in _line(stretches, now_us, between_us):
        cut_us = min(each.ended_us - max(0, age_us - each.lived_us), before_us)
        if cut_us >= each.stretch.began_us:
            return Cut(each.stretch, cut_us)
    return None


def lived_us(stretches: Sequence[Stretch], at: int, now_us: int) -> int:
    """
    Return what the log lived through up to an event, in microseconds.

    Args:
        stretches: Of the log, oldest first, from the first event that counts.
        at: Number of the last event that counts.
        now_us: When it was recorded.
    """
    before = [each for each in stretches if each.first <= at]
    last = next(reversed([*_line(before, now_us)]), None)
    return 0 if last is None else last.lived_us + last.ended_us - last.stretch.began_us


class _OnLine(NamedTuple):
    """A stretch that counts, up to when, and what was lived through since then."""

    stretch: Stretch
    ended_us: int
    lived_us: int


def _line(
    stretches: Sequence[Stretch], now_us: int, between_us: int = SILENCE_US
) -> Iterator[_OnLine]:
    """
    Yield the stretches that count, back from now and down in time.

    Between two of them one silence counts at most. One of a clock that was ahead of what came
    after it is passed over, and so is one of a clock that was behind, if an earlier one goes on to
    where this was: each time that really passed is counted once.
    """
    at_us, lived = now_us, 0
    for place in reversed(range(len(stretches))):
        each = stretches[place]
        if each.began_us > at_us or _is_behind(each, stretches[:place], at_us):
            continue
        ended_us = min(each.ended_us, at_us)
        lived += at_us - ended_us if goes_on(ended_us, at_us) else between_us
        yield _OnLine(each, ended_us, lived)
        lived += ended_us - each.began_us
        at_us = each.began_us


def _is_behind(each: Stretch, earlier: Sequence[Stretch], at_us: int) -> bool:
    """Return whether *each* ended long before *at_us*, and one of *earlier* did not."""
    return at_us - each.ended_us > SILENCE_US and any(
        other.began_us <= at_us and at_us - other.ended_us <= SILENCE_US for other in earlier
    )
