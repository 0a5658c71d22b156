"""The maker of the journal's step."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts
    from ..guard.writes import JournalledWrites
    from .journal import Journal, Queue
    from .step import JournalWrites

_NOT_KEPT = (
    "%s: it cannot be told which database this client writes to, so writes that it does not take "
    "are lost; name it: scope.guard(client, name=...)"
)

logger = logging.getLogger("mnemoscope")


class JournalSteps:
    """Makes the step that keeps the writes of a guard in the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._steps: WeakSet[JournalWrites] = WeakSet()

    def __call__(self, parts: GuardParts) -> Sequence[Step]:
        """Return the step of one guard."""
        from ..guard.steps.count_lost import CountLostWrites  # noqa: PLC0415 - as the guard is

        if parts.writes is None:
            return (CountLostWrites(),)
        if parts.database is None:
            logger.warning(_NOT_KEPT, parts.store)
            # Replayed into another database a write would be somebody else's.
            return (CountLostWrites(has_database=False),)
        queue = self._journal.queue(parts.database, parts.store)
        step = self._step(queue, parts, parts.writes)
        self._steps.add(step)
        return (step,)

    def stores(self) -> set[str]:
        """Return the stores whose writes are kept."""
        return {each.replay.queue.store for each in list(self._steps)}

    def _step(self, queue: Queue, parts: GuardParts, writes: JournalledWrites) -> JournalWrites:
        from .codec import ArgumentCodec  # noqa: PLC0415 - as the guard is
        from .replay import Replay  # noqa: PLC0415 - they import sqlite3
        from .replayed_call import ReplayedCalls  # noqa: PLC0415 - they import sqlite3
        from .step import JournalWrites  # noqa: PLC0415 - they import sqlite3

        calls = ReplayedCalls(parts, ArgumentCodec(writes.models))
        replay = Replay(parts, journal=self._journal, queue=queue, writes=writes, calls=calls)
        step = JournalWrites(parts, replay)
        parts.deadline.observe_late(step.note_ended)
        parts.redact.keep_late(step)
        return step
