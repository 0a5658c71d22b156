"""
The methods of a guarded client: each binds its call by name and hands it to the guard.

The client's own method is called as the caller called it: what came by position goes on by
position, what came by keyword by that keyword.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import CO_COROUTINE
from typing import Any, TypeAlias

from ...memory.api import AsyncInvoke, Invoke, Row
from ...memory.guard.guard import Guard
from ...memory.guard.operation import Arguments, Method, Operation
from .binding import Parameters, described_class, parameters_of, rebuild
from .unknown import guess, tell_unknown_method, unknown_method

INNER = "_mnemoscope_inner"
GUARD = "_mnemoscope_guard"

Inline: TypeAlias = Callable[[Any], bool]
"""Tells of a wrapped client whether a synchronous call must stay on the caller's thread."""

Prepare: TypeAlias = Callable[[Arguments], Arguments]
"""Returns a call's arguments as everything after it is to see them."""

Make: TypeAlias = Callable[[Guard, Operation, Invoke], Any]
"""Makes a call of a guard, in place of `Guard.call`."""


def never_inline(_inner: Any) -> bool:
    """Tell that no call must stay on its thread."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedMethods:
    """
    All that is to be known of a client's methods, so that they can be guarded.

    Attributes:
        table: The rows of the guarded methods, by name.
        client_types: The classes that the table describes: their parameters have its names.
        not_guarded: Names of public methods that go straight to the client.
        inline: Tells of the wrapped client, before a synchronous call, whether the call must stay
            on its thread.
        prepare: By method, what is done with the caller's arguments first.
        make: By method, what makes its calls: for those whose answer is an iterator.
        parts: By attribute, the same of the objects in it, which have methods of their own: they
            are behind the guard of the client that holds them.
    """

    table: Mapping[str, Row]
    client_types: tuple[type[Any], ...]
    not_guarded: Collection[str] = ()
    inline: Inline = never_inline
    prepare: Mapping[str, Prepare] = field(default_factory=dict[str, Prepare])
    make: Mapping[str, Make] = field(default_factory=dict[str, Make])
    parts: Mapping[str, GuardedMethods] = field(default_factory=dict[str, "GuardedMethods"])


def guarded_method(
    base: type, name: str, member: Any, row: Row | None, methods: GuardedMethods
) -> Callable[..., Any]:
    """
    Return the method *name* of the guarded subclass of *base*.

    Args:
        base: The class of the wrapped client.
        name: The method's name.
        member: What *base* has under that name: a function, a property, a partial method…
        row: Its row of the table. None: the table has none.
        methods: The client's.
    """
    client = described_class(base, methods.client_types)
    # Static, since a property would run.
    described = inspect.getattr_static(client, name, None) if row is not None else None
    own = member if inspect.isfunction(member) else None
    binder = _Binder(name, own, described if inspect.isfunction(described) else None, row, methods)
    kinds = (member, described, getattr(base, name, None))
    # A subclass may have a plain function that returns a coroutine: the library's says what is
    # awaited.
    if any(map(inspect.iscoroutinefunction, kinds)):
        made = _asynchronous(binder)
    else:
        made = _synchronous(binder, methods.inline, methods.make.get(name))
    like = own or described
    if inspect.isfunction(like):
        made = wraps(like)(made)
        # `wraps` has copied it, and a class with an abstract method cannot be made.
        vars(made).pop("__isabstractmethod__", None)
        return made
    made.__name__, made.__qualname__ = name, f"{base.__qualname__}.{name}"
    return made


_NOTHING: tuple[Any, Any] = (None, None)


def _by_name(target: Callable[..., Any], given: Arguments) -> Any:
    return target(**given)


class _Binder:
    """
    Makes operations of the calls of one method.

    Args:
        own: It, as a function of the client's class. None: it is none.
        described: It, as a function of the class that the table describes. None: it is none.
        row: Its row. None: the table has none.
    """

    __slots__ = (
        "_cached",
        "_described",
        "_is_plain",
        "_keywords",
        "_name",
        "_parameters",
        "_prepare",
        "_row",
        "_unknown",
    )

    def __init__(
        self,
        name: str,
        own: Callable[..., Any] | None,
        described: Callable[..., Any] | None,
        row: Row | None,
        methods: GuardedMethods,
    ) -> None:
        self._name = name
        self._cached = f"{name} parameters"  # no attribute can be called that
        self._described = described
        self._row: Row = unknown_method(name, methods.table) if row is None else row
        self._unknown = row is None
        self._keywords = row.keywords if isinstance(row, Method) else frozenset[str]()
        self._prepare = methods.prepare.get(name)
        self._is_plain = row is not None and self._prepare is None
        self._parameters = None if own is None else self._parameters_of(own)

    def _parameters_of(self, own: Callable[..., Any], *, is_bound: bool = False) -> Parameters:
        return parameters_of(self._described, own, keywords=self._keywords, is_bound=is_bound)

    def bind(
        self, held: dict[str, Any], args: tuple[Any, ...], kwargs: Arguments
    ) -> tuple[Operation, Invoke]:
        """Return what a call asks of the client in *held*, and what asks it."""
        inner, name, parameters, row = held[INNER], self._name, self._parameters, self._row
        target = getattr(inner, name)
        if parameters is None or name in getattr(inner, "__dict__", ()):
            latest, parameters = held.get(self._cached, _NOTHING)
            # An attribute may be made anew at each look, as a mock's is, or be assigned at any
            # time.
            if latest is not target:
                parameters = self._of_object(held, target)
        if not self._is_plain or parameters.renamed or not parameters.known.issuperset(kwargs):
            return self._bind_any(held, parameters, target, args, kwargs)
        if not args:
            method = row if isinstance(row, Method) else row(kwargs)
            return Operation(method, kwargs), partial(_by_name, target)
        arguments = dict(zip(parameters.names, args, strict=False))
        arguments.update(kwargs)
        # One is given twice, or more by position than there are: the client's own error is raised.
        if len(arguments) != len(args) + len(kwargs):
            return self._bind_any(held, parameters, target, args, kwargs)
        method = row if isinstance(row, Method) else row(arguments)
        operation = Operation(method, arguments)
        if parameters.by_name:
            return operation, partial(_by_name, target)
        return operation, rebuild(target, parameters.names[: len(args)])

    def bind_async(
        self, held: dict[str, Any], args: tuple[Any, ...], kwargs: Arguments
    ) -> tuple[Operation, AsyncInvoke]:
        """Return the same of a method whose answer is awaited."""
        operation, invoke = self.bind(held, args, kwargs)
        code = getattr(getattr(held[INNER], self._name), "__code__", None)
        if code is not None and code.co_flags & CO_COROUTINE:
            return operation, invoke
        return operation, partial(_awaiting, invoke)

    def _bind_any(
        self,
        held: dict[str, Any],
        parameters: Parameters,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Arguments,
    ) -> tuple[Operation, Invoke]:
        if self._unknown:
            tell_unknown_method(held[INNER].__class__, self._name, held[GUARD])
        bound = parameters.bind(args, kwargs)
        arguments = bound.arguments
        if self._prepare is not None:
            arguments = self._prepare(arguments)
        method = self._method_for(arguments)
        if not self._unknown and not parameters.known.issuperset(arguments):
            method = guess(method, parameters.known, is_understood=bound.is_understood)
        return Operation(method, arguments), bound.invoke(target)

    def _method_for(self, arguments: Arguments) -> Method:
        row = self._row
        return row if isinstance(row, Method) else row(arguments)

    def _of_object(self, held: dict[str, Any], target: Callable[..., Any]) -> Parameters:
        """Return the parameters of a method that its object has, or makes, for itself."""
        parameters = self._parameters_of(target, is_bound=True)
        held[self._cached] = target, parameters
        return parameters


def _synchronous(binder: _Binder, inline: Inline, make: Make | None) -> Callable[..., Any]:
    bind = binder.bind
    if make is None and inline is never_inline:

        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            held = self.__dict__
            operation, invoke = bind(held, args, kwargs)
            return held[GUARD].call(operation, invoke)

        return called

    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = self.__dict__
        operation, invoke = bind(held, args, kwargs)
        if make is not None:
            return make(held[GUARD], operation, invoke)
        return held[GUARD].call(operation, invoke, inline=inline(held[INNER]))

    return made


def _asynchronous(binder: _Binder) -> Callable[..., Any]:
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = self.__dict__
        # Neither is kept in a name: what a call holds while it waits, the collector follows.
        answer = held[GUARD].acall(*binder.bind_async(held, args, kwargs))
        del args, kwargs
        return await answer

    return awaited


async def _awaiting(invoke: Invoke, given: Arguments) -> Any:
    """Return what *invoke* answers, awaited where that is to be: a method may stand in for one."""
    answer = invoke(given)
    # Of the class: a mock has whatever attribute it is asked for.
    return await answer if hasattr(answer.__class__, "__await__") else answer
