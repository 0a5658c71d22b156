"""
Writes of tasks that LangGraph hands to its saver from where nobody's context is.

Where nodes run side by side, their writes are saved by the callback that ends the thread's work,
after the thread has left the context that the node ran in. Which run it was, and for whom, is known
by the task's id where the graph is watched; where it is not, whoever loaded the thread's checkpoint
as the run began tells for whom.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ..memory.context import NOBODY, Scope, context, current
from ..memory.guard import Guard
from ..telemetry.fork_guard import ForkGuard
from .langgraph_callbacks import runs_so_far
from .langgraph_checkpoint_arguments import configurable
from .langgraph_spans import Run, run_around, watched_by, watcher_around
from .proxy import GUARD

_TASK_ID = 2
"""Where ``put_writes`` is given it."""

_HELD = 4_096
"""Threads of which it is known for whom they run."""


@dataclass(frozen=True, slots=True)
class _Of:
    graph: Run


class Threads:
    """For whom the threads of one saver run, and in which run, by the latest load of each."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._runs: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        self._guard = ForkGuard()

    def loaded(self, thread: str) -> None:
        """Remember for whom the code running now loads *thread*, if for anybody."""
        runs, scope = runs_so_far(), current()
        run = runs.around() if runs else None
        if run is not None:
            self._runs[thread] = run
        if scope is NOBODY:
            return  # a page that shows the thread, say, while it runs
        with self._guard:
            self._scopes.pop(thread, None)
            self._scopes[thread] = scope
            if len(self._scopes) > _HELD:
                self._scopes.popitem(last=False)

    def run(self, thread: str | None, task_id: Any) -> Run | None:
        """Return the run that a task of it is part of, as far as is known."""
        runs = runs_so_far()
        of_task = runs.of_task(task_id) if runs else None
        return of_task or (self._runs.get(thread) if thread is not None else None)

    def scope(self, thread: str | None) -> Scope:
        """Return for whom it was loaded."""
        return NOBODY if thread is None else self._scopes.get(thread, NOBODY)


_threads: weakref.WeakKeyDictionary[Guard, Threads] = weakref.WeakKeyDictionary()


def noting_for_whom(get_tuple: Callable[..., Any]) -> Callable[..., Any]:
    """Have a saver's ``get_tuple`` remember for whom it is."""

    @wraps(get_tuple)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread, guard = _thread(args, kwargs), self.__dict__[GUARD]
        if thread is not None:
            _threads_of(guard).loaded(thread)
        return get_tuple(self, *args, **kwargs)

    return called


def for_its_task(put_writes: Callable[..., Any]) -> Callable[..., Any]:
    """Have a saver's ``put_writes`` take place in the run that its task is part of."""

    @wraps(put_writes)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if run_around() is not None or watcher_around() is not None:
            return put_writes(self, *args, **kwargs)
        task_id = args[_TASK_ID] if len(args) > _TASK_ID else kwargs.get("task_id")
        thread, threads = _thread(args, kwargs), _threads_of(self.__dict__[GUARD])
        run, scope = threads.run(thread, task_id), threads.scope(thread)
        with _part_of(run), _for_whom(scope if run is None else run.scope.filled(scope)):
            return put_writes(self, *args, **kwargs)

    return called


def _threads_of(guard: Guard) -> Threads:
    return _threads.get(guard) or _threads.setdefault(guard, Threads())


def _thread(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    found = configurable({"config": args[0]} if args else kwargs).get("thread_id")
    return None if found is None else str(found)


def _part_of(run: Run | None) -> AbstractContextManager[None]:
    return nullcontext() if run is None else watched_by(_Of(run))


def _for_whom(scope: Scope) -> AbstractContextManager[Any]:
    if current() is not NOBODY or scope is NOBODY:
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
