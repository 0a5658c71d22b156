"""Servers that change their tools while a client is connected, through every kind of client."""

from __future__ import annotations

import asyncio
import sys

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from mnemoscope.memory import Mnemoscope
from tests.adapters.mcp.conftest import through_client
from tests.kit import mcp_servers
from tests.kit.mcp_servers import (
    BREAKING,
    INPUTS,
    LISTED,
    PASSING,
    TEXT,
    evolving_server,
    exchange,
    notes_server,
    notifying_server,
    over_http,
    takes,
    tool,
)
from tests.kit.patience import GIVE_UP_S

BLOCKED = "Schema mismatch: expected parameter 'query', found 'search_query'. Tool blocked."


@pytest.mark.parametrize("change", BREAKING)
async def test_a_breaking_change_blocks_the_tool_before_the_server_is_called(door, scope, change):
    """Five rows of the table: the call is answered as a failed tool, and never made."""
    server = notes_server()
    async with door(scope, server, recheck_s=0) as ask:
        assert not (await ask("search", query="tea")).failed
        later = exchange(server, tool(parameters=INPUTS[change]))

        answer = await ask("search", query="tea")

    assert answer.failed
    assert answer.text.startswith("Schema mismatch: ")
    assert answer.text.endswith("Tool blocked.")
    assert later.calls == []


@pytest.mark.parametrize("change", PASSING)
async def test_any_other_change_lets_the_tool_be_called(door, scope, change):
    """Four rows of the table."""
    server = notes_server()
    async with door(scope, server, recheck_s=0) as ask:
        await ask("search", query="tea")
        later = exchange(server, tool(parameters=INPUTS[change]))

        answer = await ask("search", query="tea")

    assert not answer.failed
    assert later.calls == [{"query": "tea"}]


async def test_a_rename_is_told_in_words_that_a_model_can_act_on(door, scope):
    """``query`` became ``search_query``: the sentence names both."""
    server = notes_server()
    async with door(scope, server, recheck_s=0) as ask:
        await ask("search", query="tea")
        exchange(server, tool(parameters=INPUTS["likely renamed"]))

        answer = await ask("search", query="tea")

    assert answer == (True, BLOCKED)


async def test_a_tool_that_is_as_it_was_again_is_called_again(door, scope):
    """A deployment that is rolled back needs no new session."""
    server = notes_server()
    async with door(scope, server, recheck_s=0) as ask:
        await ask("search", query="tea")
        exchange(server, tool(parameters=INPUTS["likely renamed"]))
        assert (await ask("search", query="tea")).failed
        exchange(server, tool())

        assert not (await ask("search", query="tea")).failed


async def test_a_tool_that_is_gone_is_blocked(door, scope):
    """Who called it before gets a sentence, not an error of the server's."""
    server = notes_server()
    async with door(scope, server, recheck_s=0) as ask:
        await ask("search", query="tea")
        server.local_provider.remove_tool("search")

        answer = await ask("search", query="tea")

    assert answer == (True, "Schema mismatch: (tool): tool removed. Tool blocked.")


async def test_a_tool_that_no_server_lists_is_blocked_and_is_no_label(scope, events):
    """A name that a model makes up may be anything: it is in no event."""
    async with through_client(scope, notes_server()) as ask:
        answer = await ask("ada@example.com")

    assert answer.failed
    assert [each.method for each in events()] == ["unknown"]


async def test_the_client_raises_its_own_error_where_it_always_does(scope):
    """``raise_on_error`` of FastMCP's client keeps its meaning."""
    server = notes_server()
    async with scope.mcp(Client(server), recheck_s=0) as client:
        await client.call_tool("search", {"query": "tea"})
        exchange(server, tool(parameters=INPUTS["likely renamed"]))

        with pytest.raises(ToolError, match="found 'search_query'"):
            await client.call_tool("search", {"query": "tea"})


