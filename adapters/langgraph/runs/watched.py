"""The graph that code is part of, as one scope's observers have it: only if it is watched."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final, cast

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from ....memory.accounting import ModelAccounting
from ....telemetry.process.faults import Faults
from ...toolkit.guarded_methods import GUARD
from .meter import Meter
from .runs import Runs
from .spans import Run

SAVER: Final = "__pregel_checkpointer"
_RUNTIME: Final = "__pregel_runtime"
_DOORS: Final = (BaseStore, cast("type[Any]", BaseCheckpointSaver))


def is_watched(graph: Run, by: ModelAccounting) -> bool:
    """Return whether the observers of one scope are given all that happens in *graph*."""
    return any(isinstance(each, Meter) and each.accounting is by for each in graph.observers)


def watched_graph(runs: Runs, of: weakref.ref[ModelAccounting]) -> Run | None:
    """Return the outermost graph run that the code running now is part of, if it is watched."""
    graph, accounting = runs.current_root(), of()
    if graph is None or accounting is None or not is_watched(graph, accounting):
        return None
    if not graph.reads_unseen:
        graph.reads_unseen = _has_unseen_door(accounting.faults)
    return graph


def _has_unseen_door(faults: Faults) -> bool:
    """Return whether the graph that runs here has a store or saver that the scope never sees."""
    config: Mapping[str, Any] = var_child_runnable_config.get() or {}
    settings = config.get("configurable") or {}
    doors = (getattr(settings.get(_RUNTIME), "store", None), settings.get(SAVER))
    return any(isinstance(each, _DOORS) and not _is_guarded(each, faults) for each in doors)


def _is_guarded(door: Any, faults: Faults) -> bool:
    """Return whether *door* is guarded by the scope that notes its errors in *faults*."""
    return getattr(getattr(door, GUARD, None), "faults", None) is faults
