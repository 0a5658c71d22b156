"""What a guarded call costs where there is much of something: threads, tasks, customers, events."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from statistics import median
from typing import Any

from benchmarks.cases import ALL, QUERY, Scopes, recalls, settled
from mnemoscope.memory import context
from mnemoscope.telemetry.delivery.drain import Drain

BURST = 100_000
_TRICKLE, _TRICKLE_PAUSE_S = 150, 0.02
"""Fifty events a second: each batch has a few."""


class Hung:
    """
    A sink whose back end never answers.

    Args:
        name: Its name.
    """

    idempotent = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_released = threading.Event()

    def write(self, _batch: Sequence[Any], /) -> None:
        """Wait until the measuring is over."""
        self.is_released.wait()

    def flush(self, _timeout_s: float, /) -> bool:
        """Nothing is buffered."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Nothing is held."""


def threads(scopes: Scopes, calls: int) -> Iterator[tuple[str, float, float]]:
    """Yield what it was, wall and CPU microseconds a call, for 1, 8 and 64 threads at once."""
    search, wait = _guarded_search(scopes)
    for number in (1, 8, 64):
        each = calls // number

        def work(each: int = each) -> None:
            for _ in range(each):
                search()

        def at_once(work: Callable[[], None] = work, number: int = number) -> None:
            running = [threading.Thread(target=work) for _ in range(number)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()

        name = f"{number} thread{'s' if number > 1 else ''}"
        yield (name, *_timed(at_once, wait, each * number))


def tasks(scopes: Scopes, calls: int) -> tuple[str, float, float]:
    """Return the same of 1,000 tasks in one loop, each for a customer of its own."""
    from mem0 import AsyncMemory

    async def search(query: str, *, filters: Any) -> Any:
        return {"results": []}

    scope = scopes.make(ALL)
    bare: Any = AsyncMemory.__new__(AsyncMemory)
    bare.search = search
    memory, each = scope.mem0(bare), max(1, calls // 1_000)

    async def work(number: int) -> None:
        for _ in range(each):
            await memory.search(QUERY, filters={"user_id": f"c-{number}"})
            # Here, and not in the store: no more than 64 calls may be in there at once.
            await asyncio.sleep(0)

    async def at_once() -> None:
        await asyncio.gather(*map(work, range(1_000)))

    timed = _timed(lambda: asyncio.run(at_once()), settled(scope), each * 1_000)
    return ("1,000 asyncio tasks", *timed)


def sinks_cpu_us(scopes: Scopes, calls: int) -> tuple[float, float]:
    """Return CPU microseconds of all sinks for one event: of large batches, and in a trickle."""
    search, wait = _guarded_search(scopes)

    def spent_us(number: int, pause_s: float) -> float:
        wait()
        everywhere, here = time.process_time(), time.thread_time()
        for _ in range(number):
            search()
            if pause_s:
                time.sleep(pause_s)
        wait()
        here = time.thread_time() - here
        return (time.process_time() - everywhere - here) / number * 1e6

    spent_us(calls, 0.0)
    return median(spent_us(calls, 0.0) for _ in range(3)), spent_us(_TRICKLE, _TRICKLE_PAUSE_S)


def variety(scopes: Scopes, calls: int) -> Iterator[tuple[str, list[float]]]:
    """Yield by what calls differ, and microseconds of the caller's CPU with 10 … 100,000 of it."""
    scope = scopes.make(ALL)
    memory, client, wait = scope.mem0(_stub()), scope.qdrant(_qdrant_stub()), settled(scope)

    def customer(number: int) -> None:
        memory.search(QUERY, filters={"user_id": f"c-{number}"})

    def feature(number: int) -> None:
        with context(feature=f"feature-{number}"):
            memory.search(QUERY, filters={"user_id": "c-4711"})

    def collection(number: int) -> None:
        client.query_points(f"facts-{number}", query=[0.5] * 64, limit=3)

    cases = {"customers": customer, "features": feature, "collections": collection}
    for name, call in cases.items():
        yield name, [_cpu_us(call, many, calls, wait) for many in (10, 1_000, 100_000)]


def queued_alone() -> tuple[float, float]:
    """Return what `queued` does, of a process in which no other thread takes memory."""
    script = "import json; from benchmarks import scale; print(json.dumps(scale.queued()))"
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    a_queued, peak = json.loads(done.stdout)
    return a_queued, peak


def queued() -> tuple[float, float]:
    """Return bytes for one queued event, and MiB at the peak of a burst, with five hung sinks."""
    events = recalls(4_000)
    one = Drain([Hung("one")])
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for event in recalls(4_000):
        one.emit(event)
    a_queued = (tracemalloc.get_traced_memory()[0] - before) / len(events)
    five = Drain([Hung(str(number)) for number in range(5)])
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(BURST // 4_000):
        for event in recalls(4_000):
            five.emit(event)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    for drain in (one, five):
        for sink in drain.sinks:
            sink.is_released.set()  # type: ignore[attr-defined]
        drain.close(5)
    return a_queued, peak / 2**20


_START = """
import sys, time
{before}
began = time.perf_counter()
import mnemoscope.memory
imported = time.perf_counter()
mnemoscope.memory.configure(audit_pseudonym_key="ab" * 32, pii_model="none", sinks="{sinks}",
                            audit_url="sqlite:///{folder}/start.db", log_file="{folder}/start.log")
print(imported - began, time.perf_counter() - imported)
"""


def start_up(folder: str, rounds: int) -> dict[str, tuple[float, float]]:
    """
    Return milliseconds that importing and configuring took, by what was imported before.

    Of the fastest process: whatever else the machine does only adds to it.
    """
    kinds = {
        "nothing imported before, four sinks": ("", "otlp,prometheus,logs,audit"),
        "nothing imported before, no sink": ("", ""),
        "pydantic and OpenTelemetry imported before, four sinks": (
            "import pydantic, opentelemetry.trace",
            "otlp,prometheus,logs,audit",
        ),
    }
    return {
        name: _started(_START.format(before=before, sinks=sinks, folder=folder), rounds)
        for name, (before, sinks) in kinds.items()
    }


def _started(script: str, rounds: int) -> tuple[float, float]:
    seen: list[list[float]] = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        seen.append([float(each) * 1e3 for each in done.stdout.split()])
    return min(each[0] for each in seen), min(each[1] for each in seen)


_EXIT = """
import time
import mnemoscope.memory
scope = mnemoscope.memory.configure(audit_pseudonym_key="ab" * 32, pii_model="none",
    sinks="otlp,prometheus,logs,langsmith,audit", audit_url="sqlite:///{folder}/exit.db",
    log_file="{folder}/exit.log")

@mnemoscope.memory.observe(store="crm", operation="search_memory", neutral=list)
def recall():
    return []

for _ in range(1_000):
    recall()
print(time.monotonic(), flush=True)
"""


def exit_s(folder: str) -> float:
    """Return how long a process takes to go whose back ends take what it says and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts, and nobody reads
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        ends = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "LANGSMITH_ENDPOINT": url}
        script = _EXIT.format(folder=folder)
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | ends,
        )
        return time.monotonic() - float(done.stdout)


def _stub() -> Any:
    from mem0 import Memory

    memory: Any = Memory.__new__(Memory)
    memory.search = lambda query, *, filters: {"results": []}
    return memory


def _qdrant_stub() -> Any:
    from qdrant_client import QdrantClient
    from qdrant_client.http.models import QueryResponse

    client: Any = QdrantClient(":memory:")
    answer = QueryResponse(points=[])
    client.query_points = lambda collection_name, query, limit: answer
    return client


def _guarded_search(scopes: Scopes) -> tuple[Callable[[], object], Callable[[], None]]:
    scope = scopes.make(ALL)
    memory = scope.mem0(_stub())
    return lambda: memory.search(QUERY, filters={"user_id": "c-4711"}), settled(scope)


def _timed(run: Callable[[], object], wait: Callable[[], None], calls: int) -> tuple[float, float]:
    """Return wall and CPU microseconds of a call; CPU with what the sinks did for it."""
    run()
    seen: list[tuple[float, float]] = []
    for _ in range(3):
        wait()
        began, cpu = time.perf_counter(), time.process_time()
        run()
        taken = time.perf_counter() - began
        wait()
        seen.append((taken / calls * 1e6, (time.process_time() - cpu) / calls * 1e6))
    return median(each[0] for each in seen), median(each[1] for each in seen)


def _cpu_us(call: Callable[[int], None], many: int, calls: int, wait: Callable[[], None]) -> float:
    """Return CPU microseconds of the caller for one *call*, with *many* different numbers."""
    numbers = cycle(range(1_000_000, 1_000_000 + many))
    seen: list[float] = []
    for _ in range(5):
        wait()
        gc.disable()
        began = time.thread_time()
        for _ in range(calls):
            call(next(numbers))
        seen.append((time.thread_time() - began) / calls * 1e6)
        gc.enable()
    return median(seen)
