"""
Others on the same calls, in the environment that holds them: JSON on standard output.

    python peers.py traceloop|openlit|loongsuite ROUNDS CALLS

The first two on a Qdrant query, the third on a ``search`` of mem0 with an empty body.

Each is asked for what it does by default, with spans that go to a batch processor and an exporter
that drops them: cheaper than any of them is in use. Their bare case is their own, in their own
process, since theirs is another environment. Metrics are off: only one of them has any.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.rounds import Case, side_by_side

PEERS = {
    "traceloop": (
        "opentelemetry-instrumentation-qdrant",
        "opentelemetry.instrumentation.qdrant",
        "QdrantInstrumentor",
    ),
    "openlit": ("openlit", "openlit.instrumentation.qdrant", "QdrantInstrumentor"),
    "loongsuite": (
        "loongsuite-instrumentation-mem0",
        "opentelemetry.instrumentation.mem0",
        "Mem0Instrumentor",
    ),
}


def send_spans_nowhere() -> None:
    """Set up a provider whose spans are batched and dropped."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)


def instrument(peer: str) -> None:
    """Switch *peer* on for this process."""
    _package, name, class_name = PEERS[peer]
    module: Any = import_module(name)
    if peer == "openlit":
        module.OpenlitConfig.metrics_dict = None  # what `openlit.init` would set
    getattr(module, class_name)().instrument(disable_metrics=True, skip_dep_check=True)


def query(dims: int) -> Callable[[], object]:
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
    vector = points[0].vector
    return lambda: client.query_points("facts", query=vector, limit=3)


def measured(
    owner: type, methods: tuple[Any, Any], call: Callable[[], object], rounds: int, calls: int
) -> dict[str, float]:
    """Return what *call* costs with the second of *methods* above what it does with the first."""

    def case(name: str, method: Any, attribute: str) -> Case:
        return Case(name=name, call=call, settle=lambda: setattr(owner, attribute, method))

    attribute = methods[0].__name__
    seen = side_by_side(
        [case("bare", methods[0], attribute), case("observed", methods[1], attribute)],
        rounds=rounds,
        calls=calls,
    )
    bare, observed = seen["bare"], seen["observed"]
    return {
        "median_us": observed.median_us,
        "above_us": observed.above_us(bare),
        "p99_us": observed.p99_us,
        "cpu_us": observed.cpu_us - bare.cpu_us,
    }


def on_qdrant(peer: str, rounds: int, calls: int) -> dict[str, Any]:
    """Return what *peer* adds to queries of two sizes."""
    from qdrant_client import QdrantClient

    bare = vars(QdrantClient)["query_points"]
    instrument(peer)
    methods = bare, vars(QdrantClient)["query_points"]
    if methods[0] is methods[1]:
        raise RuntimeError("query_points is not instrumented")
    return {
        str(dims): measured(QdrantClient, methods, query(dims), rounds, calls)
        for dims in (64, 1_536)
    }


def on_mem0(peer: str, rounds: int, calls: int) -> dict[str, Any]:
    """Return what *peer* adds to a ``search`` of mem0 with nothing in its body."""
    from mem0 import Memory

    def search(_self: Any, query: str, *, filters: Any) -> Any:
        return {"results": [{"id": "7", "memory": "likes tea", "score": 0.9}] * 3}

    kind: Any = Memory
    kind.search = search
    instrument(peer)
    methods = search, vars(kind)["search"]
    if methods[0] is methods[1]:
        raise RuntimeError("search is not instrumented")
    memory = kind.__new__(kind)
    call = lambda: memory.search("which tea", filters={"user_id": "c-4711"})  # noqa: E731
    return {"mem0": measured(kind, methods, call, rounds, calls)}


def main() -> None:
    """Measure the one peer that the arguments name."""
    peer, rounds, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        found: dict[str, Any] = {"version": version(PEERS[peer][0])}
        send_spans_nowhere()
        measure = on_mem0 if peer == "loongsuite" else on_qdrant
        found |= measure(peer, rounds, calls)
    except (PackageNotFoundError, ImportError) as exc:
        found = {"missing": type(exc).__name__}
    print(json.dumps(found))  # noqa: T201 - read by whoever started it


if __name__ == "__main__":
    main()
