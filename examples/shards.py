"""
Spread an audit trail over four logs, and ask all of them as one.

Runs offline, on SQLite. With PostgreSQL the logs are schemas of one database.

Prints:
    12 events in 4 shards: True
    history of c-1: 3
"""

import tempfile
from pathlib import Path

from mnemoscope.memory import configure, context, observe, open_audit

folder = Path(tempfile.mkdtemp())
(folder / "key").write_text("5a" * 32)
(folder / "key").chmod(0o600)
settings = {
    "audit_url": f"sqlite:///{folder / 'audit.db'}",
    "audit_spool": folder / "audit.spool",
    "audit_pseudonym_key_file": folder / "key",
    "pii_model": "none",
}
scope = configure(sinks="audit", audit_shards=4, **settings)


@observe(store="crm", operation="search_memory", neutral=list)
def facts() -> list[str]:
    """Return what is known of somebody."""
    return ["prefers green tea"]


for tenant in ("acme", "globex", "initech", "umbrella"):
    for _ in range(3):
        with context(tenant=tenant, customer="c-1"):
            facts()
scope.close(timeout_s=10)

# Whoever reads finds all shards, however many its own settings name.
trail = open_audit(**settings)
print(f"{trail.count()} events in {len(trail.shards)} shards: {trail.count() == 12}")
print("history of c-1:", len([*trail.history("c-1", "acme")]))
trail.close()
