"""
A day's work in minutes: is memory flat?

Customers that come for twenty operations and never again, texts that nobody has seen, features,
failures, and a collector that is not there. Prints the resident memory as it goes, and its slope
once everything is warm.

    python -m benchmarks.faults.soak --operations 10000000
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = resource.getpagesize()
MIB = 1024 * 1024
SAMPLES = 200
FLAT_MIB = 4.0
"""Growth that counts as flat, in MiB for each million operations after the warm-up."""

NOISE_MIB = 2.0
"""And in all, however few the operations: what the allocator may do at any time."""


def rss() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def slope(samples: list[tuple[int, int]]) -> float:
    """Return the growth in MiB for each million operations, by least squares."""
    counts, sizes = zip(*samples, strict=True)
    return statistics.linear_regression(counts, sizes).slope * 1e6 / MIB


def make_scope(folder: Path) -> Any:
    """Build a scope whose collector refuses, and whose files stay small."""
    os.environ |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }
    from prometheus_client import CollectorRegistry

    from mnemoscope.memory import Mnemoscope
    from mnemoscope.memory.settings import load_settings
    from mnemoscope.telemetry.logs.sink import LogSink
    from mnemoscope.telemetry.otlp.sink import OtlpSink
    from mnemoscope.telemetry.prometheus.sink import PrometheusSink

    sinks = [
        OtlpSink(),
        PrometheusSink(registry=CollectorRegistry()),
        LogSink(file=folder / "events.jsonl", most_bytes=16_000_000, kept=1),
    ]
    settings = load_settings(pii_model="none", audit_pseudonym_key="00" * 16)
    return Mnemoscope(settings, only_sinks=sinks)


def operations(scope: Any) -> Iterator[None]:
    """Do one operation for each step, of every kind there is."""
    from langgraph.store.memory import InMemoryStore

    from mnemoscope.memory import context

    store, calls = scope.store(InMemoryStore()), iter(range(sys.maxsize))

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def facts(number: int) -> list[int]:
        if number % 100 == 0:
            raise ConnectionError
        return [number]

    for number in calls:
        with context(tenant=f"t-{number % 50}", customer=f"c-{number // 20}@example.com"):
            if number % 10 == 0:
                text = f"note {number}: call +44 20 7946 {number % 10_000:04} about tea"
                store.put(("notes",), f"k-{number % 500}", {"text": text})
            elif number % 10 < 4:
                store.get(("notes",), f"k-{number % 500}")
            else:
                with context(feature=f"feature-{number % 1_000}"):
                    facts(number)
        yield


def run(total: int, folder: Path) -> dict[str, Any]:
    """Do *total* operations and return what they cost."""
    from rich.progress import track

    scope = make_scope(folder)
    scope.prepare()  # what is loaded once does not grow
    steps, samples, started = operations(scope), [], time.perf_counter()
    console = sys.stderr.isatty()
    for sample in track(range(SAMPLES), "soaking", disable=not console):
        for _ in range(total // SAMPLES):
            next(steps)
        samples.append(((sample + 1) * (total // SAMPLES), rss()))
    seconds = time.perf_counter() - started
    books = [
        each.offered == each.delivered + sum(each.dropped.values()) + each.queued
        for each in scope._parts.drain.stats()
    ]
    scope.close()
    warm = samples[SAMPLES // 2 :]
    growth_mib, grows_mib = (warm[-1][1] - warm[0][1]) / MIB, slope(warm)
    return {
        "operations": total,
        "seconds": round(seconds, 1),
        "rss_mib": [round(size / MIB, 1) for _, size in (samples[0], warm[0], samples[-1])],
        "growth_mib": round(growth_mib, 2),
        "slope_mib_per_million": round(grows_mib, 2),
        "is_flat": growth_mib <= NOISE_MIB or grows_mib <= FLAT_MIB,
        "books_balance": all(books),
    }


def main() -> int:
    """Run from the command line; 0 if memory is flat and every event accounted for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--operations", type=int, default=2_000_000)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    given = parser.parse_args()
    # That the collector is away is said once a minute otherwise.
    logging.getLogger("mnemoscope").propagate = False
    with tempfile.TemporaryDirectory() as folder:
        result = run(max(given.operations, SAMPLES), Path(folder))
    flat = result["is_flat"]
    if given.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    first, warm, last = result["rss_mib"]
    sys.stdout.write(
        f"{result['operations']:,} operations in {result['seconds']:,} s\n"
        f"resident memory: {first} MiB at first, {warm} MiB half way, {last} MiB in the end\n"
        f"slope of the second half: {result['slope_mib_per_million']} MiB for each million "
        f"operations ({'flat' if flat else 'NOT FLAT'})\n"
        f"every event accounted for: {'yes' if result['books_balance'] else 'NO'}\n"
    )
    return 0 if flat and result["books_balance"] else 1


if __name__ == "__main__":
    sys.exit(main())
