"""Toxics below the guard of a store or tool: the store misbehaves, and the guard does its work."""

from __future__ import annotations

import asyncio
import copy
import inspect
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final

from ..errors import ConfigurationError
from ..guard.call import Call, innermost
from ..guard.operation import Arguments, Method
from ..limits.workers import driven
from .answers import Change, as_nonsense, shuffled, twice, with_records, without_records
from .broken_store import INNER, TABLE, replacing
from .toxic import READS, Strike, Toxic

_LOOK_S: Final = 0.02
"""Between two looks of a waiting coroutine whether its toxic is still there."""

_STRUCK: ContextVar[Call | None] = ContextVar("mnemoscope_struck", default=None)


class Toxics:
    """
    Toxics of one store or tool, drawn anew for each call. Thread-safe.

    Args:
        *toxics: Each strikes by its toxicity, in this order.
        seed: The same calls in the same order are struck the same way.
        script: In the place of *toxics*: what strikes the first call, the second, and so on. None:
            nothing does. Behind its end the store is healthy.

    Attributes:
        strikes: What changed something for a call, oldest first.

    Examples:
        >>> with Toxics(Toxic("down", 0.3), Toxic("reorder"), seed=7).on(store) as strikes:
        ...     answer = my_agent(store)
        >>> assert strikes, "no call was struck"
    """

    def __init__(
        self, *toxics: Toxic, seed: int = 0, script: Sequence[Toxic | None] | None = None
    ) -> None:
        self.strikes: list[Strike] = []
        self._toxics = toxics
        self._all = (*toxics, *(each for each in script or () if each is not None))
        self._script = None if script is None else iter(script)
        self._random = random.Random(seed)  # noqa: S311 - faults are no secrets
        self._lock = threading.Lock()
        self._removed = threading.Event()
        # A summary of each write costs, and only what is stale asks for it.
        self._remembers = any(each.type == "stale" for each in self._all)
        self._first: dict[str, Any] = {}
        self._written: set[str] = set()

    @contextmanager
    def on(self, client: object) -> Generator[list[Strike]]:
        """
        Put the toxics below the guard of *client* while the body runs, and yield `strikes`.

        What the store calls of its own to do its work is not struck again.

        Args:
            client: A client that a scope has wrapped.

        Raises:
            ConfigurationError: A toxic names a method that is not guarded.
        """
        store, guarded = vars(client)[INNER], type(client)
        rows: Mapping[str, Any] = getattr(guarded, TABLE)
        named = {name for each in self._all for name in each.methods}
        if unknown := ", ".join(sorted(named - rows.keys())):
            raise ConfigurationError(f"{guarded.__name__} has no guarded method {unknown}")
        struck = {
            name: self._struck(name, getattr(store, name), getattr(guarded, name))
            for name in rows
            if hasattr(store, name) and any(each.is_of(name) for each in self._all)
        }
        self._removed.clear()
        try:
            with replacing(store, struck):
                yield self.strikes
        finally:
            self._removed.set()

    def wrap(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """Return *tool*, a function or coroutine function, with the toxics around each call."""
        return self._struck(getattr(tool, "__name__", "tool"), tool, tool, is_tool=True)

    def _struck(
        self, name: str, method: Callable[..., Any], like: Any, *, is_tool: bool = False
    ) -> Callable[..., Any]:
        is_async = any(map(inspect.iscoroutinefunction, (method, like)))
        is_lazy = inspect.isasyncgenfunction(method)
        pause = self._apause if is_async or is_lazy else self._pause

        async def acalled(*args: Any, **kwargs: Any) -> Any:
            async def ask() -> Any:
                answer = method(*args, **kwargs)
                if is_lazy:
                    # Records can only be changed together, so all are read with the first.
                    return iter([each async for each in answer])
                return await answer if is_async and inspect.isawaitable(answer) else answer

            call = innermost()
            # A store makes one method of another, on a task of its own, too: of all those calls
            # only the one that the guard makes is struck.
            if not is_tool and (call is None or call.ended or call is _STRUCK.get()):
                return await ask()
            return await self._meet(name, call, ask, pause)

        async def iterated(*args: Any, **kwargs: Any) -> Any:
            for each in await acalled(*args, **kwargs):
                yield each

        def called(*args: Any, **kwargs: Any) -> Any:
            # Nothing in it waits for a loop, so that both kinds of stores share one course.
            return driven(acalled(*args, **kwargs).__await__())

        # The guard awaits what looks as if it were to be awaited: each stays of its kind.
        return wraps(method)(iterated if is_lazy else acalled if is_async else called)

    async def _meet(
        self,
        name: str,
        call: Call | None,
        ask: Callable[[], Awaitable[Any]],
        pause: Callable[[float], Awaitable[None]],
    ) -> Any:
        """Return what a call of *name* meets, with the toxics that strike it on both ways."""
        drawn, draw = self._drawn(name)
        # A tool that no guard knows reads, as most do: nothing is done twice unseen.
        is_read = call is None or call.method.op_class in READS
        token = _STRUCK.set(call)
        try:
            for each in drawn:
                await self._go(each, name, draw, pause)
                if each.type == "duplicate" and not is_read:
                    self.strikes.append(Strike(name, each.type))
                    await ask()
            answer = await ask()
            if call is not None and not is_read and self._remembers:
                self._written.update(call.method.summary(answer, call.arguments).memory_ids)
            for each in drawn:
                # The work is done: a client that tries again does it twice.
                if each.type == "late_failure":
                    self.strikes.append(Strike(name, each.type))
                    raise each.failure
                answer = self._come_back(each, name, draw, answer, call) if is_read else answer
            return answer
        finally:
            _STRUCK.reset(token)

    def _drawn(self, name: str) -> tuple[list[Toxic], random.Random]:
        with self._lock:
            if self._script is not None:
                scripted = next(self._script, None)
                drawn = [] if scripted is None else [scripted]
            else:
                # Each is drawn, whichever it is of: else one toxic would change another's strikes.
                drawn = [e for e in self._toxics if self._random.random() < e.toxicity]
            # Of its own for each call, since calls at once take turns in no order.
            draw = random.Random(self._random.getrandbits(64))  # noqa: S311
        return [each for each in drawn if each.is_of(name)], draw

    async def _go(
        self,
        toxic: Toxic,
        name: str,
        draw: random.Random,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        if toxic.type not in {"down", "slow", "hang"}:
            return
        self.strikes.append(Strike(name, toxic.type))
        if toxic.type == "slow":
            await pause(max(0.0, toxic.latency_s + draw.uniform(-1, 1) * toxic.jitter_s))
            return
        if toxic.type == "hang":
            # Not for ever: an event can wait no longer than that.
            await pause(threading.TIMEOUT_MAX if toxic.timeout_s is None else toxic.timeout_s)
        # As Toxiproxy ends a connection that timed out: nothing of the call reaches the store.
        raise toxic.failure

    def _come_back(
        self, toxic: Toxic, name: str, draw: random.Random, answer: Any, call: Call | None
    ) -> Any:
        is_lazy = hasattr(answer, "__next__")
        found = list(answer) if is_lazy else answer
        changed = self._changed(toxic, found, call, draw)
        # A strike that changes nothing is none: a test that counts on it would show nothing.
        if changed is not found and changed != found:
            self.strikes.append(Strike(name, toxic.type))
        return iter(changed) if is_lazy else changed

    def _changed(self, toxic: Toxic, answer: Any, call: Call | None, draw: random.Random) -> Any:
        method, given = (None, {}) if call is None else (call.method, call.arguments)
        of_records: Mapping[str, Change] = {
            "partial": lambda records: records[::2],
            "duplicate": twice,
            "reorder": partial(shuffled, draw=draw),
        }
        if (change := of_records.get(toxic.type)) is not None:
            return with_records(answer, method, change)
        if toxic.type == "empty":
            return without_records(answer, method, given)
        if toxic.type == "garbage":
            return as_nonsense(answer, method, given, draw)
        return self._stale(answer, method, given) if toxic.type == "stale" else answer

    def _stale(self, answer: Any, method: Method | None, given: Arguments) -> Any:
        key = f"{method and method.name} {given!r}"
        with self._lock:
            if key not in self._first:
                # A replica that lags has old answers, and of what is new nothing at all.
                if method is not None and method.sift is not None and self._written:
                    answer = method.sift(answer, given, lambda e: e.memory_id not in self._written)
                self._first[key] = copy.deepcopy(answer)
            return copy.deepcopy(self._first[key])

    async def _pause(self, seconds: float) -> None:
        self._removed.wait(seconds)

    async def _apause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        # Looked at: the toxic may be removed on another thread, and the loop be gone by then.
        while not self._removed.is_set() and (left_s := ends - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, _LOOK_S))
