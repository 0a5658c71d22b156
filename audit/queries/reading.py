"""
Queries on operations: a customer's history, their memories, latency and spend.

A history holds everything done in the customer's name, and what was done by id alone, without a
name, to a memory of theirs. A memory counts as theirs when every named operation on it was: an id
that several people share (a document, a key like ``profile``) brings nothing of the others.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from ...telemetry.event.event import OperationClass
from ...telemetry.text import recorded_name
from ..database.database import Value, marks
from ..record.lived_time import SKEW_US
from ..record.rows import AuditRow, StoredEvent, row_from
from ..store.customers import seqs_by_id_alone
from ..store.snapshot import SELECT, Snapshot, first_at, found_by_seqs, moment_of
from ..store.tree import SealedEvents

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
    snapshot: Snapshot, subjects: Sequence[str], tenants: Iterable[str | None]
) -> Iterator[AuditRow]:
    """Yield everything recorded about *subjects*, customers of *tenants*, oldest first."""
    return map(row_from, found_of(snapshot, subjects, tenants))


def found_of(
    snapshot: Snapshot,
    subjects: Sequence[str],
    tenants: Iterable[str | None],
    *,
    written: bool = False,
) -> Iterator[StoredEvent]:
    """
    Yield what `history_of` does, as the tables hold it.

    With *written*, what names nobody counts only on memories that a write names the customer for: a
    document that was recalled for them is not about them for that.

    Raises:
        TamperedError: Who is who is not as it was written, or one of the events is not.
    """
    snapshot.check_details()
    uids = snapshot.family(subjects)
    streams = [snapshot.found(BY_SUBJECT, (uid,)) for uid in uids]
    unnamed = seqs_by_id_alone(snapshot, uids, _nobodies(snapshot, tenants), written=written)
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


_LATENCY = """
    WITH ranked AS (
      SELECT store, nested, duration_us,
        row_number() OVER (PARTITION BY store ORDER BY duration_us) AS place,
        count(*) OVER (PARTITION BY store) AS total
      FROM audit_event WHERE {chosen})
    SELECT store, count(*), sum(nested),
      min(CASE WHEN place * 100 >= total * 50 THEN duration_us END),
      min(CASE WHEN place * 100 >= total * 95 THEN duration_us END),
      max(duration_us), sum(duration_us)
    FROM ranked GROUP BY store ORDER BY store
"""
_STATUSES = """
    SELECT store, status, count(*) FROM audit_event WHERE {chosen}
    GROUP BY store, status ORDER BY store, status
"""


def latency(snapshots: Sequence[Snapshot], op_class: OperationClass | None) -> list[StoreLatency]:
    """Return how long each store took, model calls left out."""
    if len(snapshots) > 1:
        return _latency_over(snapshots, op_class)
    (snapshot,) = snapshots
    chosen, values = _of_class(op_class)
    statuses: dict[str, dict[str, int]] = {}
    counted: list[Any] = snapshot.execute(_STATUSES.format(chosen=chosen), values).fetchall()
    for store, status, count in counted:
        statuses.setdefault(store, {})[status] = count
    found: list[Any] = snapshot.execute(_LATENCY.format(chosen=chosen), values).fetchall()
    return [_latency(*each, statuses=statuses[each[0]]) for each in found]


def _of_class(op_class: OperationClass | None) -> tuple[str, list[Value]]:
    chosen = "kind = 'operation' AND op_class <> 'model'"
    return (chosen, []) if op_class is None else (f"{chosen} AND op_class = ?", [op_class.value])


def _latency(
    store: str, operations: int, nested: int, *micros: int, statuses: dict[str, int]
) -> StoreLatency:
    p50, p95, most, total = (int(each) for each in micros)
    return StoreLatency(
        store, operations, int(nested), p50 / 1e3, p95 / 1e3, most / 1e3, total / 1e6, statuses
    )


_DURATIONS = """
    SELECT store, duration_us, status, nested FROM audit_event WHERE {chosen}
    ORDER BY store, duration_us
"""


def _latency_over(
    snapshots: Iterable[Snapshot], op_class: OperationClass | None
) -> list[StoreLatency]:
    """Return what `latency` does, over several logs: percentiles of each cannot be added up."""
    chosen, values = _of_class(op_class)
    rows = heapq.merge(
        *(each.stream(_DURATIONS.format(chosen=chosen), values) for each in snapshots)
    )
    found: list[StoreLatency] = []
    for store, its in groupby(rows, key=itemgetter(0)):
        _stores, micros, statuses, nested = zip(*its, strict=True)
        count = len(micros)
        p50, p95 = (micros[max(0, -(-count * share // 100) - 1)] for share in (50, 95))
        counts = dict(sorted(Counter(statuses).items()))
        figures = (p50, p95, micros[-1], sum(micros))
        found.append(_latency(store, count, sum(nested), *figures, statuses=counts))
    return found


_SPEND = """
    SELECT {by} AS name, count(*), sum(u.input_tokens), sum(u.output_tokens), sum(u.cached_tokens),
      sum(u.reasoning_tokens), coalesce(sum(u.cost_usd), 0.0) AS cost,
      sum(CASE WHEN u.cost_usd IS NULL THEN u.input_tokens + u.output_tokens ELSE 0 END)
    FROM audit_usage u JOIN audit_event e ON e.seq = u.seq WHERE e.status <> 'rejected'
    GROUP BY {by} ORDER BY cost DESC, sum(u.input_tokens + u.output_tokens) DESC, name
"""
_SPEND_COLUMNS: dict[By, str] = {"feature": "e.feature", "node": "u.node", "model": "u.model"}


def spend(snapshots: Iterable[Snapshot], by: By) -> list[Spend]:
    """Return tokens and cost, dearest first."""
    statement, found = _SPEND.format(by=_SPEND_COLUMNS[by]), dict[str | None, Spend]()
    for snapshot in snapshots:
        for name, *its in snapshot.execute(statement).fetchall():
            before = found.get(name, Spend(name, 0, 0, 0, 0, 0, 0.0, 0))
            sums: list[Any] = [*map(sum, zip(before[1:], its, strict=True))]
            *tokens, cost, unpriced = sums
            found[name] = Spend._make((name, *map(int, tokens), float(cost), int(unpriced)))
    named = sorted(found.values(), key=lambda each: (each.name is not None, each.name or ""))
    # As the columns stand: input and output.
    return sorted(named, key=lambda each: (each.cost_usd, sum(each[2:4])), reverse=True)
