"""
One way of watching mem0 and Qdrant, or none, in a process of its own.

    python -m benchmarks.peers bare|mnemoscope|openlit|loongsuite|traceloop

Says what was started, as JSON on one line. Then, for each line ``CASE CALLS`` on standard input,
makes that many calls of the case and answers with their cost in microseconds. ``null``: it does not
watch that.

Each does what it does by default. Spans of peers go to a batch processor and an OTLP exporter, ours
to all five sinks: OTLP and LangSmith of all go to the one back end that the environment names.
Metrics of peers are off, ours are on.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rounds import Case, Figures, block

QUERY, CUSTOMER = "which kind of tea does she like best in the morning", "c-4711"
MEM0, QDRANT = "mem0", "Qdrant"
INSTRUMENTORS = {
    "traceloop": {QDRANT: "opentelemetry.instrumentation.qdrant:QdrantInstrumentor"},
    "openlit": {MEM0: "", QDRANT: ""},  # its own start function does both
    "loongsuite": {MEM0: "opentelemetry.instrumentation.mem0:Mem0Instrumentor"},
}
PACKAGES = {
    "traceloop": "opentelemetry-instrumentation-qdrant",
    "loongsuite": "loongsuite-instrumentation-mem0",
    "bare": "mem0ai",
}
OURS = "mnemoscope"
CASES = {
    "mem0 search, empty body": "empty",
    "mem0 search, real": "real",
    "Qdrant query, 64 dimensions": "64",
    "Qdrant query, 1,536 dimensions": "1536",
}
"""What a worker is asked for, by its name in the table."""


class Watched(NamedTuple):
    """
    How clients are watched.

    Attributes:
        wrap: Returns a client that is watched, by kind of client.
        settle: Waits until what is told of the calls so far has been sent.
    """

    wrap: dict[str, Callable[[Any], Any]]
    settle: Callable[[], object]


def ours(folder: Path) -> Watched:
    """All five sinks watch, in default settings."""
    from benchmarks import cases

    scope = cases.Scopes(folder).make(cases.ALL)
    return Watched({MEM0: scope.mem0, QDRANT: scope.qdrant}, cases.settled(scope))


def peer(name: str, folder: Path) -> Watched:
    """One of the others watches, from the class on."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    if name == "openlit":
        prices = folder / "prices.json"  # else it asks the network for them
        prices.write_text("{}", encoding="utf-8")
        import_module("openlit").init(disable_metrics=True, pricing_json=str(prices))
    for place in filter(None, INSTRUMENTORS[name].values()):
        module, _, class_name = place.partition(":")
        getattr(import_module(module), class_name)().instrument(skip_dep_check=True)
    return Watched(dict.fromkeys(INSTRUMENTORS[name], _as_it_is), provider.force_flush)


def _as_it_is(client: Any) -> Any:
    return client


def call_of(case: str, watched: Watched, folder: Path) -> Callable[[], object] | None:
    """Return what is timed, or None where it is not watched."""
    kind = QDRANT if case.isdecimal() else MEM0
    if kind not in watched.wrap:
        return None
    if kind == QDRANT:
        return _query(int(case), watched.wrap[kind])
    memory = watched.wrap[kind](_empty() if case == "empty" else _real(folder))
    return lambda: memory.search(QUERY, filters={"user_id": CUSTOMER})


def with_empty_body() -> None:
    """Have memories that nobody has set up answer a search at once, before others wrap it."""
    kind: Any = import_module("mem0").Memory
    search = kind.search
    found = {"results": [{"id": "7", "memory": "likes tea", "score": 0.9}] * 3}

    def search_or_answer(self: Any, query: str, **given: Any) -> Any:
        return search(self, query, **given) if vars(self) else found

    kind.search = search_or_answer


def _empty() -> Any:
    kind: Any = import_module("mem0").Memory
    return kind.__new__(kind)


def _real(folder: Path) -> Any:
    """Return a mem0 with twenty memories, a Qdrant in a folder, and numbers for embeddings."""
    from langchain_core.embeddings import DeterministicFakeEmbedding

    memory: Any = import_module("mem0").Memory.from_config(
        {
            "embedder": {
                "provider": "langchain",
                "config": {"model": DeterministicFakeEmbedding(size=256)},
            },
            "llm": {"provider": "openai", "config": {"api_key": "of nobody: it is never called"}},
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(folder / "memories"),
                    "embedding_model_dims": 256,
                    "on_disk": True,
                },
            },
            "history_db_path": str(folder / "history.db"),
        }
    )
    for number in range(20):
        memory.add(f"she likes tea number {number}", user_id=CUSTOMER, infer=False)
    return memory


def _query(dims: int, wrap: Callable[[Any], Any]) -> Callable[[], object]:
    """Return a query of a Qdrant in memory with 100 points of *dims* dimensions."""
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    client = QdrantClient(":memory:")
    client.create_collection("facts", VectorParams(size=dims, distance=Distance.COSINE))
    numbers = random.Random(dims)  # noqa: S311 - the same points in every run
    points = [
        PointStruct(id=n, vector=[numbers.random() for _ in range(dims)], payload={"n": n})
        for n in range(100)
    ]
    client.upsert("facts", points)
    guarded, vector = wrap(client), points[0].vector
    return lambda: guarded.query_points("facts", query=vector, limit=3)


def main() -> None:
    """Answer until there is nothing more to do."""
    way = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        with_empty_body()
        try:
            if way == "bare":
                watched = Watched(dict.fromkeys((MEM0, QDRANT), _as_it_is), lambda: None)
            else:
                watched = ours(Path(folder)) if way == OURS else peer(way, Path(folder))
            _say({"version": version(PACKAGES.get(way, way))})
        except (PackageNotFoundError, ImportError) as exc:
            _say({"missing": type(exc).__name__})
            return
        calls = dict[str, Callable[[], object] | None]()
        for line in iter(sys.stdin.readline, ""):
            case, times = line.split()
            if case not in calls:
                calls[case] = call_of(case, watched, Path(folder) / case)
            call, seen = calls[case], Figures()
            if call is not None:
                block(Case(name=case, call=call, settle=watched.settle), seen, int(times))
            _say(_told(seen) if call else None)


def _told(seen: Figures) -> dict[str, Any]:
    return {
        "median_us": seen.median_us,
        "singles_us": seen.singles_us,
        "here_us": seen.here_us[0],
        "elsewhere_us": seen.elsewhere_us[0],
        "blocked_us": seen.blocked_us[0],
    }


def _say(answer: dict[str, Any] | None) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201 - read by whoever started it


if __name__ == "__main__":
    main()
