"""
The audit trail as a sink: the only one that may not lose.

While the database takes nothing, events wait in the spool, in order, on the disk; when it is back
they go before newer ones, each once. Events that were lost on the way here are a gap in their
writer's sequence, and are declared. This process says in the log that it began, how far it is and
that it ended, and what others of its machine left behind is declared for them. Of the processes
whose events a relay records, the relay's says so. The log is signed at intervals, also when no
event comes, so that silence means something.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...telemetry.delivery.drain import Drain
from ...telemetry.delivery.numbers import WriterNumbers
from ...telemetry.delivery.sink import LookAtWriters, UnacceptableError
from ...telemetry.event.event import Event
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ...telemetry.prometheus.live import Sample
from ..database.errors import AuditError, reason_of
from ..log import AuditLog
from ..record.sealing import UnplacedEvent, draft
from ..record.sequence_gaps import SequenceGap, WriterCounters
from ..record.spool_numbers import TAKEN, Range, merged
from ..store.checkpoints import Announce, nowhere
from ..store.departed import Departed, UnsettledError, declare_departed
from ..store.roll import Roll, roll_beside
from .announcer import Announcer
from .backoff import Backoff, SinkStats, backoff_after
from .deliveries import Deliveries
from .followed import FollowedWriters, Words
from .heartbeat import Heartbeat
from .metrics import figures, key_state_of
from .presence import Presence, keep_roll
from .spool import Spool, SpoolStats, is_full

CHECKPOINT_EVERY = 4_096
CHECKPOINT_EVERY_S = 60.0
_BEAT_S = 1.0
_LOOK_EVERY_S = 60.0
_DAY_S = 86_400.0

logger = logging.getLogger("mnemoscope.audit")


class AuditSink:
    """
    Writes every batch to an audit log, in one durable transaction, or to its spool.

    Args:
        spool: Keeps events while the database is unavailable. None: `write` raises then.
        mode: The durability that was asked for, as the setting has it: said in the log.
        checkpoint_every_s: Seconds between two signatures. 0: none.
        clock: Monotonic seconds.

    Attributes:
        elsewhere: Returns the numbers of a writer that other logs have. It raises `UnsettledError`
            where that cannot be told now.
        announce: Where checkpoints are sent to: the other sinks, once this is attached.
        key_made: Whether the secret was made by this process, and nobody has a copy yet.
        trail: What it is a part of, for reading: its log, unless there are several.
    """

    name = "audit"
    idempotent = True
    keeps_pseudonyms = True

    def __init__(
        self,
        log: AuditLog,
        spool: Spool | None = None,
        *,
        mode: str = "fail_open",
        checkpoint_every_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = self.trail = log
        self.spool = spool
        self.elsewhere: Callable[[str], Sequence[Range]] = _no_other_log
        self.announce: Announce = nowhere
        self.key_made = False
        self._mode = mode
        self._presence = Presence(WriterNumbers(), clock, mode=mode)
        self._every_s = checkpoint_every_s
        self._clock = clock
        self._guard = ForkLock()
        self._overflow = spool.another() if spool is not None else None
        self._overflow_guard = ForkLock()
        self._heartbeat = Heartbeat(self.beat, _BEAT_S)
        self._deliveries = Deliveries(clock=clock)
        self._look: LookAtWriters | None = None
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Start afresh in a child: backoff, gaps and counts are the parent's own."""
        self.stats = SinkStats()
        self._follow()
        self._gaps: list[SequenceGap] = []
        self._backoff: Backoff | None = None
        self._asked_at = self._clock()
        self._look_at = self._clock()
        self._spool_failed = False
        self._unsynced = False
        self._spilled: deque[tuple[str, list[Range]]] = deque()
        self._left: dict[Path, SpoolStats] = {}  # what was spilled, until its file is gone
        self._prune_at = self._clock()
        self._pruned = 0
        self._signed_at = self._clock()
        self._signed_size = 0
        self._deliveries.forked()

    # -- the sink ----------------------------------------------------------------------------------

    def attach(self, drain: Drain, /) -> None:
        """Follow the numbers of *drain*, sign for its other sinks, and note their deliveries."""
        self.announce = Announcer(drain)
        self._look_at_disk()
        spool, mode = self.spool, self._mode
        # Without a spool nothing of a process outlives it that somebody could declare for it.
        roll = Roll(roll_beside(spool.path), self.log.ring, mode) if spool is not None else None
        if roll is not None:
            keep_roll(drain.numbers, roll, mode)
        self._presence = Presence(drain.numbers, self._clock, mode=mode, roll=roll)
        # Parts of the trail are no recipients.
        others = (
            each for each in drain.deliveries() if each.sink.partition(".")[0] != AuditSink.name
        )
        self._deliveries = Deliveries(others, clock=self._clock)
        if spool is not None and roll is not None and (spool.has_left() or roll.standing().gone):
            # They take in what processes that are gone have left, although no event comes.
            self._heartbeat.start(at_once=True)

    def _look_at_disk(self) -> None:
        """Log at once what cannot be written here. A server is asked with the first event."""
        if self.log.path is not None:
            try:
                self.log.tables.database.check_writable()
            except AuditError as exc:
                return self._failed(exc)
        if self.spool is not None and (why := self.spool.refusal()):
            logger.warning("%s: events that cannot be recorded at once are lost", why)
        return None

    def leave(self) -> None:
        """Note in the roll that this process has ended: all that it did not record is kept."""
        self._presence.end(is_said=False)

    def follow_writers(self, look: LookAtWriters) -> None:
        """Record the events of other processes, from any of their numbers on, and their lives."""
        with self._guard:
            self._look = look
            self._follow()
        self._heartbeat.start()

    def _follow(self) -> None:
        look = self._look
        self._counters = WriterCounters(self._clock, from_any=look is not None)
        self._followed = FollowedWriters(look, self.log, self._clock) if look else None

    def end_writer(self, writer_id: str, counter: int, *, ended: bool) -> None:
        """
        Declare the end of a writer whose events were written here, and what is missing of them.

        Raises:
            AuditError: It was not declared.
        """
        with self._guard:
            # Not asked while the database is away, or the relay would wait for each of its writers.
            if not self._may_ask() and self._backoff is not None:
                raise self._backoff.error
            try:
                self._replay()
                self._look_for_left()
                there = self.elsewhere(writer_id)
                self._counters.forget(writer_id)
                # Its file has all that it counted: none of it was under way.
                mode = self._followed.mode(writer_id) if self._followed is not None else self._mode
                gone = Departed(writer_id, counter, counter, mode, ended, counter)
                lost = declare_departed(self.log.tables, gone, there)
            except UnsettledError:  # the database is there
                raise
            except AuditError as exc:
                self._failed(exc)
                raise
            self.stats.lost += lost
            if lost:
                logger.error("%d events of writer %s are lost", lost, writer_id)

    def note_deliveries(self) -> None:
        """Note in the log what the other sinks have acknowledged until now."""
        with self._guard:
            try:
                self._deliveries.note(self.log)
            except AuditError as exc:
                self._failed(exc)

    def write(self, batch: Sequence[Event], /) -> None:
        """
        Record *batch*: in the log, or in the spool until the log is back.

        Raises:
            AuditError: In neither.
            UnacceptableError: One of them is no event.
        """
        events = [event for event in batch if event.writer_seq]
        drafts = _drafted(events)
        if not drafts:
            return
        # Before the events: the roll is never behind the log.
        self._presence.note_counter()
        with self._guard:
            try:
                self._store(drafts, events)
            finally:  # whatever became of them, nobody waits for them any more
                self._presence.note_kept((each.writer_id, each.writer_seq) for each in drafts)
            if self._has_last(drafts):
                self._presence.tighten()
        # Else nothing is ever due without an event, and a thread would turn for nothing.
        if self.spool is not None or self._every_s:
            self._heartbeat.start()

    def _has_last(self, drafts: Sequence[UnplacedEvent]) -> bool:
        """Return whether this process has counted no event after these."""
        return max(each.writer_seq for each in drafts) == self._presence.counter

    @property
    def spills(self) -> bool:
        """Whether there is a spool."""
        return self._overflow is not None

    def spill(self, batch: Sequence[Event], /) -> None:
        """
        Keep *batch* in a file of the spool of its own, beside a `write` that takes long.

        Raises:
            AuditError: It is not kept.
            UnacceptableError: One of them is no event.
        """
        overflow, events = self._overflow, [event for event in batch if event.writer_seq]
        if overflow is None or not events:
            return
        with self._overflow_guard:
            overflow.append_events(events)
        self._spilled += _numbers_of(events)
        if self.stats.oldest_waiting_us is None:
            self.stats.oldest_waiting_us = events[0].started_ns // 1_000

    def flush(self, _timeout_s: float, /) -> bool:
        """Return whether everything is in the log; what is in the spool is safe, but not there."""
        if self.waiting:
            self._sync_overflow()
            self._hurry()
            self.beat()
        return not self.waiting

    def _sync_overflow(self) -> None:
        """Have what was spilled on the disk, or say so, once: the next beat tries again."""
        overflow = self._overflow
        if overflow is None:
            return
        why = ""
        try:
            with self._overflow_guard:
                sync = overflow.syncing()
            if sync is not None:
                sync()
        except OSError as exc:
            why = reason_of(exc)
        if why and not self._unsynced:
            logger.error("what the audit spool %s took may be on no disk: %s", overflow.path, why)
        self._unsynced = bool(why)

    def rest(self) -> None:
        """
        Say in the log, and sign, that this process has ended; its next event says otherwise.

        Not while an event that was counted has not come: it may be under way.
        """
        self._rest(is_over=False)

    def _rest(self, *, is_over: bool) -> None:
        with self._guard:
            if self._backoff is None and not self.waiting:
                try:
                    self._say_the_end(is_over=is_over)
                except AuditError as exc:
                    self._failed(exc)

    def close(self, timeout_s: float, /) -> None:
        """Declare lost events, sign and close. Events in the spool stay there."""
        self._rest(is_over=True)  # first: nobody knows how much time there will be for the others
        self._heartbeat.stop(timeout_s / 2)
        # What they take meanwhile is in the note that ends this process.
        self._deliveries.await_others(timeout_s / 4)
        with self._guard:
            try:
                if self._backoff is None:
                    self._say_the_end(is_over=True)
            except AuditError as exc:
                self._failed(exc)
            finally:
                self._presence.end(is_said=False)  # unless it was
                if self.spool is not None:
                    self.spool.close()
                    self._sync_overflow()
                    self._leave_overflow()
                self.log.close()

    def check(self, _timeout_s: float, /) -> str:
        """Return a line on the database and the spool, if the database can be used."""
        waiting = self.spool.stats() if self.spool is not None else None
        suffix = ""
        if self.spool is not None and waiting is not None and waiting.events:
            full_ratio = waiting.fullest_bytes / self.spool.max_bytes
            suffix = (
                f"; {waiting.events:,} wait in {waiting.size_bytes:,} bytes of spool, whose "
                f"fullest file is {full_ratio:.0%} full"
            )
        try:
            return self.log.check() + suffix
        except AuditError as exc:
            raise AuditError(f"{exc}{suffix}") from exc

    # -- what else there is to know ----------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Events of this process that wait in the spool."""
        if self.spool is None or self._overflow is None:
            return 0
        left = sum(each.events for each in tuple(self._left.values()))
        return self.spool.pending + self._overflow.pending + left

    @property
    def error(self) -> AuditError | None:
        """The error of the database while it is unavailable, else None."""
        return self._backoff.error if self._backoff is not None else None

    def samples(self) -> Iterator[Sample]:
        """Yield the trail's metrics."""
        files = [each for each in (self.spool, self._overflow) if each is not None]
        return figures(
            self.stats,
            now_us=self.log.now_us(),
            waiting=self.waiting,
            spool_bytes=sum(each.size_bytes for each in files)
            + sum(each.size_bytes for each in tuple(self._left.values())),
            spool_full=max((each.full_ratio for each in files), default=0.0),
            key_state=key_state_of(self.error, is_new=self.key_made),
        )

    def accepts(self) -> bool:
        """Return whether an event would be on a disk when it is written now. Does not wait."""
        if self._backoff is None:
            return True
        return self.spool is not None and not self._spool_failed and self.spool.accepts()

    def probe(self) -> None:
        """Find out whether the database is available, before the first event."""
        with self._guard:
            try:
                self.stats.size = self.log.record(())
                self._replay()
            except AuditError as exc:
                self._failed(exc)

    # -- from time to time -------------------------------------------------------------------------

    def beat(self) -> None:
        """Replay the spool, declare losses, sign and prune, as far as they are due."""
        self._presence.note_counter()
        # Outside of the guard, which a database that hangs may hold: the roll needs none.
        self._presence.note_quiet()
        self._sync_overflow()
        with self._guard:
            if not self._may_ask():
                return
            try:
                self._replay()
                self._say_who_is_idle()
                self._settle()
                self._deliveries.note_if_due(self.log)
                if self._every_s and self._clock() - self._signed_at >= self._every_s:
                    self._sign()
                self.log.tables.sign_end()
                self._prune()
            except AuditError as exc:
                self._failed(exc)

    # -- inside the guard --------------------------------------------------------------------------

    def _store(self, drafts: list[UnplacedEvent], events: list[Event]) -> None:
        if self._may_ask():
            try:
                self._replay()
                self._record(drafts)
                self._note_seen(drafts)  # first: what came with them is not missing
                self._settle()
                self._sign_if_many()
            except AuditError as exc:
                self._failed(exc)
            else:
                return
        backoff = self._backoff
        assert backoff is not None  # noqa: S101 - else it was stored
        if self.spool is None:
            raise backoff.error
        # True while it appends: one that hangs on its disk takes nothing either.
        self._spool_failed = True
        try:
            self.spool.append(events)
        except AuditError as exc:
            # That there is room again it finds out by itself, as soon as it is asked.
            self._spool_failed = not is_full(exc)
            raise
        self._spool_failed = False
        self._note_seen(drafts)
        self._note_waiting(events)

    def _note_seen(self, drafts: Sequence[UnplacedEvent]) -> None:
        for each in drafts:
            self._counters.saw(each.writer_id, each.writer_seq)

    def _may_ask(self) -> bool:
        backoff, now = self._backoff, self._clock()
        # Without a spool each batch asks: there is nowhere else that it could go.
        may = backoff is None or self.spool is None or now >= backoff.retry_at
        if may:
            self._asked_at = now
        return may

    def _hurry(self) -> None:
        with self._guard:
            backoff = self._backoff
            if backoff is not None:
                # Somebody waits for the answer, and still no database is asked without a pause.
                backoff.retry_at = min(backoff.retry_at, backoff.hurry_at)

    def _record(self, drafts: Sequence[UnplacedEvent]) -> None:
        if not drafts:
            return
        said = [(self._presence, self._presence.with_events())]
        if self._followed is not None:
            said += self._followed.with_events(dict.fromkeys(each.writer_id for each in drafts))
        self._say(said, drafts, is_quiet=self._has_last(drafts))
        self.stats.recorded += len(drafts)
        self.stats.newest_us = drafts[-1].header.occurred_us
        self._backoff = None

    def _replay(self) -> None:
        spool = self.spool
        if spool is None:
            return
        # Nothing waits, so nothing else would find out that the database is back.
        if self._backoff is not None and not spool.pending:
            self.stats.size = self.log.record(())
            self._backoff = None
        if spool.pending:
            replayed = spool.replay(self._record, self._gaps.append)
            self.stats.oldest_waiting_us = None
            logger.warning("%s is back: %d events that waited are in it", self.log.label, replayed)
        self._leave_overflow()
        # A folder is read for it, so that it is looked at once a minute and not with each batch.
        if self._left or self._clock() >= self._look_at:
            is_settled = self._adopt(spool)
            if not self._left:
                self.stats.oldest_waiting_us = None
            self._look_at = self._clock() + (_LOOK_EVERY_S if is_settled else _BEAT_S)

    def _leave_overflow(self) -> None:
        """Close the file of what was spilled: it is taken over as that of another process is."""
        overflow = self._overflow
        if overflow is None or (path := overflow.file_path) is None or not overflow.pending:
            return
        with self._overflow_guard:
            size_bytes = overflow.size_bytes
            self._left[path] = SpoolStats(overflow.pending, size_bytes, size_bytes)
            overflow.close()

    def _adopt(self, spool: Spool) -> bool:
        # First what they left, then what is missing: else a loss would be declared that is on the
        # disk.
        adopted = spool.adopt(self._record, self._gaps.append, self._taken)
        roll = self._presence.roll
        is_settled = roll is None or self._declare_departed(roll)
        # What this process spilled was never in danger, and comes round with every burst. A file
        # whose size somebody else looks at just now stays for the next beat.
        recorded = [path for path in self._left if not path.exists()]
        if (left := adopted - sum(self._left.pop(path).events for path in recorded)) > 0:
            logger.warning(
                "%d events that were left in a spool are in %s now",
                left,
                self.log.label,
            )
        return is_settled

    def _taken(self, name: str, numbers: list[Range]) -> None:
        """Note that records of an earlier release's spool with these numbers are in the log."""
        self.log.append_log_event(TAKEN, {"spool": name, "numbers": numbers})

    def _declare_departed(self, roll: Roll) -> bool:
        """Declare what is missing of processes that are gone; False: of some it cannot be told."""
        self._settle()  # what a spool that was taken over says is lost comes first
        for gone in roll.gone():
            try:
                self._look_for_left()
                there = self.elsewhere(gone.writer)
            except UnsettledError:  # its entry stays, for the next look
                return False
            lost = declare_departed(self.log.tables, gone, there)
            self.stats.lost += lost
            if lost:
                logger.error(
                    "%d events of a process that is gone are lost to the audit trail", lost
                )
        return True

    def _look_for_left(self) -> None:
        """
        Look whether a process that is gone may have left something that is not in the log yet.

        Raises:
            UnsettledError: It may.
        """
        try:
            has_others = self.spool is not None and self.spool.has_others(
                *([self._overflow] if self._overflow is not None else ())
            )
        except OSError as exc:
            raise UnsettledError(f"the audit spool cannot be read: {reason_of(exc)}") from exc
        # Locked by whoever takes it over, or left since this process looked: it was not yet gone.
        if has_others:
            self._look_at = self._clock()  # for them, before this is asked again
            raise UnsettledError("events of other processes wait in the spool")

    def _say(
        self, said: Sequence[Words], drafts: Sequence[UnplacedEvent] = (), *, is_quiet: bool = False
    ) -> None:
        """Record what is said of writers, and *drafts* with it."""
        now_us = self.log.now_us()
        about = [each for presence, what in said for each in presence.drafts(what, now_us)]
        # In one transaction: a log that says of a writer what it has not got would be a finding.
        self.stats.size = self.log.record([*about, *drafts], is_quiet=is_quiet)
        for presence, what in said:
            presence.said(what)

    def _say_who_is_idle(self) -> None:
        if self._backoff is not None:
            return
        said: list[Words] = self._followed.without_events() if self._followed is not None else []
        if own := self._presence.without_events():
            self._counters.expect(self._presence.writer_id, self._presence.counter)
            said.append((self._presence, own))
        if said:
            self._say(said)

    def _settle(self) -> None:
        self._gaps += self._ripe()
        while self._gaps:
            gap = self._gaps[0]
            self.log.append_log_event("audit.gap", gap.as_data())
            # One by one: what was declared before a failure is not declared again.
            del self._gaps[0]
            self.stats.lost += gap.events
            logger.error("%d events are lost to the audit trail (%s)", gap.events, gap.reason)

    def _ripe(self, *, at_once: bool = False) -> list[SequenceGap]:
        while self._spilled:
            writer, numbers = self._spilled.popleft()
            for first, last in numbers:
                self._counters.saw(writer, first, last)
                self.stats.spooled += last - first + 1
        return self._counters.ripe(at_once=at_once)

    def _sign_if_many(self) -> None:
        if self._every_s and self.stats.size - self._signed_size >= CHECKPOINT_EVERY:
            self._sign()

    def _sign(self) -> None:
        # A log without events has nothing to sign, and may have no database.
        if not (self._every_s and self.stats.size):
            return
        note, size = self.log.checkpoint(self.announce)
        self._signed_at, self._signed_size = self._clock(), size
        self.stats.size, self.stats.checkpoint_us = size, self.log.now_us()
        logger.info("audit checkpoint of %d events:\n%s", size, note)

    def _prune(self) -> None:
        """Remove what is too old, a part at each beat, once a day."""
        if self._every_s and self._clock() >= self._prune_at and self.stats.size:
            # A part at a time: events wait for this guard meanwhile.
            removed = 0
            try:
                removed = self.log.prune(at_once=False)
            except AuditError as exc:  # somebody reads a partition that goes: tried again tomorrow
                logger.warning("nothing is removed by age today: %s", exc)
            self._pruned += removed
            if not removed:
                self._prune_at = self._clock() + _DAY_S
                if self._pruned:
                    logger.info("%d events were older than they had to be kept", self._pruned)
                    self._scrub()
                self._pruned = 0

    def _scrub(self) -> None:
        try:
            self.log.scrub()
        except AuditError as exc:  # what was removed is gone for readers: nothing has to wait
            logger.warning("%s", exc)

    def _say_the_end(self, *, is_over: bool) -> None:
        """Say that this process has ended, as far as is known, or certainly if it *is_over*."""
        presence = self._presence
        counter = presence.tighten()
        if is_over:  # what has not come by now is lost
            self._counters.expect(presence.writer_id, counter)
            self._gaps += self._ripe(at_once=True)
        self._settle()
        self._deliveries.note(self.log)
        # Said only of a whole: with a number missing the end would look like a loss that was
        # hidden.
        if self._counters.have_all(presence.writer_id, counter):
            if said := presence.at_end(counter):
                self._say([(presence, said)])
            presence.end(is_said=True)
        if self.stats.size != self._signed_size:
            self._sign()

    # -- outages -----------------------------------------------------------------------------------

    def _failed(self, exc: AuditError) -> None:
        backoff = self._backoff
        self._backoff = backoff_after(exc, backoff, asked_at=self._asked_at, now=self._clock())
        # Once for each outage. Without a spool the error is raised, and its lane tells of it.
        if backoff is None and self.spool is not None:
            why = self.spool.refusal()
            then = (
                f"Events are lost: {why}" if why else f"Until then events wait in {self.spool.path}"
            )
            logger.error("%s. %s", exc, then)

    def _note_waiting(self, events: Sequence[Event]) -> None:
        self.stats.spooled += len(events)
        if self.stats.oldest_waiting_us is None:
            self.stats.oldest_waiting_us = events[0].started_ns // 1_000


def _no_other_log(_writer: str) -> Sequence[Range]:
    return ()


def _drafted(events: Sequence[Event]) -> list[UnplacedEvent]:
    try:
        return [*map(draft, events)]
    except (TypeError, ValueError, AttributeError) as exc:
        # Not the others' fault: the lane halves the batch until this one is alone.
        raise UnacceptableError(f"an event cannot be recorded ({type(exc).__name__})") from exc


def _numbers_of(events: Sequence[Event]) -> Iterator[tuple[str, list[Range]]]:
    numbers: defaultdict[str, list[Range]] = defaultdict(list)
    for event in events:
        numbers[event.writer_id].append((event.writer_seq, event.writer_seq))
    return ((writer, merged(found)) for writer, found in numbers.items())
