"""
What watching a LangGraph graph costs, ours beside others', all in one run.

Each way of watching has a process of its own, and so has the bare graph; they take turns. What a
way adds is the median of what each round took above the same round of the bare graph.
What one more node, model call or streamed event adds is the difference of two runs that differ in
twenty nodes, ten calls or two hundred chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import sub
from pathlib import Path
from typing import Final

from benchmarks import turns
from benchmarks.tables import Goal, Section, figure
from benchmarks.turns import Seen

BARE, OURS = "bare", "runnable"
NAMES: Final = {
    BARE: "bare LangGraph",
    OURS: "mnemoscope, `scope.runnable(graph)`",
    "usage": "mnemoscope, `transformers=[scope.usage()]`",
}
STREAM = 200
"""Chunks of a long answer."""

CPU = "run_us"
"""CPU time, in what the worker tells: a busy machine stretches the rest."""

CASES: Final = {
    "invoke": "invoke 3 1 1 0",
    "more nodes": "invoke 23 1 1 0",
    "more calls": "invoke 3 11 1 0",
    "v2": "v2 3 1 1 0",
    "v2 long": f"v2 3 1 {STREAM + 1} 0",
    "v3": "v3 3 1 1 0",
    "v3 long": f"v3 3 1 {STREAM + 1} 0",
    "v3 slow": "v3 3 1 40 0.005",
}
TIMES: Final = {"invoke": 20, "more nodes": 4, "more calls": 6, "v2": 8, "v3": 8, "v3 slow": 1}
"""Calls in one block; of the others, three: most blocks have ended before any sender begins."""


TURNS: Final = {case: f"{words} {TIMES.get(case, 3)}" for case, words in CASES.items()}


def measured(pythons: Mapping[str, Path], rounds: int) -> dict[str, Seen]:
    """
    Measure every way in turns.

    Args:
        pythons: The interpreter that has it, by way, the bare one first.
        rounds: How many count; one before them does not.
    """
    seen = turns.measured(pythons, "benchmarks.graph_worker", TURNS, rounds)
    return {way: each for way, each in seen.items() if pythons[way].exists()}


def _each_us(seen: Seen, less: str, more: str, number: float, bare: Seen) -> float:
    """Return what one of *number* that *more* has above *less* adds."""
    above = (seen.added_us(case, bare, CPU) for case in (more, less))
    return sub(*above) / number


def sections(seen: Mapping[str, Seen]) -> list[Section]:
    """Return the two tables: what the parts of a run add, and whole runs."""
    return [_parts(seen), _runs(seen)]


def _parts(seen: Mapping[str, Seen]) -> Section:
    about = (
        "Each way of watching, and the bare graph, has a process of its own, since instrumentation "
        "changes LangChain for its whole process. They take turns, a block of calls each, in an "
        "order that is reversed every other round. Microseconds of CPU that each adds to the run: "
        "medians of what rounds took above the bare graph beside them, and differences of runs "
        f"that differ in 20 nodes, 10 model calls or {STREAM} chunks. Last, what other threads do "
        "to send, once a block has ended, what is told of a run of three nodes and a model call. "
        "Others have one sink and no metrics, and their spans go where ours go, by OTLP."
    )
    header = ("", "a node", "a model call", "a v3 event", "a v2 event", "sent by other threads")
    rows = _rows(seen, _added, len(header) - 1)
    return Section("LangGraph beside others, by part", about, header, rows)


def _added(way: str, seen: Seen, bare: Seen) -> list[str]:
    events = seen.us("v3 long", "events") - seen.us("v3", "events")
    v3 = _each_us(seen, "v3", "v3 long", events, bare)
    if way == "usage":  # of v3 streams alone
        return ["", "", figure(v3), "", figure(seen.us("v3", "sinks_us"))]
    return [
        figure(_each_us(seen, "invoke", "more nodes", 20, bare)),
        figure(_each_us(seen, "invoke", "more calls", 10, bare)),
        figure(v3),
        figure(_each_us(seen, "v2", "v2 long", STREAM, bare)),
        figure(seen.us("invoke", "sinks_us")),
    ]


def _runs(seen: Mapping[str, Seen]) -> Section:
    about = (
        "Microseconds of CPU for a run of three nodes and a model call, and what watching adds to "
        f"it in percent: with an answer of one chunk, of {STREAM + 1} that take no time, and of 40 "
        "that take 5 ms each, where it is the share of the time that the run takes."
    )
    header = ("", "`invoke`", "v2, long", "v3, short", "v3, long", "v3, 5 ms a chunk")
    bare = seen[BARE]
    whole = [bare.us(case, CPU) for case in ("invoke", "v2 long", "v3", "v3 long")]
    first = [_name(BARE, bare), *map(figure, whole), figure(bare.us("v3 slow", "wall_us"))]
    rows = [first, *_rows(seen, _shares, len(header) - 1)]
    return Section("LangGraph beside others, whole runs", about, header, rows)


def _shares(way: str, seen: Seen, bare: Seen) -> list[str]:
    of = ("v3", "v3 long") if way == "usage" else ("invoke", "v2 long", "v3", "v3 long")
    shares = [f"{share(seen, bare, case):+.0f} %" for case in of]
    slow = seen.added_us("v3 slow", bare, CPU) / bare.us("v3 slow", "wall_us") * 100
    return [*([""] * (4 - len(of))), *shares, f"{slow:+.1f} %"]


def share(seen: Seen, bare: Seen, case: str) -> float:
    """Return what *seen* adds to a run of *bare*, in percent of it."""
    return seen.added_us(case, bare, CPU) / bare.us(case, CPU) * 100


def _rows(
    seen: Mapping[str, Seen], cells: Callable[[str, Seen, Seen], list[str]], width: int
) -> list[list[str]]:
    return [
        [_name(way, each), *(cells(way, each, seen[BARE]) if each.rounds else [""] * width)]
        for way, each in seen.items()
        if way != BARE
    ]


def _name(way: str, seen: Seen) -> str:
    return f"{NAMES.get(way, way)} {seen.version}"


def goals(seen: Mapping[str, Seen]) -> Iterator[Goal]:
    """Yield how far ours are from where they should be."""
    ours, bare = seen[OURS], seen[BARE]
    events = ours.us("v3 long", "events") - ours.us("v3", "events")
    each = _each_us(ours, "v3", "v3 long", events, bare)
    yield Goal("v3 bridge, one streamed event, all that it adds", 2, each, "µs")
    long = share(ours, bare, "v3 long")
    yield Goal(f"v3 bridge, share of a run of {STREAM + 1} chunks that take no time", 3, long, "%")
    slow = ours.added_us("v3 slow", bare, CPU) / bare.us("v3 slow", "wall_us") * 100
    yield Goal("v3 bridge, share of a run of 40 chunks that take 5 ms each", 3, slow, "%")
