"""The recalls in an audit trail as cases, and customers by their number in the trail."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import orjson

from ...audit.database.errors import AmbiguousSubjectError, UnknownSubjectError
from ...memory.golden_recall import REPLAY, GoldenCase
from ...memory.guard.call import error_name
from ...memory.subject_data.keeping import KeepsRecords, StoreKeeper
from ...memory.subject_data.runner import SubjectDataRunner
from ...telemetry.event.kinds import OperationClass
from .exit_codes import say

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ...audit.record.rows import AuditRow
    from ...memory.scope import Mnemoscope

PURPOSE = "golden_recall"
"""Of the keys of case ids and reviews."""


def recorded_recalls(
    log: AuditLog, since_us: int, most: int
) -> tuple[list[GoldenCase], Counter[str]]:
    """
    Return the latest *most* recalls since then, oldest first, and the number of others by why.

    Calls inside of others and recalls that a replay made are left out without a word.

    Raises:
        AuditError: The trail cannot be read.
        TamperedError: An event was changed after it was sealed.
    """
    key = log.ring.current.key(PURPOSE)
    found: deque[AuditRow] = deque(maxlen=most)
    left_out: Counter[str] = Counter()
    spent: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    # One pass, and no more rows in memory than are wanted: a trail has millions.
    for row in log.rows(since_us=since_us):
        if row.usage is not None and row.usage.cost_usd is not None:
            spent[row.trace_id].append((row.occurred_us, row.usage.cost_usd))
        if row.op_class is OperationClass.RECALL and not row.nested and row.purpose != REPLAY:
            if (why := _unusable(row)) is None:
                found.append(row)
            else:
                left_out[why] += 1
    return [_case(row, key, spent[row.trace_id]) for row in found], left_out


def _unusable(row: AuditRow) -> str | None:
    if row.neutral or not row.status.is_normal:
        return "not answered by its store"
    if row.detail is None:
        return "its content was erased, or never kept"
    # Cheaper than to parse each content: of most rows no more is wanted than this.
    if row.content is None or '"query":"' not in row.content:
        return "no text of the query is on record"
    return None


def _case(row: AuditRow, key: bytes, spent: Sequence[tuple[int, float]]) -> GoldenCase:
    scores = tuple(each.score for each in row.memories if each.score is not None)
    # No event names its parent, but a recall's own model calls are in its trace and its time.
    inside = [
        cost for at, cost in spent if row.occurred_us <= at <= row.occurred_us + row.duration_us
    ]
    return GoldenCase(
        id=blake2b(row.event_id.encode(), key=key, digest_size=8).hexdigest(),
        store=row.store,
        method=row.method,
        content=orjson.loads(row.content or "{}"),
        found=tuple(each.memory_id for each in row.memories),
        scores=scores if len(scores) == len(row.memories) else (),
        collection=row.collection,
        tenant=row.tenant,
        # Where a call named nobody, the detail is under the number of the tenant's nobody.
        owner=row.subject_uid if orjson.loads(row.header)["n_subjects"] else None,
        latency_s=row.duration_us / 1e6,
        cost_usd=sum(inside) if inside else None,
    )


def customers_by_number(
    log: AuditLog, cases: Iterable[GoldenCase], ids: Iterable[str]
) -> dict[str, str]:
    """Return those of *ids* that a case is for, by their number in the trail."""
    wanted = {each.owner for each in cases if each.owner is not None}
    tenants = {each.tenant or "" for each in cases}
    known: dict[str, str] = {}
    for customer in ids:
        # A store may have millions, of whom a day's recalls are for a few.
        if not wanted - known.keys():
            break
        for tenant in tenants:
            try:
                person = log.person(customer, tenant)
            # Of several people no one is guessed: their recalls are left out, and counted.
            except (UnknownSubjectError, AmbiguousSubjectError):
                continue
            known |= dict.fromkeys(wanted.intersection(person.uids), customer)
    return known


def customers_in(scope: Mnemoscope) -> Iterator[str]:
    """Yield the customers that records of the scope's stores are of, as far as stores say so."""
    seen: set[str] = set()
    for name, provider in scope.subject_data.named().items():
        if not isinstance(provider, KeepsRecords):
            continue
        try:
            for owners in _owners(provider.keeper()):
                yield from sorted(owners - seen)
                seen |= owners
        except Exception as exc:  # noqa: BLE001 - of the store: its customers are said to be unknown
            say(f"{name}: its records could not be listed: {error_name(exc)}")


def _owners(keeper: StoreKeeper) -> Iterator[set[str]]:
    """Yield the owners of each page of records."""
    after = None
    with SubjectDataRunner() as runner:
        # Clients bound to a loop cannot be listed from here: --customers has to say who there is.
        while not keeper.is_loop_bound:
            page = runner.run(keeper.page(after))
            yield {each.owner for each in page.records if each.owner is not None}
            after = page.after
            if after is None:
                return
