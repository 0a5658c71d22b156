"""
Writes of tasks that LangGraph hands to its saver from where nobody's context is.

Where nodes run side by side, their writes are saved by the callback that ends the thread's work,
after the thread has left the context that the node ran in. For whom the run is, and where it stands
in the trace, is known by the task's id, where the graph is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ..memory.context import NOBODY, context, current
from .langgraph_callbacks import graph_callbacks
from .langgraph_spans import Run, run_around, watched_by, watcher_around


@dataclass(frozen=True, slots=True)
class _Of:
    graph: Run


def for_its_task(put_writes: Callable[..., Any]) -> Callable[..., Any]:
    """Have a saver's ``put_writes`` take place in the run that its task is part of."""

    @wraps(put_writes)
    def called(
        self: Any,
        config: Any,
        writes: Any,
        task_id: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with _context_of(task_id):
            return put_writes(self, config, writes, task_id, *args, **kwargs)

    return called


def _context_of(task_id: Any) -> AbstractContextManager[Any]:
    if run_around() is not None or watcher_around() is not None:
        return nullcontext()
    graph = graph_callbacks().runs.of_task(task_id)
    if graph is None:
        return nullcontext()
    entered = ExitStack()
    entered.enter_context(watched_by(_Of(graph)))
    if current() is NOBODY:
        entered.enter_context(_for(graph))
    return entered


def _for(graph: Run) -> AbstractContextManager[Any]:
    scope = graph.scope
    return context(
        tenant=scope.tenant,
        customer=scope.customer,
        agent=scope.agent,
        feature=scope.feature,
        run=scope.run,
        purpose=scope.purpose,
        known=scope.known,
    )
