"""
Toxics below the guard of a store or tool: the store misbehaves, and the guard does what it does.

A course is the way of one call: a generator of the seconds to wait, or None where the store is to
be called. It is the same for synchronous and asynchronous stores, which each walk it.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final, TypeAlias

from ...telemetry.event.event import OperationClass
from ..errors import ConfigurationError
from ..guard.call import Call, innermost
from .answers import Change, as_nonsense, shuffled, twice, with_records, without_records
from .broken_store import INNER, TABLE, replacing
from .toxic import Strike, Toxic

_Course: TypeAlias = Generator[float | None, Any, Any]

_READS = frozenset({OperationClass.RECALL, OperationClass.RESUME})
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
        def course() -> _Course:
            call = innermost()
            # A store makes one method of another, on a task of its own, too.
            is_inner = call is None or call.ended or call is _STRUCK.get()
            return _healthy() if is_inner and not is_tool else self._course(name, call)

        async def answered(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if hasattr(answer, "__anext__"):
                return iter([each async for each in answer])
            return await answer if inspect.isawaitable(answer) else answer

        if inspect.isasyncgenfunction(method):

            @wraps(method)
            async def iterated(*args: Any, **kwargs: Any) -> Any:
                ask = partial(answered, *args, **kwargs)
                for each in await _awalked(course(), ask, self._apause):
                    yield each

            return iterated
        if any(map(inspect.iscoroutinefunction, (method, like))):

            @wraps(method)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await _awalked(course(), partial(answered, *args, **kwargs), self._apause)

            return awaited

        @wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            return _walked(course(), partial(method, *args, **kwargs), self._removed.wait)

        return called

    def _course(self, name: str, call: Call | None) -> _Course:
        drawn, draw = self._drawn(name)
        is_read = call is None or call.method.op_class in _READS
        token = _STRUCK.set(call)
        try:
            for each in drawn:
                yield from self._upstream(each, name, draw, is_read=is_read)
            answer = yield None
            if call is not None and not is_read:
                self._written.update(call.method.summary(answer, call.arguments).memory_ids)
            for each in drawn:
                if each.type == "late_failure":
                    self.strikes.append(Strike(name, each.type))
                    raise each.failure
                if is_read:
                    answer = self._downstream(each, name, draw, answer, call)
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
            draw = random.Random(self._random.getrandbits(64))  # noqa: S311 - as above
        return [each for each in drawn if each.is_of(name)], draw

    def _upstream(self, toxic: Toxic, name: str, draw: random.Random, *, is_read: bool) -> _Course:
        kind = toxic.type
        if kind in {"down", "slow", "hang"} or (kind == "duplicate" and not is_read):
            self.strikes.append(Strike(name, kind))
        if kind == "slow":
            yield max(0.0, toxic.latency_s + draw.uniform(-1, 1) * toxic.jitter_s)
        elif kind == "hang":
            yield threading.TIMEOUT_MAX if toxic.timeout_s is None else toxic.timeout_s
        elif kind == "duplicate" and not is_read:
            yield None
        if kind in {"down", "hang"}:
            raise toxic.failure

    def _downstream(
        self, toxic: Toxic, name: str, draw: random.Random, answer: Any, call: Call | None
    ) -> Any:
        is_lazy = hasattr(answer, "__next__")
        found = list(answer) if is_lazy else answer
        changed = self._changed(toxic, found, call, draw)
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
        return self._stale(answer, call) if toxic.type == "stale" else answer

    def _stale(self, answer: Any, call: Call | None) -> Any:
        if call is None:
            key, sift = "", None
        else:
            key, sift = f"{call.method.name} {call.arguments!r}", call.method.sift
        with self._lock:
            if key not in self._first:
                if call is not None and sift is not None and self._written:
                    unknown = self._written
                    answer = sift(answer, call.arguments, lambda e: e.memory_id not in unknown)
                self._first[key] = copy.deepcopy(answer)
            return copy.deepcopy(self._first[key])

    async def _apause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self._removed.is_set() and (left_s := ends - time.monotonic()) > 0:  # noqa: ASYNC110 - removed from any thread
            await asyncio.sleep(min(left_s, _LOOK_S))


def _healthy() -> _Course:
    return (yield None)


def _walked(course: _Course, ask: Callable[[], Any], pause: Callable[[float], Any]) -> Any:
    """Return what *course* returns, with a synchronous store."""
    with closing(course):
        answer: Any = None
        while True:
            try:
                pause_s = course.send(answer)
            except StopIteration as end:
                return end.value
            answer = ask() if pause_s is None else pause(pause_s)


async def _awalked(
    course: _Course,
    ask: Callable[[], Awaitable[Any]],
    pause: Callable[[float], Awaitable[Any]],
) -> Any:
    """Return what *course* returns, with an asynchronous store."""
    with closing(course):
        answer: Any = None
        while True:
            try:
                pause_s = course.send(answer)
            except StopIteration as end:
                return end.value
            answer = await (ask() if pause_s is None else pause(pause_s))
