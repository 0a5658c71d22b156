"""Type guards for containers of which nothing more is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard


def is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Tell whether *value* is a dict."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether *value* is a list."""
    return isinstance(value, list)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether *value* is a sequence."""
    return isinstance(value, Sequence)
