"""
Drop-in clients: a real subclass of the wrapped class whose every attribute is the wrapped object's.

A proxy by ``__getattr__`` alone is not an instance of the client's class, so libraries that check
(mem0's pydantic settings, LangGraph's ``compile``) refuse it. A subclass that runs the base's code
on itself would bypass the wrapped object. So the subclass is real, and nothing of the base runs on
it: methods in the adapter's table go through the guard, all others straight to the wrapped object.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from ...memory.api import Row
from ...memory.guard.factory import GuardFactory
from ...memory.guard.guard import Guard
from ...memory.guard.operation import Arguments, Method, Operation

T = TypeVar("T")

INNER = "_mnemoscope_inner"
GUARD = "_mnemoscope_guard"
TABLE = "_mnemoscope_table"
INSTRUMENTED = "_mnemoscope_instrumented"
"""In the ``__dict__`` of clients that became guarded as they were made: see `instrument`."""

Inline: TypeAlias = Callable[[Any], bool]
"""Tells of a wrapped client whether a synchronous call must stay on the caller's thread."""


def _never(_inner: Any) -> bool:
    return False


def guarded_class(base: type[T], table: Mapping[str, Row], *, inline: Inline = _never) -> type[T]:
    """
    Build the subclass of *base* whose methods named in *table* go through a guard.

    Sync and async are decided per function: an async client has methods that are not. Before a
    synchronous call, *inline* tells of the wrapped client whether the call must stay on its thread.
    """
    own: dict[str, Any] = dict(_DUNDERS)
    for name, member in _members(base):
        own[name] = _stand_in(name, member, table.get(name), inline)
    for name in ("__enter__", "__aenter__", "__exit__", "__aexit__"):
        if hasattr(base, name):
            own[name] = _CONTEXT[name]
    own["__module__"], own["__doc__"], own[TABLE] = __name__, base.__doc__, table
    return cast("type[T]", type(base.__name__, (base,), own))


def wrap(inner: T, guard: Guard, guarded: type[T]) -> T:
    """Return *inner* behind *guard*, as an instance of *guarded* whose ``__init__`` never ran."""
    proxy = guarded.__new__(guarded)
    object.__setattr__(proxy, INNER, inner)
    object.__setattr__(proxy, GUARD, guard)
    return proxy


def inner_of(client: T) -> T | None:
    """Return the client inside a guarded *client*; None: it is not guarded."""
    found: T | None = getattr(client, "__dict__", {}).get(INNER)
    return found


def guard_of(client: object) -> Guard | None:
    """Return the guard of *client*; None: it is not guarded."""
    found: Guard | None = getattr(client, "__dict__", {}).get(GUARD)
    return found


def unwrap_instrumented(client: T, guards: GuardFactory) -> T:
    """Return the client inside an instrumented one, so that it is guarded once; others as is."""
    guard, inner = guard_of(client), inner_of(client)
    if guard is None or inner is None or guard in guards.guards:
        return client
    return inner if INSTRUMENTED in vars(client) else client


def operation_of(client: object, name: str, arguments: Arguments) -> Operation:
    """Return the call of *name* on a wrapped *client* as its adapter's table describes it."""
    return _operation(getattr(type(client), TABLE)[name], arguments)


def _operation(row: Row, arguments: Arguments) -> Operation:
    return Operation(row if isinstance(row, Method) else row(arguments), arguments)


def _members(base: type) -> Iterator[tuple[str, Any]]:
    seen = {"__init__", "__new__"}
    for owner in base.__mro__[:-1]:
        for name, member in vars(owner).items():
            if name in seen or (name.startswith("__") and name.endswith("__")):
                continue
            seen.add(name)
            if not isinstance(member, (classmethod, staticmethod)):
                yield name, member


def _stand_in(name: str, member: Any, row: Row | None, inline: Inline) -> Any:
    if not inspect.isfunction(member):
        return _attribute(name)
    if row is None:
        return _forwarded(name, member)
    if inspect.iscoroutinefunction(member):
        return _async_guarded(name, member, row)
    return _guarded(name, member, row, inline)


def _attribute(name: str) -> property:
    return property(
        lambda self: getattr(self.__dict__[INNER], name),
        lambda self, value: setattr(self.__dict__[INNER], name, value),
    )