async def all_rows(scope: Mnemoscope, target: object) -> None:
    """Change the server that *target* leads to by each row, and put it back."""
    async with through_client(scope, target, recheck_s=0, classes={"evolve": "forget"}) as ask:
        assert not (await ask("search", query="tea")).failed
        for change in (*BREAKING, *PASSING):
            assert not (await ask("evolve", change=change)).failed

            answer = await ask("search", query="tea")

            assert answer.failed is (change in BREAKING), (change, answer)
            await ask("evolve", change="at first")


async def test_all_rows_are_told_apart_over_http(scope):
    """The same over streamable HTTP."""
    with over_http(evolving_server()) as address:
        await all_rows(scope, address)


async def test_all_rows_are_told_apart_over_stdio(scope):
    """The same with a server that is a process of its own."""
    await all_rows(scope, StdioTransport(sys.executable, ["-m", mcp_servers.__name__]))


async def test_a_server_that_says_its_tools_have_changed_is_asked_at_once(scope):
    """``tools/list_changed`` in mid-session counts before the interval is over."""
    server, later = notifying_server()
    heard = asyncio.Event()

    async def hear(_message: object) -> None:
        heard.set()

    client = Client(server, mode="legacy", message_handler=hear)
    async with scope.mcp(client, recheck_s=3_600) as guarded:
        await guarded.call_tool("search", {"query": "tea"})
        await client.call_tool("rename")
        await asyncio.wait_for(heard.wait(), GIVE_UP_S)

        answer = await guarded.call_tool("search", {"query": "tea"}, raise_on_error=False)

    assert answer.is_error
    assert later.calls == []


async def test_a_server_that_says_nothing_is_asked_when_a_call_fails(scope):
    """Before the interval is over the server refuses the call: then the drift is found."""
    server = notes_server()
    async with through_client(scope, server, recheck_s=3_600) as ask:
        await ask("search", query="tea")
        exchange(
            server,
            tool(parameters=INPUTS["likely renamed"], answers=[ToolError("missing argument")]),
        )

        answer = await ask("search", query="tea")

    assert answer == (True, BLOCKED)


async def test_a_server_that_says_nothing_is_asked_after_the_interval(scope):
    """An interval of no seconds is over at each call."""
    server = notes_server()
    async with through_client(scope, server, recheck_s=3_600) as ask:
        await ask("search", query="tea")
        later = exchange(server, tool(parameters=INPUTS["likely renamed"]))
        await ask("search", query="tea")

    assert later.calls == [{"query": "tea"}]  # the schema is the server's to check


async def test_a_tool_on_the_third_page_is_validated(door, scope):
    """A listing of one tool a page: arguments of the last are checked as of the first."""
    last = tool("third")
    server = notes_server(tool("first"), tool("second"), last, list_page_size=1)
    async with door(scope, server) as ask:
        answer = await ask("third", question="tea")

    assert answer.failed
    assert "expected parameter 'query', found 'question'" in answer.text
    assert last.calls == []


async def test_an_output_that_lost_a_field_blocks_the_tool(scope):
    """The output schema is part of the contract: what the agent reads is not there any more."""
    server = notes_server(tool(output=takes({"found": TEXT}), answers=[{"found": "one"}]))
    async with through_client(scope, server, recheck_s=0) as ask:
        assert not (await ask("search", query="tea")).failed
        later = exchange(server, tool(output=takes({"hits": TEXT}), answers=[{"hits": "one"}]))

        answer = await ask("search", query="tea")

    assert answer.failed
    assert "result found: required parameter removed" in answer.text
    assert later.calls == []


async def test_an_output_schema_that_was_widened_in_mid_session_is_taken(scope):
    """The SDK keeps the old one, and refuses what the new one allows: a read is made once more."""
    server = notes_server()
    async with through_client(scope, server, recheck_s=3_600) as ask:
        await ask("search", query="tea")
        wider = {**LISTED, "properties": {**LISTED["properties"], "more": TEXT}}
        later = exchange(server, tool(output=wider, answers=[{"found": ["a"], "more": "b"}]))

        assert not (await ask("search", query="tea")).failed
    assert len(later.calls) == 1
