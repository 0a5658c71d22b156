"""
When a model call began, first spoke and ended, and on whose behalf: told by LangChain's callbacks.

A LangGraph stream is driven by whoever reads it, so its timestamps are the reader's, and it does
not say in which context a node called a model. Callbacks run where and when the call is made. They
are joined to the stream by the id of the run.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from ..memory.call import error_name
from ..memory.context import Scope, current

HELD = 4_096
"""Calls that are remembered until the stream tells of them."""


@dataclass(slots=True)
class ModelCall:
    """
    One model call, as its callbacks told it.

    Attributes:
        scope: For whom and for which feature it was made.
        started_ns: Wall clock.
        started: Monotonic seconds, as are the next two.
        first: When the first chunk came, or None where nothing was streamed.
        ended: When it ended, or None while it has not.
        error: Qualified name of the exception's type, if it failed.
    """

    scope: Scope = field(repr=False)
    started_ns: int
    started: float
    first: float | None = None
    ended: float | None = None
    error: str | None = None


class ModelCalls(BaseCallbackHandler):
    """
    Remembers the latest model calls of the process, by run id and by the ids of their messages.

    Args:
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    run_inline = True  # in the caller's own thread and context, in both colours

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.clock = clock
        self._wall_ns = wall_ns
        self._lock = threading.RLock()
        self._calls: OrderedDict[str, ModelCall] = OrderedDict()
        self._runs: OrderedDict[str, str] = OrderedDict()

    @property
    def ignore_chain(self) -> bool:
        """Chains are not model calls, and there are many of them."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """As `ignore_chain`; tools count as agents."""
        return True

    @property
    def ignore_retriever(self) -> bool:
        """As `ignore_chain`."""
        return True

    def of(self, run_id: str) -> ModelCall | None:
        """Return the call with that run id, if it is remembered."""
        return self._calls.get(run_id)

    def run_of(self, message_id: str) -> str | None:
        """Return the run id of the call that made a message, if it is remembered."""
        return self._runs.get(message_id)

    def on_chat_model_start(
        self,
        serialized: Any,  # noqa: ARG002 - LangChain's signature, here and below
        messages: Any,  # noqa: ARG002
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Remember who asks, and when."""
        self._put(self._calls, str(run_id), ModelCall(current(), self._wall_ns(), self.clock()))

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """As `on_chat_model_start`, for models that complete text."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Remember when the first chunk came."""
        self._spoke(run_id)

    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """As `on_llm_new_token`, for the third version of streaming."""
        self._spoke(run_id)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Remember when it ended, and by which ids its messages will be known."""
        call = self._calls.get(str(run_id))
        if call is None:
            return
        call.ended = self.clock()
        for generation in (each for row in response.generations for each in row):
            message_id = getattr(getattr(generation, "message", None), "id", None)
            if isinstance(message_id, str):
                self._put(self._runs, message_id, str(run_id))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Remember when it failed, and by which type of error."""
        if call := self._calls.get(str(run_id)):
            call.ended, call.error = self.clock(), error_name(error)

    def _spoke(self, run_id: UUID) -> None:
        call = self._calls.get(str(run_id))
        if call is not None and call.first is None:
            call.first = self.clock()

    def _put(self, held: OrderedDict[str, Any], key: str, value: Any) -> None:
        with self._lock:
            held[key] = value
            if len(held) > HELD:
                held.popitem(last=False)


@cache
def watched_models() -> ModelCalls:
    """
    Return the one that remembers, and have LangChain tell it of every model call from now on.

    By the default of a ContextVar: what is set for one context would be lost to a stream that is
    read in another, and would stay set for whatever else the context runs.
    """
    calls = ModelCalls()
    hook: ContextVar[Any] = ContextVar("mnemoscope_models", default=calls)
    register_configure_hook(hook, inheritable=True)
    return calls
