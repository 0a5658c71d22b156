"""The objects that a scope is given in lists: budgets, rules, sinks and features."""

from __future__ import annotations

from typing import Any

from .errors import ConfigurationError

_NEEDED = {
    "rules": ("Rule", ()),
    "budgets": ("Budget", ("unit", "limit", "levels")),
    "only_sinks": ("Sink", ("name", "write", "flush", "close")),
    "extra_sinks": ("Sink", ("name", "write", "flush", "close")),
    "extra_features": ("FeatureFactory", ("__call__",)),
}
"""By argument: the name of the type, and what an object of it has."""


def checked_objects(argument: str, given: Any) -> tuple[Any, ...]:
    """
    Return *given* as a tuple.

    Raises:
        ConfigurationError: It is no list, or something in it is not of the type that it holds.
    """
    kind, needed = _NEEDED[argument]
    try:
        objects = tuple(given)
    except TypeError:
        raise ConfigurationError(
            f"{argument} is a {type(given).__name__}: expected a list of {kind} objects"
        ) from None
    for place, each in enumerate(objects, start=1):
        if isinstance(each, type) or not all(hasattr(each, name) for name in needed):
            named = "; names of sinks go into sinks=" if isinstance(each, str) else ""
            raise ConfigurationError(
                f"{argument}: number {place} is a {type(each).__name__}, expected a {kind} "
                f"object{named if kind == 'Sink' else ''}"
            )
    return objects
