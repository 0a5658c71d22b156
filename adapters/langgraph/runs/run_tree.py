"""
The place of runs in LangSmith's trees: below LangChain's runs, where it traces, else below ours.

LangChain's tracer posts the runs that we observe, with their usage. Where it is at work, none of
them is posted once more, and what memory does hangs below its runs. It tells nobody that it is; but
LangChain asks a hook with a handler's class whether each handler of a run is of that class, and so
the hook here sees it. What the tracer calls a run is then in its own map.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from ....telemetry.event.parent_run import ParentRun, id_of_span, order_below
from .spans import NO_TRACER, Run, TracerMaps, nearest_with_span

_maps: ContextVar[TracerMaps] = ContextVar("mnemoscope_tracer_maps", default=NO_TRACER)
"""Of the latest tracer: dotted orders and runs. It is copied before a run begins, and they not."""


class _Spotting(type):
    def __instancecheck__(cls, instance: object) -> bool:
        # Imported by LangChain itself before it asks: it takes half a second.
        from langchain_core.tracers.langchain import LangChainTracer  # noqa: PLC0415

        if isinstance(instance, LangChainTracer):
            known = vars(instance)
            _maps.set((known.get("order_map", {}), known.get("run_map", {})))
        return False  # so that it is asked of every handler


class _TracerSpotter(BaseCallbackHandler, metaclass=_Spotting):
    """A class that LangChain compares all handlers with, which shows its metaclass the tracer."""


@cache
def spot_tracers(handler: BaseCallbackHandler) -> None:
    """See LangChain's tracers from now on, by a hook that adds *handler*, which is there anyway."""
    hook: ContextVar[Any] = ContextVar("mnemoscope_tracer_spotter", default=handler)
    register_configure_hook(hook, inheritable=True, handle_class=_TracerSpotter)


def tracer_maps() -> TracerMaps:
    """Return the maps of the tracer of the run that is beginning, if it has one."""
    return _maps.get()


def _traced(run: Run) -> ParentRun | None:
    """
    Return what LangChain's tracer has begun for *run*. None: it does not trace it.

    Asked as late as that is needed: some runs are told to us before the tracer.
    """
    if run.traced is None:
        orders, runs = run.tracer_maps
        _trace_id, order = orders.get(run.run_id, (None, None))
        if order is not None:
            theirs = runs.get(str(run.run_id))
            is_off = getattr(theirs, "extra", {}).get("__disabled", False)
            project = getattr(theirs, "session_name", None)
            run.traced = ParentRun(None if is_off else order, project, is_reported=True)
    return run.traced


def place_of(run: Run) -> ParentRun:
    """Return the place of a run in LangSmith's tree."""
    if (traced := _traced(run)) is not None:
        return traced
    host, above = run.host_run, _order_above(run)
    if host is None:
        return ParentRun(above, tags=run.tags)
    return ParentRun(
        above, host.project, tuple(dict.fromkeys((*host.tags, *run.tags))), host.is_reported
    )


def place_in(run: Run, host: ParentRun | None) -> ParentRun:
    """Return the place of what happens in *run*, while *host* is the host's own run there."""
    if host is not None and host.order not in {None, _order(run.host_run)}:
        return host  # it has begun one of its own, or LangChain's tracer has
    around, traced = place_of(run), _traced(run)
    is_off = around.is_reported if traced is None else traced.order is None
    if host is None:
        return ParentRun(_order_of(run), around.project, (), is_off)
    return ParentRun(_order_of(run), around.project, host.tags, is_off or host.is_reported)


def _order_above(run: Run) -> str | None:
    host, parent = _order(run.host_run), run.parent
    if parent is None or host not in {None, _order(parent.host_run)}:
        return host
    return _order_of(parent)


def _order_of(run: Run) -> str | None:
    """Return the dotted order of the run itself."""
    if (traced := _traced(run)) is not None:
        return traced.order
    run = nearest_with_span(run)
    return order_below(_order_above(run), run.started_ns, id_of_span(run.ref))


def _order(place: ParentRun | None) -> str | None:
    return None if place is None else place.order
