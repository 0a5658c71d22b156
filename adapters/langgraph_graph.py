"""
A compiled graph whose every run is watched, however it is called.

    graph = scope.runnable(builder.compile())

It is the graph itself, copied shallowly, with another class: LangGraph looks into its graphs when
they are drawn, nested or resumed, and every way to run one leads to ``stream`` or ``astream``.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import wraps
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs] - typed

from ..memory.errors import UnsupportedClientError
from ..memory.runtime import Runtime
from ..telemetry.prices import Prices
from .langgraph_callbacks import graph_callbacks
from .langgraph_meter import Meter
from .langgraph_spans import Watcher, watched_by
from .langgraph_stream import CHANNEL, UsageFactory, usage

C = TypeVar("C")

_FACTORY = "_mnemoscope_usage"
_END = object()


def runnable(
    graph: C, runtime: Runtime, prices: Prices | None, features: Mapping[str, str] | None = None
) -> C:
    """
    Return *graph* with every run of it watched.

    Args:
        graph: What ``compile()`` returned, or an ``@entrypoint``.
        runtime: What the guards of a scope share.
        prices: For the cost.
        features: Features by node name.

    Raises:
        UnsupportedClientError: It is not a compiled graph.
    """
    if not isinstance(graph, Pregel):
        raise UnsupportedClientError(type(graph), (Pregel.__name__,))
    watched = cast("Any", copy.copy(graph))  # pyright: ignore[reportUnknownArgumentType] - as given
    kind: type[Any] = watched.__class__
    watched.__class__ = _watched_class(_bare(kind), usage(runtime, prices, features=features))
    return cast("C", watched)


def _bare(kind: type[Any]) -> type[Any]:
    return kind.__bases__[0] if _FACTORY in vars(kind) else kind


def _watched_class(base: type[Any], factory: UsageFactory) -> type[Any]:
    """Return a subclass of *base*, so that the copies LangGraph makes of it are watched too."""
    own: dict[str, Any] = {
        _FACTORY: factory,
        "stream": _stream(base.stream),
        "astream": _astream(base.astream),
        "stream_events": _stream_events(base.stream_events),
        "astream_events": _stream_events(base.astream_events),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    return type(base.__name__, (base,), own)


def _stream(stream: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(stream)
    def watched(
        self: Any,
        input: Any,  # noqa: A002 - LangGraph's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        config, watcher = _expecting(self, config)
        parts = stream(self, input, config, **kwargs)
        return parts if watcher is None else _parts(parts, watcher)

    return watched


def _parts(parts: Any, watcher: Watcher) -> Iterator[Any]:
    around = watched_by(watcher)
    try:
        while True:
            # Not while the caller works, in whose context this runs.
            with around:
                part = next(parts, _END)
            if part is _END:
                return
            yield part
    finally:
        try:
            with around:
                parts.close()
        finally:
            _close(watcher)


def _astream(astream: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @wraps(astream)
    def watched(
        self: Any,
        input: Any,  # noqa: A002 - LangGraph's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        config, watcher = _expecting(self, config)
        parts = astream(self, input, config, **kwargs)
        return parts if watcher is None else _aparts(parts, watcher)

    return watched


async def _aparts(parts: Any, watcher: Watcher) -> AsyncIterator[Any]:
    around = watched_by(watcher)
    try:
        while True:
            with around:
                part = await anext(parts, _END)
            if part is _END:
                return
            yield part
    finally:
        try:
            with around:
                await parts.aclose()
        finally:
            _close(watcher)


def _stream_events(events: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(events)
    def watched(
        self: Any,
        input: Any,  # noqa: A002 - LangGraph's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        if kwargs.get("version") != "v3":
            return events(self, input, config, **kwargs)
        config, watcher = _expecting(self, config)
        run = events(self, input, config, **kwargs)
        return _awaited(run, watcher) if isawaitable(run) else _showing(run, watcher)

    return watched


async def _awaited(run: Awaitable[Any], watcher: Watcher | None) -> Any:
    return _showing(await run, watcher)


def _showing(run: Any, watcher: Watcher | None) -> Any:
    """Put the totals on *run*. Not by a transformer: each would see, and slow, every event."""
    if isinstance(watcher, Meter):
        try:
            run.extensions = MappingProxyType({CHANNEL: watcher.totals, **run.extensions})
        except Exception as exc:  # noqa: BLE001 - nothing of the caller's may depend on it
            graph_callbacks().note(exc)
    return run


def _expecting(
    graph: Any, config: RunnableConfig | None
) -> tuple[RunnableConfig | None, Watcher | None]:
    """Return a config whose run id is watched, and by whom. The caller's config stays as it is."""
    callbacks, factory = graph_callbacks(), cast("UsageFactory", getattr(graph, _FACTORY))
    asked: Any = (config or {}).get("run_id")
    expected = callbacks.runs.expected(asked)
    if expected is not None:
        return config, expected  # `stream`, called by `stream_events`
    meter = factory.meter()
    if meter is None:
        return config, None
    run_id = asked if isinstance(asked, UUID) else uuid7()
    callbacks.runs.expect(run_id, meter)
    return cast("RunnableConfig", {**(config or {}), "run_id": run_id}), meter


def _close(watcher: Watcher) -> None:
    callbacks = graph_callbacks()
    try:
        callbacks.runs.close(watcher)
    except Exception as exc:  # noqa: BLE001 - nothing of the caller's may depend on it
        callbacks.note(exc)
