"""
The phases of mem0's operations: what it embeds, searches, writes, ranks and keeps as history.

An embedder is watched where it is given its texts (`embedder`), the other parts here. Models, and
embedders and rerankers that are asked over the network, are told of as the model calls that they
are (`model_usage`); a vector store that is guarded itself tells of its own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter, time_ns
from typing import Any, Final

from ...memory.guard.call import Call, Slot, error_name, outer_call
from ...telemetry.event.phase import OperationPhase, OperationPhases
from ...telemetry.process.faults import Faults
from ..toolkit.proxy import GUARD
from ..toolkit.stand_in import StandIn, is_marked
from .model_usage import REMOTE_RERANKERS, provider_of

MOST: Final = 50
"""Phases that one operation tells: one with more of them, such as a deletion of all, is cut."""

_MARK: Final = "phase"
_IS_IN_ONE: Final = Slot("mnemoscope.mem0.is_in_phase", default=False)
"""Whether a call is in the midst of a phase."""
_ENDED: Final[Slot[tuple[OperationPhase, ...]]] = Slot("mnemoscope.mem0.phases", ())
"""The phases of a call that have ended."""
_VECTORS: Final = {
    "search": ("search", "keyword_search", "search_batch", "get", "list"),
    "write": ("insert", "update", "delete"),
}
_HISTORY: Final = (
    "add_history",
    "batch_add_history",
    "get_history",
    "get_last_messages",
    "save_messages",
)


def watch_phases(client: Any, faults: Faults) -> None:
    """Have the parts of a client of mem0 tell of what they do, once. Never raises."""
    try:
        _watch(getattr(client, "db", None), "history", _HISTORY)
        # One that is asked over the network is an event of its own, as a model is.
        reranker = getattr(client, "reranker", None)
        if provider_of(reranker) not in REMOTE_RERANKERS:
            _watch(reranker, "rerank", ("rerank",))
        vectors = getattr(client, "vector_store", None)
        # Calls of a guarded client are events already.
        if GUARD not in getattr(getattr(vectors, "client", None), "__dict__", {}):
            for name, methods in _VECTORS.items():
                _watch(vectors, name, methods)
    except Exception as exc:  # noqa: BLE001 - then they are not told
        faults.note("mem0.phases", exc)


def _watch(part: Any, name: str, methods: Iterable[str]) -> None:
    for method in methods:
        made: Callable[..., Any] | None = getattr(part, method, None)
        if callable(made) and not is_marked(made, _MARK):
            setattr(part, method, timed(made, name, method))


def timed(made: Callable[..., Any], name: str, method: str) -> Callable[..., Any]:
    """Return *made*, telling the operation it is part of that it was called."""

    def observed(*args: Any, **kwargs: Any) -> Any:
        call = outer_call()
        if call is None or _IS_IN_ONE.of(call) or len(_ENDED.of(call)) >= MOST:
            return made(*args, **kwargs)
        started_ns, started, error = time_ns(), perf_counter(), None
        # A method of a part calls others of it: the outer one is told.
        _IS_IN_ONE.put(call, True)
        try:
            return made(*args, **kwargs)
        except BaseException as exc:
            error = error_name(exc)
            raise
        finally:
            _IS_IN_ONE.put(call, False)
            took = perf_counter() - started
            if not (before := _ENDED.of(call)):
                call.additions += (_phases,)
            phase = OperationPhase(name, method, started_ns, took, error)
            _ENDED.put(call, (*before, phase))

    return StandIn(made, observed, _MARK)


def _phases(_store: str, call: Call) -> OperationPhases:
    return OperationPhases(_ENDED.of(call))
