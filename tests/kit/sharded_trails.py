"""Audit trails of several shards, written as applications write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mnemoscope.audit import AuditLog
from mnemoscope.memory import Mnemoscope, context, load_settings, open_audit
from mnemoscope.memory.building.sinks import build_sinks
from mnemoscope.telemetry.event.subject import SubjectKeys

KEY = "5a" * 32
TENANTS = [f"tenant-{number}" for number in range(24)]


class ShardedTrail:
    """
    A trail in a folder, or in a database at a URL.

    Attributes:
        folder: Where the spool is, and SQLite's files.
        settings: What scopes and commands are configured with, but for the number of shards.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {
            "audit_url": url or f"sqlite:///{folder / 'audit.db'}",
            "audit_spool": folder / "audit.spool",
            "audit_pseudonym_key": KEY,
        }

    def scope(self, shards: int, **settings: Any) -> Mnemoscope:
        """Return a scope that writes so many shards."""
        given = self.settings | {"sinks": "audit", "audit_shards": shards} | settings
        return Mnemoscope(load_settings(**given))

    def sinks(self, shards: int) -> list[Any]:
        """Return the sinks that such a scope has, whose threads have not begun."""
        given = self.settings | {"sinks": "audit", "audit_shards": shards}
        return build_sinks(load_settings(**given), SubjectKeys(bytes.fromhex(KEY)))

    def log(self, shards: int = 1) -> AuditLog:
        """Return the trail for reading, by a process configured with so many shards."""
        return open_audit(**self.settings, audit_shards=shards)

    def write(self, shards: int, tenants: Iterable[str | None], *, customer: str = "ada") -> None:
        """Have a process recall something for each of *tenants*, and end in order."""
        scope = self.scope(shards)
        recall = recaller(scope)
        for tenant in tenants:
            with context(tenant=tenant, customer=customer):
                recall()
        scope.close(30)

    def environment(self, shards: int = 1) -> dict[str, str]:
        """Return the variables of a process that has this trail."""
        given = {f"MNEMOSCOPE_{name.upper()}": str(its) for name, its in self.settings.items()}
        return given | {"MNEMOSCOPE_AUDIT_SHARDS": str(shards)}


def recaller(scope: Mnemoscope) -> Callable[[], Any]:
    """Return a function that looks something up, which *scope* watches."""

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def recall() -> list[str]:
        return ["a fact"]

    return recall
