"""Methods that a client has in place of those of the library's class."""

from __future__ import annotations

import sys
from functools import lru_cache
from inspect import isfunction
from typing import Any, cast


def has_own_methods(client: Any, base: type[Any]) -> bool:
    """Tell whether *client*, or a class of its between it and *base*, has methods of its own."""
    # At each call: a method may be replaced on the object at any time.
    names: list[str] = list(client.__dict__)
    return _class_has(client.__class__, cast("Any", base)) or any(hasattr(base, n) for n in names)


@lru_cache(maxsize=64)
def _class_has(kind: Any, base: Any) -> bool:
    below: list[type[Any]] = kind.__mro__[: kind.__mro__.index(base)]
    own: set[str] = {name for each in below for name in vars(each) if not name.startswith("__")}
    return any(hasattr(base, name) for name in own)


class OwnMethods:
    """
    The methods of a library's class, as the library wrote them.

    Args:
        kind: The class.
        filenames: Ends of the names of files that a method may come from, beside that of *kind*.
    """

    def __init__(self, kind: type[Any], *filenames: str) -> None:
        written_in = (_file_of(kind), *filenames)
        members = ((name, vars(kind)[name]) for name in vars(kind))
        own = {name: each for name, each in members if isfunction(each)}
        # Whoever replaced one before this was read has written it elsewhere.
        self._own = {
            name: each
            for name, each in own.items()
            if each.__code__.co_filename.endswith(written_in)
        }
        self._as_they_were = list(self._own.values())
        self._is_whole = len(self._own) == len(own)
        self._names = frozenset(name for name in dir(kind) if isfunction(getattr(kind, name)))
        self._kind = kind

    def has(self, client: Any, name: str) -> bool:
        """Tell whether *client* is of the class itself and its method *name* is the library's."""
        own = self._own.get(name)
        return (
            own is not None
            and own is vars(self._kind).get(name)
            and client.__class__ is self._kind
            and self._names.isdisjoint(client.__dict__)
        )

    def has_all(self, client: Any) -> bool:
        """Tell whether *client* is of the class itself and all its methods are the library's."""
        return (
            self._is_whole
            and client.__class__ is self._kind
            and self._names.isdisjoint(client.__dict__)
            and [*map(vars(self._kind).get, self._own)] == self._as_they_were
        )


def _file_of(kind: type[Any]) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "\0")
