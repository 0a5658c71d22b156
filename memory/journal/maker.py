"""The maker of the journal's step."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .writes import JournalledWrites

if TYPE_CHECKING:
    from ..guard.call import Call
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts
    from .journal import Journal, Queue
    from .step import JournalWrites

_NOT_KEPT = (
    "%s: it cannot be told which database this client writes to, so writes that it does not take "
    "are lost; name it: scope.guard(client, name=...)"
)

logger = logging.getLogger("mnemoscope")


class JournalSteps:
    """
    Makes the step that keeps the writes of a guard in the journal.

    Args:
        journal: The journal.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __call__(self, parts: GuardParts) -> Sequence[Step]:
        """Return the step of one guard."""
        from ..guard.steps.count_lost import CountLostWrites  # noqa: PLC0415 - as the guard is

        if not isinstance(parts.writes, JournalledWrites):
            return (CountLostWrites(),)
        if parts.database is None:
            logger.warning(_NOT_KEPT, parts.store)
            return (CountLostWrites(has_database=False),)
        queue = self._journal.queue(parts.database, parts.store)
        return (self._step(self._journal, queue, parts, parts.writes),)

    def _step(
        self, journal: Journal, queue: Queue, parts: GuardParts, writes: JournalledWrites
    ) -> JournalWrites:
        from .replay import Replay  # noqa: PLC0415 - they import sqlite3
        from .replayed_call import ReplayedCalls  # noqa: PLC0415 - they import sqlite3
        from .step import JournalWrites  # noqa: PLC0415 - they import sqlite3

        calls = ReplayedCalls(
            redactor=parts.redactor,
            limits=parts.limits,
            tracing=parts.tracing,
            faults=parts.faults,
            clock=parts.clock,
            wall_ns=parts.wall_ns,
            below=parts.below,
        )
        replay = Replay(
            journal=journal,
            queue=queue,
            writes=writes,
            calls=calls,
            deadline=parts.deadline,
            classify=parts.classify,
            report=parts.report,
            workers=parts.workers,
            faults=parts.faults,
            clock=parts.clock,
        )
        step = JournalWrites(
            parts.store,
            replay=replay,
            replayer=parts.replayer,
            report=parts.report,
            enforced_tenancy=parts.policy.enforce_tenancy,
            workers=parts.workers,
            faults=parts.faults,
            clock=parts.clock,
        )
        parts.deadline.on_late = _weakly(step)
        parts.redact.keeper = _Keeper(step)
        return step


def _weakly(step: JournalWrites) -> Callable[[Call], None]:
    """Return a callback for late calls that holds *step* weakly: it holds the deadline."""
    step_ref = weakref.ref(step)

    def on_late(call: Call) -> None:
        if (found := step_ref()) is not None:
            found.note_ended(call)

    return on_late


class _Keeper:
    """Keeps late writes in the journal; holds its step weakly, as above."""

    def __init__(self, step: JournalWrites) -> None:
        self._step = weakref.ref(step)

    def begin_late(self, call: Call) -> Call | None:
        """Return *call* as it may be kept later."""
        step = self._step()
        return None if step is None else step.begin_late(call)

    def end_late(self, late: Call, behind: Callable[[Call], None]) -> None:
        """Keep *late*, now redacted; the client may be gone, its database is not."""
        if (step := self._step()) is not None:
            step.end_late(late, behind)
