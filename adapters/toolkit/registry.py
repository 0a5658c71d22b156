"""The installed adapters, found by the entry point ``mnemoscope.store_adapters``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from ...memory.api import StoreAdapter
from ...memory.errors import ConfigurationError, UnsupportedClientError

GROUP = "mnemoscope.store_adapters"

_missing: dict[str, str] = {}
"""By store, the module that its adapter lacked: until it is imported, nobody has such a client."""


@cache
def _installed() -> dict[str, EntryPoint]:
    """Return the entry points by name: the name of the store in events and metrics."""
    return {each.name: each for each in entry_points(group=GROUP)}


@cache
def adapter_of(store: str) -> StoreAdapter:
    """
    Return the adapter of the store with that name.

    Raises:
        ConfigurationError: None is installed, or its entry point is not an adapter.
        ImportError: The store's client library is not installed.
    """
    found = _installed().get(store)
    if found is None:
        raise ConfigurationError(
            f"no adapter is installed for the store {store!r}: expected one of "
            f"{', '.join(sorted(_installed()))}"
        )
    adapter = found.load()
    if not isinstance(adapter, StoreAdapter):
        raise ConfigurationError(
            f"the entry point {store!r} of {GROUP} is a {type(adapter).__name__}: "
            "expected a StoreAdapter"
        )
    return adapter


def installed_adapters() -> Iterator[StoreAdapter]:
    """Yield the adapters whose client library is installed, other people's first."""
    for store in sorted(_installed(), key=_shipped_last):
        if store in _missing and _missing[store] not in sys.modules:
            continue  # a failing import takes milliseconds, each time
        try:
            yield adapter_of(store)
        except ImportError as exc:
            _missing[store] = exc.name or ""  # its client library is not installed


def adapter_for(client: object) -> StoreAdapter:
    """
    Return the adapter that knows clients of this class.

    Raises:
        UnsupportedClientError: None does.
    """
    known: list[str] = []
    for adapter in installed_adapters():
        if isinstance(client, adapter.client_types):
            return adapter
        known += (each.__name__ for each in adapter.client_types)
    raise UnsupportedClientError(type(client), tuple(known))


def _shipped_last(store: str) -> tuple[bool, str]:
    # Another's adapter first: it may know a subclass better, and ours take long to import.
    return _installed()[store].value.startswith("mnemoscope."), store
