"""Ways into a server: clones, groups, sessions below a client, both revisions of the protocol."""

from __future__ import annotations

import json

import pytest
from fastmcp import Client
from fastmcp.client.group import ClientGroup

from tests.adapters.mcp.conftest import mcp_adapter
from tests.kit.mcp_servers import INPUTS, exchange, notes_server, tool

ADA = "ada@example.com"


async def test_a_guarded_client_in_langchains_adapter_stays_guarded(scope, events):
    """The adapter clones the client that it is given: the clone is guarded, too."""
    asked = tool()
    async with mcp_adapter()(scope.mcp(Client(notes_server(asked)))) as adapter:
        (search,) = await adapter.list_tools()
        await search.ainvoke({"query": f"mail to {ADA}"})

    assert ADA not in json.dumps(asked.calls)
    assert len(events()) == 1


@pytest.fixture
def group() -> ClientGroup:
    """Return the clients of two servers."""
    return ClientGroup({"crm": Client(notes_server()), "wiki": Client(notes_server())})


async def test_members_of_a_group_are_guarded_by_their_names(scope, events, group):
    """Each server has contracts and events of its own."""
    async with scope.mcp(group) as guarded:
        await guarded.call_tool("crm_search", {"query": "tea"})
        await guarded.call_tool("wiki_search", {"query": "tea"})

    assert [each.store for each in events()] == ["mcp.crm", "mcp.wiki"]


async def test_a_group_in_langchains_adapter_is_guarded(scope, events, group):
    """By the same names."""
    async with scope.mcp(mcp_adapter()(group)) as adapter:
        tools = {each.name: each for each in await adapter.list_tools()}
        await tools["wiki_search"].ainvoke({"query": "tea"})

    assert [each.store for each in events()] == ["mcp.wiki"]


@pytest.mark.parametrize(
    ("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")], ids=str
)
async def test_both_revisions_of_the_protocol_are_guarded(scope, mode, revision):
    """A rename is blocked before the call in each."""
    server = notes_server()
    async with scope.mcp(Client(server, mode=mode), recheck_s=0) as client:
        await client.call_tool("search", {"query": "tea"})
        later = exchange(server, tool(parameters=INPUTS["likely renamed"]))
        answer = await client.call_tool("search", {"query": "tea"}, raise_on_error=False)

        assert client.protocol_version == revision
    assert answer.is_error
    assert later.calls == []


async def test_resources_and_prompts_are_redacted_both_ways(scope):
    """Through the client and through the session below it."""
    server = notes_server()
    given: list[str] = []

    @server.resource("notes://{topic}")
    def note(topic: str) -> str:
        return f"write to {ADA} about {topic}"

    @server.prompt
    def greet(name: str) -> str:
        given.append(name)
        return "greet them"

    async with scope.mcp(Client(server)) as client:
        read = await client.read_resource("notes://tea")
        below = await client.session.read_resource("notes://tea")
        await client.get_prompt("greet", {"name": ADA})

    assert "about tea" in repr(read)
    assert ADA not in repr((read, below, given))
