"""
Queries on operations: a customer's history, their memories, latency and spend.

A history holds everything done in the customer's name, and what was done by id alone, without a
name, to a memory of theirs. A memory counts as theirs when every named operation on it was: an id
that several people share (a document, a key like ``profile``) brings nothing of the others.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from ...telemetry.event.event import OperationClass
from ...telemetry.text import recorded_name
from ..database.database import Value, marks
from ..record.lived_time import SKEW_US
from ..record.rows import AuditRow, StoredEvent, row_from
from ..store.customers import seqs_by_id_alone
from ..store.snapshot import SELECT, Snapshot, first_at, found_by_seqs, moment_of
from ..store.tree import SealedEvents
from .spending import Period, spending

By = Literal["feature", "node", "model"]


class StoreLatency(NamedTuple):
    """
    The latency of one store, over all its operations. Milliseconds, by nearest rank.

    Attributes:
        nested: Operations inside another one, whose caller waited for that one.
        statuses: Operations by how they ended.
    """

    store: str
    operations: int
    nested: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    total_s: float
    statuses: dict[str, int]


class Spend(NamedTuple):
    """Tokens and cost of one feature, node or model. `unpriced_tokens` are not in the cost."""

    name: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float
    unpriced_tokens: int


class Remembered(NamedTuple):
    """
    One memory of a customer, as the log knows it. Times in microseconds since 1970 UTC.

    Attributes:
        content: What was last written, redacted, as JSON text.
        reads: How often it was recalled.
        last_read_us: And when last.
        forgotten_us: When it was deleted, if nothing was written since.
    """

    store: str
    collection: str | None
    memory_id: str
    content: str | None
    written_us: tuple[int, ...]
    reads: int
    last_read_us: int | None
    forgotten_us: int | None


_OF_DETAILS = (
    "SELECT e.seq, e.header, e.leaf, d.subject_uid, d.salt, d.sealed "
    "FROM audit_detail d JOIN audit_event e ON e.seq = d.seq"
)
BY_SUBJECT = f"{_OF_DETAILS} WHERE d.subject_uid = ? ORDER BY d.occurred_us, d.seq"


def history_of(
    snapshot: Snapshot,
    subjects: Sequence[str],
    tenants: Iterable[str | None],
    *,
    written: bool = False,
    public: bool = False,
) -> Iterator[AuditRow]:
    """Yield everything recorded about *subjects*, oldest first; see `found_of`."""
    found = found_of(snapshot, subjects, tenants, written=written, public=public)
    return map(row_from, found)


def found_of(
    snapshot: Snapshot,
    subjects: Sequence[str],
    tenants: Iterable[str | None],
    *,
    written: bool = False,
    public: bool = False,
) -> Iterator[StoredEvent]:
    """
    Yield everything recorded about *subjects*, oldest first, as the tables hold it.

    Args:
        snapshot: The log.
        subjects: The subjects of a customer.
        tenants: Theirs.
        written: What names nobody counts only on memories that a write names the customer for: a
            document that was recalled for them is not about them for that.
        public: It counts even on what the user has said to be nobody's.

    Raises:
        TamperedError: Who is who is not as it was written, or one of the events is not.
    """
    snapshot.check_details()
    uids = snapshot.family(subjects)
    streams = [snapshot.found(BY_SUBJECT, (uid,)) for uid in uids]
    nobodies = _nobodies(snapshot, tenants)
    unnamed = seqs_by_id_alone(snapshot, uids, nobodies, written=written, public=public)
    if unnamed:
        streams.append(found_by_seqs(snapshot, unnamed))
    # Each stream is in order already, so that a history of any length is merged in bounded memory.
    found = streams[0] if len(streams) == 1 else heapq.merge(*streams, key=moment_of)
    return SealedEvents(snapshot).among(found)


def n_of_documents(
    snapshot: Snapshot, subjects: Sequence[str], tenants: Iterable[str | None]
) -> int:
    """Return how many events `found_of` leaves out for *written*."""
    uids, nobodies = snapshot.family(subjects), _nobodies(snapshot, tenants)
    every, theirs = (
        seqs_by_id_alone(snapshot, uids, nobodies, written=written) for written in (False, True)
    )
    return len(every) - len(theirs)


def _nobodies(snapshot: Snapshot, tenants: Iterable[str | None]) -> list[str]:
    return sorted({uid for tenant in tenants for uid in snapshot.nobodies(tenant)})


def rows(snapshot: Snapshot, *, with_changed: bool = False, **chosen: Any) -> Iterator[AuditRow]:
    """Yield the operations that fit all that is *chosen*, in order of recording; see `AuditLog`."""
    conditions, values = ["e.kind = 'operation'"], list[Value]()
    for name, value in chosen.items():
        if value is not None:
            # Names are those of the table, and values are bound: nothing of the caller's is in the
            # SQL.
            condition, wanted = _CONDITIONS[name](snapshot, value)
            conditions.append(condition)
            values += wanted
    where = " AND ".join(conditions)
    statement = f"{SELECT} WHERE {where} ORDER BY e.seq"
    return map(row_from, snapshot.found(statement, values, with_changed=with_changed))


Condition = Callable[[Snapshot, Any], tuple[str, list[Value]]]


def _since(snapshot: Snapshot, moment_us: int) -> tuple[str, list[Value]]:
    # There is no index of times: the number below which all is older is found by halves.
    return "e.occurred_us >= ? AND e.seq >= ?", [moment_us, first_at(snapshot, moment_us - SKEW_US)]


def _until(_snapshot: Snapshot, moment_us: int) -> tuple[str, list[Value]]:
    return "e.occurred_us < ?", [moment_us]


def _first_seq(_snapshot: Snapshot, seq: int) -> tuple[str, list[Value]]:
    return "e.seq >= ?", [seq]


def _run(snapshot: Snapshot, run: str) -> tuple[str, list[Value]]:
    hashed = snapshot.references.run
    # As the application has it, and as the trail wrote it where that differs: both are asked for.
    return "d.run_ref IN (?, ?)", [hashed(run), hashed(recorded_name(run))]


def _memory(snapshot: Snapshot, memory_id: str) -> tuple[str, list[Value]]:
    found = "e.seq IN (SELECT seq FROM audit_memory WHERE memory_ref IN (?, ?))"
    hashed = snapshot.references.memory
    return found, [hashed(memory_id), hashed(recorded_name(memory_id))]


def _subject(snapshot: Snapshot, uid: str) -> tuple[str, list[Value]]:
    uids = snapshot.family([uid])
    return f"d.subject_uid IN ({marks(len(uids))})", [*uids]


_CONDITIONS: dict[str, Condition] = {
    "since_us": _since,
    "until_us": _until,
    "first_seq": _first_seq,
    "run": _run,
    "memory_id": _memory,
    "subject_uid": _subject,
}


def memories(history_of: Iterator[AuditRow]) -> list[Remembered]:
    """Return the memories that a customer's history names, in order of their first mention."""
    known: dict[tuple[str, str | None, str], Remembered] = {}
    for row in history_of:
        for memory_id, _rank, _score in row.memories if row.status.is_normal else ():
            key = (row.store, row.collection, memory_id)
            before = known.get(key) or Remembered(*key, None, (), 0, None, None)
            known[key] = _after(before, row)
    return list(known.values())


