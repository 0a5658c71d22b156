"""
The runs of a period: what each recalled and wrote, its tokens and cost, and what rules decided.

A run is what the application called one: a thread, a session, a request. Its name is in the details
of its operations, so a run whose every detail was erased is not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...telemetry.event.event import VERDICT, OperationClass
from ..record.lived_time import SKEW_US
from ..record.rows import AuditRow
from ..store.snapshot import Snapshot, first_at
from . import reading
from .blast_radius import RunAddress, run_address
from .spending import Spent

SITE = "console"
"""The store of what the site seals about its sessions, which are no runs."""

_READS = frozenset({OperationClass.RECALL, OperationClass.RESUME})
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


@dataclass(slots=True, kw_only=True)
class RunTotals:
    """
    What the operations of one run add up to. Times in microseconds since 1970 UTC.

    Attributes:
        address: Its name and tenant, and the customer where several have a run of that name.
        agents: Names, in order of their first operation; `features` likewise.
        operations: Calls of stores and models; those inside another one are a part of that.
        recalled: Memories that its recalls found.
        written: Memories that it wrote.
        deleted: Operations that deleted.
        failed: Operations that a store did not answer as it should.
        spent: What its model calls used.
        verdicts: What rules decided, by outcome.
    """

    address: RunAddress
    first_us: int
    last_us: int
    agents: dict[str, None] = field(default_factory=dict[str, None])
    features: dict[str, None] = field(default_factory=dict[str, None])
    operations: int = 0
    recalled: int = 0
    written: int = 0
    deleted: int = 0
    failed: int = 0
    spent: Spent = field(default_factory=Spent)
    verdicts: Counter[str] = field(default_factory=Counter[str])

    def add(self, row: AuditRow) -> None:
        """Add an operation of the run."""
        self.first_us = min(self.first_us, row.occurred_us)
        self.last_us = max(self.last_us, row.occurred_us)
        self.agents |= dict.fromkeys(filter(None, (row.agent,)))
        self.features |= dict.fromkeys(filter(None, (row.feature,)))
        if row.operation == VERDICT:
            self.verdicts[verdict_of(row)["outcome"]] += 1
        # The store below another one is called by that one, whose event counts.
        elif not row.nested:
            self._add_work(row)

    def joined(self, other: RunTotals) -> RunTotals:
        """Return this run, with what another shard has of it."""
        first, later = sorted((self, other), key=lambda each: each.first_us)
        return RunTotals(
            address=self.address,
            first_us=first.first_us,
            last_us=max(first.last_us, later.last_us),
            agents=first.agents | later.agents,
            features=first.features | later.features,
            operations=first.operations + later.operations,
            recalled=first.recalled + later.recalled,
            written=first.written + later.written,
            deleted=first.deleted + later.deleted,
            failed=first.failed + later.failed,
            spent=first.spent + later.spent,
            verdicts=first.verdicts + later.verdicts,
        )

    def _add_work(self, row: AuditRow) -> None:
        self.operations += 1
        self.failed += not row.status.is_normal
        self.recalled += len(row.memories) * (row.op_class in _READS)
        self.written += len(row.memories) * (row.op_class in _WRITES)
        self.deleted += row.op_class is OperationClass.FORGET
        if row.usage is not None:
            self.spent += Spent.of_call(row.usage, row.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """
    The answer to a search for runs.

    Attributes:
        runs: The latest first.
        is_cut: Operations of the period before the latest ones were not read.
    """

    runs: tuple[RunTotals, ...]
    is_cut: bool


def verdict_of(row: AuditRow) -> dict[str, Any]:
    """Return what was sealed of a rule's verdict: its rule, outcome, reason and facts."""
    verdict: dict[str, Any] = orjson.loads(row.header)["verdict"]
    return verdict


def find_runs(
    snapshot: Snapshot,
    *,
    since_us: int,
    until_us: int,
    run: str | None,
    agent: str | None,
    feature: str | None,
    most: int,
) -> FoundRuns:
    """Return the runs with an operation in a period that fits everything given; see `AuditLog`."""
    snapshot.check_keys()
    # A name has an index. Without one every operation of the period is opened.
    first_seq = max(0, snapshot.size - most) if run is None else 0
    rows = reading.rows(
        snapshot, since_us=since_us, until_us=until_us, run=run, first_seq=first_seq or None
    )
    found = [
        each
        for each in _totals(rows)
        if agent in {None, *each.agents} and feature in {None, *each.features}
    ]
    return FoundRuns(
        runs=tuple(sorted(found, key=lambda each: each.last_us, reverse=True)),
        is_cut=bool(first_seq) and first_at(snapshot, since_us - SKEW_US) < first_seq,
    )


def merged_runs(found: Iterable[FoundRuns]) -> FoundRuns:
    """Return what several shards found as one: a run of a tenant that moved is in two."""
    answers, by_address = [*found], dict[RunAddress, RunTotals]()
    for each in (run for its in answers for run in its.runs):
        before = by_address.get(each.address)
        by_address[each.address] = each if before is None else before.joined(each)
    runs = sorted(by_address.values(), key=lambda each: each.last_us, reverse=True)
    return FoundRuns(runs=tuple(runs), is_cut=any(each.is_cut for each in answers))


def _totals(rows: Iterable[AuditRow]) -> Iterable[RunTotals]:
    found: dict[RunAddress, RunTotals] = {}
    for row in rows:
        address = None if row.store == SITE else run_address(row)
        if address is None:
            continue
        totals = found.get(address)
        if totals is None:
            at_us = row.occurred_us
            totals = found[address] = RunTotals(address=address, first_us=at_us, last_us=at_us)
        totals.add(row)
    return found.values()


def of_run(rows: Iterable[AuditRow], address: RunAddress) -> Iterator[AuditRow]:
    """Yield those of *rows* that are operations of the one run at *address*."""
    return (row for row in rows if run_address(row) == address)
