"""
A web service with memory, on a store that breaks now and then: who answers 500?

FastAPI under uvicorn on loopback, ``AsyncMemory`` on an embedded Qdrant, a made-up embedder and
language model, many clients at once. The service runs bare and guarded, each with a healthy store
and with one that breaks below the guard: exceptions of many kinds, corrupt answers, calls that
hang. Exit code 1: the guarded service answered a 500 that the bare service with the healthy store
would not have answered too, or left a request unanswered.

    python -m benchmarks.faults.service --seconds 600

Settings of mnemoscope (``MNEMOSCOPE_*``) reach the guarded service, but for its files and keys.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import random
import socket
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

DIMS = 32
ANSWER_S = 60.0
"""Seconds after which a client gives up: longer than any deadline."""

MODEL_S = 0.1
"""Seconds that the language model takes."""

KEPT = 20
"""Memories that a client keeps before it forgets one for each that it adds."""

# -- the store -------------------------------------------------------------------------------------


def _failures() -> tuple[Callable[[], Exception], ...]:
    """Return makers of what a store may raise: its own, its drivers', and plain Python's."""
    from pydantic import ValidationError
    from qdrant_client import models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    def invalid() -> Exception:
        try:
            models.PointStruct.model_validate({})
        except ValidationError as exc:
            return exc
        raise AssertionError

    def status(code: int) -> Callable[[], Exception]:
        return lambda: UnexpectedResponse(code, "no", b"<html>", httpx.Headers())

    return (
        ConnectionError,
        lambda: ResponseHandlingException(httpx.ReadTimeout("slow")),
        *(status(code) for code in (400, 401, 404, 429, 500, 503)),
        invalid,
        lambda: json.JSONDecodeError("no value", "<html>", 0),
        lambda: sqlite3.DatabaseError("database disk image is malformed"),
        lambda: sqlite3.OperationalError("database is locked"),
        lambda: OSError(28, "no space left on device"),
        lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        lambda: ExceptionGroup("several", [ValueError(), KeyError()]),
        *(ValueError, KeyError, IndexError, AttributeError, TypeError, RuntimeError, EOFError),
        *(AssertionError, ZeroDivisionError, RecursionError, MemoryError, NotImplementedError),
        *(StopIteration, TimeoutError, Exception),
    )


def _without_payloads(answer: Any) -> Any:
    points = answer[0] if isinstance(answer, tuple) else getattr(answer, "points", answer)
    for point in points if isinstance(points, list) else ():
        point.payload = None
    return answer


CORRUPTIONS: tuple[Callable[[Any], Any], ...] = (
    _without_payloads,
    lambda _: 7,
    lambda _: "<html>",
    lambda _: [7],
    lambda _: ({"result": 7}, None),
)
"""Answers that cannot be true. None is empty: mem0 takes that for no such memory, and it may be."""

PHASES = (
    ("healthy", 0.1),
    ("raises sometimes", 0.3),
    ("corrupts sometimes", 0.2),
    ("hangs", 0.1),
    ("healthy", 0.1),
    ("raises", 0.1),
    ("healthy", 0.1),
)
"""What the breaking store does, with the part of a cycle for which it does so."""

SOMETIMES = 8
"""One call of so many fails, or is answered wrongly: too few for a breaker to open."""


class Breakage:
    """
    The faults of a store, by the time of day: every call goes through `__call__`.

    Attributes:
        injected: Faults so far, by what happened.
        ended: Set to let go of every call that hangs.
    """

    def __init__(self, cycle_s: float, hang_s: float) -> None:
        self.injected: Counter[str] = Counter()
        self.ended = threading.Event()
        self._cycle_s, self._hang_s = cycle_s, hang_s
        self._started: float | None = None
        self._lock = threading.Lock()
        self._failures, self._corruptions = cycle(_failures()), cycle(CORRUPTIONS)
        self._calls = 0

    def _phase(self) -> str:
        now = time.monotonic()
        self._started = self._started or now  # the first call: no part of a cycle is missed
        at = (now - self._started) / self._cycle_s % 1.0
        for name, part in PHASES:
            if (at := at - part) < 0:
                return name
        return "healthy"

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Return what *call* does, or what a broken store would do."""
        phase, corrupt = self._phase(), None
        with self._lock:
            self._calls += 1
            if phase == "raises" or (phase == "raises sometimes" and self._calls % SOMETIMES == 0):
                failure = next(self._failures)()
                self.injected["exceptions"] += 1
                raise failure
            if phase == "corrupts sometimes" and self._calls % SOMETIMES == 0:
                corrupt = next(self._corruptions)
                self.injected["corrupt answers"] += 1
            self.injected["hangs"] += phase == "hangs"
        if phase == "hangs":
            self.ended.wait(self._hang_s)
        answer = call()
        return corrupt(answer) if corrupt else answer


