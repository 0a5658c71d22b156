"""
The step that seals what a call wrote, and compares what it reads with what was written.

It stands next to the store, so that no other step sees an answer that was refused, and originals
are put in place of pseudonyms behind it. Sealing fails open; of what cannot be compared it is said
that it is unknown.

A caller waits for what has to be done while nobody can change a state: its canonical form is taken,
unless it is a copy of ours. Hashing is left to the first who needs the hashes, a sink or a read,
and so is comparing, where nothing is refused.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...telemetry.event.kinds import Journalled, OperationClass, Status
from ..errors import IntegrityError
from ..guard.call import EACH_ITEM, Call, Slot
from ..guard.script import adrive, drive
from ..guard.step import NOTHING, Faces
from ..guard.stored import ABSENT, Later, Memo, Place, Statements
from ..limits.policy import LONGEST_S
from .backlog import Backlog
from .judging import Found, Judge
from .parts import IntegrityFindings, Seal
from .records import RecordStatements
from .seals import GONE, THINNED, SealIndex

if TYPE_CHECKING:
    from ...telemetry.event.part import EventPart
    from ..guard.operation import Method
    from ..guard.steps.making import GuardParts

logger = logging.getLogger("mnemoscope")

WAITS_S: Final = (0.0, 0.05, 0.2, 0.75)
"""
Seconds before each look at what seems wrong.

