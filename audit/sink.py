"""
The audit trail as a sink: the only one that may not lose.

While the database takes nothing, events wait in the spool, in order, on the disk; when it is back
they go before newer ones, each once. What was lost on the way here left a hole in its writer's
counter, and is declared. From time to time the log is signed, also when nothing happens, so that
its silence means something.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

from ..telemetry.event import Event
from ..telemetry.fork import reset_after_fork
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.prometheus_live import Sample
from ..telemetry.sink import UnacceptableError
from .checkpoints import Announce, nowhere
from .errors import AuditError
from .figures import figures
from .gaps import Gap, Holes
from .log import AuditLog
from .outage import Outage, SinkStats, outage_after
from .pulse import Pulse
from .sealing import Draft, draft
from .spool import Spool

CHECKPOINT_EVERY = 4_096
CHECKPOINT_EVERY_S = 60.0
_BEAT_S = 1.0
_DAY_S = 86_400.0

logger = logging.getLogger("mnemoscope.audit")


class AuditSink:
    """
    Writes every batch to an audit log, in one durable transaction, or to its spool.

    Args:
        log: The log.
        spool: Where events wait. None: `write` raises where the log takes nothing.
        checkpoint_every_s: Seconds between two signatures. 0: none.
        clock: Monotonic seconds.

    Attributes:
        announce: Where checkpoints are sent to; set by whoever has other places.
        key_made: Whether the secret was made by this process, and nobody has a copy yet.
        stats: The books.
    """

    name = "audit"
    idempotent = True

    def __init__(
        self,
        log: AuditLog,
        spool: Spool | None = None,
        *,
        checkpoint_every_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.spool = spool
        self.announce: Announce = nowhere
        self.key_made = False
        self._every_s = checkpoint_every_s
        self._clock = clock
        self._guard = ForkGuard()
        self._pulse = Pulse(self.beat, _BEAT_S)
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a child: the parent's outage, holes and books are its own."""
        self.stats = SinkStats()
        self._holes = Holes(self._clock)
        self._gaps: list[Gap] = []
        self._outage: Outage | None = None
        self._asked_at = self._clock()
        self._adopted = False
        self._spool_failed = False
        self._prune_at = self._clock()
        self._pruned = 0
        self._signed_at = self._clock()
        self._signed_size = 0

    # -- the sink ----------------------------------------------------------------------------------

    def write(self, batch: Sequence[Event], /) -> None:
        """
        Record *batch*: in the log, or in the spool until the log is back.

        Raises:
            AuditError: In neither.
            UnacceptableError: One of them is no event.
        """
        drafts = _drafted(batch)
        if not drafts:
            return
        with self._guard:
            self._store(drafts)
            for each in drafts:
                self._holes.saw(each.writer_id, each.writer_seq)
        if self.spool is not None or self._every_s:
            self._pulse.start()

    def flush(self, _timeout_s: float, /) -> bool:
        """Return whether everything is in the log; what is in the spool is safe, but not there."""
        if self.waiting:
            self._hurry()
            self.beat()
        return not self.waiting

    def close(self, timeout_s: float, /) -> None:
        """Declare what is lost, sign, and let go. What is in the spool stays there."""
        self._pulse.stop(timeout_s / 2)
        with self._guard:
            try:
                self._end()
            except AuditError as exc:
                self._failed(exc)
            finally:
                if self.spool is not None:
                    self.spool.close()
                self.log.close()

    def check(self, _timeout_s: float, /) -> str:
        """Look at the database, and at what waits for it."""
        waiting = self.spool.stats() if self.spool is not None else None
        suffix = ""
        if waiting is not None and waiting.events:
            suffix = f"; {waiting.events:,} wait in {waiting.size_bytes:,} bytes of spool"
        try:
            return self.log.check() + suffix
        except AuditError as exc:
            raise AuditError(f"{exc}{suffix}") from exc

    # -- what else there is to know ----------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Events of this process that wait in the spool."""
        return self.spool.pending if self.spool is not None else 0

    @property
    def error(self) -> AuditError | None:
        """Why the database takes nothing, while it does not."""
        return self._outage.error if self._outage is not None else None

    def figures(self) -> Iterator[Sample]:
        """Yield what Prometheus is told of the trail."""
        return figures(self)

    def catch_up(self) -> bool:
        """Ask the database now, whatever was waited for, and return whether nothing waits."""
        with self._guard:
            if self._outage is not None:
                self._outage.retry_at = self._clock()
            try:
                self._replay()
            except AuditError as exc:
                self._failed(exc)
            return not self.waiting

    def accepts(self) -> bool:
        """Return whether an event would be on a disk when it is written now. Does not wait."""
        if self._outage is None:
            return True
        return self.spool is not None and not self._spool_failed and self.spool.accepts()

    def probe(self) -> None:
        """Find out whether the database takes anything, before there is anything to take."""
        with self._guard:
            try:
                self.stats.size = self.log.record(())
                self._replay()
            except AuditError as exc:
                self._failed(exc)

    # -- from time to time -------------------------------------------------------------------------

    def beat(self) -> None:
        """Do what is due: replay, declare losses, sign."""
        with self._guard:
            if not self._may_ask():
                return
            try:
                self._replay()
                self._settle()
                if self._every_s and self._clock() - self._signed_at >= self._every_s:
                    self._sign()
                self._prune()
            except AuditError as exc:
                self._failed(exc)

    # -- inside the guard --------------------------------------------------------------------------

    def _store(self, drafts: list[Draft]) -> None:
        if self._may_ask():
            try:
                self._replay()
                self._record(drafts)
                self._settle()
                self._sign_if_many()
            except AuditError as exc:
                self._failed(exc)
            else:
                return
        outage = self._outage
        assert outage is not None  # noqa: S101 - else it was stored
        if self.spool is None:
            raise outage.error
        self._spool_failed = True
        self.spool.append(drafts)
        self._spool_failed = False
        self._note_waiting(drafts)

    def _may_ask(self) -> bool:
        outage, now = self._outage, self._clock()
        may = outage is None or self.spool is None or now >= outage.retry_at
        if may:
            self._asked_at = now
        return may

    def _hurry(self) -> None:
        with self._guard:
            outage = self._outage
            if outage is not None:
                outage.retry_at = min(outage.retry_at, outage.hurry_at)

    def _record(self, drafts: Sequence[Draft]) -> None:
        if not drafts:
            return
        self.stats.size = self.log.record(drafts)
        self.stats.recorded += len(drafts)
        self.stats.newest_us = drafts[-1].header.occurred_us
        self._back()

    def _replay(self) -> None:
        spool = self.spool
        if spool is None:
            return
        if self._outage is not None and not spool.pending:
            self.stats.size = self.log.record(())
            self._back()
        if spool.pending:
            replayed = spool.replay(self._record, self._gaps.append)
            self.stats.oldest_waiting_us = None
            logger.warning("%s is back: %d events that waited are in it", self.log.label, replayed)
        if not self._adopted:
            self._adopt(spool)

    def _adopt(self, spool: Spool) -> None:
        adopted = spool.adopt(self._record, self._gaps.append)
        self._adopted = True
        if adopted:
            logger.warning(
                "%d events that an earlier process had to leave in its spool are in %s now",
                adopted,
                self.log.label,
            )

    def _settle(self, *, at_once: bool = False) -> None:
        self._gaps += self._holes.ripe(at_once=at_once)
        while self._gaps:
            gap = self._gaps[0]
            self.log.append_log_event("audit.gap", gap.as_data())
            del self._gaps[0]
            self.stats.lost += gap.events
            logger.error("%d events are lost to the audit trail (%s)", gap.events, gap.reason)

    def _sign_if_many(self) -> None:
        if self._every_s and self.stats.size - self._signed_size >= CHECKPOINT_EVERY:
            self._sign()

    def _sign(self) -> None:
        if not (self._every_s and self.stats.size):
            return
        note, size = self.log.checkpoint(self.announce)
        self._signed_at, self._signed_size = self._clock(), size
        self.stats.size, self.stats.checkpoint_us = size, self.log.now_us()
        logger.info("audit checkpoint of %d events:\n%s", size, note)

    def _prune(self) -> None:
        """Remove what is too old, a part at each beat, once a day."""
        if self._every_s and self._clock() >= self._prune_at and self.stats.size:
            removed = self.log.prune(at_once=False)
            self._pruned += removed
            if not removed:
                self._prune_at = self._clock() + _DAY_S
                if self._pruned:
                    self.log.scrub()
                    logger.info("%d events were older than they had to be kept", self._pruned)
                self._pruned = 0

    def _end(self) -> None:
        if self._outage is None:
            self._settle(at_once=True)
            self.announce = nowhere  # the other sinks are closing, too
            self._sign()
            return
        self._gaps += self._holes.ripe(at_once=True)
        if self.spool is not None and self._gaps:
            self.spool.append(self._gaps)

    # -- outages -----------------------------------------------------------------------------------

    def _failed(self, exc: AuditError) -> None:
        outage = self._outage
        self._outage = outage_after(exc, outage, asked_at=self._asked_at, now=self._clock())
        if outage is None and self.spool is not None:
            logger.error("%s. Until then events wait in %s", exc, self.spool.path)

    def _back(self) -> None:
        self._outage = None

    def _note_waiting(self, drafts: Sequence[Draft]) -> None:
        self.stats.spooled += len(drafts)
        if self.stats.oldest_waiting_us is None:
            self.stats.oldest_waiting_us = drafts[0].header.occurred_us


def _drafted(batch: Sequence[Event]) -> list[Draft]:
    try:
        return [draft(event) for event in batch if event.writer_seq]
    except (TypeError, ValueError, AttributeError) as exc:
        raise UnacceptableError(f"an event cannot be recorded ({type(exc).__name__})") from exc
