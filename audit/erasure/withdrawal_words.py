"""The reach of a memory, and what became of withdrawing it, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...memory.subject_data.records import RemovalOutcome
from ...telemetry.event.event import OperationClass
from ..bundle.sentences import counted

if TYPE_CHECKING:
    from ..queries.blast_radius import BlastRadius, ReachedMemory
    from .withdrawal import Withdrawal

_GONE = frozenset({RemovalOutcome.DELETED, RemovalOutcome.GONE})


def is_checkpoint(memory: ReachedMemory) -> bool:
    """Return whether *memory* is a thread's saved state, of which there are many."""
    return bool(memory.writes) and memory.writes[0].op_class is OperationClass.CHECKPOINT


def radius_lines(radius: BlastRadius) -> Iterator[str]:
    """Yield how far it goes, then what of it cannot be told, a sentence each."""
    saved = sum(map(is_checkpoint, radius.derived))
    seen = counted(len(radius.runs), "run", "runs")
    written = counted(len(radius.derived) - saved, "memory", "memories")
    checkpoints = counted(saved, "checkpoint", "checkpoints")
    # "After that", and not "because of it": what a model made of what it saw nobody knows.
    yield f"{seen} saw it, and wrote {written} and {checkpoints} after that."
    if radius.without_run:
        times = counted(len(radius.without_run), "recall", "recalls")
        yield f"{times} named no run: what followed from them cannot be told."
    if radius.erased:
        gone = counted(radius.erased, "operation", "operations")
        yield f"The details of {gone} since then are erased: they may have seen it."
    if radius.is_cut:
        read = counted(radius.operations, "operation", "operations")
        yield f"Cut after {read}: what was reached later is missing. Pass --most."


def withdrawal_line(done: Withdrawal) -> str:
    """Return what came of all of it."""
    proof = f"Recorded as event {done.seq:,} of the audit trail."
    if done.complete:
        return f"Withdrawn: none is left. {proof}"
    left = sum(each.outcome not in _GONE for each in done.memories)
    may_be = counted(left, "memory", "memories")
    return f"Not all withdrawn: {may_be} may still be there. {proof}"
