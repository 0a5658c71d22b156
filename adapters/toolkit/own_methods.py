"""Methods that a client has in place of those of the library's class."""

from __future__ import annotations

from functools import lru_cache
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
