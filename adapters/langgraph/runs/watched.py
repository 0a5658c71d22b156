"""The graph that code is part of, as one scope's rules have it: only if that scope watches it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from ...toolkit.guarded_methods import GUARD
from .meter import Meter
from .runs import Runs
from .spans import Run

if TYPE_CHECKING:
    from ....memory.rules.rulebook import Rulebook

_SAVER: Final = "__pregel_checkpointer"
_RUNTIME: Final = "__pregel_runtime"
_DOORS: Final = (BaseStore, cast("type[Any]", BaseCheckpointSaver))


def is_watched(graph: Run, rulebook: Rulebook) -> bool:
    """Return whether the rules of *rulebook* are told of all that happens in *graph*."""
    return any(isinstance(each, Meter) and each.rulebook is rulebook for each in graph.observers)


def watched_graph(runs: Runs, of: weakref.ref[Rulebook]) -> Run | None:
    """Return the outermost graph run that the code running now is part of, if it is watched."""
    graph, rulebook = runs.current_root(), of()
    if graph is None or rulebook is None or not is_watched(graph, rulebook):
        return None
    if not graph.reads_unseen:
        graph.reads_unseen = _has_unseen_door(rulebook)
    return graph


def _has_unseen_door(rulebook: Rulebook) -> bool:
    """Return whether the graph that runs here has a store or saver that *rulebook* never sees."""
    config: Mapping[str, Any] = var_child_runnable_config.get() or {}
    settings = config.get("configurable") or {}
    doors = (getattr(settings.get(_RUNTIME), "store", None), settings.get(_SAVER))
    return any(isinstance(each, _DOORS) and not _asks(each, rulebook) for each in doors)


def _asks(door: Any, rulebook: Rulebook) -> bool:
    guard = getattr(door, GUARD, None)
    return any(getattr(each, "rulebook", None) is rulebook for each in getattr(guard, "steps", ()))
