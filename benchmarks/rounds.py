"""
How things are timed side by side: in one process, in rounds whose order is reversed every other.

What a busy machine does to one case it then does to all of them alike. A round is a block of calls
of each case with garbage collection off, after which the sinks are given time to finish, so that
no case pays for the one before it. The figures are medians of rounds; the 99th percentile is of
all single calls. What the other threads of the process did until all was delivered is counted too:
work moved to a thread is still work.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import sub
from statistics import fmean, median


def _at_once() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    Something to time.

    Attributes:
        name: As the table shows it.
        call: What is timed.
        settle: Waits until the sinks have what the calls left behind.
    """

    name: str
    call: Callable[[], object]
    settle: Callable[[], object] = _at_once


@dataclass(slots=True)
class Figures:
    """
    What was seen of one case.

    Attributes:
        medians_us: Of each round.
        singles_us: Every single call.
        here_us: CPU time of the calling thread per call, by round: what is left of a call where
            others keep the machine busy.
        elsewhere_us: CPU time of the other threads per call, by round.
        blocked_us: Of a call, in which its thread did nothing, by round: it waited for another
            thread, for the interpreter's lock, for a disk, or for a processor.
    """

    medians_us: list[float] = field(default_factory=list[float])
    singles_us: list[float] = field(default_factory=list[float])
    here_us: list[float] = field(default_factory=list[float])
    elsewhere_us: list[float] = field(default_factory=list[float])
    blocked_us: list[float] = field(default_factory=list[float])

    @property
    def median_us(self) -> float:
        """The median of the rounds."""
        return median(self.medians_us)

    @property
    def mean_us(self) -> float:
        """The mean of single calls."""
        return fmean(self.singles_us)

    @property
    def p99_us(self) -> float:
        """The 99th percentile of single calls."""
        return sorted(self.singles_us)[int(len(self.singles_us) * 0.99)]

    @property
    def cpu_us(self) -> float:
        """CPU time per call, on all threads."""
        return median(map(sum, zip(self.here_us, self.elsewhere_us, strict=True)))

    def cpu_above_us(self, bare: Figures) -> float:
        """Return the median of the caller's CPU that each round took above that of *bare*."""
        return median(map(sub, self.here_us, bare.here_us))

    def above_us(self, bare: Figures) -> float:
        """Return the median of what each round took above the same round of *bare*."""
        return median(map(sub, self.medians_us, bare.medians_us))


def side_by_side(cases: Sequence[Case], *, rounds: int, calls: int) -> dict[str, Figures]:
    """Time *cases*: *calls* of each in every one of *rounds*, after a round that does not count."""
    seen = {case.name: Figures() for case in cases}
    for case in cases:
        block(case, Figures(), calls)
    for number in range(rounds):
        for case in cases if number % 2 else reversed(cases):
            block(case, seen[case.name], calls)
    return seen


def block(case: Case, seen: Figures, calls: int) -> None:
    """Time one block of *calls*, and add what it cost to *seen*."""
    call, clock = case.call, time.perf_counter_ns
    taken = [0] * calls
    case.settle()
    gc.collect()
    gc.disable()
    in_all, in_here = time.process_time_ns(), time.thread_time_ns()
    first = clock()
    for index in range(calls):
        began = clock()
        call()
        taken[index] = clock() - began
    in_here, in_calls = time.thread_time_ns() - in_here, clock() - first
    case.settle()
    in_all = time.process_time_ns() - in_all
    gc.enable()
    singles = [each / 1e3 for each in taken]
    seen.medians_us.append(median(singles))
    seen.singles_us += singles
    seen.here_us.append(in_here / calls / 1e3)
    seen.elsewhere_us.append((in_all - in_here) / calls / 1e3)
    seen.blocked_us.append(max(0, in_calls - in_here) / calls / 1e3)
