"""The file of contracts that a human has accepted, for git: JSON, by server and tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...memory.errors import ConfigurationError
from .contract import ToolContract


class Canary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A query whose answer is known to be good.

    Attributes:
        tool: The tool.
        arguments: Its arguments.
        shape: Of the answer when it was recorded: see `shape_of`. None: not yet.
        contains: Texts that the answer must hold.
    """

    tool: str
    arguments: Mapping[str, Any]
    shape: Mapping[str, Any] | None = None
    contains: tuple[str, ...] = ()


class AcceptedContracts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What was accepted of one server.

    Attributes:
        tools: Contracts by tool.
        pinned: Tools whose calls go to the version of their contract, if the server has a later.
        canaries: Queries for ``mnemoscope mcp canary``.
    """

    tools: Mapping[str, ToolContract] = {}
    pinned: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()


class ContractsFile:
    """
    A file of accepted contracts. It need not exist until something is written.

    Args:
        path: ``mcp-contracts.json``, say.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, server: str) -> AcceptedContracts | None:
        """
        Return what was accepted of *server*. None: nothing was.

        Raises:
            ConfigurationError: The file cannot be read, or is none of these.
        """
        return self._all().get(server)

    def write(self, server: str, accepted: AcceptedContracts) -> None:
        """
        Put *accepted* in place of what the file has of *server*.

        Raises:
            ConfigurationError: The file cannot be read or written.
        """
        found = self._all() | {server: accepted}
        # Never half a file: what is in git is read by the next deployment.
        draft = self.path.with_name(f"{self.path.name}.draft")
        encoded = msgspec.json.encode(found, order="sorted")
        try:
            draft.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
            draft.replace(self.path)
        except OSError as exc:
            raise self._problem("written", exc) from None

    def _all(self) -> dict[str, AcceptedContracts]:
        try:
            return msgspec.json.decode(
                self.path.read_bytes(), type=dict[str, AcceptedContracts], strict=True
            )
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:  # the message may hold what the file says
            raise self._problem("read", exc) from None

    def _problem(self, what: str, exc: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"{self.path} cannot be {what} ({type(exc).__name__}): expected JSON that "
            "`mnemoscope mcp accept` wrote"
        )
