"""The log's part of a bundle: one customer's events, and the evidence for them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from ...telemetry.event.subject import Subject
from ..database.database import blob, log_events, marks
from ..database.errors import SubjectConflictError
from ..log import AuditLog
from ..proof.merkle import Frontier
from ..proof.note import checkpoint_text
from ..queries import reading
from ..record.rows import StoredEvent
from ..record.sequence_gaps import UNDER_WAY
from ..record.writer_events import ENDED, is_durable
from ..sink.deliveries import DELIVERED
from ..store.person_lookup import Person, person_of
from ..store.snapshot import Snapshot
from ..store.tree import StoredHashes
from ..store.writer import signer_of
from ..waiting import what_waits
from .contract import (
    Anchor,
    BundleSubject,
    DeclaredLoss,
    Evidence,
    MatchedIdentifier,
    SealedEvent,
)
from .delivered import DeliveryRanges

GAP = "audit.gap"
_UNKNOWN_END = "at most: how a process ended is not known"
_PURPOSE = "export"
_MOST_ANCHORS = 5


class Source(NamedTuple):
    """
    One customer in the log, at one moment.

    Attributes:
        history: The customer's events, oldest first. Streams.
        expected: About how many there are.
    """

    subject: BundleSubject
    evidence: Evidence
    history: Iterator[SealedEvent]
    expected: int


@contextmanager
def source(log: AuditLog, customer: str | Person, tenant: str | None = None) -> Generator[Source]:
    """
    Return the events of a customer in *log*: of the person, or of the one whom an id names.

    Raises:
        AuditError: The log cannot be read, or was written with other keys.
        UnknownSubjectError: Nobody is known by the id.
        AmbiguousSubjectError: Several people are.
        SubjectConflictError: The id names two customers of one tenant.
    """
    with log.reading() as snapshot:
        # With another secret nobody would be found, which is not that nothing is held.
        snapshot.check_keys()
        person = person_of(snapshot, customer, tenant)
        for each in person.identities:
            # After a rotation that was not finished an id may be known under two keys, as two
            # subjects.
            uids = snapshot.uids(each.customer, each.tenant)
            if len(uids) > 1:
                raise SubjectConflictError(
                    f"{len(uids)} customers have that id, each under another key; nothing was "
                    "exported. If they are one person, merge them with AuditLog.subjects.merge"
                )
        uids = list(person.uids)
        found = reading.found_of(snapshot, uids, person.tenants, written=True)
        left_out = reading.n_of_documents(snapshot, uids, person.tenants)
        evidence = replace(evidence_of(snapshot, log), n_of_documents=left_out)
        expected = _count(snapshot, snapshot.family(uids))
        yield Source(_subject(log, person), evidence, map(_sealed, found), expected)


def _subject(log: AuditLog, person: Person) -> BundleSubject:
    first = person.identities[0]
    ref = Subject(first.customer, tenant=first.tenant, keys=log.ring.current).hashed(_PURPOSE)
    matched = (MatchedIdentifier(each.customer, each.tenant or None) for each in person.identities)
    return BundleSubject(ref, tuple(matched))


def _sealed(found: StoredEvent) -> SealedEvent:
    """Return what of an event can be proved."""
    return SealedEvent(found.seq, found.header, found.plaintext, found.salt)


def evidence_of(snapshot: Snapshot, log: AuditLog) -> Evidence:
    """
    Return the log as *snapshot* sees it, with a checkpoint of that moment.

    Raises:
        TamperedError: Its head is not as it was written: nothing of it is signed.
        KeyMissingError: It was written with other keys.
    """
    snapshot.check_head()
    found: Any = snapshot.execute("SELECT frontier FROM audit_log").fetchone()
    root = Frontier.from_bytes(snapshot.size, found[0] if found else b"").root()
    signer = signer_of(snapshot.origin, log.ring)
    # Of a shard the first one knows who received what; a writer's numbers are in all.
    with nullcontext([snapshot]) if log.trail is log else log.trail.moments() as moments:
        lost, deliveries = (
            tuple(losses(snapshot, moments)),
            DeliveryRanges(
                header["data"] for _seq, header in log_events(moments[0].connection, DELIVERED)
            ),
        )
    return Evidence(
        origin=snapshot.origin,
        verifier_key=signer.verifier_key,
        checkpoint=signer.sign(checkpoint_text(snapshot.origin, snapshot.size, root)),
        size=snapshot.size,
        root=root,
        hashes=StoredHashes(snapshot),
        sign=signer.sign,
        losses=lost,
        signed_us=log.now_us(),
        anchors=_anchors(snapshot),
        retention_days=log.retention_days,
        retention_reason=log.retention_reason,
        deliveries=deliveries,
        waiting=tuple(what_waits(log.trail)),
    )


def _anchors(snapshot: Snapshot) -> tuple[Anchor, ...]:
    found: list[Any] = snapshot.execute(
        "SELECT size, root, created_us, anchors FROM audit_checkpoint "
        "WHERE size <= ? ORDER BY size DESC, created_us DESC LIMIT ?",
        (snapshot.size, _MOST_ANCHORS),
    ).fetchall()
    return tuple(
        Anchor(int(size), blob(root), int(created_us), tuple(json.loads(sent_to or "[]")))
        for size, root, created_us, sent_to in found
    )


def losses(snapshot: Snapshot, moments: Sequence[Snapshot]) -> Iterator[DeclaredLoss]:
    """Yield what the log declares as lost, less what came after all, in whichever shard."""
    seen: set[Any] = set()
    for _seq, known in log_events(snapshot.connection, GAP):
        data = known["data"]
        # Its call had not returned when its process died: nobody was told that it was done.
        if data["reason"] == UNDER_WAY:
            continue
        gap = (data["writer"], data["from_wseq"], data["to_wseq"])
        # A declaration whose acknowledgement was lost is made again; events may come after they
        # were given up.
        n_events = 0 if gap in seen else gap[2] - gap[1] + 1 - _arrived(moments, gap)
        seen.add(gap)
        if n_events > 0:
            yield DeclaredLoss(*gap, n_events, data["reason"], known["recorded_at"])
    yield from _broken_off(snapshot, moments)


def _broken_off(snapshot: Snapshot, moments: Sequence[Snapshot]) -> Iterator[DeclaredLoss]:
    """Yield what writers that are gone may have counted after what is known for certain."""
    for _seq, known in log_events(snapshot.connection, ENDED):
        data = known["data"]
        later = (data["writer"], data["counter"] + 1, data["at_most"])
        n_events = later[2] - later[1] + 1 - _arrived(moments, later)
        # In the durable modes calls wait for the disk, so that what is missing was under way.
        if n_events > 0 and not is_durable(data["mode"]):
            yield DeclaredLoss(*later, n_events, _UNKNOWN_END, known["recorded_at"])


def _arrived(moments: Sequence[Snapshot], gap: tuple[str, int, int]) -> int:
    statement = (
        "SELECT count(*) FROM audit_event "
        "WHERE kind = 'operation' AND writer_id = ? AND writer_seq BETWEEN ? AND ?"
    )
    return sum(int(each.execute(statement, gap).fetchone()[0]) for each in moments)


def _count(snapshot: Snapshot, uids: list[str]) -> int:
    if not uids:
        return 0
    found: Any = snapshot.execute(
        f"SELECT count(*) FROM audit_detail WHERE subject_uid IN ({marks(len(uids))})",  # noqa: S608
        tuple(uids),
    ).fetchone()
    return int(found[0])
