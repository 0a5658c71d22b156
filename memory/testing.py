"""
For tests of your code: a scope without network or files, and stores that fail on demand.

Example:
    >>> with scope_for_tests() as (scope, sink):
    ...     memory = scope.mem0(my_memory)
    ...     with breaking(memory, "search", ConnectionError):
    ...         assert my_agent(memory).answers()
    ...     scope.flush()
    ...     assert sink.events[-1].status == "degraded"
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..telemetry.event import Event
from .budget import Budget
from .front_door import Mnemoscope
from .settings import load_settings

_INNER = "_mnemoscope_inner"
_KEY = "bW5lbW9zY29wZSB0ZXN0cyBvbmx5"  # 21 bytes that protect nothing, so that no key file is made


class CapturingSink:
    """
    Keeps events in a list. Flush the scope before reading it.

    Attributes:
        events: Oldest first.
    """

    name = "capture"
    idempotent = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event], /) -> None:
        """Keep *batch*."""
        self.events.extend(batch)

    def flush(self, _timeout_s: float, /) -> bool:
        """Nothing is buffered."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Nothing is held."""


@contextmanager
def scope_for_tests(
    *, budgets: Iterable[Budget] = (), **settings: Any
) -> Generator[tuple[Mnemoscope, CapturingSink]]:
    """
    Yield a scope that redacts with patterns alone and sends events to a list.

    Args:
        budgets: What may be spent.
        **settings: As for `configure`, for example ``deadline_recall_s=0.05``.
    """
    sink = CapturingSink()
    given = {"audit_pseudonym_key": _KEY, "pii_model": "none", **settings}
    scope = Mnemoscope(load_settings(**given), sinks=[sink], budgets=budgets)
    try:
        yield scope, sink
    finally:
        scope.close()


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
    store.__class__ = type(kind)(kind.__name__, (kind,), members)
    return partial(setattr, store, "__class__", kind)


def _raising(failure: type[BaseException]) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise failure

    return fail
