"""
The nine edits at rest of ``agent-memory-integrity`` against LangGraph's saver and what guards it.

    make bench-integrity-peers

In an environment of its own: the runner's adapters of SqliteSaver and langgraph-ledger as they are,
and one of langgraph-checkpoint-grafomem by its own quick start, a serializer that signs and its
saver. ``read``: what is found refuses the answer. ``audit``: a call that an operator makes finds
it, and the agent is given the edited state.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from agmi.adapters.langgraph_ledger import LangGraphLedgerAdapter
from agmi.adapters.langgraph_sqlite import LangGraphSqliteAdapter
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grafomem_checkpoint import GrafomemCheckpointSaver, GrafomemSerializer
from langgraph.checkpoint.sqlite import SqliteSaver


class SignedSqlite(LangGraphSqliteAdapter):
    """SqliteSaver behind langgraph-checkpoint-grafomem, whose key is in the process."""

    name = "langgraph-checkpoint-grafomem"

    def __init__(self) -> None:
        super().__init__()
        self._key = Ed25519PrivateKey.generate()
        self._connection: Any = None

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._db, check_same_thread=False)
        serializer = GrafomemSerializer(self._key)
        self._saver = GrafomemCheckpointSaver(SqliteSaver(self._connection, serde=serializer))

    def _close(self) -> None:
        self._connection.close()

    def setup(self) -> None:
        """Make an empty store."""
        super().setup()
        self._saver.conn.close()
        self._open()

    def reload(self) -> None:
        """Open it again, as a process that begins."""
        self._close()
        self._open()

    def teardown(self) -> None:
        """Remove it."""
        self._close()
        self._saver = None
        super().teardown()


def main() -> None:
    """Print what each finds."""
    for adapter in (LangGraphSqliteAdapter(), LangGraphLedgerAdapter(), SignedSqlite()):
        results = {each.name: each().run(adapter) for each in AT_REST_ATTACKS_WITH_SNAPSHOT}
        found = [name for name, result in results.items() if result.status == "safe"]
        failed = [name for name, result in results.items() if result.status == "ERROR"]
        at = getattr(adapter, "detection_point", "read")
        missed = [name for name in results if name not in {*found, *failed}]
        print(f"{adapter.name}: {len(found)} of {len(results)} found at {at}")  # noqa: T201
        print(f"  accepted: {', '.join(missed) or '-'}; failed: {', '.join(failed) or '-'}")  # noqa: T201


if __name__ == "__main__":
    main()
