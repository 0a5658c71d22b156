"""Methods that a client has in place of those of the library's class."""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import Any


def has_own_methods(client: Any, base: type[Any]) -> bool:
    """Tell whether *client*, or a class of its between it and *base*, has methods of its own."""
    # At each call: a method may be replaced on the object at any time.
    below: list[type[Any]] = client.__class__.__mro__[: client.__class__.__mro__.index(base)]
    own: list[str] = [*client.__dict__]
    own += (name for each in below for name in vars(each) if not name.startswith("__"))
    return any(hasattr(base, name) for name in own)


class OwnMethods:
    """The methods of a library's class as it wrote them, in its file or that of its decorator."""

    def __init__(self, kind: type[Any], written_in: str = "\0") -> None:
        files = (str(getattr(import_module(kind.__module__), "__file__", "\0")), written_in)
        own = {name: each for name, each in vars(kind).items() if isfunction(each)}
        # Whoever replaced one before this was read has written it elsewhere.
        self._own = {
            name: each if each.__code__.co_filename.endswith(files) else None
            for name, each in own.items()
        }
        self._as_they_were = list(self._own.values())
        self._names = frozenset(name for name in dir(kind) if isfunction(getattr(kind, name)))
        self._kind = kind

    def has(self, client: Any, name: str) -> bool:
        """Tell whether *client* is of the class itself and its method *name* is the library's."""
        own = self._own.get(name)
        is_own = own is not None and own is vars(self._kind).get(name)
        return is_own and self._is_plain(client)

    def has_all(self, client: Any) -> bool:
        """Tell whether *client* is of the class itself and all its methods are the library's."""
        now = [*map(vars(self._kind).get, self._own)]
        return now == self._as_they_were and self._is_plain(client)

    def _is_plain(self, client: Any) -> bool:
        return client.__class__ is self._kind and self._names.isdisjoint(client.__dict__)
