"""
Measures what the default deadline adds to a call, on its caller's thread and on a worker.

    python -m benchmarks.deadlines [--rounds N] [--calls N] [--only TITLE]

Each store is called without a deadline, with one, and with one that always has a thread
(`MNEMOSCOPE_DEADLINE_THREADS=1`, as every call had it before). Five sinks, embedded, sent to a
process of our own. A mem0 whose body is nothing shows the two hand-overs by themselves.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import cost
from benchmarks.cases import ALL, CUSTOMER, QUERY, settled
from benchmarks.rounds import Case, Figures, side_by_side
from benchmarks.tables import say
from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.settings import load_settings
from tests.kit.postgres import Postgres

WAYS = {
    "no deadline": dict.fromkeys(("recall", "remember", "resume", "checkpoint"), 0.0),
    "deadline": {},
    "deadline, threads": {},
}
"""The deadlines of each way of calling a store, where they are not the defaults."""

Timed = Callable[[Mnemoscope], Callable[[], object]]


def mem0_search(scope: Mnemoscope) -> Callable[[], object]:
    """``Memory.search`` with nothing in its body."""
    from mem0 import Memory

    memory: Any = Memory.__new__(Memory)
    memory.search = lambda query, *, filters: {"results": []}
    guarded = scope.mem0(memory)
    return lambda: guarded.search(QUERY, filters={"user_id": CUSTOMER})


def sqlite_saver(folder: Path) -> Any:
    """Return a ``SqliteSaver`` on a file."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = tempfile.mkstemp(suffix=".db", dir=folder)[1]
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def postgres_saver(pool: Any) -> Any:
    """Return a ``PostgresSaver`` on a pool."""
    from langgraph.checkpoint.postgres import PostgresSaver

    saver = PostgresSaver(pool)
    saver.setup()
    return saver


def saver_call(name: str, made: Callable[[], Any]) -> Timed:
    """*name* of a saver."""

    def timed(scope: Mnemoscope) -> Callable[[], object]:
        from langgraph.checkpoint.base import empty_checkpoint

        saver: Any = scope.checkpointer(made())
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"said": "she likes green tea"},
            "channel_versions": {"said": 1},
        }

        def put() -> object:
            return saver.put(config, checkpoint, {"source": "loop", "step": 1}, {"said": 1})

        put()
        return put if name == "put" else lambda: saver.get_tuple(config)

    return timed


class _Answers(BaseHTTPRequestHandler):
    """A Qdrant that finds three points, at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        points = [{"id": number, "version": 1, "score": 0.9} for number in range(3)]
        body = json.dumps({"result": {"points": points}, "status": "ok", "time": 0.1}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        self.wfile.write(head.encode() + b"\r\n\r\n" + body)

    def log_message(self, *_args: Any) -> None:
        return


def qdrant_query(url: str) -> Timed:
    """``query_points`` of a Qdrant at *url*, on connections that stay."""

    def timed(scope: Mnemoscope) -> Callable[[], object]:
        import httpx
        from qdrant_client import QdrantClient

        client = QdrantClient(url, check_compatibility=False, limits=httpx.Limits())
        guarded, vector = scope.qdrant(client), [0.5] * 64
        return lambda: guarded.query_points("facts", query=vector, limit=3)

    return timed


@contextmanager
def _postgres_pool(folder: Path) -> Iterator[Any]:
    """Yield a pool of connections to a PostgreSQL on its socket."""
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    server = Postgres(folder)
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(server.url, min_size=1, max_size=4, kwargs=settings) as pool:
        yield pool
    server.close()


@contextmanager
def _serving() -> Iterator[str]:
    """Yield the URL of a Qdrant in a process of its own."""
    serve = get_context("spawn")
    port, told = serve.Pipe(duplex=False)
    process = serve.Process(target=_serve, args=(told,), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{port.recv()}"
    process.kill()


def _serve(told: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    told.send(server.server_port)
    server.serve_forever()


def cases(timed: Timed, folder: Path, scopes: list[Mnemoscope]) -> Iterator[Case]:
    """Yield *timed* in each of the `WAYS`."""
    for name, deadlines in WAYS.items():
        home = Path(tempfile.mkdtemp(dir=folder))
        given: dict[str, Any] = {f"deadline_{each}_s": 0.0 for each in deadlines}
        scope = Mnemoscope(
            load_settings(
                sinks=ALL,
                audit_url=f"sqlite:///{home / 'audit.db'}",
                audit_pseudonym_key="ab" * 32,
                log_file=home / "events.jsonl",
                pii_model="none",
                deadline_threads=name.endswith("threads"),
                **given,
            )
        )
        scopes.append(scope)
        yield Case(name=name, call=timed(scope), settle=settled(scope))


def show(title: str, seen: dict[str, Figures]) -> None:
    """Print what was seen of one store."""
    say(f"\n{title}\n")
    say(f"| {'µs':<18} | median | mean | p99 | blocked | caller's CPU |")
    say("|---|---|---|---|---|---|")
    for name, each in seen.items():
        blocked, here = sum(each.blocked_us), sum(each.here_us)
        count = len(each.blocked_us)
        say(
            f"| {name:<18} | {each.median_us:,.0f} | {each.mean_us:,.0f} | {each.p99_us:,.0f} "
            f"| {blocked / count:,.0f} | {here / count:,.0f} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--only", default="", help="stores whose title has this in it")
    chosen = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="d-") as name,
        cost.back_end(),
        _serving() as url,
        _postgres_pool(Path(name)) as pool,
    ):
        folder = Path(name)
        stores: dict[str, Timed] = {
            "mem0 search, nothing in its body": mem0_search,
            "SqliteSaver.put": saver_call("put", partial(sqlite_saver, folder)),
            "SqliteSaver.get_tuple": saver_call("get_tuple", partial(sqlite_saver, folder)),
            "PostgresSaver.put": saver_call("put", partial(postgres_saver, pool)),
            "PostgresSaver.get_tuple": saver_call("get_tuple", partial(postgres_saver, pool)),
            "Qdrant by REST, query_points": qdrant_query(url),
        }
        for title, timed in stores.items():
            if chosen.only not in title:
                continue
            scopes: list[Mnemoscope] = []
            found = list(cases(timed, folder, scopes))
            show(title, side_by_side(found, rounds=chosen.rounds, calls=chosen.calls))
            for scope in scopes:
                scope.close()


if __name__ == "__main__":
    main()
