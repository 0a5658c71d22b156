"""Deviations: planted stories found and clean weeks wrongly accused, by seed; memory, by events."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console

from mnemoscope.audit.deviations import Deviations, DeviationSearch
from tests.kit.agent_days import DAY_S, SLOW_AND_SHORT, START_S, TWICE_AS_OFTEN, AgentDays, Story

DAYS, WINDOW = 30, 7
_DAY_US = DAY_S * 1_000_000


def main() -> None:
    """Search days of each seed, and then so many events in one stream, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1_000, 1_010))
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.seeds[0] < given.seeds[1]:
        _stories(range(*given.seeds))
    _many(given.events)


def _stories(seeds: range) -> None:
    clean = [len(_searched(AgentDays(seed).rows(), DAYS, WINDOW).findings) for seed in seeds]
    print_ = Console().print
    print_(f"clean: {sum(clean)} findings in {WINDOW * len(clean)} days of {len(seeds)} seeds")
    for name, story in (("slow and short", SLOW_AND_SHORT), ("twice as often", TWICE_AS_OFTEN)):
        found = [_is_found(seed, story) for seed in seeds]
        print_(f"{name}: found in {sum(found)} of {len(found)}")


def _is_found(seed: int, story: Story) -> bool:
    found = _searched(AgentDays(seed, stories=[story]).rows(), DAYS, WINDOW).findings
    return any(each.agent == story.agent for each in found)


def _many(events: int) -> None:
    before_mib, began = _peak_mib(), time.perf_counter()
    # The same days again and again, at other times and in other runs: making them takes longer.
    found = _searched(_repeated(events), 400, WINDOW)
    took_s = time.perf_counter() - began
    Console().print(
        f"{events:,} events: {took_s:,.0f} s, {took_s / events * 1e6:.1f} µs each, peak "
        f"{_peak_mib():,.0f} MiB, of these {_peak_mib() - before_mib:,.0f} for it; "
        f"{found.judged:,} runs judged, {found.cut:,} cut"
    )


def _repeated(events: int) -> Iterator[tuple[Any, ...]]:
    rows = list(AgentDays(7, days=2).rows())
    per_day = events // 400 + 1
    for seq in range(events):
        day, at = divmod(seq, per_day)
        again, place = divmod(at, len(rows))
        _seq, header, run, *rest = rows[place]
        at_us = round((START_S + day * DAY_S) * 1e6) + at * (_DAY_US // per_day)
        start = header.index(b'"occurred_at":') + len(b'"occurred_at":')
        stop = header.index(b",", start)
        yield (
            seq,
            header[:start] + b"%d" % at_us + header[stop:],
            run + b"%d-%d" % (day, again),
            *rest,
        )


def _searched(rows: Iterable[tuple[Any, ...]], days: int, window: int) -> Deviations:
    since_us = round((START_S + (days - window) * DAY_S) * 1e6)
    search = DeviationSearch((round(START_S * 1e6) + since_us) // 2, since_us)
    search.read(rows)
    return search.result(None)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


if __name__ == "__main__":
    main()
