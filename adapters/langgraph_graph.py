"""
A compiled graph whose every run is watched, however it is called.

    graph = scope.runnable(builder.compile())

It is the graph itself, copied shallowly, with another class: LangGraph looks into its graphs when
they are drawn, nested or resumed, and every way to run one leads to ``stream`` or ``astream``.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import wraps
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
from .langgraph_stream import UsageFactory, usage

C = TypeVar("C")

Transformers = Sequence[Callable[[tuple[str, ...]], Any]] | None

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
    try:
        while True:
            # Not while the caller works, in whose context this runs.
            with watched_by(watcher):
                part = next(parts, _END)
            if part is _END:
                return
            yield part
    finally:
        try:
            with watched_by(watcher):
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
    try:
        while True:
            with watched_by(watcher):
                part = await anext(parts, _END)
            if part is _END:
                return
            yield part
    finally:
        try:
            with watched_by(watcher):
                await parts.aclose()
        finally:
            _close(watcher)


def _stream_events(events: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(events)
    def watched(
        self: Any,
        input: Any,  # noqa: A002 - LangGraph's name
        config: RunnableConfig | None = None,
        *,
        transformers: Transformers = None,
        **kwargs: Any,
    ) -> Any:
        if kwargs.get("version") == "v3":
            config, watcher = _expecting(self, config)
            factory: UsageFactory = getattr(self, _FACTORY)
            shown = [_Shown(factory, watcher)] if isinstance(watcher, Meter) else []
            kwargs["transformers"] = [*(transformers or ()), *shown]
        elif transformers is not None:
            kwargs["transformers"] = transformers
        return events(self, input, config, **kwargs)

    return watched


class _Shown:
    """Makes the transformer that shows the totals of one run; those of its subgraphs do nothing."""

    def __init__(self, factory: UsageFactory, meter: Meter) -> None:
        self._factory = factory
        self._meter = meter

    def __call__(self, scope: tuple[str, ...]) -> Any:
        return self._factory.transformer(scope, self._meter, is_known=True)


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
