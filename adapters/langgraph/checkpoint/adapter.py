"""
LangGraph's checkpoints behind the chokepoint: any `BaseCheckpointSaver`, wrapped as its own class.

A checkpoint is not a memory that may be missing. An answer of None to a read in an outage makes a
graph begin anew and overwrite its thread; a write that is dropped loses channels for good. So reads
raise, and writes are tried again and then raise; unless whoever wraps the saver asks for the
degraded mode, in which they wait (see `degraded`).

Methods that the wrapped class does not override stay those of the base class: LangGraph and its
conformance kit tell by that what a saver can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from ....memory.api import (
    AdapterServices,
    Arguments,
    Database,
    Deletes,
    Method,
    Step,
    StoreAdapter,
    StoreBinding,
    Summary,
    checkpoint,
    forget,
    method_table,
    resume,
)
from ....memory.errors import ConfigurationError
from ....memory.guard.iteration import aiterate, iterate
from ...toolkit.proxy import (
    GUARD,
    INNER,
    OF_OBJECTS,
    GuardedMethods,
    guarded_class,
    wrap,
)
from ..backends import is_shared, is_thread_bound, stays
from ..database import database_of
from ..failures import SAVER_MISTAKES
from ..postgres_time import breaks_off
from . import stored
from .arguments import channels, configurable, redact, redact_put, scope, verbatim
from .degraded import DegradedCheckpoints, OnConflict
from .forgetting import ForgetThreads
from .overlay import Overlay
from .subject_data import CheckpointSubjectData
from .tasks import attribute_writes, below_graph, record_loads

_Base: Any = BaseCheckpointSaver  # generic in the type of versions, which does not matter here

STORE = "langgraph.checkpoint"

_LOADS = ("get_tuple", "aget_tuple")
_PUTS = ("put", "aput", "aput_writes")


def _summarize_put(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=_texts(arguments["checkpoint"].get("id")))


def _summarize_writes(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=_texts(configurable(arguments).get("checkpoint_id")))


def _summarize_read(result: Any, _arguments: Arguments) -> Summary:
    if result is None:
        return Summary(hits=0)
    # get answers with the checkpoint itself, get_tuple with what surrounds it.
    loaded = getattr(result, "checkpoint", result)
    return Summary(hits=1, memory_ids=_texts(loaded.get("id")))


def _summarize_list(taken: int, _arguments: Arguments) -> Summary:
    return Summary(hits=taken)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else ()


_OF_THREAD: dict[str, Any] = {
    "scope": scope,
    "unconfined": "a thread is found by its id alone, which its application knows to be the "
    "customer's: a saver has no other place for an owner",
}

_WRITTEN: dict[str, Any] = {**_OF_THREAD, "redact": redact_put, "content": channels}
_DELETED: dict[str, Any] = {**_OF_THREAD, "operation": "delete_checkpoint", "redact": redact}

METHODS: dict[str, Method] = method_table(
    resume("get", **_OF_THREAD, redact=redact, summary=_summarize_read),
    resume(
        "get_tuple", **_OF_THREAD, redact=redact, summary=_summarize_read, says=stored.get_tuple
    ),
    resume("list", **_OF_THREAD, redact=redact, summary=_summarize_list, says=stored.listed),
    resume("get_delta_channel_history", **_OF_THREAD, redact=redact, says=stored.history),
    checkpoint("put", **_WRITTEN, summary=_summarize_put, says=stored.put),
    checkpoint("put_writes", **_WRITTEN, summary=_summarize_writes, says=stored.put_writes),
    checkpoint("copy_thread", **_OF_THREAD, redact=redact, says=stored.copy_thread),
    forget("delete_thread", **_DELETED, deletes=Deletes.SCOPE, says=stored.delete_thread),
    forget("delete_for_runs", **_DELETED, deletes=Deletes.SCOPE, says=stored.delete_for_runs),
    forget("prune", **_DELETED, deletes=Deletes.IDS, says=stored.prune),
)
"""Method by name; its asynchronous twin has the same name with an ``a`` in front."""

_AGAIN = {
    name: replace(METHODS[name], redact=verbatim) for name in ("put", "put_writes", "get_tuple")
}

NOT_GUARDED: dict[str, str] = {
    "config_specs": "describes the configuration",
    "serde": "is the saver's own serializer",
    "get_next_version": "counts, and touches no store",
    "with_allowlist": "makes another saver, which is wrapped as well",
    **dict.fromkeys(("setup", "asetup"), "makes tables: holds no state"),
    "cursor": "is the connection itself, for the host's own statements",
    **dict.fromkeys(("close", "aclose"), "ends the saver, touches no thread"),
}
"""Public names of savers that go straight to the saver, and why that is right."""


def bind(
    client: Any,
    services: AdapterServices,
    /,
    *,
    redact: bool = True,
    degraded: bool = False,
    on_conflict: OnConflict = "theirs",
) -> StoreBinding:
    """
    Return the binding of any `BaseCheckpointSaver`.

    Args:
        client: The saver.
        services: What the scope offers.
        redact: Redact state before it is stored. The run that stores it goes on with what it has in
            memory; a run that resumes from it sees the redacted state. False keeps state verbatim,
            in the saver only: events are redacted in any case. State of a type that cannot be
            looked into is not stored: the write raises `RedactionError`, which names the type.
        degraded: Have writes that the saver does not take wait in this process, and read them back
            from it, rather than raise. Costs a copy of the state for each step.
        on_conflict: What is done with what waits of a thread that somebody else changed meanwhile:
            ``theirs`` gives it up, ``both`` writes it into the thread as well.

    Raises:
        ConfigurationError: *degraded*, and its connection is bound to its thread; or *on_conflict*
            is none of these.
    """
    bound = is_thread_bound(client)
    # What waits is written by a thread of ours, which such a connection refuses.
    if degraded and bound:
        raise ConfigurationError("degraded=True: this saver's connection is bound to its thread")
    if on_conflict not in _ON_CONFLICT:
        raise ConfigurationError(f"on_conflict must be one of {', '.join(_ON_CONFLICT)}")
    database = services.named or database_of(client)
    overlay = _overlay(client, database, services)
    waiting = _degraded(client, overlay, on_conflict, services) if degraded else None
    forgetting = ForgetThreads(STORE, client=client, overlay=overlay, clock=services.guards.clock)
    return StoreBinding(
        methods=_rows(redact=redact),
        caller_mistakes=SAVER_MISTAKES,
        client_class=lambda base: _guarded_class(cast("Any", base), redact, bound),
        subject_data=CheckpointSubjectData(client, overlay),
        database=database,
        steps=_steps(forgetting, waiting, services),
        around=(forgetting,) if waiting is None else (waiting, forgetting),
        retries=True,
        # What waits is written by a thread of ours, by another path than a call's.
        breaks_off=None if degraded else breaks_off(client),
        shared=is_shared(client),
        on_guarded=None if waiting is None else waiting.write_through,
    )


def _steps(
    forgetting: ForgetThreads, waiting: DegradedCheckpoints | None, services: AdapterServices
) -> Sequence[Step]:
    """Return the steps of the adapter's own, in their order."""
    steps: list[Step] = [forgetting] if waiting is None else [forgetting, waiting]
    rulebook = services.accounting.rulebook
    if rulebook is not None:
        from .facts import CarryFacts  # noqa: PLC0415 - only where there are rules

        steps.insert(0, CarryFacts(rulebook, services.faults))
    return steps


