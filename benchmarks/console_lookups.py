"""
Measure what a thousand look-ups a second at the console cost a writer of the same audit trail.

``python -m benchmarks.console_lookups``. The console, whoever asks it and the writer are processes
of their own on one SQLite file. The writer appends durable batches of 64 events at a steady rate.
Seconds take turns: without requests; with the same requests to a bare server, which has nothing to
do with the trail and tells what the processors alone cost; and with look-ups.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from mnemoscope.memory import open_audit
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import Subject
from mnemoscope.telemetry.event.trace_ref import TraceRef
from tests.kit.served_console import served

BATCH, CUSTOMERS, CONNECTIONS = 64, 500, 48

BARE = """
import socket, sys, uvicorn

async def app(scope, receive, send):
    if scope["type"] == "http":
        await receive()
        headers = [(b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"a" * 1000})

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
"""


@contextmanager
def bare_server() -> Iterator[str]:
    """Serve the same answer to all requests, in a process of its own."""
    command = [sys.executable, "-c", BARE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


class Asking:
    """A process that asks one server, when told to."""

    def __init__(self, origin: str, cookie: str, csrf: str, per_s: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=ask, args=(origin, cookie, csrf, per_s, theirs)
        )
        self._process.start()
        self.answers: Counter[int] = Counter()
        self.took_ms: list[float] = []

    def beside(self, log: Any, numbers: Any, seconds: float, per_s: int) -> None:
        """Ask for so long, and write meanwhile."""
        self._pipe.send(seconds)
        self.took_ms += write(log, numbers, seconds, per_s)
        self.answers.update(self._pipe.recv())

    def end(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join()


def events(log: Any, numbers: Any) -> list[Event]:
    """Return a batch of recalls of many customers."""
    keys = log.ring.current
    return [
        Event(
            writer_id="00000000000000aa",
            writer_seq=number,
            started_ns=time.time_ns(),
            duration_s=0.01,
            operation="search_memory",
            op_class=OperationClass.RECALL,
            store="mem0",
            method="search",
            status=Status.OK,
            trace=TraceRef(number, number),
            hits=3,
            subject=Subject(f"c-{number % CUSTOMERS}", tenant="acme", keys=keys),
            tenant="acme",
            run=f"run-{number // 10}",
        )
        for number in (next(numbers) for _ in range(BATCH))
    ]


def ask(origin: str, cookie: str, csrf: str, per_s: int, pipe: Any) -> None:
    """Look people up while told to, and send how each was answered."""
    asyncio.run(_ask(origin, cookie, csrf, per_s, pipe))


async def _ask(origin: str, cookie: str, csrf: str, per_s: int, pipe: Any) -> None:
    host, port = origin.removeprefix("http://").split(":")
    until_s = 0.0
    answers: Counter[int] = Counter()
    numbers = count()

    async def connection() -> None:
        reader = writer = None
        while True:
            if time.monotonic() >= until_s:
                if writer is not None:  # a server closes what stands still
                    writer.close()
                reader = writer = None
                await asyncio.sleep(0.01)
                continue
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection(host, int(port))
            number = next(numbers)
            body = urlencode({"csrf": csrf, "customer": f"c-{number % (2 * CUSTOMERS)}"})
            writer.write(
                f"POST /person HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {origin}\r\n"
                f"Cookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            began = time.monotonic()
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            answers[int(head.split(b" ")[1])] += 1
            await asyncio.sleep(max(0.0, CONNECTIONS / per_s - (time.monotonic() - began)))

    tasks = [asyncio.create_task(connection()) for _ in range(CONNECTIONS)]
    while True:
        seconds = await asyncio.to_thread(pipe.recv)
        if seconds is None:
            break
        answers.clear()
        until_s = time.monotonic() + seconds
        await asyncio.sleep(seconds + 0.3)
        pipe.send(dict(answers))
    for each in tasks:
        each.cancel()


def waited_ns() -> int:
    """Return how long this thread could have run and had no processor: others' work, not locks."""
    return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])


def write(log: Any, numbers: Any, seconds: float, per_s: int) -> list[float]:
    """Append batches at a steady rate for so long, and return what each took, in milliseconds.

    Without the time for which no processor was free.
    """
    took = []
    ends = time.perf_counter() + seconds
    due = time.perf_counter()
    while (now := time.perf_counter()) < ends:
        time.sleep(max(0.0, due - now))
        batch = events(log, numbers)
        began, waited = time.perf_counter_ns(), waited_ns()
        log.append(batch)
        took.append((time.perf_counter_ns() - began - (waited_ns() - waited)) / 1e6)
        due = max(due + BATCH / per_s, time.perf_counter())
    return took


def measure(lookups: int, per_s: int, rounds: int, seconds: float) -> None:
    """Measure, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {
            "audit_url": f"sqlite:///{folder}/audit.db",
            "audit_pseudonym_key": "ab" * 32,
            "audit_spool": Path(folder) / "spool",
        }
        log, numbers = open_audit(**settings), count(1)
        write(log, numbers, 2.0, 10_000)
        env = {f"MNEMOSCOPE_{name.upper()}": str(value) for name, value in settings.items()}
        with served(env=env) as console, bare_server() as bare, httpx.Client() as browser:
            page = browser.get(console.sign_in, follow_redirects=True).text
            csrf = re.findall('name="csrf" value="([^"]+)"', page)[0]
            cookie = f"mnemoscope={browser.cookies['mnemoscope']}"
            asking = [Asking(each, cookie, csrf, lookups) for each in (bare, console.origin)]
            quiet: list[float] = []
            for _ in range(rounds):
                quiet += write(log, numbers, seconds, per_s)
                for each in asking:
                    each.beside(log, numbers, seconds, per_s)
            for each in asking:
                each.end()
        log.close()
    control, looks = asking
    for each in asking:
        asked = sum(each.answers.values()) / (rounds * seconds)
        print(f"{asked:,.0f} requests a second, answered {dict(each.answers)}")  # noqa: T201
    named = {"no requests": quiet, "a bare server": control.took_ms, "look-ups": looks.took_ms}
    for name, took in named.items():
        q = statistics.quantiles(took, n=100)
        rate = len(took) * BATCH / (rounds * seconds)
        times = f"p50 {q[49]:.2f} ms, p99 {q[98]:.2f} ms"
        print(f"{name:14} {rate:8,.0f} events/s   a batch of 64: {times}")  # noqa: T201


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--lookups", type=int, default=1_000, help="a second")
    parser.add_argument("--events", type=int, default=2_000, help="a second, that are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each half of a round")
    given = parser.parse_args()
    measure(given.lookups, given.events, given.rounds, given.seconds)


if __name__ == "__main__":
    main()