def _forwarded(name: str, member: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(member):

        @wraps(member)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await getattr(self.__dict__[INNER], name)(*args, **kwargs)

        return awaited

    @wraps(member)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.__dict__[INNER], name)(*args, **kwargs)

    return called


def _guarded(name: str, member: Callable[..., Any], row: Row, inline: Inline) -> Callable[..., Any]:
    names, nameless = _parameters(member)

    @wraps(member)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = self.__dict__
        inner, guard = held[INNER], held[GUARD]
        target = getattr(inner, name)
        arguments = _bind(names, args, kwargs) if args else kwargs
        if arguments is None or (nameless and not kwargs.keys().isdisjoint(nameless)):
            return target(*args, **kwargs)  # raises the client's own TypeError
        described = row if isinstance(row, Method) else row(arguments)
        operation = Operation(described, arguments)
        invoke = _invoke(target, nameless)
        return guard.call(operation, invoke, inline=inline is not _never and inline(inner))

    return called


def _async_guarded(name: str, member: Callable[..., Any], row: Row) -> Callable[..., Any]:
    names, nameless = _parameters(member)

    @wraps(member)
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = self.__dict__
        target, guard = getattr(held[INNER], name), held[GUARD]
        arguments = _bind(names, args, kwargs)
        if arguments is None or (nameless and not kwargs.keys().isdisjoint(nameless)):
            return await target(*args, **kwargs)  # raises the client's own TypeError
        return await guard.acall(_operation(row, arguments), _invoke(target, nameless))

    return awaited


def _parameters(member: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parameters = tuple(inspect.signature(member).parameters.values())[1:]
    nameless = tuple(each.name for each in parameters if each.kind is each.POSITIONAL_ONLY)
    named = (each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD)
    return (*nameless, *named), nameless


def _invoke(target: Callable[..., Any], nameless: tuple[str, ...]) -> Callable[[Arguments], Any]:
    """Return a function that calls *target* with arguments by name, as far as they have one."""
    if nameless:
        return lambda given: _apply(target, nameless, given)
    return lambda given: target(**given)


def _apply(target: Callable[..., Any], nameless: tuple[str, ...], given: Arguments) -> Any:
    named = {name: value for name, value in given.items() if name not in nameless}
    return target(*(given[name] for name in nameless if name in given), **named)


def _bind(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments | None:
    if not args:
        return kwargs
    if len(args) > len(names):
        return None
    arguments = dict(zip(names, args, strict=False))
    arguments.update(kwargs)
    return arguments if len(arguments) == len(args) + len(kwargs) else None


def _getattr(self: Any, name: str) -> Any:
    if name in {INNER, GUARD}:
        raise AttributeError(name)  # an instance that `wrap` did not make: do not recurse
    return getattr(self.__dict__[INNER], name)


def _setattr(self: Any, name: str, value: Any) -> None:
    setattr(self.__dict__[INNER], name, value)


def _delattr(self: Any, name: str) -> None:
    delattr(self.__dict__[INNER], name)


def _repr(self: Any) -> str:
    return f"<{type(self).__name__} guarded by mnemoscope>"


def _del(_self: Any) -> None:
    # The base's finaliser would close the wrapped client, which its owner may still use.
    return


def _copy(self: Any) -> Any:
    kind = cast("Any", type(self))
    return wrap(self.__dict__[INNER], self.__dict__[GUARD], kind)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    kind = cast("Any", type(self))
    return wrap(copy.deepcopy(self.__dict__[INNER], memo), self.__dict__[GUARD], kind)


def _reduce(self: Any, _protocol: Any) -> NoReturn:
    raise TypeError(f"a guarded {type(self).__name__} is bound to this process: wrap it anew there")


def _enter(self: Any) -> Any:
    self.__dict__[INNER].__enter__()
    return self


def _exit(self: Any, *exc: Any) -> Any:
    return self.__dict__[INNER].__exit__(*exc)


async def _aenter(self: Any) -> Any:
    await self.__dict__[INNER].__aenter__()
    return self


async def _aexit(self: Any, *exc: Any) -> Any:
    return await self.__dict__[INNER].__aexit__(*exc)


_DUNDERS: dict[str, Callable[..., Any]] = {
    "__getattr__": _getattr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__repr__": _repr,
    "__del__": _del,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce,
}

_CONTEXT: dict[str, Callable[..., Any]] = {
    "__enter__": _enter,
    "__exit__": _exit,
    "__aenter__": _aenter,
    "__aexit__": _aexit,
}
