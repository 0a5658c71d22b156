"""
Qdrant: ``QdrantClient`` and ``AsyncQdrantClient`` behind a guard.

What goes through the client's own methods is guarded; its ``http``, ``grpc_points`` and
``grpc_collections`` are the server's raw interface and are not.

A local client (``:memory:`` or ``path=``) is not thread-safe, so calls to it take turns. The async
one is synchronous code, which would block its event loop while it answers: it is run on threads.
Calls in which nothing can hang stay on their caller's thread: see `staying`.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal

from ...memory.api import AdapterServices, StoreAdapter, StoreBinding, Turns
from ...memory.errors import ConfigurationError
from ...memory.guard.guard import Guard
from ..toolkit.own_methods import has_own_methods
from ..toolkit.proxy import GuardedMethods, guarded_class, inner_of, wrap
from ..toolkit.public import KnownPublic, Public, checked_public
from .database import database_of, server_of
from .failures import INPUTS, MISTAKES
from .headers import headers_for
from .journal import writes
from .methods import NOT_GUARDED, RAISES, table
from .staying import breaks_off
from .subject_data import QdrantSubjectData
from .turns import CallLock, is_bound, local_of, lock_of

T = TypeVar("T")


def bind(
    client: Any,
    services: AdapterServices,
    /,
    *,
    owner_key: str | None = None,
    public: Public = False,
) -> StoreBinding:
    """
    Return the binding of a ``QdrantClient`` or ``AsyncQdrantClient``.

    Args:
        client: The client.
        services: What the scope offers.
        owner_key: Payload key, dotted where it is nested, that holds the id of a point's owner: a
            key of the store, so it is kept verbatim. Gives the customer of a call and
            the owners of its results. Without it no call can be confined, so that
            ``tenancy="enforce"`` refuses them in a customer's context.
        public: Its points are nobody's personal data, or those in collections of these names.

    Raises:
        ConfigurationError: *public* is no set of names, or leaves nothing that has an owner.
    """
    public = checked_public(public, ("owner_key", owner_key))
    local = local_of(client)
    inline = local is not None and is_bound(local)
    lock = None if local is None else lock_of(local)
    rows = table(owner_key, inline=inline, public=public)
    points = QdrantSubjectData(client, lock=lock, public=public)
    if owner_key is not None:
        points.owner_keys.add(owner_key)
    return StoreBinding(
        methods=rows,
        caller_mistakes=(*MISTAKES, *INPUTS),
        client_class=lambda base: _class_of(
            cast("Any", base), owner_key, inline=inline, public=public
        ),
        subject_data=points,
        # A write can be made again on another thread only.
        writes=None if inline else writes(client, rows),
        database=database_of(client),
        server=server_of(client),
        turns=None if lock is None else _turns(client, lock, inline=inline),
        breaks_off=breaks_off(client, services.guards.workers),
        public=public,
        # A server's database is that of other processes, too.
        shared=local is None,
        around=headers_for(client, services.faults),
    )


def rebind(
    client: T,
    guard: Guard,
    services: AdapterServices,
    /,
    *,
    owner_key: str | None = None,
    public: Public = False,
) -> T:
    """
    Return a guarded *client* with another *owner_key*, by the same guard; None: as it is.

    Raises:
        ConfigurationError: Something else is *public* now, or all was and has an owner now.
    """
    points, was = services.subject_data.of(guard), guard.public
    if checked_public(public, ("owner_key", None)) not in {False, was} or (
        was is True and owner_key is not None
    ):
        raise ConfigurationError("public: this client is guarded already, otherwise: wrap it once")
    inner = inner_of(client)
    if owner_key is None or inner is None:
        return client
    if isinstance(points, QdrantSubjectData):
        points.owner_keys.add(owner_key)
    local = local_of(cast("Any", inner))
    kind = _class_of(
        cast("Any", type(inner)),
        owner_key,
        inline=local is not None and is_bound(local),
        public=was,
    )
    # The same guard: breaker, journal and counts are those of the client.
    return client if type(client) is kind else wrap(inner, guard, kind)


@lru_cache(maxsize=32)
def _class_of(base: Any, owner_key: str | None, *, inline: bool, public: KnownPublic) -> type[Any]:
    methods = GuardedMethods(
        table=table(owner_key, inline=inline, public=public),
        client_types=(QdrantClient, AsyncQdrantClient),
        not_guarded=frozenset(NOT_GUARDED),
    )
    return guarded_class(base, methods)


def _turns(client: Any, lock: CallLock, *, inline: bool) -> Turns:
    if inline:
        return Turns(lock=lock)
    # Its coroutines are synchronous code, so that it would hold the loop up.
    is_async = isinstance(local_of(client), AsyncQdrantLocal) and inner_of(client) is None
    blocks = partial(_is_synchronous, client) if is_async else None
    return Turns(lock=lock, blocks=blocks, enter_now=lock.enter_now)


def _is_synchronous(client: AsyncQdrantClient) -> bool:
    """
    Tell whether the coroutines of a local client wait for nothing, as Qdrant's own do.

    What a subclass or the object has in their place may wait for whatever it likes, in the loop
    that it is called in.
    """
    return not has_own_methods(client, AsyncQdrantClient)


ADAPTER = StoreAdapter(
    store="qdrant",
    db_system="qdrant",
    client_types=(QdrantClient, AsyncQdrantClient),
    bind=bind,
    rebind=rebind,
    instruments=True,
    not_guarded=NOT_GUARDED,
    raises=RAISES,
)
