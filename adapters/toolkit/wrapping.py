"""Wrapping a client: the adapter that knows it, its guard, and the class of the guarded client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from ...memory.api import AdapterServices, Around, Method, Row, StoreAdapter, StoreBinding
from ...memory.database import Database
from ...memory.errors import ConfigurationError, UnsupportedClientError
from ...memory.guard.answers import CheckAnswer
from .binding import method_by_key
from .proxy import GuardedMethods, guard_of, guarded_class, unwrap_instrumented, wrap

T = TypeVar("T")


def guard_client(
    client: T,
    adapter: StoreAdapter,
    services: AdapterServices,
    *,
    name: str | None = None,
    **options: Any,
) -> T:
    """
    Return *client* behind a guard: an instance of its own class.

    Args:
        client: Stays usable, unguarded, as it is.
        adapter: Knows clients of its class.
        services: The scope's.
        name: What the user calls the database; it counts instead of what *client* tells.
        **options: The adapter's own.

    Raises:
        ConfigurationError: *name* is empty, or *client* is guarded already and not by this name.
        UnsupportedClientError: The adapter does not know its class.
    """
    named = None if name is None else _named(adapter, name)
    guard = guard_of(client)
    # Of this scope; a client that another scope guards is guarded once more, for its own reports.
    if guard is not None and guard in services.guards.guards:
        if named not in {None, guard.database}:
            raise ConfigurationError(
                "name: this client is guarded already, without this name: give it the first time"
            )
        rebind: Callable[..., T] | None = adapter.rebind
        return client if rebind is None else rebind(client, guard, services, **options)
    if not isinstance(client, adapter.client_types):
        raise UnsupportedClientError(
            type(client), tuple(each.__name__ for each in adapter.client_types)
        )
    client = unwrap_instrumented(client, services.guards)
    binding = adapter.bind(client, replace(services, named=named), **options)
    if named is not None:
        binding = replace(binding, database=named)
    wrapped: T = _wrapped(client, adapter, binding, services)
    return wrapped


def _named(adapter: StoreAdapter, name: str) -> Database:
    if not name.strip():
        raise ConfigurationError("name: it is empty: name the database, or leave name out")
    return Database.named(adapter.store, name)


def _wrapped(
    client: Any, adapter: StoreAdapter, binding: StoreBinding, services: AdapterServices
) -> Any:
    guard = services.guards.guard(
        adapter.store,
        db_system=adapter.db_system,
        server=binding.server,
        caller_mistakes=binding.caller_mistakes,
        exits=binding.exits,
        turns=binding.turns,
        breaks_off=binding.breaks_off,
        writes=binding.writes
        and replace(binding.writes, method=partial(method_by_key, adapter.client_types)),
        database=binding.database,
        steps=binding.steps,
        around=(*_checks(binding), *binding.around),
        retries=binding.retries,
        parts=binding.parts,
        public=binding.public,
        below=binding.below,
    )
    services.key_use.note_store(adapter.store, shared=binding.shared)
    if binding.subject_data is not None:
        services.subject_data.add(binding.subject_data, guard)
    if binding.on_guarded is not None:
        binding.on_guarded(guard)
    base = cast("Any", type(client))
    if binding.client_class is None:
        names, rows = frozenset(adapter.not_guarded), tuple(binding.methods.items())
        kind = _class_of(base, adapter.client_types, names, rows, binding.inline)
    else:
        kind = binding.client_class(base)
    guarded = wrap(client if binding.client is None else binding.client, guard, kind)
    if binding.subject_data is not None:
        services.subject_data.note_client(guarded, guard)
    return guarded


def _checks(binding: StoreBinding) -> tuple[Around, ...]:
    rows = binding.methods.values()
    says = any(isinstance(row, Method) and row.answer is not None for row in rows)
    return (CheckAnswer(),) if says else ()


@lru_cache(maxsize=64)
def _class_of(
    base: Any,
    client_types: tuple[type[Any], ...],
    not_guarded: frozenset[str],
    rows: tuple[tuple[str, Row], ...],
    inline: Callable[[Any], bool],
) -> type[Any]:
    methods = GuardedMethods(
        table=dict(rows), client_types=client_types, not_guarded=not_guarded, inline=inline
    )
    return guarded_class(base, methods)
