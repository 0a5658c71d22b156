"""
Attribution of task writes that LangGraph saves outside of any context.

Where nodes run side by side, their writes are saved by the callback that ends the thread's work,
after the thread has left the context that the node ran in. The task's id leads to its run and scope
if the graph is observed. If it is not, the scope is that of the code that loaded the thread's
checkpoint as the run began.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from ....memory.context import EMPTY_SCOPE, Scope, context, current
from ....memory.guard.guard import Guard
from ....telemetry.process.fork_lock import ForkLock
from ...toolkit.proxy import GUARD
from ..runs.callbacks import runs_so_far
from ..runs.spans import Run, current_graph_source, current_run_id, sought_graph, working_for
from .arguments import configurable

_TASK_ID = 2
"""Position of the task's id among the arguments of ``put_writes``."""

_HELD = 4_096
"""Threads whose scope is remembered."""


@dataclass(frozen=True, slots=True)
class _TaskGraph:
    """The `GraphSource` of a task whose run is known."""

    graph: Run


class ThreadScopes:
    """Scope and run of each thread of one saver, as of its latest load."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._runs: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        self._guard = ForkLock()

    def record_load(self, thread: str) -> None:
        """Remember the current scope and run as those of *thread*, as far as there are any."""
        runs, scope = runs_so_far(), current()
        run = runs.current_run() if runs else None
        if run is not None:
            self._runs[thread] = run
        if scope is EMPTY_SCOPE:
            return  # a page that shows the thread, say, while it runs
        with self._guard:
            self._scopes.pop(thread, None)
            self._scopes[thread] = scope
            if len(self._scopes) > _HELD:
                self._scopes.popitem(last=False)

    def run(self, thread: str | None, task_id: Any) -> Run | None:
        """Return the run that a task is part of: by the task, else by its thread; None: unknown."""
        runs = runs_so_far()
        of_task = runs.of_task(task_id) if runs else None
        return of_task or (self._runs.get(thread) if thread is not None else None)

    def scope(self, thread: str | None) -> Scope:
        """Return the scope that *thread* was loaded in."""
        return EMPTY_SCOPE if thread is None else self._scopes.get(thread, EMPTY_SCOPE)


_threads: weakref.WeakKeyDictionary[Guard, ThreadScopes] = weakref.WeakKeyDictionary()


def below_graph(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a saver so that what LangGraph calls it for is part of the graph's run."""
    if iscoroutinefunction(method):

        @wraps(method)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _in_run(_graph_here(self, args, kwargs)):
                return await method(self, *args, **kwargs)

        return awaited

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _in_run(_graph_here(self, args, kwargs)):
            return method(self, *args, **kwargs)

    return called


def _graph_here(saver: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
    """
    Return the graph that LangGraph works for here, where nothing nearer says so.

    That is the one that began in this context; where a stream is read by turns in several tasks, it
    is the one that has loaded the thread.
    """
    runs = runs_so_far()
    if runs is None or runs.current_run() is not None:
        return None
    if (found := sought_graph()) is not None:
        return found
    thread, threads = _thread(args, kwargs), _threads.get(saver.__dict__[GUARD])
    found = None if thread is None or threads is None else threads.run(thread, None)
    return found if found is not None and found.ended is None else None


def record_loads(get_tuple: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a saver's ``get_tuple``, or its twin, so that it records the scope of each thread."""

    def record(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        thread, guard = _thread(args, kwargs), self.__dict__[GUARD]
        if thread is not None:
            _threads_of(guard).record_load(thread)

    if iscoroutinefunction(get_tuple):

        @wraps(get_tuple)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            record(self, args, kwargs)
            return await get_tuple(self, *args, **kwargs)

        return awaited

    @wraps(get_tuple)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        record(self, args, kwargs)
        return get_tuple(self, *args, **kwargs)

    return called


def attribute_writes(put_writes: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a saver's ``put_writes`` so that it runs in the run and scope of its task."""

    @wraps(put_writes)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current_run_id() is not None or current_graph_source() is not None:
            return put_writes(self, *args, **kwargs)
        task_id = args[_TASK_ID] if len(args) > _TASK_ID else kwargs.get("task_id")
        thread, threads = _thread(args, kwargs), _threads_of(self.__dict__[GUARD])
        run, scope = threads.run(thread, task_id), threads.scope(thread)
        with _in_run(run), _in_scope(scope if run is None else run.scope.with_defaults(scope)):
            return put_writes(self, *args, **kwargs)

    return called


def _threads_of(guard: Guard) -> ThreadScopes:
    return _threads.get(guard) or _threads.setdefault(guard, ThreadScopes())


def _thread(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    found = configurable({"config": args[0]} if args else kwargs).get("thread_id")
    return None if found is None else str(found)


def _in_run(run: Run | None) -> AbstractContextManager[None]:
    return nullcontext() if run is None else working_for(_TaskGraph(run))


def _in_scope(scope: Scope) -> AbstractContextManager[Any]:
    if current() is not EMPTY_SCOPE or scope is EMPTY_SCOPE:
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
