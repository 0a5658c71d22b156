"""The sinks of the shards: each the audit sink as it is, with a lane, spool and roll of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...telemetry.delivery.drain import Drain
from ...telemetry.delivery.registry import SinkContext
from ...telemetry.event.event import Event
from ..record.sealing import UnplacedEvent
from ..record.sequence_gaps import SequenceGap
from ..sink.deliveries import Deliveries
from ..sink.factory import sink_of
from ..sink.sink import AuditSink
from .sharded_log import ShardedLog, sharded_log
from .super_checkpoint import SuperSigner


class ShardSink(AuditSink):
    """
    The sink of one shard. It selects the events of its tenants.

    It counts the others as there, so that each shard finds its own losses in a writer's sequence.

    Args:
        number: Which shard it is, from 0.
        beside: With the first one, the sinks of the others.
        signer: Signs over all shards.
        options: As of `AuditSink`.
    """

    def __init__(
        self,
        *arguments: Any,
        number: int,
        trail: ShardedLog,
        signer: SuperSigner,
        beside: Sequence[ShardSink] = (),
        **options: Any,
    ) -> None:
        self._others: deque[list[Any]] = deque()
        super().__init__(*arguments, **options)
        self.name = f"{self.name}.{number}" if number else self.name
        self.trail = self._all = trail
        self.elsewhere = partial(trail.recorded_beside, number)
        self._number = number
        self._beside = beside
        self._signer = signer

    def forked(self) -> None:
        """Start afresh in a child: what the parent left to other shards is the parent's."""
        self._others = deque()
        super().forked()

    def selects(self, event: Event, /) -> bool:
        """Return whether *event* is of one of this shard's tenants."""
        if self._all.shard_of(event) == self._number:
            return True
        last = self._others[-1] if self._others else None
        if last is not None and last[0] == event.writer_id and last[2] + 1 == event.writer_seq:
            last[2] = event.writer_seq
        elif event.writer_seq:
            self._others.append([event.writer_id, event.writer_seq, event.writer_seq])
        return False

    def attach(self, drain: Drain, /) -> None:
        """See `AuditSink.attach`; what other sinks have acknowledged, the first shard notes."""
        super().attach(drain)
        if self._number:
            self._deliveries = Deliveries(clock=self._clock)
        else:
            self._signer.announce = self.announce

    def accepts(self) -> bool:
        """Return whether an event would be on a disk now, whichever shard it is of."""
        return super().accepts() and all(each.accepts() for each in self._beside)

    def probe(self) -> None:
        """Find out whether the database is available, before the first event."""
        super().probe()
        for each in self._beside:
            each.probe()

    def beat(self) -> None:
        """See `AuditSink.beat`; sign over all shards, if it is due."""
        super().beat()
        self._signer.sign_if_due()

    def close(self, timeout_s: float, /) -> None:
        """See `AuditSink.close`; the last of them signs over all shards."""
        super().close(timeout_s)
        self._signer.shard_closed(has_written=self.stats.recorded > 0)

    def _note_seen(self, drafts: Sequence[UnplacedEvent]) -> None:
        self._count_others()
        super()._note_seen(drafts)

    def _ripe(self, *, at_once: bool = False) -> list[SequenceGap]:
        self._count_others()
        return super()._ripe(at_once=at_once)

    def _count_others(self) -> None:
        while len(self._others) > 1:
            self._counters.saw(*self._others.popleft())
        for each in [*self._others]:
            self._counters.saw(*each)  # stays: more may be added to it just now


def build_shards(context: SinkContext) -> list[ShardSink]:
    """Build the sinks of as many shards as the settings name, the first shard's first."""
    trail = sharded_log(context)
    contexts = [trail.context_of(number) for number in range(trail.configured)]
    logs = [trail.open_shard(number) for number in range(trail.configured)]
    signer = SuperSigner(trail, logs)
    built: list[ShardSink] = []
    for number in reversed(range(trail.configured)):
        built.insert(
            0,
            sink_of(
                contexts[number],
                logs[number],
                ShardSink,
                number=number,
                trail=trail,
                signer=signer,
                beside=() if number else tuple(built),
            ),
        )
    return built
