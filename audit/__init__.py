"""
The audit trail: a sealed log of every operation on memory. The fifth sink, the one that lasts.

`log` writes and reads it, `bundle` exports it, `verification` checks it, `erasure` erases from it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .database.errors import AuditError, KeyMissingError
    from .log import AuditLog

__all__ = ["AuditError", "AuditLog", "KeyMissingError"]

_MODULES = {
    "AuditError": ".database.errors",
    "AuditLog": ".log",
    "KeyMissingError": ".database.errors",
}


def __getattr__(name: str) -> Any:
    """Import *name* when it is first used: most of them need cryptography."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
