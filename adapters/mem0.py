"""
mem0 behind the chokepoint: ``Memory``, ``AsyncMemory`` and the clients of the hosted service.

Three things are done to the library itself as a client is wrapped. It is kept from calling home,
unless the environment says otherwise: it sends unsalted hashes of user ids. It is kept from
downloading a spaCy model in the middle of a call: where the download is refused, spaCy ends the
process. And ``AsyncMemory`` is given threads that a hung store may keep.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, TypeVar

from ..memory.errors import UnsupportedClientError
from ..memory.journal.journalled import JournalledGuard
from ..memory.operation import Method
from ..memory.runtime import Runtime
from ..telemetry.event import OperationClass
from ..telemetry.prices import Prices
from . import mem0_answers as answers
from . import mem0_arguments as carries
from . import mem0_platform as platform
from . import mem0_scope as about
from . import mem0_tenancy as keeping
from .mem0_failures import store_failed
from .mem0_holding import HostedHolding, MemoryHolding
from .mem0_journal import writes
from .mem0_spend import Spending
from .mem0_tenancy import AsksOwner
from .mem0_threads import GuardedAsyncio
from .proxy import bare, guard_of, guarded_class, wrap

_TELEMETRY = "MEM0_TELEMETRY"
_host_decides = _TELEMETRY in os.environ
os.environ.setdefault(_TELEMETRY, "False")  # read by mem0 as it is imported, and only then

_mem0: Any = import_module("mem0")  # it ships no types

T = TypeVar("T")

STORE = "mem0"

MEMORY: dict[str, Method] = {
    "add": Method(
        name="add",
        operation="create_memory",
        op_class=OperationClass.REMEMBER,
        neutral=answers.no_results,
        redact=carries.redact,
        scope=about.scope,
        summary=answers.found,
        content=carries.content,
        needs_owner=True,
        confine=keeping.user,
    ),
    "search": Method(
        name="search",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=answers.no_results,
        redact=carries.redact,
        scope=about.scope,
        summary=answers.found,
        content=carries.content,
        needs_owner=True,
        confine=keeping.filters,
        only=keeping.only,
    ),
    "get_all": Method(
        name="get_all",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=answers.no_results,
        redact=carries.redact,
        scope=about.scope,
        summary=answers.found,
        content=carries.content,
        needs_owner=True,
        confine=keeping.filters,
        only=keeping.only,
    ),
    "get": Method(
        name="get",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=answers.nothing,
        summary=answers.found_one,
        content=carries.content,
        needs_owner=True,
        only=keeping.only_one,
    ),
    "history": Method(
        name="history",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=answers.no_past,
        summary=answers.past_of_one,
        content=carries.content,
        needs_owner=True,
    ),
    "update": Method(
        name="update",
        operation="update_memory",
        op_class=OperationClass.REMEMBER,
        neutral=answers.not_confirmed,
        redact=carries.redact,
        summary=answers.changed,
        content=carries.content,
        needs_owner=True,
    ),
    "delete": Method(
        name="delete",
        operation="delete_memory",
        op_class=OperationClass.FORGET,
        summary=answers.changed,
        content=carries.content,
        needs_owner=True,
    ),
    "delete_all": Method(
        name="delete_all",
        operation="delete_memory",
        op_class=OperationClass.FORGET,
        scope=about.scope,
        needs_owner=True,
        confine=keeping.user,
    ),
    "reset": Method(
        name="reset",
        operation="delete_memory",
        op_class=OperationClass.FORGET,
        confine=keeping.nobodys,
    ),
}
"""Method by name, for ``Memory`` and ``AsyncMemory``."""

MEMORY_NOT_GUARDED: dict[str, str] = {
    "chat": "only raises NotImplementedError",
    "close": "ends the client, touches no memory",
    "from_config": "makes a client",
}
"""Public methods that go straight to the client, and why that is right."""

_TABLES: dict[type, dict[str, Method]] = {
    _mem0.Memory: MEMORY,
    _mem0.AsyncMemory: MEMORY,
    _mem0.MemoryClient: platform.PLATFORM,
    _mem0.AsyncMemoryClient: platform.PLATFORM,
}

WANTED: tuple[type, ...] = tuple(_TABLES)


def guarded(client: T, runtime: Runtime, *, prices: Prices | None = None) -> T:
    """
    Return *client* behind the chokepoint: an instance of its own class.

    Args:
        client: A ``Memory``, ``AsyncMemory``, ``MemoryClient`` or ``AsyncMemoryClient``. One that
            *runtime* guards already is returned as it is.
        runtime: What the guards of a scope share.
        prices: For what its own models cost. None: their calls are not told.

    Raises:
        UnsupportedClientError: It is none of these.
    """
    guard = guard_of(client)
    if guard is not None and guard.runtime is runtime:
        return client
    if not isinstance(client, WANTED):
        raise UnsupportedClientError(type(client), tuple(each.__name__ for each in WANTED))
    client = bare(client, runtime)
    _keep_in_house()
    base: Any = type(client)
    guarded_type: type[T] = _guarded_class(base)
    inner: Any = AsksOwner(client) if runtime.policy.enforce_tenancy else client
    hosted = _table(base) is platform.PLATFORM
    if prices is not None and not hosted:
        Spending(runtime, prices).watch(client)
    turns = _one_at_a_time(client)
    guard = _guard_class(client)(
        STORE,
        runtime,
        failed=store_failed,
        serialise=turns,
        writes=writes(inner, _table(base), hosted=hosted),
    )
    holding = HostedHolding(client) if hosted else MemoryHolding(client, turns)
    runtime.holdings.add(holding, guard)
    proxy: T = wrap(inner, guard, guarded_type)
    return proxy


@lru_cache(maxsize=64)
def _guarded_class(base: Any) -> Any:
    return guarded_class(base, _table(base))


def _table(base: Any) -> dict[str, Method]:
    return next(table for kind, table in _TABLES.items() if issubclass(base, kind))


def _one_at_a_time(client: Any) -> AbstractContextManager[Any] | None:
    """
    Return a lock for a memory in a local Qdrant, which loses rows when two threads write at once.

    A call that outlives its deadline would otherwise run beside the next one.
    """
    return threading.Lock() if _below(client) == "QdrantLocal" else None


def _guard_class(client: Any) -> type[JournalledGuard]:
    if _below(client) != "QdrantRemote":
        return JournalledGuard
    from .qdrant_headers import guard_class  # noqa: PLC0415 - not without Qdrant

    return guard_class(client.vector_store.client)


def _below(client: Any) -> str:
    """Return the name of what the Qdrant client of *client*'s vector store is made of, if any."""
    store = getattr(getattr(client, "vector_store", None), "client", None)
    return type(getattr(store, "_client", None)).__name__


def _keep_in_house() -> None:
    if not _host_decides:
        telemetry: Any = import_module("mem0.memory.telemetry")
        telemetry.MEM0_TELEMETRY = False
    if not _installed("en_core_web_sm"):
        # Otherwise asked for, and downloaded, inside the first add and the first search.
        models: Any = import_module("mem0.utils.spacy_models")
        models._load_failed_full |= models._nlp_full is None  # noqa: SLF001 - there is no other way
        models._load_failed_lemma |= models._nlp_lemma is None  # noqa: SLF001 - see above
    main: Any = import_module("mem0.memory.main")
    if not isinstance(main.asyncio, GuardedAsyncio):
        main.asyncio = GuardedAsyncio()


def _installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
