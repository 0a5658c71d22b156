"""
A callable in the place of a foreign object's method, whose attributes are that method's.

`functools.wraps` copies attributes once: what is set on the method later, on either side, would be
lost on the other. A mock in that place is read and set through us as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_OWN: Final = frozenset(("__copy__", "__deepcopy__"))


class StandIn:
    """
    A callable that has the attributes of *made*, and is called as *call*.

    Args:
        made: What it is in the place of, as ``__wrapped__``.
        mark: Tells what it is there for: see `mark_of` and `is_marked`.
    """

    __slots__ = ("__weakref__", "_call", "_made", "_mark")

    def __init__(self, made: Callable[..., Any], call: Callable[..., Any], mark: object) -> None:
        for name, value in (("_made", made), ("_call", call), ("_mark", mark)):
            object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what is to be called instead."""
        return object.__getattribute__(self, "_call")(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        made = object.__getattribute__(self, "_made")
        return made if name == "__wrapped__" else getattr(made, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_made"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_made"), name)

    def __copy__(self) -> StandIn:
        return self  # as functions are

    def __deepcopy__(self, _memo: dict[int, Any]) -> StandIn:
        return self


def mark_of(made: object) -> object:
    """Return the mark of *made*, or None if it is no stand-in."""
    # Its own type, as it claims to be of the class of what it is in the place of.
    return object.__getattribute__(made, "_mark") if issubclass(type(made), StandIn) else None


def is_marked(made: object, mark: object) -> bool:
    """Return whether *made*, or anything that it wraps, is a stand-in with *mark*."""
    while made is not None:
        if mark_of(made) == mark:
            return True
        made = getattr(made, "__wrapped__", None)
    return False
