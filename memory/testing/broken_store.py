"""Stores that fail on demand."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

INNER, TABLE = "_mnemoscope_inner", "_mnemoscope_table"
"""Where a guarded client has its store, and its class the rows of its methods."""


@contextmanager
def breaking(
    client: object, method: str, failure: type[BaseException] | Callable[..., Any]
) -> Generator[None]:
    """
    Make *method* of the store behind a guarded *client* fail while the body runs.

    Args:
        client: A client that a scope has wrapped.
        method: The name of one of its methods.
        failure: An exception type to raise, or a function to call in place of the method.
    """
    broken = _raising(failure) if isinstance(failure, type) else failure
    with replacing(vars(client)[INNER], {method: broken}):
        yield


@contextmanager
def replacing(store: Any, methods: Mapping[str, Callable[..., Any]]) -> Generator[None]:
    """Give the object *store* methods of its own while the body runs."""
    # The store itself, not what the client is given for one: writes that wait are replayed to it.
    give_back = (_replaced if hasattr(store, "__dict__") else _recast)(store, methods)
    try:
        yield
    finally:
        give_back()


def _replaced(store: Any, methods: Mapping[str, Callable[..., Any]]) -> Callable[[], None]:
    """Put *methods* into this object, and return what takes them away."""
    own: dict[str, Any] = store.__dict__
    before = {name: own[name] for name in methods.keys() & own.keys()}
    own.update(methods)

    def give_back() -> None:
        for name in methods:
            own.pop(name)
        own.update(before)

    return give_back


def _recast(store: Any, methods: Mapping[str, Callable[..., Any]]) -> Callable[[], None]:
    """Do the same where slots leave no room, by way of a class for this one object."""
    kind: Any = store.__class__
    own = {name: staticmethod(each) for name, each in methods.items()}
    members = {**own, "__slots__": (), "__module__": kind.__module__}
    # Of the same name and module: what is said of the store must stay as it is.
    store.__class__ = type(kind)(kind.__name__, (kind,), members)
    return partial(setattr, store, "__class__", kind)


def _raising(failure: type[BaseException]) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise failure

    return fail
