"""
Parts of a store that hold nobody's personal data, as its user says: help pages, prices, manuals.

Nothing else tells them from what is somebody's and does not say whose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from ...memory.api import Arguments, Method, Row
from ...memory.errors import ConfigurationError
from .type_guards import is_set

Public: TypeAlias = bool | AbstractSet[str]
"""True: all of it. Names: these collections, or namespaces whose first label is one of these."""

KnownPublic: TypeAlias = bool | frozenset[str]
"""The same, as `checked_public` returns it."""


def checked_public(given: Any, owner: tuple[str, Any]) -> KnownPublic:
    """
    Return what a user gave as ``public``.

    Args:
        given: It.
        owner: The option that says whose the rest is, and its value.

    Raises:
        ConfigurationError: It is neither True nor a set of names, or nothing is left for *owner*.
    """
    name, value = owner
    if given is True and value is not None:
        raise ConfigurationError(
            f"{name} and public=True: what is nobody's has no owner; name what is public instead, "
            "public={...}"
        )
    if isinstance(given, bool):
        return given
    if not is_set(given) or not all(isinstance(each, str) and each for each in given):
        raise ConfigurationError(
            "public: expected True or a set of names, none of them empty: write public={'help'}"
        )
    return frozenset(given)


def with_public(
    rows: Mapping[str, Row], public: KnownPublic, is_public: Callable[[Arguments], bool]
) -> dict[str, Row]:
    """
    Return *rows* for a store of which a part is public, or all.

    Args:
        rows: By method.
        public: What is public.
        is_public: Tells of a call's arguments whether all that it reads and writes is, where some
            is.
    """
    if public is True:
        return {name: _always(row) for name, row in rows.items()}
    if not public:
        return dict(rows)
    return {name: _sometimes(row, is_public) for name, row in rows.items()}


def _always(row: Row) -> Row:
    if isinstance(row, Method):
        return _public_method(row)
    return lambda given: _public_method(row(given))


def _sometimes(row: Row, is_public: Callable[[Arguments], bool]) -> Row:
    def chosen(given: Arguments) -> Method:
        method = row if isinstance(row, Method) else row(given)
        return _public_method(method) if is_public(given) else method

    return chosen


@lru_cache(maxsize=1_024)
def _public_method(method: Method) -> Method:
    """Return *method* where it touches nobody's data. The same each time: guards plan by it."""
    # Redaction stays: that a collection is public says nothing of what is written there.
    return replace(method, public=True, only=None, confine=None, needs_owner=False, whose=None)
