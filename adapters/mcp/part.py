"""The part of an event that says whether the contract of a tool was kept."""

from __future__ import annotations

from typing import Any

from ...telemetry.event.part import EventPart


class ToolContractCheck(EventPart, tag="mnemoscope.mcp", frozen=True, kw_only=True):
    """
    The check of a tool's contract.

    Attributes:
        server: As the user calls it.
        tool: Its name, as the server lists it.
        verdict: ``kept``, ``pinned``, ``failed``, or the reason of a `ToolBlockedError`.
        signal: What is unusual in the answer: ``emptied``, ``resized``.
    """

    server: str
    tool: str
    verdict: str
    signal: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "mcp_server": self.server,
            "mcp_tool": self.tool,
            "mcp_contract": self.verdict,
            "mcp_signal": self.signal,
        }

    def attributes(self) -> dict[str, Any]:
        """Return the conventions' names of the tool and of MCP's method, and ours."""
        return {
            "gen_ai.tool.name": self.tool,
            "mcp.method.name": "tools/call",
            "mnemoscope.mcp.server": self.server,
            "mnemoscope.mcp.contract": self.verdict,
            "mnemoscope.mcp.signal": self.signal,
        }

    def measurements(self) -> dict[str, int]:
        """Count the verdict, and the signal."""
        return {each: 1 for each in (self.verdict, self.signal) if each is not None}

    def sealed(self) -> dict[str, str]:
        """Return what the trail keeps for ever: no argument is in it."""
        return {"server": self.server, "tool": self.tool, "contract": self.verdict}
