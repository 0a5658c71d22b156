"""Guarded MCP clients, asked alike: one call, whatever kind of client makes it."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import pytest
from fastmcp import Client
from langchain_core._api import LangChainBetaWarning

from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.testing import CapturingSink, scope_for_tests
from tests.kit.patience import GIVE_UP_S


def mcp_adapter() -> Any:
    """Return LangChain's class; what asks for it is skipped where LangChain is older than 1.4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)
        return pytest.importorskip("langchain.mcp", reason="LangChain 1.4 has MCP").MCPAdapter


class Answer(NamedTuple):
    """What an agent sees of a call: whether it failed, and the text."""

    failed: bool
    text: str


Ask = Callable[..., Any]
"""``await ask(tool, **arguments)`` returns an `Answer`."""


@pytest.fixture
def scoped() -> Iterator[tuple[Mnemoscope, CapturingSink]]:
    """Return a scope and its events."""
    with scope_for_tests(deadline_recall_s=GIVE_UP_S) as found:
        yield found


@pytest.fixture
def scope(scoped: tuple[Mnemoscope, CapturingSink]) -> Mnemoscope:
    """Return the scope."""
    return scoped[0]


@pytest.fixture
def events(scoped: tuple[Mnemoscope, CapturingSink]) -> Callable[[], list[Any]]:
    """Return a function that returns the events of tools so far."""

    def settled() -> list[Any]:
        scoped[0].flush()
        return [each for each in scoped[1].events if each.operation == "execute_tool"]

    return settled


@asynccontextmanager
async def through_client(scope: Mnemoscope, target: Any, **options: Any) -> AsyncIterator[Ask]:
    """Ask through FastMCP's client."""
    async with scope.mcp(Client(target), **options) as client:

        async def ask(tool: str, **arguments: Any) -> Answer:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            return Answer(result.is_error, "".join(each.text for each in result.content))

        yield ask


@asynccontextmanager
async def through_session(scope: Mnemoscope, target: Any, **options: Any) -> AsyncIterator[Ask]:
    """Ask through the SDK's session."""
    async with Client(target) as client:
        session = scope.mcp(client.session, **options)

        async def ask(tool: str, **arguments: Any) -> Answer:
            result = await session.call_tool(tool, arguments)
            return Answer(result.is_error, "".join(each.text for each in result.content))

        yield ask


@asynccontextmanager
async def through_langchain(scope: Mnemoscope, target: Any, **options: Any) -> AsyncIterator[Ask]:
    """Ask through LangChain's tools, as they were listed at first."""
    async with scope.mcp(mcp_adapter()(target), **options) as adapter:
        tools = {each.name: each for each in await adapter.list_tools()}

        async def ask(tool: str, **arguments: Any) -> Answer:
            call = {"type": "tool_call", "name": tool, "args": arguments, "id": "1"}
            message = await tools[tool].ainvoke(call)
            return Answer(message.status == "error", message.text)

        yield ask


DOORS = {
    "client": through_client,
    "session": through_session,
    "langchain": through_langchain,
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[..., AbstractAsyncContextManager[Ask]]:
    """Return each kind of client in turn."""
    return DOORS[request.param]
