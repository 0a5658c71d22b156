"""
Writes of tasks that LangGraph hands to its saver from where nobody's context is.

Where nodes run side by side, their writes are saved by the callback that ends the thread's work,
after the thread has left the context that the node ran in. For whom the run is, and where it stands
in the trace, is known by the task's id, where the graph is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ..memory.context import NOBODY, context, current
from .langgraph_callbacks import graph_of
from .langgraph_spans import Run, run_around, watched_by, watcher_around

_TASK_ID = 2
"""Where ``put_writes`` is given it."""


@dataclass(frozen=True, slots=True)
class _Of:
    graph: Run


def for_its_task(put_writes: Callable[..., Any]) -> Callable[..., Any]:
    """Have a saver's ``put_writes`` take place in the run that its task is part of."""

    @wraps(put_writes)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _part_of(args[_TASK_ID] if len(args) > _TASK_ID else kwargs.get("task_id")):
            return put_writes(self, *args, **kwargs)

    return called


@contextmanager
def _part_of(task_id: Any) -> Generator[None]:
    is_lost = run_around() is None and watcher_around() is None
    graph = graph_of(task_id) if is_lost else None
    if graph is None:
        yield
        return
    with watched_by(_Of(graph)), _for_whom(graph):
        yield


def _for_whom(graph: Run) -> AbstractContextManager[Any]:
    scope = graph.scope
    if current() is not NOBODY:
        return nullcontext()
    return context(
        tenant=scope.tenant,
        customer=scope.customer,
        agent=scope.agent,
        feature=scope.feature,
        run=scope.run,
        purpose=scope.purpose,
        known=scope.known,
    )
