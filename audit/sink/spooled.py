"""The events of a spool on their way into the log, whatever file they were in."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from ...telemetry.event.event import Event
from ...telemetry.queue.event_file import QUARANTINE
from ..database.errors import AuditError
from ..record.sealing import UnplacedEvent, draft
from ..record.sequence_gaps import DAMAGED, SequenceGap, joined

logger = logging.getLogger("mnemoscope.audit")

OTHER_KEY = (
    "the audit spool was written with another pseudonym key: name it in "
    "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"
)

_BATCH = 512

Record = Callable[[Sequence[UnplacedEvent]], object]
Declare = Callable[[SequenceGap], object]


def item_of(event: Event) -> UnplacedEvent | SequenceGap:
    """Return *event* as the log has it, or that it is lost."""
    try:
        return draft(event)
    except (TypeError, ValueError, AttributeError):
        # Its number is known all the same, so that the log can say what is missing.
        return _lost(event)


class HandOver:
    """
    What is read of files of a spool, on its way into the log: in batches, whatever file it was in.

    Args:
        record: Takes events. Those that it had already must do no harm.

    Attributes:
        events: How many were handed over, or wait for `end`.
    """

    def __init__(self, record: Record, declare: Declare) -> None:
        self.events = 0
        self._record = record
        self._declare = declare
        self._waiting: list[UnplacedEvent] = []
        self._gaps: list[SequenceGap] = []

    def take(self, items: Sequence[UnplacedEvent | SequenceGap]) -> None:
        """
        Hand over *items*, now or a little later.

        Raises:
            AuditError: The log does not take them.
        """
        self._gaps += [each for each in items if isinstance(each, SequenceGap)]
        drafts = [each for each in items if isinstance(each, UnplacedEvent)]
        self.events += len(drafts)
        self._waiting += drafts
        if len(self._waiting) >= _BATCH:
            self._record_waiting()

    def end(self) -> None:
        """Hand over the rest of the events. Raises as `take` does."""
        if self._waiting:
            self._record_waiting()

    def tell_losses(self) -> None:
        """Hand over the losses. Last: what is taken twice does no harm, what is declared does."""
        # Neighbours in one: a file that is damaged throughout is a line, and not thousands.
        for gap in joined(self._gaps):
            self._declare(gap)

    def _record_waiting(self) -> None:
        self._gaps += _refused(self._waiting, self._record)
        self._waiting = []


def _refused(drafts: Sequence[UnplacedEvent], record: Record) -> list[SequenceGap]:
    """Record *drafts*; return those that are lost since they cannot be, whatever the database."""
    try:
        record(drafts)
    except (AuditError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - a defect costs the event it is about, and no other
        if len(drafts) == 1:
            return [_lost(drafts[0])]
        # By halves: one event in a batch of 512 is found in nine attempts, not in 512.
        middle = len(drafts) // 2
        return [*_refused(drafts[:middle], record), *_refused(drafts[middle:], record)]
    return []


def put_aside(path: Path) -> None:
    """
    Have a file that could not be read in full out of the way, and log where it is.

    Raises:
        OSError: It stays where it is.
    """
    aside = path.with_name(f"{path.name}{QUARANTINE}{secrets.token_hex(4)}")
    # Within the folder, which needs no room on a disk that may be full.
    path.rename(aside)
    logger.error(
        "a part of the audit spool could not be read, and is put aside in %s now: `mnemoscope "
        "audit verify` tells which events are missing",
        aside,
    )


def _lost(each: Event | UnplacedEvent) -> SequenceGap:
    return SequenceGap(each.writer_id, each.writer_seq, each.writer_seq, DAMAGED)
