"""
Binding of a call's arguments to the names that an adapter's table knows.

The names are those of the class that the table describes. A subclass may call its parameters
otherwise, take ``*args``, or be no function at all: its positions still mean what the client's
mean, unless it gives a known name another place. What cannot be named is kept under a key that no
parameter can have, so that it is redacted as a value and handed on as it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from ...memory.guard.operation import Arguments

_BY_POSITION = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
_BY_KEYWORD = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class BoundCall(NamedTuple):
    """
    The arguments of one call, by name.

    Attributes:
        arguments: By the names of the table, as far as they have one.
        positional: The keys of those that were given by position, in order.
        keywords: Keys of those that were given by another keyword than their key.
        is_understood: Every argument has a name that the client or its subclass declares.
    """

    arguments: Arguments
    positional: tuple[str, ...]
    keywords: Mapping[str, str]
    is_understood: bool

    def __repr__(self) -> str:
        """Show the number of arguments, never a value."""
        return f"BoundCall({len(self.arguments)} arguments)"

    def invoke(self, target: Callable[..., Any]) -> Callable[[Arguments], Any]:
        """Return a function that calls *target* with arguments given as these were."""
        return rebuild(target, self.positional, self.keywords)


@dataclass(frozen=True, slots=True)
class Parameters:
    """
    The parameters of one method.

    Attributes:
        known: Names that the table's row describes.
        names: Those of them that can be given by position, in order, as far as there is no gap.
        positions: The key of each position.
        renamed: Keywords of a subclass's own, and the names that they stand for.
        declared: Names that the client or its subclass declares.
        is_open: The client takes any keyword.
        by_name: Whether *names* may all be given by keyword instead, which is cheaper.
    """

    known: frozenset[str]
    names: tuple[str, ...]
    positions: tuple[str, ...]
    renamed: Mapping[str, str]
    declared: frozenset[str]
    is_open: bool
    by_name: bool

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundCall:
        """Return the arguments of any call, whatever its shape."""
        surplus = (f"*{place}" for place in range(len(self.positions), len(args)))
        positional = (*self.positions[: len(args)], *surplus)
        arguments: Arguments = dict(zip(positional, args, strict=True))
        keywords: dict[str, str] = {}
        for name, value in kwargs.items():
            key = self.renamed.get(name, name)
            if key in arguments:
                key = f"**{name}"  # given twice: the client says so
            if key != name:
                keywords[key] = name
            arguments[key] = value
        # What a step adds is given by the name that the subclass has for it.
        added = {key: name for name, key in self.renamed.items() if key not in arguments}
        understood = all(key in self.declared or self._is_extra(key) for key in arguments)
        return BoundCall(arguments, positional, added | keywords, understood)

    def _is_extra(self, key: str) -> bool:
        return self.is_open and not key.startswith("*")


def parameters_of(
    client: Callable[..., Any] | None,
    own: Callable[..., Any] | None,
    *,
    keywords: Iterable[str] = (),
    is_bound: bool = False,
) -> Parameters:
    """
    Return the parameters of a method.

    Args:
        client: The method of the class that the table describes. None: it has none.
        own: The method of the subclass, or of the object.
        keywords: Further names that the table's row describes.
        is_bound: *own* has no parameter for the object.
    """
    canonical = _signature(client, is_bound=False, is_wrapped=True) or ()
    by_position = [each.name for each in canonical if each.kind in _BY_POSITION]
    named = [each.name for each in canonical if each.kind not in _VARIADIC]
    known = frozenset((*named, *keywords))
    mine = None if own is client else _signature(own, is_bound=is_bound)
    positions, renamed = _positions(by_position, known, mine)
    # Behind a parameter that the library does not have, positions mean something else.
    gap = next((i for i, key in enumerate(positions) if key not in known), len(positions))
    declared = {each.name for each in mine or () if each.kind not in _VARIADIC}
    names = positions[:gap]
    return Parameters(
        known=known,
        names=names,
        positions=positions,
        renamed=renamed,
        declared=known | declared,
        is_open=any(each.kind is each.VAR_KEYWORD for each in canonical),
        by_name=_takes_by_name(names, canonical if own is client else mine or ()),
    )


def _takes_by_name(names: tuple[str, ...], parameters: Collection[inspect.Parameter]) -> bool:
    by_keyword = {each.name for each in parameters if each.kind in _BY_KEYWORD}
    if by_keyword.issuperset(names):
        return True
    # `**kwargs` would take the name of one that goes by position alone, and the call would lack it.
    positional = {each.name for each in parameters if each.kind is each.POSITIONAL_ONLY}
    kinds = {each.kind for each in parameters} & _VARIADIC
    return kinds == {inspect.Parameter.VAR_KEYWORD} and positional.isdisjoint(names)


def _signature(
    method: Callable[..., Any] | None, *, is_bound: bool, is_wrapped: bool = False
) -> tuple[inspect.Parameter, ...] | None:
    """Return the parameters that a call can give; None: nothing says so."""
    if method is None:
        return None
    try:
        # What a subclass's method wraps may have other parameters than it has itself.
        found = inspect.signature(method, follow_wrapped=is_wrapped)
    except (TypeError, ValueError):
        return None
    return tuple(found.parameters.values())[0 if is_bound else 1 :]


def _positions(
    by_position: list[str], known: frozenset[str], own: tuple[inspect.Parameter, ...] | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the key of each position, and the names that a subclass has instead of known ones."""
    if own is None:
        return tuple(by_position), {}
    taken = {each.name for each in own} & known
    positions: list[str] = []
    renamed: dict[str, str] = {}
    for place, each in enumerate(each for each in own if each.kind in _BY_POSITION):
        key = each.name
        if key not in known and place < len(by_position) and by_position[place] not in taken:
            # A subclass may call a parameter otherwise; steps know it by the library's name.
            key = renamed[each.name] = by_position[place]
        positions.append(key)
    rest = by_position[len(positions) :]
    return (*positions, *(name for name in rest if name not in taken)), renamed


