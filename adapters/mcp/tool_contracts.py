"""The contracts of one client's tools: as they were accepted, and as the server lists them now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from loguru import logger
from msgspec.structs import replace

from ...memory.errors import ConfigurationError
from .changes import Change, Severity, gravest
from .contract import ToolContract, changes_between
from .contracts_file import AcceptedContracts, ContractsFile
from .mismatch import ToolBlockedError, drift_sentence
from .shapes import RollingShapes

_RETRIES: Final = 1


class ToolContracts:
    """
    Keeps the contracts of the tools of one connection.

    Args:
        server: Its name in the file.
        listing: Returns all tools of the server, of all pages.
        file: Where accepted contracts are. None: what the first listing says is accepted.
        recheck_s: Seconds after which the server is asked again.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        server: str,
        listing: Callable[[], Awaitable[list[Any]]],
        *,
        file: ContractsFile | None,
        recheck_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._server, self._listing, self._file = server, listing, file
        self._recheck_s, self._clock = recheck_s, clock
        self._accepted = None if file is None else file.read(server)
        self._now: Mapping[str, ToolContract] = {}
        self._looked_at: float | None = None
        self._failure: Exception | None = None
        self._strikes: Counter[str] = Counter()
        self._disabled: dict[str, str] = {}
        self._shapes: dict[str, RollingShapes] = {}

    @property
    def is_stale(self) -> bool:
        """Whether the server is to be asked before the next call."""
        at = self._looked_at
        return at is None or self._clock() - at >= self._recheck_s

    def outdate(self) -> None:
        """Have the server be asked before the next call: it says that its tools have changed."""
        self._looked_at = None

    def listed(self, tool: str) -> ToolContract | None:
        """Return the contract of *tool* as the server listed it last."""
        return self._now.get(tool)

    async def prepare(self, timeout_s: float | None) -> None:
        """Look, in *timeout_s* seconds at most; the call that it is for raises what went wrong."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.look()
        except Exception as exc:  # noqa: BLE001 - raised by `ready`, behind the guard
            self._failure = exc

    async def look(self) -> None:
        """Ask the server for all of its tools; the first time, accept those of nobody's file."""
        found = [ToolContract.of(each) for each in await self._listing()]
        self._now, self._looked_at = {each.tool: each for each in found}, self._clock()
        if self._accepted is None:
            # Trust on first use, as of host keys: nobody has said anything else yet.
            self._accepted = AcceptedContracts(tools=self._now)
            if self._file is not None:
                self._file.write(self._server, self._accepted)
        new = {name: each for name, each in self._now.items() if name not in self._accepted.tools}
        # Not written to the file, which is a human's: accepted for this connection alone, since
        # no caller can know another contract of a tool that was not there.
        if new:
            self._accepted = replace(self._accepted, tools={**self._accepted.tools, **new})
        for name in self._now:
            changes = self.changes(name)
            if gravest(changes) is Severity.WARN:
                logger.warning(
                    "{}: the contract of the tool {} has changed: {}",
                    *(self._server, name, "; ".join(map(str, changes))),
                )

    def changes(self, tool: str) -> list[Change]:
        """Return what has changed of *tool* since it was accepted, the gravest first."""
        accepted = None if self._accepted is None else self._accepted.tools.get(tool)
        return changes_between(accepted, self._now.get(tool))

    async def ready(self, tool: str, *, again: bool = False) -> tuple[ToolContract, str | None]:
        """
        Return the contract that a call of *tool* has to keep, and the version to ask for, if any.

        Args:
            tool: Its name.
            again: Ask the server, however lately it was asked.

        Raises:
            ToolBlockedError: The tool has changed, is disabled, or is none.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if again or self.is_stale:
            await self.look()
        # For good: a model that broke a contract twice in a row would break it again.
        if tool in self._disabled:
            raise ToolBlockedError(tool, "disabled", self._disabled[tool])
        known = AcceptedContracts() if self._accepted is None else self._accepted
        accepted, now = known.tools.get(tool), self._now.get(tool)
        if accepted is None:
            message = "Unknown tool: the server does not list it. Tool blocked."
            raise ToolBlockedError(tool, "unknown", message)
        if now is not None and gravest(self.changes(tool)) < Severity.BREAKING:
            return now, None
        if self._is_accepted_meanwhile(tool, accepted):
            return await self.ready(tool)
        # Only where the tool is listed still: a version of a tool that is gone is gone with it.
        if now is not None and tool in known.pinned and accepted.version is not None:
            return accepted, accepted.version
        sentences = "; ".join(map(drift_sentence, self.changes(tool)))
        raise ToolBlockedError(tool, "drift", f"Schema mismatch: {sentences}. Tool blocked.")

    def _is_accepted_meanwhile(self, tool: str, accepted: ToolContract) -> bool:
        """Take what the file says now of *tool*, and return whether that is another contract."""
        try:
            found = None if self._file is None else self._file.read(self._server)
        except ConfigurationError:
            return False  # what held until now still does
        if found is None or self._accepted is None:
            return False
        now = found.tools.get(tool, accepted)
        tools = {**self._accepted.tools, tool: now}
        self._accepted = replace(self._accepted, tools=tools, pinned=found.pinned)
        return now.version_hash != accepted.version_hash

    def struck(self, tool: str, reason: str, sentence: str) -> ToolBlockedError:
        """Return the error of a call that broke the contract: the second in a row disables."""
        self._strikes[tool] += 1
        said = f"Schema mismatch: {sentence}."
        if self._strikes[tool] <= _RETRIES:
            return ToolBlockedError(tool, reason, f"{said} Call it once more.", may_retry=True)
        message = f"{said} Tool disabled for this session: do without it."
        self._disabled[tool] = message
        logger.error("{}: the tool {} is disabled for this session", self._server, tool)
        return ToolBlockedError(tool, "disabled", message)

    def kept(self, tool: str, structured: Any) -> str | None:
        """Take note of a call as its contract says; return what is unusual in its answer."""
        # A `Counter` has a zero for what it never counted, and deletes it without a word.
        del self._strikes[tool]
        signal = self._shapes.setdefault(tool, RollingShapes()).add(structured)
        if signal is not None:
            logger.warning("{}: an answer of the tool {} is {}", self._server, tool, signal)
        return signal
