"""A server's tools against the file of accepted contracts, outside of any agent: for commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ...memory.errors import ConfigurationError
from .adapter import listing
from .changes import Change
from .contract import ToolContract, changes_between
from .contracts_file import AcceptedContracts, Canary, ContractsFile
from .shapes import answer_of, shape_faults, shape_of

Wrap = Callable[[Any], Any]
"""Returns a client behind a guard."""


class ServerReview:
    """
    Compares one server with what was accepted of it.

    Args:
        target: Its address, the script that serves over stdio, or a JSON file of servers as MCP
            clients have it, with one of this name.
        server: Its name in the file.
        file: The accepted contracts.
        timeout_s: Seconds that the server may take.
    """

    def __init__(self, target: str, server: str, file: ContractsFile, timeout_s: float) -> None:
        self._target, self._server, self._file, self._timeout_s = target, server, file, timeout_s
        self.accepted = file.read(server) or AcceptedContracts()

    def diff(self) -> dict[str, list[Change]]:
        """
        Return the changes of each tool that has some.

        Raises:
            ConfigurationError: The server cannot be asked.
        """
        return self._changes(self._tools())

    def accept(self, names: Sequence[str]) -> dict[str, list[Change]]:
        """
        Write what the server lists now of the tools *names*, of all if there are none.

        Returns:
            The changes that were accepted, by tool.

        Raises:
            ConfigurationError: The server or the file cannot be read, or it has no such tool.
        """
        now, before = self._tools(), self.accepted.tools
        for name in names:
            if name not in {*now, *before}:
                raise ConfigurationError("accept: a tool is named that the server does not list")
        # A tool that is gone is accepted as gone: it is not in the file any more.
        chosen = set(names) or {*now, *before}
        kept = {name: each for name, each in before.items() if name not in chosen}
        taken = {name: each for name, each in now.items() if name in chosen}
        found = {name: each for name, each in self._changes(now).items() if name in chosen}
        self._file.write(self._server, replace(self.accepted, tools={**kept, **taken}))
        return found

    def canaries(self, wrap: Wrap) -> dict[str, list[str]]:
        """
        Make the canary queries, and record the shapes of those that have none.

        Returns:
            What is wrong with the answer, by the query's number and tool: empty, all is well.

        Raises:
            ConfigurationError: The server cannot be asked, or there is no query.
        """
        if not self.accepted.canaries:
            raise ConfigurationError(f"{self._file.path}: add canaries to {self._server} first")
        client = wrap(self._client())
        results = self._ask(client, partial(self._call_all, client))
        recorded = [
            replace(each, shape=shape_of(answer_of(result)))
            if each.shape is None and not result.is_error
            else each
            for each, result in zip(self.accepted.canaries, results, strict=True)
        ]
        if recorded != list(self.accepted.canaries):
            self._file.write(self._server, replace(self.accepted, canaries=tuple(recorded)))
        return {
            f"{number} {each.tool}": _faults(each, result)
            for number, (each, result) in enumerate(zip(recorded, results, strict=True), start=1)
        }

    async def _call_all(self, client: Any) -> list[Any]:
        return [
            await client.call_tool_mcp(each.tool, dict(each.arguments))
            for each in self.accepted.canaries
        ]

    def _changes(self, now: dict[str, ToolContract]) -> dict[str, list[Change]]:
        before = self.accepted.tools
        found = {name: changes_between(before.get(name), now.get(name)) for name in {*before, *now}}
        return {name: each for name, each in sorted(found.items()) if each}

    def _tools(self) -> dict[str, ToolContract]:
        client = self._client()
        tools = self._ask(client, partial(listing, client))
        return {each.name: ToolContract.of(each) for each in tools}

    def _client(self) -> Any:
        from fastmcp import Client  # noqa: PLC0415 - only commands make one

        is_address = self._target.startswith(("http://", "https://"))
        if not is_address and self._target.endswith(".json"):
            # Its command and arguments, headers or environment, with tokens: nothing is told.
            try:
                found = msgspec.json.decode(Path(self._target).read_bytes())
                return Client({"mcpServers": {self._server: found["mcpServers"][self._server]}})
            except (OSError, ValueError, LookupError, TypeError) as exc:
                raise ConfigurationError(
                    f"{self._target} has no server {self._server} under mcpServers "
                    f"({type(exc).__name__}): pass --server"
                ) from None
        if not is_address and not Path(self._target).is_file():
            raise ConfigurationError(
                "the server: expected an http(s) address, a script's path or a .json of mcpServers"
            )
        return Client(self._target if is_address else Path(self._target))

    def _ask(self, client: Any, ask: Callable[[], Any]) -> Any:
        async def asked() -> Any:
            async with asyncio.timeout(self._timeout_s), client:
                return await ask()

        try:
            return asyncio.run(asked())
        except ConfigurationError:
            raise
        # Whatever a client raises: HTTP, JSON-RPC and process errors have no common class.
        except Exception as exc:  # noqa: BLE001 - see above
            kind = type(exc).__name__
            raise ConfigurationError(f"the server {self._server} gave no answer ({kind})") from None


def _faults(canary: Canary, result: Any) -> list[str]:
    if result.is_error:
        return ["the tool failed"]
    text = str([getattr(each, "text", "") for each in result.content])
    missing = sum(each not in text for each in canary.contains)
    faults = shape_faults(canary.shape or {}, shape_of(answer_of(result)))
    return [*faults, *([f"{missing} texts are missing"] if missing else [])]
