"""The server that a Qdrant client asks, on its spans: host and port, and nothing else."""

from __future__ import annotations

import asyncio

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.qdrant.database import server_of
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from tests.kit.patience import GIVE_UP_S

SECRET = "s3cret-k3y"
SERVERS = [
    ({"url": "http://qdrant.internal:6400"}, ("qdrant.internal", 6400)),
    ({"url": "https://qdrant.internal"}, ("qdrant.internal", 6333)),
    ({"url": "http://qdrant.internal/team/path"}, ("qdrant.internal", 6333)),
    ({"url": "http://[::1]:6333"}, ("::1", 6333)),
    ({"host": "10.0.0.7", "port": 7000}, ("10.0.0.7", 7000)),
    ({"host": "10.0.0.7", "prefer_grpc": True, "grpc_port": 7001}, ("10.0.0.7", 7001)),
    ({"url": "https://qdrant.internal:443", "api_key": SECRET}, ("qdrant.internal", 443)),
    ({"location": ":memory:"}, None),
]


@pytest.mark.parametrize("kind", [QdrantClient, AsyncQdrantClient])
@pytest.mark.parametrize(("given", "server"), SERVERS)
def test_it_is_host_and_port_of_what_the_client_was_given(kind, given, server):
    """However it was told where to go, and over either protocol."""
    client = kind(**given, check_compatibility=False)

    assert server_of(client) == server
    asyncio.run(client.close()) if kind is AsyncQdrantClient else client.close()


def local() -> QdrantClient:
    """Return a client with a collection in memory."""
    client = QdrantClient(":memory:")
    client.create_collection("facts", models.VectorParams(size=2, distance=models.Distance.DOT))
    return client


def test_spans_have_it_and_nothing_of_who_logs_in():
    """By the conventions of databases; a client that asks no server has neither."""
    url = f"http://ada:{SECRET}@127.0.0.1:9/path"
    with scope_for_tests() as (scope, sink):
        for client in (
            QdrantClient(url=url, check_compatibility=False),
            local(),
        ):
            scope.guard(client).count("facts")
            client.close()
        scope.flush(GIVE_UP_S)
        asked, embedded = (span_attributes(each) for each in sink.events[:2])

    assert (asked[semconv.SERVER_ADDRESS], asked[semconv.SERVER_PORT]) == ("127.0.0.1", 9)
    assert SECRET not in repr(asked)
    assert not {semconv.SERVER_ADDRESS, semconv.SERVER_PORT} & embedded.keys()
