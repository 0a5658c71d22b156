"""
The connections to the site, and how long a client may keep one without asking anything.

uvicorn waits without end for a first request, for one that comes byte by byte, and for a client
that does not read. It counts all of them with those that it serves, so some hundred silent sockets
would be all that it has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PunctualLoop(asyncio.SelectorEventLoop):
    """An event loop under whose servers a TLS handshake has as long as a head has."""

    async def create_server(self, *args: Any, **given: Any) -> asyncio.Server:
        """Serve; uvicorn passes no limit on, and a minute is the one that asyncio has."""
        if given.get("ssl") is not None:
            given["ssl_handshake_timeout"] = PunctualProtocol.head_s
        return await super().create_server(*args, **given)


class PunctualProtocol(H11Protocol):
    """
    A connection that ends when its client is late.

    By h11 wherever it runs: the parser that uvicorn prefers takes a head of any length.

    Attributes:
        head_s: Seconds from the connection, or from the last answer, to the end of a head.
        rest_s: Seconds that a body may take besides, and that an answer may stay unread.
        most_waiting: Connections without a whole request. One more ends the oldest of them.
        since_s: When it began to wait, by a monotonic clock.
    """

    head_s: ClassVar = 5.0
    rest_s: ClassVar = 20.0
    most_waiting: ClassVar = 128

    since_s = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, and have room for it."""
        super().connection_made(transport)
        self._await_request()
        waiting = [
            each
            for each in self.connections
            if isinstance(each, PunctualProtocol)
            and not each.is_at_work
            and not each.transport.is_closing()
        ]
        # Of whatever address: behind a proxy all have the same one.
        if len(waiting) > self.most_waiting:
            min(waiting, key=lambda each: each.since_s).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_request()

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        super().pause_writing()
        self._wait(self.rest_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with the answer, or wait for the next request if that was all."""
        super().resume_writing()
        self._await_request()

    @property
    def is_at_work(self) -> bool:
        """Whether the client has sent a whole request, and not all of the answer is made."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _await_request(self) -> None:
        self.since_s = time.monotonic()
        self._wait(self.head_s, self._end_without_head)

    def _wait(self, seconds: float, late: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, late)

    def _end_without_head(self) -> None:
        cycle: Any = self.cycle
        has_begun = cycle is not None and not cycle.response_complete
        if has_begun or self.transport.get_write_buffer_size():
            self._wait(self.rest_s, self._end_without_rest)
        else:
            self.transport.abort()

    def _end_without_rest(self) -> None:
        if not self.is_at_work:
            self.transport.abort()