def rebuild(
    target: Callable[..., Any],
    positional: tuple[str, ...],
    keywords: Mapping[str, str] | None = None,
) -> Callable[[Arguments], Any]:
    """
    Return a function that calls *target* with a call's arguments as they were given.

    Args:
        target: The client's method.
        positional: Keys of the arguments that go by position, in order.
        keywords: Keys of those that go by another keyword than their key.
    """
    if keywords:
        return partial(_renamed, target, positional, keywords)
    return partial(_by_position, target, positional)


def _by_position(target: Callable[..., Any], positional: tuple[str, ...], given: Arguments) -> Any:
    # The caller's dictionary is asked again, by a retry or by the journal.
    left = given.copy()
    first = [*map(left.pop, positional)]  # before `left` is read
    return target(*first, **left)


def _renamed(
    target: Callable[..., Any],
    positional: tuple[str, ...],
    keywords: Mapping[str, str],
    given: Arguments,
) -> Any:
    left = given.copy()
    first = [left.pop(key) for key in positional]
    return target(*first, **{keywords.get(key, key): value for key, value in left.items()})


def method_by_key(
    client_types: tuple[type[Any], ...], client: object, name: str
) -> Callable[..., Any]:
    """
    Return the method *name* of *client* as a function of arguments by the table's names.

    For calls that are made again, when nobody knows any more how they were given.
    """
    target: Callable[..., Any] = getattr(client, name)
    kind = described_class(type(client), client_types)
    parameters = parameters_of(inspect.getattr_static(kind, name, None), target, is_bound=True)
    own = {key: given for given, key in parameters.renamed.items()}

    def called(**given: Any) -> Any:
        surplus = sorted((key for key in given if key.startswith("*")), key=len)
        # A gap ends what can go by position.
        first = () if parameters.by_name else takewhile(given.__contains__, parameters.positions)
        return rebuild(target, (*first, *surplus), own)(given)

    return called


def described_class(base: type, client_types: tuple[type[Any], ...]) -> type:
    """Return the class in *client_types* of which *base* is a subclass, or itself."""
    return next((each for each in client_types if issubclass(base, each)), base)
