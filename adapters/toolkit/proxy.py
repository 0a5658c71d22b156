"""
Drop-in clients: a real subclass of the wrapped class whose every attribute is the wrapped object's.

A proxy by ``__getattr__`` alone is not an instance of the client's class, so libraries that check
(mem0's pydantic settings, LangGraph's ``compile``) refuse it. A subclass that runs the base's code
on itself would bypass the wrapped object. So the subclass is real, and nothing of the base runs on
it: methods in the adapter's table go through the guard, whatever kind of member they are and
whatever they call their parameters. So do methods that no table knows. What the adapter says is not
guarded goes straight to the wrapped object.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from functools import lru_cache, partial, partialmethod, wraps
from typing import Any, NoReturn, TypeVar, cast

from ...memory.api import Row
from ...memory.guard.guard import Guard
from ...memory.guard.operation import Arguments, Method, Operation
from ...memory.guard_factory import GuardFactory
from .guarded_methods import GUARD, INNER, GuardedMethods, guarded_method

__all__ = [
    "GUARD",
    "INNER",
    "INSTRUMENTED",
    "OF_OBJECTS",
    "TABLE",
    "GuardedMethods",
    "guard_of",
    "guarded_class",
    "inner_of",
    "operation_of",
    "unwrap_instrumented",
    "wrap",
]

T = TypeVar("T")

TABLE = "_mnemoscope_table"
OF_OBJECTS = "_mnemoscope_of_objects"
"""In the class of guarded clients: guarded methods that it does not have, and an object may."""
FORWARDS = "_mnemoscope_forwards"
"""On functions of that class that go straight to the client."""
INSTRUMENTED = "_mnemoscope_instrumented"
"""In the ``__dict__`` of clients that became guarded as they were made: see `instrument`."""


def guarded_class(base: type[T], methods: GuardedMethods) -> type[T]:
    """
    Build the subclass of *base* whose *methods* go through a guard.

    Called, it makes a client of *base* that is not guarded. Sync and async are decided per
    function: an async client has methods that are not. Where a function does not say, its answer
    does.
    """
    own: dict[str, Any] = dict(_DUNDERS)
    for name, member in _members(base):
        own[name] = _stand_in(base, name, member, methods)
    for name, part in methods.parts.items():
        own[name] = _part(name, part)
    for name in ("__enter__", "__aenter__", "__exit__", "__aexit__"):
        if hasattr(base, name):
            # Only where the client has them: whoever looks would take it for a context manager.
            own[name] = _CONTEXT[name]
    # Whoever calls the class of a guarded client wants a client of their own.
    own["__new__"] = partial(_make_unguarded, base)
    own["__module__"], own["__doc__"] = __name__, base.__doc__
    own[TABLE] = methods.table
    own[OF_OBJECTS] = {
        name: guarded_method(base, name, None, row, methods)
        for name, row in methods.table.items()
        if name not in own
    }
    # Not `type(…)`: pydantic's metaclass would take for fields what it finds in a model.
    make = ABCMeta.__new__ if isinstance(base, ABCMeta) else type.__new__
    return make(type(base), base.__name__, (base,), own)


def _make_unguarded(base: Any, _kind: type, *args: Any, **kwargs: Any) -> Any:
    return base(*args, **kwargs)


def wrap(inner: T, guard: Guard, guarded: type[T]) -> T:
    """Return *inner* behind *guard*, as an instance of *guarded* whose ``__init__`` never ran."""
    proxy = object.__new__(guarded)
    # Not `setattr`, which on a guarded client writes to the client inside.
    object.__setattr__(proxy, INNER, inner)
    object.__setattr__(proxy, GUARD, guard)
    of_objects: dict[str, Callable[..., Any]] = getattr(guarded, OF_OBJECTS)
    for name in of_objects.keys() & getattr(inner, "__dict__", {}):
        proxy.__dict__[name] = of_objects[name].__get__(proxy)
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
    row: Row = getattr(type(client), TABLE)[name]
    return Operation(row if isinstance(row, Method) else row(arguments), arguments)


def _members(base: type) -> Iterator[tuple[str, Any]]:
    seen = {"__init__", "__new__"}
    # In the order in which Python would find them: what a subclass overrides is met first.
    for owner in base.__mro__[:-1]:
        for name, member in vars(owner).items():
            if name in seen or (name.startswith("__") and name.endswith("__")):
                continue
            seen.add(name)
            yield name, member


def _stand_in(base: type, name: str, member: Any, methods: GuardedMethods) -> Any:
    row = methods.table.get(name)
    if row is not None and (callable(member) or hasattr(cast("Any", type(member)), "__get__")):
        return guarded_method(base, name, member, row, methods)
    if isinstance(member, (classmethod, staticmethod)):
        return _OfClass(base, name)
    if not _is_method(member):
        return _attribute(name)
    if name.startswith("_") or name in methods.not_guarded:
        # Forwarded to the client inside: run on the proxy it would call guarded methods, and count
        # twice.
        return _forwarded(name, member) if inspect.isfunction(member) else _attribute(name)
    return guarded_method(base, name, member, None, methods)


def _is_method(member: Any) -> bool:
    if inspect.isfunction(member) or isinstance(member, partialmethod):
        return True
    return callable(member) and hasattr(type(member), "__get__") and not inspect.isclass(member)


class _OfClass:
    """A class method or static method of the client's class, which knows nothing of the guard."""

    def __init__(self, base: type, name: str) -> None:
        self._base, self._name = base, name

    def __get__(self, client: object, kind: type) -> Any:
        return getattr(self._base, self._name)