STORE_CALLS = (
    *("upsert", "query_points", "query_batch_points", "delete", "set_payload", "update_vectors"),
    *("retrieve", "scroll"),
)


def make_qdrant(folder: Path, breakage: Breakage | None) -> Any:
    """Return an embedded Qdrant, whose calls go through *breakage* if there is one."""
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder))

    def broken(bare: Callable[..., Any]) -> Callable[..., Any]:
        assert breakage is not None
        return lambda *args, **kwargs: breakage(lambda: bare(*args, **kwargs))

    if breakage is not None:
        for name in STORE_CALLS:
            setattr(client, name, broken(getattr(client, name)))
    return client


class Embedder:
    """Counts words by their hash."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        vector = [0.01] * DIMS
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % DIMS] += 1.0
        return vector

    def embed_batch(self, texts: list[str], _action: str = "add") -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Model:
    """Finds one new fact in everything, after a while."""

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self._facts = iter(range(sys.maxsize))

    def generate_response(self, *_: Any, **__: Any) -> str:
        time.sleep(MODEL_S)
        return json.dumps({"memory": [{"text": f"likes tea of kind {next(self._facts)}"}]})


def make_memory(folder: Path, breakage: Breakage | None) -> Any:
    """Return a bare ``AsyncMemory`` whose files are in *folder*."""
    from mem0 import AsyncMemory
    from mem0.configs.llms.base import BaseLlmConfig
    from mem0.utils import spacy_models
    from mem0.utils.factory import EmbedderFactory, LlmFactory

    # Otherwise downloaded in the middle of a call.
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
    EmbedderFactory.provider_to_class["lmstudio"] = f"{__name__}.Embedder"
    LlmFactory.provider_to_class["vllm"] = (f"{__name__}.Model", BaseLlmConfig)
    store = {"client": make_qdrant(folder / "qdrant", breakage), "embedding_model_dims": DIMS}
    with warnings.catch_warnings(action="ignore"):  # indexes do nothing in an embedded Qdrant
        return AsyncMemory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "lmstudio", "config": {"embedding_dims": DIMS}},
                "llm": {"provider": "vllm", "config": {}},
                "history_db_path": str(folder / "history.db"),
            }
        )


# -- the service -----------------------------------------------------------------------------------


class Routes:
    """What the service offers; *scope* is None for the bare one."""

    def __init__(self, memory: Any, scope: Any) -> None:
        self._memory, self._scope = memory, scope

    def table(self) -> tuple[tuple[str, str, Callable[..., Any]], ...]:
        return (
            ("GET", "/ping", self.ping),
            ("POST", "/memories", self.add),
            ("GET", "/memories", self.search),
            ("GET", "/customers/{customer}", self.listed),
            ("GET", "/memories/{memory_id}", self.get),
            ("GET", "/memories/{memory_id}/history", self.history),
            ("PUT", "/memories/{memory_id}", self.update),
            ("DELETE", "/memories/{memory_id}", self.forget),
        )

    def _answer(self, **content: Any) -> JSONResponse:
        outcome = self._scope.last_outcome() if self._scope is not None else None
        return JSONResponse(content | {"degraded": outcome is not None and outcome.neutral})

    async def ping(self) -> Any:
        return JSONResponse({})

    async def add(self, text: str, customer: str | None = None, infer: bool = True) -> Any:
        added = await self._memory.add(text, user_id=customer, infer=infer)
        return self._answer(ids=[each["id"] for each in added["results"]])

    async def search(self, query: str, customer: str | None = None) -> Any:
        filters = {"user_id": customer} if customer else {}
        found = await self._memory.search(query, filters=filters)
        return self._answer(found=[each["memory"] for each in found["results"]])

    async def listed(self, customer: str) -> Any:
        found = await self._memory.get_all(filters={"user_id": customer})
        return self._answer(found=[each["memory"] for each in found["results"]])

    async def get(self, memory_id: str) -> Any:
        found = await self._memory.get(memory_id)
        return self._answer(found=found and found["memory"])

    async def history(self, memory_id: str) -> Any:
        changes = await self._memory.history(memory_id)
        return self._answer(changes=[each["event"] for each in changes])

    async def update(self, memory_id: str, text: str) -> Any:
        await self._memory.update(memory_id, text)
        return self._answer()

    async def forget(self, memory_id: str) -> Any:
        try:
            await self._memory.delete(memory_id)
        except Exception as exc:  # noqa: BLE001 - nothing is forgotten until the store says so
            return JSONResponse({"error": type(exc).__name__}, 503)
        return self._answer()


def make_app(memory: Any, scope: Any, breakage: Breakage | None) -> FastAPI:
    """Return the service as an application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        if breakage is not None:
            breakage.ended.set()
        if scope is not None:
            scope.close()

    app = FastAPI(lifespan=lifespan)
    for method, path, endpoint in Routes(memory, scope).table():
        app.add_api_route(path, endpoint, methods=[method])

    @app.get("/injected")
    async def injected() -> dict[str, int]:
        return dict(breakage.injected) if breakage is not None else {}

    @app.middleware("http")
    async def tell_errors(request: Request, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except Exception as exc:  # noqa: BLE001 - what the framework would answer, with the type
            return JSONResponse({"error": type(exc).__name__}, 500)

    return app


@dataclass(frozen=True)
class Variant:
    """One of the services that are compared."""

    guarded: bool
    breaking: bool
    seconds: float
    cycle_s: float
    hang_s: float

    @property
    def name(self) -> str:
        guard, store = ("bare", "guarded")[self.guarded], ("healthy", "breaking")[self.breaking]
        return f"{guard}, {store}"


def serve(variant: Variant, folder: Path, port: Connection) -> None:
    """Serve on loopback until this process is told to end; send the port."""
    logging.getLogger("mem0").setLevel(logging.CRITICAL)  # it tells of every call that fails
    breakage = Breakage(variant.cycle_s, variant.hang_s) if variant.breaking else None
    memory: Any = make_memory(folder, breakage)
    scope = None
    if variant.guarded:
        from mnemoscope.memory import configure

        scope = configure()
        memory = scope.mem0(memory)
    app = make_app(memory, scope, breakage)
    config = uvicorn.Config(
        app,
        log_level="critical",
        # No connection is closed for being idle in the moment in which its client asks again.
        timeout_keep_alive=2 * int(ANSWER_S),
        timeout_graceful_shutdown=5,
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port.send(listening.getsockname()[1])
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def serving(variant: Variant, folder: Path) -> Iterator[str]:
    """Run the service in a process of its own; gives its address."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    folder.mkdir()
    process = spawn.Process(target=serve, args=(variant, folder, theirs))
    process.start()
    theirs.close()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join(ANSWER_S)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
        ours.close()


# -- its clients -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """A kind of request: how often it is made, and what is sent."""

    weight: float
    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict[str, str])


_TEXT, _BY_ID = {"text": "{text}"}, "/memories/{id}"
_OWN = _TEXT | {"customer": "{customer}"}
ASKS = {
    "add": Ask(3, "POST", "/memories", _OWN),
    "note": Ask(2, "POST", "/memories", _OWN | {"infer": "false"}),
    "search": Ask(5, "GET", "/memories", {"query": "{text}", "customer": "{customer}"}),
    "list": Ask(2, "GET", "/customers/{customer}"),
    "get": Ask(2, "GET", _BY_ID),
    "history": Ask(1, "GET", f"{_BY_ID}/history"),
    "update": Ask(1, "PUT", _BY_ID, _TEXT),
    "forget": Ask(1, "DELETE", _BY_ID),
    "ping": Ask(2, "GET", "/ping"),
    # Mistakes of the service's own:
    "add for nobody": Ask(0.3, "POST", "/memories", _TEXT),
    "search for nobody": Ask(0.3, "GET", "/memories", {"query": "{text}"}),
    "update of nothing": Ask(0.3, "PUT", "/memories/00000000-0000-0000-0000-000000000000", _TEXT),
}
WEIGHTS = [each.weight for each in ASKS.values()]


@dataclass
class Answers:
    """What the clients of a service saw."""

    variant: Variant
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    errors: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    degraded: int = 0
    injected: dict[str, int] = field(default_factory=dict[str, int])
    seconds: list[float] = field(default_factory=list[float])
    pings: list[float] = field(default_factory=list[float])

    def add(self, kind: str, status: int, content: dict[str, Any], seconds: float) -> None:
        self.statuses[kind, status] += 1
        self.degraded += bool(content.get("degraded"))
        (self.pings if kind == "ping" else self.seconds).append(seconds)
        if not (status == 200 or (kind == "forget" and status == 503)):
            self.errors[kind, str(content.get("error", status or "no answer"))] += 1

    def of(self, status: int) -> int:
        return sum(n for (_, each), n in self.statuses.items() if each == status)

    def always_500(self) -> set[str]:
        """Return the kinds of request that were answered with nothing but 500."""
        failed = {kind for kind, status in self.statuses if status == 500}
        return failed - {kind for kind, status in self.statuses if status != 500}


class Client:
    """One of the many at once: asks, waits for the answer, asks again."""

    def __init__(self, number: int, http: httpx.AsyncClient, answers: Answers) -> None:
        self._random = random.Random(number)  # noqa: S311 - the same requests each time
        self._customer, self._http, self._answers = f"c-{number}@example.com", http, answers
        self._ids: list[str] = []

    async def ask_everything(self) -> None:
        """Ask each kind once, so that it is known of each what is answered."""
        for kind, ask in ASKS.items():
            await self._ask(kind if self._ids or "{id}" not in ask.path else "note")

    async def work(self, until: float) -> None:
        while time.monotonic() < until:
            (kind,) = self._random.choices(list(ASKS), WEIGHTS)
            if len(self._ids) > KEPT:
                kind = "forget"
            elif not self._ids and "{id}" in ASKS[kind].path:
                kind = "note"
            await self._ask(kind)

    async def _ask(self, kind: str) -> None:
        request, started, status, content = self._request(kind), time.monotonic(), 0, {}
        try:
            response = await self._http.send(request)
            status, content = response.status_code, response.json()
            self._ids += content.get("ids", [])
        except httpx.HTTPError as exc:
            content = {"error": type(exc).__name__}
        finally:
            self._answers.add(kind, status, content, time.monotonic() - started)

    def _request(self, kind: str) -> httpx.Request:
        ask, number = ASKS[kind], self._random.randrange(10**9)
        values = {
            "text": f"Ada, ada@example.com, likes tea number {number}",
            "customer": self._customer,
            "id": self._ids[number % len(self._ids)] if self._ids else "",
        }
        if kind == "forget":
            self._ids.remove(values["id"])
        params = {name: value.format(**values) for name, value in ask.params.items()}
        return self._http.build_request(ask.method, ask.path.format(**values), params=params)


async def ask(variant: Variant, url: str, concurrent: int) -> Answers:
    """Have *concurrent* clients ask the service at *url* for as long as the variant lasts."""
    answers, limits = Answers(variant), httpx.Limits(max_connections=concurrent)
    async with httpx.AsyncClient(base_url=url, timeout=ANSWER_S, limits=limits) as http:
        clients = [Client(number, http, answers) for number in range(concurrent)]
        await clients[0].ask_everything()
        until = time.monotonic() + variant.seconds
        tasks = {asyncio.ensure_future(each.work(until)) for each in clients}
        while tasks and time.monotonic() < until + ANSWER_S:
            _, tasks = await asyncio.wait(tasks, timeout=max(variant.seconds / 10, 1))
            past = variant.seconds - max(0.0, until - time.monotonic())
            progress(f"{variant.name}: {past:.0f} of {variant.seconds:.0f} s, {told(answers)}")
        for task in tasks:
            task.cancel()
        answers.injected = (await http.get("/injected")).json()
    return answers


# -- the verdict -----------------------------------------------------------------------------------


def progress(line: str) -> None:
    """Tell whoever waits."""
    sys.stderr.write(line + "\n")


def told(answers: Answers) -> str:
    """Return the counts in a line."""
    return f"{answers.statuses.total():,} answers, {answers.of(500):,} times 500"


def unexcused(every: list[Answers]) -> Counter[tuple[str, str]]:
    """Return the guarded service's failures, but where the bare one, healthy, fails always."""
    healthy = next(each for each in every if not (each.variant.guarded or each.variant.breaking))
    excused = healthy.always_500()
    found: Counter[tuple[str, str]] = Counter()
    for answers in every:
        if answers.variant.guarded:
            found += Counter({at: n for at, n in answers.errors.items() if at[0] not in excused})
    return found


def p99(seconds: list[float]) -> float:
    """Return the 99th percentile, 0 of nothing."""
    return statistics.quantiles(seconds, n=100)[98] if len(seconds) > 1 else sum(seconds)


def row(answers: Answers, excused: set[str]) -> tuple[str, ...]:
    """Return the line of a service in the table."""
    asked_for = sum(answers.statuses[kind, 500] for kind in excused)
    numbers = (
        *(answers.statuses.total(), answers.of(200), answers.degraded, answers.of(503)),
        *(asked_for, answers.of(500) - asked_for, answers.of(0)),
    )
    times = f"{p99(answers.seconds):.2f}", f"{p99(answers.pings):.2f}"
    return answers.variant.name, *(f"{each:,}" for each in numbers), *times


def show(every: list[Answers], found: Counter[tuple[str, str]]) -> None:
    """Print the tables, 80 columns wide."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    excused = next(e for e in every if not (e.variant.guarded or e.variant.breaking)).always_500()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ("all", "200", "degr.", "503", "500 ok", "500", "none", "p99 s", "ping")
    table.add_column("service")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for answers in every:
        table.add_row(*row(answers, excused))
    console = Console(width=80)
    console.print(table)
    console.print(
        "degr.: of the 200s, neutral answers that say so. 500 ok: for the service's own mistakes, "
        "which the bare service answers with 500 too. none: no answer in "
        f"{ANSWER_S:.0f} s. p99, ping: 99th percentile of the answers, and of a request without "
        "memory, in seconds.",
        highlight=False,
    )
    for answers in every:
        if injected := ", ".join(f"{n:,} {what}" for what, n in answers.injected.items() if n):
            console.print(f"{answers.variant.name}: injected {injected}", highlight=False)
    for (kind, error), count in found.most_common(20):
        console.print(f"not excused: {kind}: {error}, {count:,} times", highlight=False)
    verdict = f"{found.total():,}" if found else "none"
    console.print(f"Failures of the guarded service, not excused: {verdict}", highlight=False)


def environment(folder: Path) -> dict[str, str]:
    """Return what keeps every file in *folder* and everything off the network."""
    return {
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "00" * 16,
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{folder / 'audit.db'}",
        "MNEMOSCOPE_LOG_FILE": str(folder / "events.jsonl"),
        "MNEMOSCOPE_PII_MODEL": os.environ.get("MNEMOSCOPE_PII_MODEL", "none"),
        "MNEMOSCOPE_SINKS": os.environ.get("MNEMOSCOPE_SINKS", "prometheus,logs,audit"),
        "XDG_DATA_HOME": str(folder),
    }


def run(seconds: float, others_s: float, concurrent: int, hang_s: float) -> list[Answers]:
    """Run the four services, one after another."""
    every = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(environment(folder))
        for breaking, guarded in ((False, False), (False, True), (True, False), (True, True)):
            lasts_s = seconds if guarded and breaking else others_s
            cycle_s = min(60.0, lasts_s)
            variant = Variant(guarded, breaking, lasts_s, cycle_s, hang_s)
            with serving(variant, folder / variant.name) as url:
                every.append(asyncio.run(ask(variant, url, concurrent)))
    return every


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seconds", type=float, default=600, help="of the guarded service")
    parser.add_argument("--others-seconds", type=float, help="of the three others; a fifth of it")
    parser.add_argument("--concurrent", type=int, default=50, help="clients at once")
    parser.add_argument("--hang-seconds", type=float, default=15, help="that a call may hang")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    given = parser.parse_args()
    others_s = given.others_seconds or given.seconds / 5
    every = run(given.seconds, others_s, given.concurrent, given.hang_seconds)
    found = unexcused(every)
    if given.json:
        services = {
            each.variant.name: {
                "statuses": {str(status): each.of(status) for _, status in each.statuses},
                "degraded": each.degraded,
                "injected": each.injected,
            }
            for each in every
        }
        errors = {f"{kind}: {error}": n for (kind, error), n in found.items()}
        sys.stdout.write(json.dumps({"services": services, "not_excused": errors}) + "\n")
    else:
        show(every, found)
    return 1 if found else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
