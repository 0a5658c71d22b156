"""The decorator that guards a function, for stores without an adapter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sized
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..telemetry.event.event import Deletes, OperationClass
from ..telemetry.text import one_line
from .errors import ConfigurationError
from .guard.operation import Arguments, Method, Operation, Summary
from .guard_factory import import_guard
from .limits.policy import FAILS_OPEN

if TYPE_CHECKING:
    from .guard.guard import Guard

F = TypeVar("F", bound=Callable[..., Any])

OPERATIONS = {
    "search_memory": OperationClass.RECALL,
    "create_memory": OperationClass.REMEMBER,
    "update_memory": OperationClass.REMEMBER,
    "upsert_memory": OperationClass.REMEMBER,
    "delete_memory": OperationClass.FORGET,
}
"""The OTel GenAI operation names that an observed function may have, and their classes."""


class GuardSource(Protocol):
    """Finds guards when a function is called."""

    def __call__(self, store: str, /) -> Guard | None:
        """Return the guard for *store*. None: nothing is configured, or it is disabled."""
        ...


def observed(
    guard_for: GuardSource,
    *,
    store: str,
    operation: str,
    neutral: Callable[[], Any] | None,
    inline: bool,
    signals: tuple[type[Exception], ...] = (),
) -> Callable[[F], F]:
    """Build the decorator behind `observe`; see there."""
    if operation not in OPERATIONS:
        raise ConfigurationError(f"operation: expected one of {', '.join(OPERATIONS)}")
    op_class = OPERATIONS[operation]
    if neutral is not None and op_class not in FAILS_OPEN:
        raise ConfigurationError(f"{operation} fails closed: it cannot have a neutral value")
    import_guard()

    def decorate(fn: F) -> F:
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise ConfigurationError(
                f"observe() cannot guard the generator {fn.__qualname__}: "
                "guard the function that fetches, and yield from its result"
            )
        method = Method(
            name=one_line(getattr(fn, "__name__", type(fn).__name__)),  # a partial has none
            operation=operation,
            op_class=op_class,
            deletes=Deletes.IDS if op_class is OperationClass.FORGET else None,
            neutral=neutral and _ignoring_arguments(neutral),
            summary=_summary,
            shields=False,
            signals=signals,
            unconfined="it is the application's own function, which knows whom it is about",
        )
        return cast("F", wraps(fn)(_coloured(fn, method, guard_for, store, inline=inline)))

    return decorate


def _coloured(
    fn: Callable[..., Any], method: Method, guard_for: GuardSource, store: str, *, inline: bool
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(fn):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            if (guard := guard_for(store)) is None:
                return await fn(*args, **kwargs)
            return await guard.acall(Operation(method, {}), lambda _none: fn(*args, **kwargs))

        return awaited

    def called(*args: Any, **kwargs: Any) -> Any:
        if (guard := guard_for(store)) is None:
            return fn(*args, **kwargs)
        return guard.call(Operation(method, {}), lambda _none: fn(*args, **kwargs), inline=inline)

    return called


def _ignoring_arguments(neutral: Callable[[], Any]) -> Callable[[Arguments], Any]:
    return lambda _arguments: neutral()


def _summary(result: Any, _arguments: Arguments) -> Summary:
    if isinstance(result, (list, tuple, set, frozenset)):
        return Summary(hits=len(cast("Sized", result)))
    return Summary()