def _attribute(name: str) -> property:
    return property(
        lambda self: getattr(self.__dict__[INNER], name),
        lambda self, value: setattr(self.__dict__[INNER], name, value),
        lambda self: delattr(self.__dict__[INNER], name),
    )


def _part(name: str, methods: GuardedMethods) -> property:
    """Return the attribute *name*, whose object is behind the guard of the client that has it."""
    latest = f"{name} guarded"  # no attribute can be called that
    class_of = lru_cache(maxsize=64)(partial(guarded_class, methods=methods))

    def part_of(self: Any) -> Any:
        held = self.__dict__
        part = getattr(held[INNER], name)
        if not isinstance(part, methods.client_types):
            return part
        guarded = held.get(latest)
        if inner_of(guarded) is not part:
            guarded = held[latest] = wrap(part, held[GUARD], class_of(cast("Any", type(part))))
        return guarded

    return property(part_of)


def _forwarded(name: str, member: Callable[..., Any]) -> Any:
    if inspect.iscoroutinefunction(member):

        @wraps(member)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await getattr(self.__dict__[INNER], name)(*args, **kwargs)

        forward: Any = awaited
    else:

        @wraps(member)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(self.__dict__[INNER], name)(*args, **kwargs)

        forward = called
    setattr(forward, FORWARDS, True)
    return forward


def _getattr(self: Any, name: str) -> Any:
    inner = self.__dict__.get(INNER)
    if inner is None:
        raise AttributeError(name)  # an instance that `wrap` did not make: do not recurse
    found = getattr(inner, name)
    guarded = getattr(self.__class__, OF_OBJECTS).get(name)
    return found if guarded is None or not callable(found) else guarded.__get__(self)


def _setattr(self: Any, name: str, value: Any) -> None:
    held = self.__dict__
    if getattr(value, "__self__", None) is self:
        # What was replaced is given back: the client's own, not ours, which would call itself.
        held.pop(name, None)
        getattr(held[INNER], "__dict__", {}).pop(name, None)
        return
    if isinstance(value, _Assigned):
        value = value.assigned
    if guard_of(value) is held[GUARD]:
        value = inner_of(value)
    setattr(held[INNER], name, value)
    kind: Any = self.__class__
    ours = getattr(kind, OF_OBJECTS).get(name) or inspect.getattr_static(kind, name, None)
    if inspect.isfunction(ours):
        is_guarded = callable(value) and not hasattr(ours, FORWARDS)
        held[name] = _Assigned(value, ours.__get__(self)) if is_guarded else value


def _delattr(self: Any, name: str) -> None:
    self.__dict__.pop(name, None)
    delattr(self.__dict__[INNER], name)


class _Assigned:
    """A method that was assigned to a guarded client: called, it is guarded; else it is itself."""

    def __init__(self, assigned: Callable[..., Any], guarded: Callable[..., Any]) -> None:
        self.assigned = assigned
        self._guarded = guarded
        if inspect.iscoroutinefunction(assigned):
            _mark_coroutine_function(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._guarded(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.assigned, name)


def _mark_coroutine_function(thing: Any) -> None:
    """Have ``asyncio.iscoroutinefunction`` say so of *thing*; that of `inspect` from 3.12 on."""
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(thing)
    else:
        vars(thing)["_is_coroutine"] = vars(asyncio.coroutines)["_is_coroutine"]


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
    # Pickled, it would come out without its guard in a process that never asked for one.
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
