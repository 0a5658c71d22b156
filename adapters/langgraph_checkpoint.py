"""
LangGraph's checkpoints behind the chokepoint: any `BaseCheckpointSaver`, wrapped as its own class.

A checkpoint is not a memory that may be missing. An answer of None to a read in an outage makes a
graph begin anew and overwrite its thread; a write that is dropped loses channels for good. So reads
raise, and writes are tried again and then raise; unless whoever wraps the saver asks for the
degraded mode, in which they wait (see `langgraph_degraded`).

Methods that the wrapped class does not override stay those of the base class: LangGraph and its
conformance kit tell by that what a saver can do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import Any, TypeVar, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..memory.errors import ConfigurationError, UnsupportedClientError
from ..memory.lazy import LazyGuard
from ..memory.operation import Arguments, Method, Summary
from ..memory.runtime import Runtime
from ..telemetry.event import OperationClass
from .langgraph_backends import in_own_loop, is_thread_bound, store_failed
from .langgraph_checkpoint_arguments import configurable, redact_list, redact_put, scope, verbatim
from .langgraph_checkpoint_holding import CheckpointHolding
from .langgraph_degraded import DegradedGuard
from .langgraph_tasks import for_its_task, noting_for_whom
from .proxy import GUARD, INNER, guard_of, guarded_class, operation_of, wrap

SaverT = TypeVar("SaverT")

_Base: Any = BaseCheckpointSaver  # generic in the type of versions, which is nobody's business here

STORE = "langgraph.checkpoint"


def _saved(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=_texts(arguments["checkpoint"].get("id")))


def _wrote(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=_texts(configurable(arguments).get("checkpoint_id")))


def _loaded(result: Any, _arguments: Arguments) -> Summary:
    if result is None:
        return Summary(hits=0)
    checkpoint = getattr(result, "checkpoint", result)
    return Summary(hits=1, memory_ids=_texts(checkpoint.get("id")))


def _counted(taken: int, _arguments: Arguments) -> Summary:
    return Summary(hits=taken)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else ()


def _channels(arguments: Arguments) -> dict[str, Any]:
    # What the channels hold stays between the graph and its saver: an audit trail that keeps all
    # state of all steps would be a second checkpointer.
    if "checkpoint" in arguments:
        metadata = arguments.get("metadata", {})
        step = {name: metadata[name] for name in ("source", "step") if name in metadata}
        return {"channels": list(arguments["checkpoint"]["channel_values"]), **step}
    return {"channels": [channel for channel, _value in arguments.get("writes", ())]}


def _load(name: str, **functions: Any) -> Method:
    return Method(
        name=name,
        operation="load_checkpoint",
        op_class=OperationClass.RESUME,
        scope=scope,
        **functions,
    )


def _save(name: str, **functions: Any) -> Method:
    return Method(
        name=name,
        operation="save_checkpoint",
        op_class=OperationClass.CHECKPOINT,
        scope=scope,
        **functions,
    )


def _forget(name: str) -> Method:
    return Method(
        name=name,
        operation="delete_checkpoint",
        op_class=OperationClass.FORGET,
        scope=scope,
    )


VERBS: dict[str, Method] = {
    "get": _load("get", summary=_loaded),
    "get_tuple": _load("get_tuple", summary=_loaded),
    "list": _load("list", redact=redact_list, summary=_counted),
    "get_delta_channel_history": _load("get_delta_channel_history"),
    "put": _save("put", redact=redact_put, summary=_saved, content=_channels),
    "put_writes": _save("put_writes", redact=redact_put, summary=_wrote, content=_channels),
    "copy_thread": _save("copy_thread"),
    "delete_thread": _forget("delete_thread"),
    "delete_for_runs": _forget("delete_for_runs"),
    "prune": _forget("prune"),
}
"""Method by name; its asynchronous twin has the same name with an ``a`` in front."""

_AGAIN = {name: replace(VERBS[name], redact=verbatim) for name in ("put", "put_writes")}

NOT_GUARDED: dict[str, str] = {
    "config_specs": "describes the configuration",
    "serde": "is the saver's own serializer",
    "get_next_version": "counts, and touches no store",
    "with_allowlist": "makes another saver, which is wrapped as well",
}
"""Public names of `BaseCheckpointSaver` that go straight to the saver, and why that is right."""


def guarded(
    client: SaverT, runtime: Runtime, *, redact: bool = True, degraded: bool = False
) -> SaverT:
    """
    Return *client* behind the chokepoint: an instance of its own class.

    Args:
        client: Any `BaseCheckpointSaver`. One that *runtime* guards already is returned as it is.
        runtime: What the guards of a scope share.
        redact: Redact state before it is stored. The run that stores it goes on with what it has in
            memory; a run that resumes from it sees the redacted state. False keeps state verbatim,
            in the saver only: events are redacted in any case. State of a type that cannot be
            looked into is not stored: the write raises `RedactionError`, which names the type.
        degraded: Have writes that the saver does not take wait in this process, and read them back
            from it, rather than raise. Costs a copy of the state for each step.

    Raises:
        UnsupportedClientError: It is no `BaseCheckpointSaver`.
        ConfigurationError: It is bound to its thread, so nothing can wait for it.
    """
    guard = guard_of(client)
    if guard is not None and guard.runtime is runtime:
        return client
    if not isinstance(client, _Base):
        raise UnsupportedClientError(type(client), (_Base.__name__,))
    base: Any = type(client)
    bound = is_thread_bound(client)
    guarded_type: type[SaverT] = _guarded_class(base, redact, bound)
    if degraded and bound:
        raise ConfigurationError("degraded=True: this saver's connection is bound to its thread")
    kind = partial(DegradedGuard, saver=client, rows=_AGAIN) if degraded else LazyGuard
    guard = kind(STORE, runtime, failed=store_failed)
    runtime.holdings.add(CheckpointHolding(client), guard)
    return wrap(client, guard, guarded_type)


@lru_cache(maxsize=64)
def _guarded_class(base: Any, redact: bool, thread_bound: bool) -> Any:  # noqa: FBT001 - cache keys
    rows = VERBS if redact else {n: replace(each, redact=verbatim) for n, each in VERBS.items()}
    table = rows | {f"a{name}": method for name, method in rows.items()}
    forwarding: Any = guarded_class(
        base, table, inline=lambda inner: thread_bound or in_own_loop(inner)
    )
    own: dict[str, Any] = {
        "list": _listed(base.list),
        "alist": _alisted(base.alist),
        "get_tuple": noting_for_whom(forwarding.get_tuple),
        "put_writes": for_its_task(forwarding.put_writes),
        "with_allowlist": _with_allowlist,
        "__bool__": _true,
        "__module__": __name__,
    }
    own |= {name: vars(_Base)[name] for name in table if _is_inherited(base, name)}
    return type(base.__name__, (forwarding,), own)


def _is_inherited(base: Any, name: str) -> bool:
    # This one is always the saver's: the base class would build it from many reads.
    if name.endswith("get_delta_channel_history"):
        return False
    return getattr(base, name) is getattr(_Base, name)


def _listed(member: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(member)
    def called(self: Any, config: Any, **options: Any) -> Iterator[Any]:
        guard: LazyGuard = self.__dict__[GUARD]
        operation = operation_of(self, "list", {"config": config, **options})
        return guard.iterate(operation, lambda given: self.__dict__[INNER].list(**given))

    return called


def _alisted(member: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(member)
    def called(self: Any, config: Any, **options: Any) -> AsyncIterator[Any]:
        guard: LazyGuard = self.__dict__[GUARD]
        operation = operation_of(self, "alist", {"config": config, **options})
        return guard.aiterate(operation, lambda given: self.__dict__[INNER].alist(**given))

    return called


def _true(_self: Any) -> bool:
    return True  # LangGraph takes a saver that is false for none at all


@wraps(_Base.with_allowlist)
def _with_allowlist(self: Any, extra_allowlist: Any) -> Any:
    # The graph works with the saver that this returns, so it shares the breakers of this one.
    inner = self.__dict__[INNER]
    allowing = inner.with_allowlist(extra_allowlist)
    return (
        self if allowing is inner else wrap(allowing, self.__dict__[GUARD], cast("Any", type(self)))
    )
