"""
The demo's ``--mcp``: another agent reaches the memory over MCP, and the server changes meanwhile.

The server stands for somebody else's: it is served over HTTP, in front of the demo's mem0.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastmcp import Client, FastMCP

from mnemoscope.adapters.mcp.contracts_file import ContractsFile
from mnemoscope.adapters.mcp.server_review import ServerReview
from mnemoscope.memory import Mnemoscope, context

SERVER = "openmemory"
"""What the scope calls the server."""

QUESTION = "What am I allergic to?"
ANSWERS_S = 10.0
"""Longest time that the server is given to begin, or to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """
    One call of the agent's.

    Attributes:
        parameter: The name by which it gave its question.
        blocked: Whether the server was not asked.
        told: What the agent's model is told: memories, or why not.
        answered: Calls that the server had answered by then.
    """

    parameter: str
    blocked: bool
    told: tuple[str, ...]
    answered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChange:
    """
    A server that renamed a parameter, as an agent behind a guard met it.

    Attributes:
        server: Its address.
        calls: Before it, after it, and after a human accepted it.
        changes: What the human was shown.
    """

    server: str
    calls: tuple[ToolCall, ...]
    changes: tuple[str, ...]

    def as_document(self) -> dict[str, Any]:
        """Return the change for ``--json``."""
        return asdict(self)


class MemoryServer:
    """
    A memory server: one tool, over mem0.

    Args:
        memory: mem0, without a guard.
        customer: Whose memories it has.
    """

    def __init__(self, memory: Any, customer: str) -> None:
        self._memory, self._customer = memory, customer
        self.server, self.answered = FastMCP(SERVER), 0
        self.server.tool(self._by_query, name="search_memory", annotations=_READS)

    def rename(self) -> None:
        """Call the parameter ``search_query`` from now on, and notify nobody."""
        self.server.local_provider.remove_tool("search_memory")
        self.server.tool(self._by_search_query, name="search_memory", annotations=_READS)

    async def _by_query(self, query: str) -> list[str]:
        return self._search(query)

    async def _by_search_query(self, search_query: str) -> list[str]:
        return self._search(search_query)

    def _search(self, query: str) -> list[str]:
        self.answered += 1
        theirs = {"user_id": self._customer}
        found = self._memory.search(query, filters=theirs, top_k=2, threshold=0.0)
        return [each["memory"] for each in found["results"]]


_READS = {"readOnlyHint": True}


def change_server(scope: Mnemoscope, memory: Any, customer: str, folder: Path) -> ServerChange:
    """
    Ask a memory server, rename its parameter, ask again, accept the change, and ask a third time.

    Args:
        scope: The guards'.
        memory: mem0, without a guard.
        customer: Whose memories are asked for.
        folder: Of the file of contracts.
    """
    behind = MemoryServer(memory, customer)
    file = ContractsFile(folder / "mcp-contracts.json")
    with _served(behind.server) as address:
        review = ServerReview(address, SERVER, file, ANSWERS_S)
        client = scope.mcp(Client(address), server=SERVER, contracts=file.path, recheck_s=0)
        accept = partial(_accept, review, file)
        with context(tenant="demo", customer=customer, agent="helpdesk", purpose="reply"):
            calls, changes = asyncio.run(_ask(client, behind, accept))
    return ServerChange(server=address, calls=tuple(calls), changes=changes)


async def _ask(
    client: Any, behind: MemoryServer, accept: Callable[[], tuple[str, ...]]
) -> tuple[list[ToolCall], tuple[str, ...]]:
    calls: list[ToolCall] = []

    async def call(parameter: str) -> None:
        asked = {parameter: QUESTION}
        result = await client.call_tool("search_memory", asked, raise_on_error=False)
        told = (result.content[0].text,) if result.is_error else tuple(result.data)
        calls.append(
            ToolCall(
                parameter=parameter, blocked=result.is_error, told=told, answered=behind.answered
            )
        )

    async with client:
        await call("query")
        behind.rename()
        await call("query")
        changes = await asyncio.to_thread(accept)
        await call("search_query")
    return calls, changes


def _accept(review: ServerReview, file: ContractsFile) -> tuple[str, ...]:
    review.accepted = file.read(SERVER) or review.accepted
    return tuple(str(each) for found in review.accept([]).values() for each in found)


@contextmanager
def _served(server: FastMCP) -> Generator[str]:
    """Serve on this machine, from a thread, and yield the address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        serving = uvicorn.Server(
            uvicorn.Config(server.http_app(), log_level="error", ws="none", lifespan="on")
        )
        thread = threading.Thread(target=serving.run, args=([listener],), daemon=True)
        thread.start()
        gives_up_s = time.monotonic() + ANSWERS_S
        while not serving.started and time.monotonic() < gives_up_s:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            serving.should_exit = True
            thread.join(ANSWERS_S)
