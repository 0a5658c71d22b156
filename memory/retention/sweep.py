"""
The sweeper: what is due in the stores of a scope, and its removal in batches.

A plan changes nothing. A run makes the plan anew, judges each batch once more before it goes, has
it deleted by the guarded client, so that each deletion is a sealed event, and looks afterwards
whether it is gone. It can be killed at any time: the next run finds what is left.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import MnemoscopeError
from ..subject_data.keeping import KeepsRecords, StoreKeeper
from ..subject_data.records import SubjectDataProvider
from ..subject_data.runner import SubjectDataRunner
from .holds import HeldRecords, HoldBook
from .judging import AgedRecord, RecordJudge
from .policy import RetentionPolicy
from .trail import RetentionTrail

REQUESTED = "retention.requested"
COMPLETED, INCOMPLETE = "retention.completed", "retention.incomplete"

InFiles: TypeAlias = Callable[[Sequence[str], Sequence[Path]], tuple[int, Sequence[str]]]

BATCH: Final = 100
"""Records that are judged once more and deleted together."""

MOST: Final = 100_000
"""Records that one run removes at most."""


class RetentionRefusedError(MnemoscopeError):
    """Nothing may be removed now. The message is a line that says why."""


class PlanGroup(NamedTuple):
    """What a plan tells together: store, kind, purpose, and why the records go or stay."""

    store: str
    kind: str
    purpose: str
    why: str


@dataclass(slots=True)
class GroupTotals:
    """
    How many records of a group there are, and how old.

    Attributes:
        oldest_us: When the oldest was written, microseconds since 1970 UTC; 0: none is known.
        newest_us: And the newest.
    """

    records: int = 0
    bytes: int = 0
    oldest_us: int = 0
    newest_us: int = 0

    def add(self, judged: AgedRecord) -> None:
        """Add a record."""
        self.records += 1
        self.bytes += judged.record.size_bytes or 0
        at_us = judged.written_us or judged.record.stated_us or 0
        self.oldest_us = min(self.oldest_us or at_us, at_us)
        self.newest_us = max(self.newest_us, at_us)


class DueRecord(NamedTuple):
    """A record that goes, with the name of its store in the scope."""

    store: str
    judged: AgedRecord


class SweptStore(NamedTuple):
    """
    A store that is swept.

    Attributes:
        name: In the scope.
        keeper: Lists and removes its records.
        client: The guarded one.
    """

    name: str
    provider: SubjectDataProvider
    keeper: StoreKeeper
    client: Any


@dataclass(slots=True)
class RetentionPlan:
    """
    What would go now, and what stays other than for being young.

    Attributes:
        due: The records that go, in the order of the stores; at most as many as a run removes.
        going: Their totals.
        staying: Those of what stays and why.
        young: Records that are not due yet, by store.
        remarks: What could not be looked at, a line each.
        holds: Holds in force.
        pins: Pins in force.
        now_us: The time of the trail, microseconds since 1970 UTC.
        swept: The stores that were looked through. A keeper knows what it was asked for.
    """

    due: list[DueRecord] = field(default_factory=list[DueRecord])
    going: defaultdict[PlanGroup, GroupTotals] = field(
        default_factory=lambda: defaultdict[PlanGroup, GroupTotals](GroupTotals)
    )
    staying: defaultdict[PlanGroup, GroupTotals] = field(
        default_factory=lambda: defaultdict[PlanGroup, GroupTotals](GroupTotals)
    )
    young: Counter[str] = field(default_factory=Counter[str])
    remarks: list[str] = field(default_factory=list[str])
    holds: int = 0
    pins: int = 0
    now_us: int = 0
    swept: list[SweptStore] = field(default_factory=list[SweptStore], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """
    The outcome of a run.

    Attributes:
        request: Its number, as in the trail.
        removed: Records that are gone, by store, kind, purpose and why.
        left: Records that were deleted and are there all the same, or could not be deleted.
        spared: Records that were due in the plan, and not any more as their turn came.
        overdue: Records that are due by a plan that was made anew afterwards.
        remarks: What is to be known, a line each.
        seq: Number of the event that says so.
    """

    request: str
    removed: Mapping[PlanGroup, int]
    left: int
    spared: int
    overdue: int
    remarks: tuple[str, ...]
    seq: int

    @property
    def complete(self) -> bool:
        """Whether all that was due is gone."""
        return not self.left and not self.overdue


class Sweeper:
    """
    Plans and removes. For one thread, in which no event loop runs.

    Args:
        policy: How long what is kept.
        trail: The audit trail.
        holds: What is held and pinned.
        stores: Return the providers by the name of their store in the scope, each with the guarded
            client, if it is still there.
        settle: Makes writes and events that wait arrive; returns what did not, a line each.
        waiting: Return where events wait that the trail does not have yet, a line each.
        in_files: Return how many ids stand in files, and the names of files that were not read.

    Attributes:
        tell: Called with the name of each step as it begins.
        settle: As given, as is `in_files`.
    """

    def __init__(
        self,
        policy: RetentionPolicy,
        trail: RetentionTrail,
        holds: HoldBook,
        *,
        stores: Callable[[], Mapping[str, tuple[SubjectDataProvider, Any]]],
        settle: Callable[[SubjectDataRunner], Sequence[str]],
        waiting: Callable[[], Sequence[str]],
        in_files: InFiles,
    ) -> None:
        self._policy, self._trail, self._holds = policy, trail, holds
        self._stores, self.settle, self._waiting = stores, settle, waiting
        self.in_files = in_files
        self.tell: Callable[[str], None] = lambda _step: None

    def plan(self, most: int = MOST) -> RetentionPlan:
        """
        Return what would go now.

        Raises:
            RetentionRefusedError: It cannot be told how old anything is.
            ConfigurationError: The holds cannot be read.
            Exception: Whatever the audit trail raises.
        """
        with SubjectDataRunner() as runner:
            self._check(runner)
            return self._planned(runner, most)

    def run(self, most: int = MOST) -> SweepResult:
        """Remove what is due, look whether it is gone, and return what came of it; as `plan`."""
        with SubjectDataRunner() as runner:
            self._check(runner)
            plan = self._planned(runner, most)
            request = secrets.token_hex(8)
            self._trail.note(
                REQUESTED,
                {
                    "request": request,
                    "policy": self._policy.digest,
                    "due": [[*group, each.records] for group, each in sorted(plan.going.items())],
                },
            )
            sweep = _Sweep(self, runner, plan)
            sweep.remove()
            remarks = [*plan.remarks, *self.settle(runner), *sweep.look()]
            self.tell("looking for what is left")
            again = self._planned(runner, most)
            data = {
                "request": request,
                "removed": [[*group, count] for group, count in sorted(sweep.removed.items())],
                "left": sweep.left,
                "spared": sweep.spared,
                "overdue": len(again.due),
            }
            is_complete = not sweep.left and not again.due
            seq = self._trail.note(COMPLETED if is_complete else INCOMPLETE, data)
            return SweepResult(
                request=request,
                removed=dict(sweep.removed),
                left=sweep.left,
                spared=sweep.spared,
                overdue=len(again.due),
                remarks=tuple(dict.fromkeys((*remarks, *sweep.remarks))),
                seq=seq,
            )

    def _check(self, runner: SubjectDataRunner) -> None:
        self.tell("settling what is under way")
        if lines := (*self.settle(runner), *self._waiting()):
            raise RetentionRefusedError(f"nothing may be judged yet: {lines[0]}")
        if not self._trail.is_sound():
            raise RetentionRefusedError(
                "the clock disagrees with the audit trail, or did so within a day: nothing is "
                "removed on the word of one clock. Run it again when the trail has lived on"
            )

    def judge(self) -> RecordJudge:
        """Return a judge, as of now."""
        return RecordJudge(
            self._policy, self._trail, HeldRecords(self._holds.active(), self._trail)
        )

    def _swept(self) -> Iterator[SweptStore]:
        """Yield the stores whose records can be listed and removed."""
        for name, (provider, client) in self._stores().items():
            if isinstance(provider, KeepsRecords) and client is not None:
                yield SweptStore(name, provider, provider.keeper(), client)

    def _planned(self, runner: SubjectDataRunner, most: int) -> RetentionPlan:
        holds = self._holds.active()
        plan = RetentionPlan(now_us=self._trail.now_us())
        plan.pins = sum(each.kind == "memory" for each in holds)
        plan.holds = len(holds) - plan.pins
        judge = self.judge()
        plan.swept += self._swept()
        for each in plan.swept:
            self.tell(f"looking through {each.name}")
            _add(plan, each, judge, runner, most)
        others = self._stores().keys() - {each.name for each in plan.swept}
        plan.remarks += [f"{each}: nothing of it can be listed, so all stays" for each in others]
        return plan


def _add(
    plan: RetentionPlan, swept: SweptStore, judge: RecordJudge, runner: SubjectDataRunner, most: int
) -> None:
    """Add the records of a store to *plan*."""
    name = swept.name
    found = {each.record.key: each for each in _judged(plan, swept, judge, runner)}
    for each in judge.too_many(list(found.values())):
        why = judge.held(swept.provider.store, each)
        found[each.record.key] = each._replace(due=None, stays=why) if why else each
    due = _without_parts([each for each in found.values() if each.due])
    spared = runner.run(swept.keeper.spared([each.record for each in due]))
    going = {each.record.key for each in due if each.record.key not in spared}
    # A thread that goes takes its states along: they are told with it.
    gone = {each.record.thread for each in due if each.record.kind == "thread"}
    for key, each in found.items():
        if key in going:
            _total(plan.going, name, each, each.due or "")
            if len(plan.due) < most:
                plan.due.append(DueRecord(name, each))
        elif (why := spared.get(key) or each.stays) is not None:
            _total(plan.staying, name, each, why)
        elif each.record.kind != "checkpoint" or each.record.thread not in gone:
            plan.young[name] += 1


def _judged(
    plan: RetentionPlan, swept: SweptStore, judge: RecordJudge, runner: SubjectDataRunner
) -> Iterator[AgedRecord]:
    after: Any | None = None
    while True:
        try:
            page = runner.run(swept.keeper.page(after))
        except Exception as exc:  # noqa: BLE001 - of whatever kind: what was not read stays
            said = f"listing it raised {type(exc).__name__}, and the rest stays"
            plan.remarks.append(f"{swept.name}: {said}")
            return
        plan.remarks += [f"{swept.name}: {line}, and stays" for line in page.unreadable]
        yield from judge.judge(swept.provider.store, page.records)
        after = page.after
        if after is None:
            return


def _without_parts(due: Sequence[AgedRecord]) -> list[AgedRecord]:
    """Return *due* without the states of threads that go as a whole."""
    whole = {each.record.thread for each in due if each.record.kind == "thread"}
    return [e for e in due if e.record.kind != "checkpoint" or e.record.thread not in whole]


def _total(
    totals: defaultdict[PlanGroup, GroupTotals], name: str, judged: AgedRecord, why: str
) -> None:
    totals[PlanGroup(name, judged.record.kind, judged.purpose, why)].add(judged)


class _Sweep:
    """The removal of what a plan has."""

    def __init__(self, sweeper: Sweeper, runner: SubjectDataRunner, plan: RetentionPlan) -> None:
        self.removed: Counter[PlanGroup] = Counter()
        self.left = self.spared = 0
        self.remarks: list[str] = []
        self._sweeper, self._runner, self._plan = sweeper, runner, plan
        self._deleted: defaultdict[str, list[AgedRecord]] = defaultdict(list)

    def remove(self) -> None:
        """Delete it, batch by batch."""
        due = defaultdict[str, list[AgedRecord]](list)
        for each in self._plan.due:
            due[each.store].append(each.judged)
        for swept in self._plan.swept:
            wanted = due.get(swept.name, [])
            for start in range(0, len(wanted), BATCH):
                self._sweeper.tell(f"{swept.name}: {start:,} of {len(wanted):,} removed")
                self._remove(swept, wanted[start : start + BATCH])

    def _remove(self, swept: SweptStore, batch: list[AgedRecord]) -> None:
        # Once more: since the plan something may have been written, or held.
        judge, store = self._sweeper.judge(), swept.provider.store
        again = judge.judge(store, [each.record for each in batch])
        pairs = zip(batch, again, strict=True)
        still = [before for before, now in pairs if judge.is_still_due(store, before, now)]
        self.spared += len(batch) - len(still)
        try:
            self._runner.run(swept.keeper.remove(swept.client, [each.record for each in still]))
        except Exception as exc:  # noqa: BLE001 - whatever a store raises: the next batch may go
            self.remarks.append(f"{swept.name}: deleting a batch raised {type(exc).__name__}")
        self._deleted[swept.name] += still
        # Sealed before the next one goes: what is queued ends with a process that is killed.
        self._sweeper.settle(self._runner)

    def look(self) -> list[str]:
        """Look for what was deleted, in stores, histories and files; return what is to be told."""
        remarks: list[str] = []
        for swept in self._plan.swept:
            if deleted := self._deleted.get(swept.name, []):
                self._sweeper.tell(f"looking whether it is gone from {swept.name}")
                remarks += [f"{swept.name}: {line}" for line in self._look(swept, deleted)]
        return remarks

    def _look(self, swept: SweptStore, deleted: Sequence[AgedRecord]) -> list[str]:
        run, keeper = self._runner.run, swept.keeper
        try:
            left = {each.key for each in run(keeper.left([each.record for each in deleted]))}
            remarks = list(run(keeper.clean()))
            gone = [each for each in deleted if each.record.key not in left]
            ids = [each.record.id for each in gone if each.record.thread is None]
            found, unread = self._sweeper.in_files(ids, run(swept.provider.files()))
            if found:
                remarks.append(f"{found:,} ids of what was removed are in its files still")
            remarks += [f"its file {each} could not be looked through" for each in unread]
        except Exception as exc:  # noqa: BLE001 - as above: what was not looked for may be there
            self.left += len(deleted)
            return [f"looking for what was removed raised {type(exc).__name__}"]
        self.left += len(left)
        for each in gone:
            group = PlanGroup(swept.name, each.record.kind, each.purpose, each.due or "")
            self.removed[group] += 1
        return remarks
