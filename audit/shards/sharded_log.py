"""All shards as one log, for reading: what can be told over all of them together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Never

from ...telemetry.delivery.registry import SinkContext
from ...telemetry.event.event import VERDICT, Event
from ...telemetry.process.fork_lock import ForkLock
from ..database.errors import AuditError, UnknownSubjectError, reason_of
from ..log import AuditLog
from ..queries import reading
from ..sink.factory import open_log, spool_in, url_in
from ..sink.spool import spool_of_shard, spools_beside, waiting_files
from ..store.departed import UnsettledError, recorded_ranges
from ..store.person_lookup import CustomerQuery, OtherSpellings, Person
from ..store.shard_count import SHARDS, say_shards, shard_count
from ..store.snapshot import Snapshot
from .places import make_schema, shard_map, url_of
from .super_checkpoint import signed_shards
from .unnamed import unnamed_seqs


class ShardedLog(AuditLog):
    """
    The shards of one trail. It writes as the first of them does, which is there from the start.

    An answer is over all shards that there are, however many this process is configured with. A
    query of one moment of one log is refused: ask a shard.

    Args:
        arguments: As of `AuditLog`, like *options*.
        places: What the logs of the shards are made from.
        configured: How many shards this process writes.

    Attributes:
        configured: See above.
    """

    def __init__(
        self, *arguments: Any, places: SinkContext, configured: int, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.configured = configured
        self._context = places
        self._first = self.open_shard(0)
        self._shards: list[AuditLog] = [self._first]
        self._growing = ForkLock()
        self._shard_of = shard_map(self.ring.current, configured)

    def context_of(self, number: int) -> SinkContext:
        """Return the settings of one shard's log and sink."""
        places = {
            "audit_url": url_of(url_in(self._context), number),
            "audit_spool": spool_of_shard(spool_in(self._context), number),
        }
        return replace(self._context, settings={**self._context.settings, **places})

    def open_shard(self, number: int) -> AuditLog:
        """Return one shard's log, which says in the first that it is there before it writes."""
        prepare = partial(self._prepare, number) if number else None
        more = {"prepare": prepare, "trail": self, "unnamed": self._unnamed}
        return open_log(self.context_of(number), AuditLog, **more)

    def _unnamed(self, snapshot: Snapshot, *who: Sequence[str], written: bool) -> list[int]:
        with self.moments() as moments:
            others = [each for each in moments if each.origin != snapshot.origin]
            return unnamed_seqs(snapshot, others, *who, written=written)

    def _prepare(self, number: int) -> None:
        if self._count() < self.configured:
            say_shards(self._first.tables, SHARDS, {"shards": self.configured})
        make_schema(url_in(self._context), number)

    @property
    def shards(self) -> Sequence[AuditLog]:
        """All shards that there are by now."""
        count = max(self.configured, self._count())
        with self._growing:  # each shard's sink asks on threads of its own
            while len(self._shards) < count:
                self._shards.append(self.open_shard(len(self._shards)))
        return tuple(self._shards)

    def _count(self) -> int:
        with self._first.begun(as_it_is=True) as snapshot:
            return shard_count(snapshot)

    def recorded_beside(self, number: int, writer: str) -> list[tuple[int, int]]:
        """
        Return the numbers of a writer that other shards than *number* have.

        Raises:
            UnsettledError: More may be on their way to one of them.
        """
        found: list[tuple[int, int]] = []
        # First: what leaves a spool meanwhile is in a log. And by the files that there are: a shard
        # whose writers were killed at once has events that no log tells of.
        try:
            spools = spools_beside(spool_in(self._context))
            waiting = [each for each in spools if each != number and waiting_files(spools[each])]
        except OSError as exc:
            raise UnsettledError(f"the audit spools cannot be read: {reason_of(exc)}") from exc
        if waiting:
            raise UnsettledError(f"events wait in the spool of audit shard {waiting[0]}")
        for other, log in enumerate(self.shards):
            if other == number:
                continue
            try:
                with log.begun() as snapshot:
                    found += (
                        () if snapshot is None else recorded_ranges(snapshot.connection, writer)
                    )
            except AuditError as exc:
                raise UnsettledError(f"audit shard {other} cannot be read: {exc}") from exc
        return found

    def reading(self, *, as_it_is: bool = False) -> Never:
        """
        Refuse a query of one moment of one log.

        Raises:
            AuditError: Always.
        """
        del as_it_is
        raise AuditError(
            f"this trail has {len(self.shards)} shards, and this is asked of one at a time: name "
            "it with --shard N before the command, from 0 on, or take one of `AuditLog.shards`"
        )

    @property
    def subjects(self) -> Never:
        """Refuse the customers of one log: each shard has its own."""
        self.reading()

    def prune(self, *, at_once: bool = True) -> int:
        """See `AuditLog.prune`: of every shard."""
        return sum(each.prune(at_once=at_once) for each in self.there())

    def scrub(self) -> None:
        """See `AuditLog.scrub`: every shard."""
        for each in self.there():
            each.scrub()

    @contextmanager
    def moments(self) -> Generator[list[Snapshot]]:
        """See `AuditLog.moments`: one of each shard that has an event."""
        with ExitStack() as stack:
            yield [stack.enter_context(each.reading()) for each in self.there()]

    def there(self) -> Sequence[AuditLog]:
        """
        Return the shards that have an event; the first, if none has.

        Raises:
            AuditError: One that had, is missing.
        """
        shards = self.shards
        had = {0} if len(shards) > 1 else set[int]()
        with self._first.begun() as snapshot:
            had |= signed_shards(snapshot) if snapshot is not None else set()
        is_there = [each.tables.database.exists() for each in shards]
        if not any(is_there):
            return [self._first]  # which says so
        gone = [str(number) for number in sorted(had) if not is_there[number]]
        if gone:
            raise AuditError(
                f"audit shard {' and '.join(gone)} is missing, so that no answer is over all of "
                "them: restore it, or ask another one with --shard N before the command"
            )
        return [each for each, its in zip(shards, is_there, strict=True) if its]

    def append(self, events: Sequence[Event]) -> int:
        """See `AuditLog.append`: each event in its tenant's shard."""
        shards, numbers = self.shards, [self.shard_of(each) for each in events]
        return sum(
            shards[number].append(
                [e for e, its in zip(events, numbers, strict=True) if its == number]
            )
            for number in sorted(set(numbers))
        )

    def append_about(self, uid: str, about: Event, *others: Event) -> int:
        """See `AuditLog.append_about`: in the shard that knows them."""
        for shard in self.there():
            with shard.reading() as snapshot:
                is_here = bool(snapshot.aliases(uid))
            if is_here:
                return shard.append_about(uid, about, *others)
        raise AuditError("a customer who was erased is not written about")

    @property
    def verdicts(self) -> AuditLog:
        """See `AuditLog.verdicts`: the first shard, so that one decision of two is the first."""
        return self._first

    def shard_of(self, event: Event) -> int:
        """Return the shard of *event*: its tenant's, or with a verdict the first."""
        return 0 if event.operation == VERDICT else self._shard_of(event.tenant)

    def parts_of(self, person: Person) -> list[tuple[AuditLog, Person]]:
        """See `AuditLog.parts_of`; the first shard, where none knows them."""
        found: list[tuple[AuditLog, Person]] = []
        for shard in self.there():
            known: list[Person] = []
            for each in person.identities:
                query = CustomerQuery(
                    customer=each.customer,
                    tenant=each.tenant,
                    spellings=OtherSpellings.LEAVE_OUT,
                )
                with suppress(UnknownSubjectError):
                    known.append(shard.find(query))
            identities = tuple(each for its in known for each in its.identities)
            with shard.reading() as snapshot:
                has_unnamed = any(reading.found_of(snapshot, person.uids, person.tenants))
            if known or has_unnamed:
                theirs = replace(person, identities=identities or person.identities)
                found.append((shard, replace(theirs, is_logged=bool(known))))
        return found or [(self._first, person)]

    def close(self) -> None:
        """Close the databases of all shards."""
        super().close()
        for each in self._shards:
            each.close()


def sharded_log(context: SinkContext) -> ShardedLog:
    """Return the trail of so many shards as the settings name, or as there are. Opens nothing."""
    configured: int = context.settings["audit_shards"]
    return open_log(context, ShardedLog, places=context, configured=configured)
