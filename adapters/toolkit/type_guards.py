"""
Type guards for containers of which nothing more is known.

What `isinstance` asks is asked directly: a function of ours would cost each recall one for each of
its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeGuard, cast

is_dict = cast("Callable[[Any], TypeGuard[dict[Any, Any]]]", dict.__instancecheck__)
"""Tells whether a value is a dict."""

is_list = cast("Callable[[Any], TypeGuard[list[Any]]]", list.__instancecheck__)
"""Tells whether a value is a list."""


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether *value* is a sequence."""
    return isinstance(value, Sequence)


def is_set(value: Any) -> TypeGuard[AbstractSet[Any]]:
    """Tell whether *value* is a set."""
    return isinstance(value, AbstractSet)
