"""mem0's own database of changes and messages."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def history_of(memory: Any) -> Generator[Any]:
    """Lend mem0's connection to its history, under the lock that mem0's own writers hold."""
    with memory.db._lock:  # noqa: SLF001 - theirs take it, too
        yield memory.db.connection