def _after(memory: Remembered, row: AuditRow) -> Remembered:
    if row.op_class is OperationClass.REMEMBER:
        # Written again it is there again, whatever was deleted before.
        written = (*memory.written_us, row.occurred_us)
        return memory._replace(content=row.content, written_us=written, forgotten_us=None)
    if row.op_class is OperationClass.FORGET:
        return memory._replace(content=None, forgotten_us=row.occurred_us)
    return memory._replace(reads=memory.reads + 1, last_read_us=row.occurred_us)


_DURATIONS = """
    SELECT store, duration_us, status, nested FROM audit_event
    WHERE kind = 'operation' AND op_class <> 'model' AND (? = '' OR op_class = ?)
"""


def latency(snapshots: Iterable[Snapshot], op_class: OperationClass | None) -> list[StoreLatency]:
    """Return how long each store took, model calls left out: 8 bytes of memory an operation."""
    micros: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    statuses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    nested = Counter[str]()
    chosen = "" if op_class is None else op_class.value
    for store, duration_us, status, is_nested in chain.from_iterable(
        each.stream(_DURATIONS, (chosen, chosen)) for each in snapshots
    ):
        micros[store].append(duration_us)
        statuses[store][status] += 1
        nested[store] += is_nested
    return [
        _latency(store, sorted(micros[store]), nested[store], dict(sorted(statuses[store].items())))
        for store in sorted(micros)
    ]


def _latency(
    store: str, micros: Sequence[int], nested: int, statuses: dict[str, int]
) -> StoreLatency:
    count = len(micros)
    p50, p95 = (micros[max(0, -(-count * share // 100) - 1)] / 1e3 for share in (50, 95))
    most_ms, total_s = micros[-1] / 1e3, sum(micros) / 1e6
    return StoreLatency(store, count, nested, p50, p95, most_ms, total_s, statuses)


_EVER = Period(since_us=0, until_us=1 << 61)


def spend(snapshots: Sequence[Snapshot], by: By) -> list[Spend]:
    """Return tokens and cost, dearest first."""
    found = spending(snapshots[0], (by,), _EVER, *snapshots[1:]).lines
    return [
        Spend(
            name,
            used.calls,
            used.input_tokens,
            used.output_tokens,
            used.cached_tokens,
            used.reasoning_tokens,
            used.cost_usd,
            used.unpriced_tokens,
        )
        for ((name,), used) in ((each.names, each.now) for each in found)
    ]
