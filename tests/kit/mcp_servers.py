"""
MCP servers that are changed while clients are connected: in this process, over HTTP and stdio.

Run as a script it serves over stdio; its tool ``evolve`` changes the others there.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.tools.base import Tool, ToolResult
from mcp.types import ToolListChangedNotification

from tests.kit.patience import GIVE_UP_S

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
ORDER = {"enum": ["new", "old"]}
LISTED = {"type": "object", "properties": {"found": {"type": "array", "items": TEXT}}}


def takes(required: dict[str, Any], /, **optional: Any) -> dict[str, Any]:
    """Return the input schema of a tool."""
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": sorted(required)}


INPUTS = {
    "at first": takes({"query": TEXT}, limit=NUMBER, order=ORDER),
    "required parameter added": takes({"query": TEXT, "area": TEXT}, limit=NUMBER, order=ORDER),
    "required parameter removed": takes({}, limit=NUMBER, order=ORDER),
    "type changed": takes({"query": NUMBER}, limit=NUMBER, order=ORDER),
    "enum value removed": takes({"query": TEXT}, limit=NUMBER, order={"enum": ["new"]}),
    "likely renamed": takes({"search_query": TEXT}, limit=NUMBER, order=ORDER),
    "optional parameter removed": takes({"query": TEXT}, order=ORDER),
    "optional parameter added": takes({"query": TEXT}, limit=NUMBER, order=ORDER, cursor=TEXT),
    "enum value added": takes(
        {"query": TEXT}, limit=NUMBER, order={"enum": ["new", "old", "best"]}
    ),
    "description changed": takes(
        {"query": {**TEXT, "description": "In French."}}, limit=NUMBER, order=ORDER
    ),
}
"""Input schemas of ``search``: as it is at first, and after each change of the table."""

BREAKING = tuple(INPUTS)[1:6]
PASSING = tuple(INPUTS)[6:]


class NotesTool(Tool):
    """A tool with a schema of its own, which answers what *answers* says and keeps its calls."""

    answers: list[Any]
    calls: list[dict[str, Any]]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the answer: the last one again and again."""
        self.calls.append(arguments)
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, dict):
            return ToolResult(structured_content=answer)
        return ToolResult(content=answer)


def tool(
    name: str = "search",
    parameters: Any = None,
    output: Any = LISTED,
    answers: Any = None,
    **further: Any,
) -> NotesTool:
    """Return a tool that finds two notes."""
    found = [{"found": ["one", "two"]}] if answers is None else answers
    return NotesTool(
        name=name,
        description="Finds notes.",
        parameters=INPUTS["at first"] if parameters is None else parameters,
        output_schema=output,
        answers=found,
        calls=[],
        **{"annotations": {"readOnlyHint": True}, **further},
    )


def notes_server(*tools: NotesTool, **options: Any) -> FastMCP:
    """Return a server with *tools*, or with ``search`` alone."""
    server = FastMCP("notes", **options)
    for each in tools or (tool(),):
        server.add_tool(each)
    return server


def exchange(server: FastMCP, new: NotesTool) -> NotesTool:
    """Have *server* offer *new* in place of the tool of its name; nobody is notified."""
    server.local_provider.remove_tool(new.name)
    server.local_provider.add_tool(new)
    return new


@contextmanager
def over_http(server: FastMCP) -> Iterator[str]:
    """Serve over streamable HTTP on this machine, from a thread, and yield the address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        serving = uvicorn.Server(
            uvicorn.Config(server.http_app(), log_level="error", ws="none", lifespan="on")
        )
        thread = threading.Thread(target=serving.run, args=([listener],))
        thread.start()
        while not serving.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            serving.should_exit = True
            thread.join(GIVE_UP_S)


def notifying_server() -> tuple[FastMCP, NotesTool]:
    """Return a server whose tool ``rename`` renames a parameter and says so, and the new tool."""
    server, later = notes_server(), tool(parameters=INPUTS["likely renamed"])

    @server.tool
    async def rename(ctx: Context) -> str:
        exchange(server, later)
        await ctx.send_notification(ToolListChangedNotification())
        return "done"

    return server, later


def evolving_server() -> FastMCP:
    """Return a server that its clients can change: ``evolve(change=...)``."""
    server = notes_server()

    @server.tool
    def evolve(change: str) -> str:
        exchange(server, tool(parameters=INPUTS[change]))
        return "done"

    return server


if __name__ == "__main__":
    evolving_server().run(transport="stdio", show_banner=False)
