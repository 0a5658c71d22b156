"""The announcement of checkpoints to the other sinks, so that nobody rewrites the log unseen."""

from __future__ import annotations

import secrets
import time
import weakref
from collections.abc import Sequence

from ...telemetry.delivery.drain import Drain
from ...telemetry.event.event import AUDIT_CHECKPOINT, Event, OperationClass, Status
from ...telemetry.event.trace import TraceRef
from ..proof.note import parse_checkpoint


class Announcer:
    """
    An announcer of checkpoints to every sink but the audit trail.

    Args:
        drain: Of those sinks. Held weakly: it holds the audit sink, which holds this.
    """

    def __init__(self, drain: Drain) -> None:
        # The drain has the sink, and the sink this: a scope that is given up has to be collected.
        self._drain = weakref.ref(drain)

    def __call__(self, note: str) -> Sequence[str]:
        """Send *note*, and return the names of the sinks that have it."""
        drain = self._drain()
        if drain is None:
            return ()
        # Not to itself: the log would grow by each of its own signatures.
        return drain.emit_to_others(checkpoint_event(note, drain.writer_id), sender="audit")


def checkpoint_event(note: str, writer_id: str) -> Event:
    """Return an event that holds the claim of *note*: the log, its size, its root."""
    claim = parse_checkpoint(note)
    return Event(
        writer_id=writer_id,
        writer_seq=0,  # counted by nobody: it is about events, and none itself
        started_ns=time.time_ns(),
        duration_s=0.0,
        operation=AUDIT_CHECKPOINT,
        op_class=OperationClass.CHECKPOINT,
        store="audit",
        method="checkpoint",
        status=Status.OK,
        collection=claim.origin,
        hits=claim.size,
        memory_ids=(claim.root.hex(),),
        trace=TraceRef(secrets.randbits(127) + 1, secrets.randbits(63) + 1),
    )
