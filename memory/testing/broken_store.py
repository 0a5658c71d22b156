"""Stores that fail on demand."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

_INNER = "_mnemoscope_inner"


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
    inner = vars(client)[_INNER]
    broken = _raising(failure) if isinstance(failure, type) else failure
    # The store itself, not what the client is given for one: writes that wait are replayed to it.
    give_back = (_replaced if hasattr(inner, "__dict__") else _recast)(inner, method, broken)
    try:
        yield
    finally:
        give_back()


def _replaced(store: Any, method: str, broken: Callable[..., Any]) -> Callable[[], Any]:
    """Give this object a method of its own, and return what takes it away."""
    own: dict[str, Any] = store.__dict__
    before = {method: own[method]} if method in own else {}
    own[method] = broken
    return partial(own.update, before) if before else partial(own.pop, method)


def _recast(store: Any, method: str, broken: Callable[..., Any]) -> Callable[[], Any]:
    """Do the same where slots leave no room, by way of a class for this one object."""
    kind: Any = store.__class__
    members = {method: staticmethod(broken), "__slots__": (), "__module__": kind.__module__}
    # Of the same name and module: what is said of the store must stay as it is.
    store.__class__ = type(kind)(kind.__name__, (kind,), members)
    return partial(setattr, store, "__class__", kind)


def _raising(failure: type[BaseException]) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise failure

    return fail