_ON_CONFLICT = ("theirs", "both")


def _overlay(saver: Any, database: Database | None, services: AdapterServices) -> Overlay:
    """Return what waits for the saver's database, which all its guards of the scope share."""
    shared = services.guards.shared
    made = partial(Overlay, shared.held)
    try:
        return shared.of(STORE, database or Database.in_memory(saver), made)
    except TypeError:  # its class lets nobody refer to it weakly
        return made()


def _degraded(
    saver: Any, overlay: Overlay, on_conflict: OnConflict, services: AdapterServices
) -> DegradedCheckpoints:
    guards = services.guards
    return DegradedCheckpoints(
        STORE,
        saver=saver,
        rows=_AGAIN,
        overlay=overlay,
        on_conflict=on_conflict,
        replayer=guards.replayer,
        workers=guards.workers,
        faults=guards.faults,
        clock=guards.clock,
    )


def _rows(*, redact: bool) -> dict[str, Method]:
    rows = METHODS if redact else {n: replace(each, redact=verbatim) for n, each in METHODS.items()}
    return rows | {f"a{name}": method for name, method in rows.items()}


@lru_cache(maxsize=64)
def _guarded_class(base: Any, redact: bool, thread_bound: bool) -> Any:  # noqa: FBT001 - cache keys
    table = _rows(redact=redact)
    methods = GuardedMethods(
        table=table,
        client_types=(_Base,),
        not_guarded=frozenset(NOT_GUARDED),
        inline=stays(base, thread_bound=thread_bound),
        make={"list": iterate, "alist": aiterate},
    )
    forwarding: Any = guarded_class(base, methods)
    own: dict[str, Any] = {
        **{name: below_graph(getattr(forwarding, name)) for name in _PUTS},
        **{name: below_graph(record_loads(getattr(forwarding, name))) for name in _LOADS},
        # LangGraph looks for a parameter task_path in the signature, and leaves it out where there
        # is none.
        "put_writes": attribute_writes(below_graph(forwarding.put_writes)),
        "with_allowlist": _with_allowlist,
        "__bool__": _true,
        "__module__": __name__,
    }
    inherited = [name for name in table if _is_inherited(base, name)]
    # What the saver does not have is to raise NotImplementedError as before, and not to be an
    # event.
    own |= {name: vars(_Base)[name] for name in inherited}
    own[OF_OBJECTS] = {name: vars(forwarding)[name] for name in inherited}
    return type(base.__name__, (forwarding,), own)


def _is_inherited(base: Any, name: str) -> bool:
    # This one is always the saver's: the base class would build it from many reads.
    if name.endswith("get_delta_channel_history"):
        return False
    return getattr(base, name) is getattr(_Base, name)


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


ADAPTER = StoreAdapter(store=STORE, client_types=(_Base,), bind=bind, not_guarded=NOT_GUARDED)
