"""
One process of a fleet: threads whose agents remember and recall, with pauses, for skewed tenants.

``python -m benchmarks.fleet_writer PLAN``, with a plan as JSON; see `benchmarks.fleet`. It prints
what it did as JSON. Its wall clock is off by so many seconds as the plan says.
"""

from __future__ import annotations

import json
import sys
import time

PLAN = json.loads(sys.argv[1])
_skew_ns, _true_ns = int(PLAN["skew_s"] * 1e9), time.time_ns
# Before anything is imported that keeps one of them.
time.time_ns = lambda: _true_ns() + _skew_ns
time.time = lambda: time.time_ns() / 1e9

import random  # noqa: E402
import statistics  # noqa: E402
import threading  # noqa: E402
from itertools import accumulate  # noqa: E402
from pathlib import Path  # noqa: E402

from langgraph.store.memory import InMemoryStore  # noqa: E402

from mnemoscope.memory.context import context  # noqa: E402
from mnemoscope.memory.scope import Mnemoscope  # noqa: E402
from mnemoscope.memory.settings import load_settings  # noqa: E402

TENANTS, CUSTOMERS = 200, 2_000
OPERATIONS = 3
"""Of a turn: a recall, a look-up in a CRM, and a write."""

SAID = (
    "Prefers delivery on weekday mornings and asked twice about the warranty of the large model.",
    "Please write to ada@example.com once the part for the coffee machine is there again.",
    "The invoice of March is still open; she would rather pay in two parts, and by card.",
)


def tenants() -> list[float]:
    """Return cumulated weights by Zipf: the first tenant has a sixth of all."""
    return [*accumulate(1 / rank for rank in range(1, TENANTS + 1))]


def written_bytes() -> int:
    """Return what this process has had written to disks."""
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("write_bytes"))


def main() -> None:
    """Work, and print what was done."""
    scope = Mnemoscope(load_settings())
    store = scope.store(InMemoryStore())
    crm = scope.observe(store="crm", operation="search_memory", neutral=list)(lambda said: [said])
    scope.prepare()
    crm(SAID[0])  # all is imported, and the tables are there
    weights, turns = tenants(), [0] * PLAN["threads"]
    took_ns: list[list[int]] = [[] for _ in turns]
    ends_at = time.monotonic() + PLAN["seconds"]

    def work(place: int) -> None:
        draw = random.Random(f"{PLAN['seed']} {place}")  # noqa: S311 - not secret
        while time.monotonic() < ends_at:
            (tenant,) = draw.choices(range(TENANTS), cum_weights=weights)
            customer = f"customer-{tenant}-{draw.randrange(CUSTOMERS // TENANTS)}"
            with context(tenant=f"tenant-{tenant}", customer=customer, agent="sales"):
                began = time.perf_counter_ns()
                store.search(("notes", customer), query=draw.choice(SAID))
                crm(draw.choice(SAID))
                store.put(("notes", customer), str(turns[place]), {"text": draw.choice(SAID)})
                took_ns[place].append((time.perf_counter_ns() - began) // OPERATIONS)
            turns[place] += 1
            if PLAN["pause_s"]:
                time.sleep(draw.expovariate(1 / PLAN["pause_s"]))

    threads = [threading.Thread(target=work, args=(each,)) for each in range(len(turns))]
    began, cpu_s = time.monotonic(), time.process_time()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    took_s = time.monotonic() - began
    scope.close()
    calls = sorted(each for of in took_ns for each in of)
    said = {
        "offered": sum(turns) * OPERATIONS + 1,
        "took_s": took_s,
        "cpu_s": time.process_time() - cpu_s,
        "p50_us": statistics.median(calls) / 1e3,
        "p99_us": calls[len(calls) * 99 // 100] / 1e3,
        "worst_ms": calls[-1] / 1e6,
        "written_bytes": written_bytes(),
    }
    print(json.dumps(said), flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    main()
