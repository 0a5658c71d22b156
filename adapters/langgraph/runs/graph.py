"""
A compiled graph whose every run is observed, however it is called.

    graph = scope.runnable(builder.compile())

It is an instance of a subclass with the same attributes: LangGraph looks into its graphs when they
are drawn, nested or resumed, and every way to run one leads to ``stream`` or ``astream``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import wraps
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs] - typed

from ....memory.accounting import ModelAccounting
from ....memory.errors import UnsupportedClientError
from .callbacks import graph_callbacks
from .meter import Meter
from .spans import GraphObserver, graph_source, working_for
from .stream import CHANNEL, UsageFactory

C = TypeVar("C")

_FACTORY = "_mnemoscope_usage"
_END = object()


def runnable(graph: C, accounting: ModelAccounting, features: Mapping[str, str] | None = None) -> C:
    """
    Return *graph* with every run of it observed.

    Args:
        graph: What ``compile()`` returned, or an ``@entrypoint``.
        accounting: Counts the model calls.
        features: Features by node name.

    Raises:
        UnsupportedClientError: It is not a compiled graph.
    """
    if not isinstance(graph, Pregel):
        raise UnsupportedClientError(type(graph), (Pregel.__name__,))
    return cast("C", _observed(graph, UsageFactory(accounting, features)))


def _observed(graph: Any, factory: UsageFactory) -> Any:
    kind: Any = _observed_class(_unobserved(cast("Any", type(graph))), factory)
    observed = kind.__new__(kind)
    observed.__dict__.update(graph.__dict__)
    return observed


def _unobserved(kind: type[Any]) -> type[Any]:
    return kind.__bases__[0] if _FACTORY in vars(kind) else kind


def _observed_class(base: type[Any], factory: UsageFactory) -> type[Any]:
    """Return a subclass of *base*, so that the copies LangGraph makes of it are observed too."""
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
        config, observer = _observe(self, config)
        parts = stream(self, input, config, **kwargs)
        return parts if observer is None else _parts(parts, observer)

    return watched


def _parts(parts: Any, observer: GraphObserver) -> Iterator[Any]:
    work, rest = graph_source.set, graph_source.reset
    try:
        while True:
            # Not while the caller works, in whose context this runs. Nor by `working_for`, whose
            # two functions cost more than all else that is done here for an event.
            token = work(observer)
            try:
                part = next(parts, _END)
            finally:
                rest(token)
            if part is _END:
                return
            yield part
    finally:
        try:
            with working_for(observer):
                parts.close()
        finally:
            _close(observer)


def _astream(astream: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @wraps(astream)
    def watched(
        self: Any,
        input: Any,  # noqa: A002 - LangGraph's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        config, observer = _observe(self, config)
        parts = astream(self, input, config, **kwargs)
        return parts if observer is None else _aparts(parts, observer)

    return watched


async def _aparts(parts: Any, observer: GraphObserver) -> AsyncIterator[Any]:
    work, rest = graph_source.set, graph_source.reset
    try:
        while True:
            token = work(observer)
            try:
                part = await anext(parts, _END)
            finally:
                try:  # noqa: SIM105 - suppress() costs a microsecond, for every event
                    rest(token)
                except ValueError:  # the task was ended from another context
                    pass
            if part is _END:
                return
            yield part
    finally:
        try:
            with working_for(observer):
                await parts.aclose()
        finally:
            _close(observer)


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
        config, observer = _observe(self, config)
        run = events(self, input, config, **kwargs)
        return (
            _await_and_show_totals(run, observer)
            if isawaitable(run)
            else _show_totals(run, observer)
        )

    return watched


async def _await_and_show_totals(run: Awaitable[Any], observer: GraphObserver | None) -> Any:
    return _show_totals(await run, observer)


def _show_totals(run: Any, observer: GraphObserver | None) -> Any:
    """Put the totals on *run*. Not by a transformer: each would see, and slow, every event."""
    if isinstance(observer, Meter):
        try:
            run.extensions = MappingProxyType({CHANNEL: observer.totals, **run.extensions})
        except Exception as exc:  # noqa: BLE001 - nothing of the caller's may depend on it
            graph_callbacks().note(exc)
    return run


def _observe(
    graph: Any, config: RunnableConfig | None
) -> tuple[RunnableConfig | None, GraphObserver | None]:
    """Return a copy of the config with the id of an observed run, and the observer of it."""
    callbacks, factory = graph_callbacks(), cast("UsageFactory", getattr(graph, _FACTORY))
    given_id: Any = (config or {}).get("run_id")
    expected = callbacks.runs.expected(given_id)
    if expected is not None:
        return config, expected  # `stream`, called by `stream_events`
    meter = factory.meter()
    if meter is None:
        return config, None
    run_id = given_id if isinstance(given_id, UUID) else uuid7()
    callbacks.runs.expect(run_id, meter)
    return cast("RunnableConfig", {**(config or {}), "run_id": run_id}), meter


def _close(observer: GraphObserver) -> None:
    callbacks = graph_callbacks()
    try:
        callbacks.runs.close(observer)
    except Exception as exc:  # noqa: BLE001 - nothing of the caller's may depend on it
        callbacks.note(exc)
