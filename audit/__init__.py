"""
The audit trail: a sealed log of every operation on memory. The fifth sink, the one that lasts.

`log` writes and reads it, `bundle` exports it, `verification` checks it, `erasure` erases from it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..telemetry.event.spelling import Identity
    from .database.errors import (
        AmbiguousSubjectError,
        AuditError,
        KeyMissingError,
        UnknownSubjectError,
        UnknownTenantError,
    )
    from .log import AuditLog
    from .store.person_lookup import OtherSpellings, Person
    from .witness import Witness, WitnessError, cosign

__all__ = [
    "AmbiguousSubjectError",
    "AuditError",
    "AuditLog",
    "Identity",
    "KeyMissingError",
    "OtherSpellings",
    "Person",
    "UnknownSubjectError",
    "UnknownTenantError",
    "Witness",
    "WitnessError",
    "cosign",
]

_MODULES = {
    "AmbiguousSubjectError": ".database.errors",
    "AuditError": ".database.errors",
    "AuditLog": ".log",
    "Identity": "..telemetry.event.spelling",
    "KeyMissingError": ".database.errors",
    "OtherSpellings": ".store.person_lookup",
    "Person": ".store.person_lookup",
    "UnknownSubjectError": ".database.errors",
    "UnknownTenantError": ".database.errors",
    **dict.fromkeys(("Witness", "WitnessError", "cosign"), ".witness"),
}


def __getattr__(name: str) -> Any:
    """Import *name* when it is first used: most of them need cryptography."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