Another thread may be between its store's answer and its seal, and another process's seal may be on
its way into the trail.
"""

_NOT_DONE: Final = frozenset({Status.DENIED, Status.REFUSED, Status.REJECTED})
_WRITES: Final = frozenset(
    {OperationClass.CHECKPOINT, OperationClass.REMEMBER, OperationClass.FORGET}
)
_FINDINGS: Slot[Counter[str] | None] = Slot("mnemoscope.integrity.findings", None)
_LATER: Slot[Counter[str] | None] = Slot("mnemoscope.integrity.later", None)
_ORDERS: Slot[dict[Place, float] | None] = Slot("mnemoscope.integrity.orders", None)

T = TypeVar("T")
Reading = Generator[Callable[[], None], None, Counter[str]]


class Comparison:
    """
    The sealing and comparing of the calls of one guard.

    Args:
        parts: Of the guard.
        seals: Of the scope.
        refuses: Codes of findings for which an answer is refused.
        tally: Counts findings, for the scope's health.
        comparisons: Of the scope: those that wait for whoever wants to know what was found.
        waits_s: Seconds before each look at what seems wrong.
    """

    def __init__(
        self,
        parts: GuardParts,
        seals: SealIndex,
        *,
        refuses: frozenset[str],
        tally: Counter[str],
        comparisons: Backlog,
        waits_s: Sequence[float] = WAITS_S,
    ) -> None:
        self._store, self._splits = parts.store, parts.splits
        self._workers, self._faults, self._clock = parts.workers, parts.faults, parts.clock
        self._wait_s = parts.limits[OperationClass.RECALL].deadline_s or LONGEST_S
        client = None if parts.writes is None else parts.writes.client
        fades = bool(getattr(client, "ttl_config", None))
        self._records = RecordStatements(parts.store, seals.number, fades=fades)
        self._seals = seals
        self._refuses = refuses
        self._tally = tally
        self._comparisons = comparisons
        self._waits_s = waits_s
        self._memo: Memo = {}
        self._has_said = False

    def faces(self, method: Method) -> Faces:
        """Return the faces of what writes or reads."""
        writes = method.op_class in _WRITES
        if writes and method.sift is None:
            says = (method.says, method.written, method.removed)
            return Faces(after=self._seal) if any(says) or self._splits else NOTHING
        if method.op_class is OperationClass.RESUME and method.says is not None:
            return Faces(self._open_items, self._compare, None, self._acompare)
        # A batch may write and read.
        return NOTHING if method.sift is None else Faces(None, self._compare, None, self._acompare)

    # -- writes ------------------------------------------------------------------------------------

    def _seal(self, call: Call) -> None:
        if call.covered or call.status in _NOT_DONE or call.reached_store_at is None:
            return
        try:
            for each in (() if self._splits is None else tuple(self._splits(call))) or (call,):
                if each.method.op_class in _WRITES:
                    self._seal_one(call, each)
        except Exception as exc:  # noqa: BLE001 - what is not sealed is unknown when it is read
            self._faults.note("integrity.seal", exc)

    def _seal_one(self, call: Call, of: Call) -> None:
        says = of.method.says
        said = (
            self._records.written(of) if says is None else says(of.result, of.arguments, self._memo)
        )
        # Of a write that failed, was late or waits elsewhere the store may have nothing.
        is_certain = call.error is None and not call.late and call.journal is Journalled.NO
        begun_us = call.started_ns // 1_000
        ended_us = begun_us + int((self._clock() - call.started) * 1e6)
        names: list[tuple[str, float]] = []
        note = partial(self._note, said, names, begun_us, ended_us, is_certain=is_certain)
        if isinstance(said, Later):
            self._seals.waiting.add(note, said.size_bytes)
        else:
            note()
            if not names:
                return
        call.additions += (partial(_once, [Seal(partial(_settled, self._seals.waiting, names))]),)

    def _note(
        self,
        said: Statements | Later,
        names: list[tuple[str, float]],
        begun_us: int,
        ended_us: int,
        *,
        is_certain: bool,
    ) -> None:
        """Keep what was written, and put it into *names*."""
        try:
            said = said.make() if isinstance(said, Later) else said
            written = [*self._written(said, is_certain=is_certain)]
            added = [*self._added(said, is_certain=is_certain)]
        except Exception as exc:  # noqa: BLE001 - what is not sealed is unknown when it is read
            self._faults.note("integrity.seal", exc)
            return
        new = [self._seals.name(each.place) for each in said.members if not each.names]
        self._seals.note(written, begun_us, ended_us, whole=[*(name for name, _ in written), *new])
        self._seals.note(added, begun_us, ended_us)
        names += (*written, *added)

    def _written(self, said: Statements, *, is_certain: bool) -> Iterable[tuple[str, float]]:
        seals = self._seals
        for value in said.values:
            name = seals.name(value.place)
            if value.value is ABSENT:
                yield name, GONE if is_certain else THINNED
                continue
            for each in (value.value, *value.others):
                number = seals.number(value.place, each)
                yield name, number if is_certain else -number

    def _added(self, said: Statements, *, is_certain: bool) -> Iterable[tuple[str, float]]:
        seals = self._seals
        for members in said.members:
            name = seals.name(members.place)
            for each in members.names:
                number = seals.number(members.numbered_at, each)
                yield name, number if is_certain else -number
        for newest in said.newest:
            yield seals.name(newest.place), newest.order if is_certain else -newest.order
        for place in said.cleared:
            yield seals.name(place), GONE if is_certain else THINNED
        for place in said.thinned:
            yield seals.name(place), THINNED

    # -- reads -------------------------------------------------------------------------------------

    def _open_items(self, call: Call) -> None:
        """Have items of an iterator compared as they are pulled, before whoever else sees them."""
        outer = EACH_ITEM.of(call)
        _ORDERS.put(call, {})

        def compared(call: Call, item: Any) -> Any:
            if (reading := self._reading(call, item)) is not None:
                self._take(call, drive(reading, self._do), refuses=True)
            return item if outer is None else outer[0](call, item)

        async def acompared(call: Call, item: Any) -> Any:
            if (reading := self._reading(call, item)) is not None:
                self._take(call, await adrive(reading, self._ado), refuses=True)
            return item if outer is None else await outer[1](call, item)

        EACH_ITEM.put(call, (compared, acompared))

    def _compare(self, call: Call) -> None:
        self._seal(call)
        if self._is_answered(call) and (reading := self._reading(call, call.result)) is not None:
            self._take(call, drive(reading, self._do))
        self._conclude(call)

    async def _acompare(self, call: Call) -> None:
        self._seal(call)
        if self._is_answered(call) and (reading := self._reading(call, call.result)) is not None:
            self._take(call, await adrive(reading, self._ado))
        self._conclude(call)

    def _is_answered(self, call: Call) -> bool:
        # The result of an iterator is the number of its items, which were compared one by one.
        return call.error is None and not call.neutral and not isinstance(call.result, int)

    def _reading(self, call: Call, item: Any) -> Reading | None:
        """Return what finds out what is wrong with an answer, or an item. None: it is left."""
        if call.covered:
            return None
        says = call.method.says
        try:
            said = (
                self._records.read(call) if says is None else says(item, call.arguments, self._memo)
            )
        except Exception as exc:  # noqa: BLE001 - it is unknown then, and said
            self._faults.note("integrity.read", exc)
            return _unknown()
        judging = self._judgement(said, call.started_ns // 1_000, _ORDERS.of(call))
        if self._refuses or not isinstance(said, Later):
            return judging
        found = _LATER.of(call)
        if found is None:
            _LATER.put(call, found := Counter())
            part = IntegrityFindings(partial(_settled, self._comparisons, found))
            call.additions += (partial(_once, [part]),)
        self._comparisons.add(partial(self._judge_later, judging, found), said.size_bytes)
        return None

    def _judge_later(self, judging: Reading, found: Counter[str]) -> None:
        new = drive(judging, self._do)
        found.update(new)
        self._say(new)

    def _judgement(
        self, said: Statements | Later, at_us: int, orders: dict[Place, float] | None
    ) -> Reading:
        """Return what is wrong, looked up in the trail, and again while it may be on its way."""
        judge = Judge(self._seals, at_us, orders)
        try:
            self._seals.waiting.settle()
            said = said.make() if isinstance(said, Later) else said
            names = judge.names(said)
            if outdated := self._seals.outdated(names):
                yield partial(self._seals.look_up, outdated)
            if outdated := self._seals.outdated(judge.further_names(said)):
                yield partial(self._seals.look_up, outdated)
            found = judge.judge(said)
            for wait_s in self._waits_s:
                if not set(found) - {Found.UNKNOWN}:
                    break
                yield partial(self._look_again, judge, said, wait_s)
                found = judge.judge(said)
            judge.passed(said)
        except Exception as exc:  # noqa: BLE001 - it is unknown then, and said
            self._faults.note("integrity.compare", exc)
            return Counter([Found.UNKNOWN.value])
        return found

    def _look_again(self, judge: Judge, said: Statements, wait_s: float) -> None:
        time.sleep(wait_s)
        self._seals.waiting.settle()
        self._seals.look_up(judge.names(said))
        self._seals.look_up(judge.further_names(said))

    def _do(self, work: Callable[[], None]) -> None:
        self._workers.run(work, self._wait_s, _ignore)

    async def _ado(self, work: Callable[[], None]) -> None:
        await self._workers.acall(work, self._wait_s, _ignore)

    # -- what comes of it --------------------------------------------------------------------------

    def _take(self, call: Call, found: Counter[str], *, refuses: bool = False) -> None:
        """Keep what is wrong with an answer, or with an item, which is refused at once."""
        if not found:
            return
        findings = _FINDINGS.of(call) or Counter()
        findings.update(found)
        _FINDINGS.put(call, findings)
        if refuses and self._refused(found):
            raise IntegrityError(self._store, tuple(sorted(found)))

    def _refused(self, found: Iterable[str]) -> bool:
        return not self._refuses.isdisjoint(found)

    def _conclude(self, call: Call) -> None:
        """Say what was wrong with the answer, in its event, and refuse it where that is wanted."""
        findings = _FINDINGS.of(call)
        if not findings:
            return
        self._say(findings)
        call.additions += (partial(_once, [IntegrityFindings(findings.copy)]),)
        if isinstance(call.error, IntegrityError):
            call.status = Status.DENIED
        elif call.error is None and self._refused(findings):
            call.result, call.status = None, Status.DENIED
            call.error = IntegrityError(self._store, tuple(sorted(findings)))

    def _say(self, findings: Counter[str]) -> None:
        self._tally.update(findings)
        if findings and not self._has_said:
            self._has_said = True
            logger.warning(_MESSAGE, self._store, ", ".join(sorted(findings)))


_MESSAGE = (
    "integrity: an answer of %s is not as it was written, or cannot be compared: %s. It is said "
    "here once: events and metrics have the others"
)


def _once(parts: list[EventPart], _store: str, _call: Call) -> EventPart | None:
    """Return a part for the first of the events that a call has."""
    return parts.pop() if parts else None


def _settled(backlog: Backlog, of: T) -> T:
    """Return what work of *backlog* has put into *of*."""
    backlog.settle()
    return of


def _unknown() -> Reading:
    yield from ()
    return Counter([Found.UNKNOWN.value])


def _ignore() -> None:
    return
