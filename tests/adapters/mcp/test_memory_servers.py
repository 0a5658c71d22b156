"""Memory servers as they are reached over MCP: the tools of OpenMemory and of Qdrant's server."""

from __future__ import annotations

from fastmcp import Client, FastMCP
from qdrant_client import QdrantClient, models

from mnemoscope.memory import context

ADA = "ada@example.com"


def openmemory() -> tuple[FastMCP, list[str]]:
    """Return a server with the tools of OpenMemory, and what it holds."""
    server, held = FastMCP("openmemory"), list[str]()

    @server.tool
    def add_memories(text: str) -> str:
        held.append(text)
        return "added"

    @server.tool
    def search_memory(query: str) -> list[str]:
        return [each for each in held if query in each]

    @server.tool
    def delete_all_memories() -> str:
        held.clear()
        return "deleted"

    return server, held


def qdrant_server() -> tuple[FastMCP, QdrantClient]:
    """Return a server with the tools of Qdrant's own, over a collection in memory."""
    server, client = FastMCP("qdrant"), QdrantClient(":memory:")
    vectors = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=vectors)

    @server.tool(name="qdrant-store")
    def store(information: str) -> str:
        point = models.PointStruct(id=1, vector=[1, 0], payload={"document": information})
        client.upsert("notes", [point])
        return "stored"

    @server.tool(name="qdrant-find")
    def find(query: str) -> list[str]:
        found = client.query_points("notes", query=[1, 0]).points
        return [each.payload["document"] for each in found if each.payload]

    return server, client


async def test_what_openmemory_is_given_is_redacted_and_classed(scope, events):
    """A write, a recall and a deletion, each in its class."""
    server, held = openmemory()
    classes = {"search_*": "recall", "list_*": "recall", "delete_*": "forget"}
    guarded = scope.mcp(Client(server), server="openmemory", classes=classes)
    async with guarded as client:
        with context(customer="c-1"):
            await client.call_tool("add_memories", {"text": f"write to {ADA}"})
            stored = [*held]
            found = await client.call_tool("search_memory", {"query": "write"})
            await client.call_tool("delete_all_memories")

    assert ADA not in stored[0]
    assert found.data == stored
    assert held == []
    assert [each.op_class for each in events()] == ["remember", "recall", "forget"]


async def test_what_qdrants_server_is_given_is_redacted(scope, events):
    """Its tools have no hints: the user says which one only reads."""
    server, _ = qdrant_server()
    guarded = scope.mcp(Client(server), server="qdrant", classes={"qdrant-find": "recall"})
    async with guarded as client:
        with context(customer="c-1"):
            await client.call_tool("qdrant-store", {"information": f"write to {ADA}"})
            found = await client.call_tool("qdrant-find", {"query": "write"})

    assert len(found.data) == 1
    assert ADA not in found.data[0]
    assert [each.collection for each in events()] == ["qdrant-store", "qdrant-find"]
