"""The step that hashes what calls find and write, and knows again what the run has recalled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...telemetry.event.event import OperationClass
from ...telemetry.process.fork_lock import ForkLock
from ..features import Feature
from ..guard.step import NOTHING, Faces
from .part import MemoryTexts, hashing, texts_in

if TYPE_CHECKING:
    from ...telemetry.event.trace import Tracing
    from ..features import FeatureContext
    from ..guard.call import Call
    from ..guard.operation import Method, Record
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts

MOST_RUNS: Final = 1_024
MOST_CUSTOMERS: Final = 4_096
MOST_TEXTS: Final = 1_024
"""Texts that are known again of one run, or of one customer: the oldest are forgotten first."""


class KnownTexts:
    """Hashes of texts with the memory that had each, by owner. Bounded; thread-safe."""

    def __init__(self, most_owners: int) -> None:
        self._most_owners = most_owners
        self._of: OrderedDict[Hashable, OrderedDict[str, str]] = OrderedDict()
        self._lock = ForkLock()

    def keep(self, owner: Hashable, hashes: Iterable[str], memory_id: str) -> None:
        """Keep that *owner* has *hashes* in a memory."""
        with self._lock:
            known = self._of.setdefault(owner, OrderedDict[str, str]())
            self._of.move_to_end(owner)
            for each in hashes:
                known[each] = memory_id
            while len(known) > MOST_TEXTS:
                known.popitem(last=False)
            if len(self._of) > self._most_owners:
                self._of.popitem(last=False)

    def has(self, owner: Hashable, hashes: Iterable[str], memory_id: str) -> bool:
        """Return whether another memory of *owner* has one of *hashes*."""
        known = self._of.get(owner)
        return known is not None and any(known.get(each, memory_id) != memory_id for each in hashes)

    def forget(self, owner: Hashable) -> None:
        """Forget the texts of *owner*."""
        with self._lock:
            self._of.pop(owner, None)


class Watched:
    """The texts that one scope's runs have recalled and its customers' memories have."""

    def __init__(self, key: bytes) -> None:
        self.hashed = hashing(key)
        self.recalled = KnownTexts(MOST_RUNS)
        self.written = KnownTexts(MOST_CUSTOMERS)


class WatchTexts:
    """
    Adds `MemoryTexts` to the events of one guard.

    They are made with the event, when rules and tenancy have left out what the caller does not see.
    What fails costs the event that part alone.
    """

    def __init__(self, watched: Watched, tracing: Tracing) -> None:
        self._watched = watched
        self._tracing = tracing

    def faces(self, method: Method) -> Faces:
        """Return the face of calls that find, write or delete memories."""
        if method.public:
            return NOTHING
        if method.op_class is OperationClass.FORGET:
            return Faces(after=self._forget)
        is_read = method.op_class is OperationClass.RECALL and method.sift is not None
        return Faces(self._add) if is_read or method.written is not None else NOTHING

    def _add(self, call: Call) -> None:
        if not call.covered:
            call.additions += (self._part,)

    def _forget(self, call: Call) -> None:
        # Whatever it was that is gone: what is written anew then repeats nothing.
        self._watched.written.forget((call.scope.tenant, call.scope.customer))

    def _part(self, _store: str, call: Call) -> MemoryTexts | None:
        if call.error is not None or call.neutral:
            return None
        if call.method.written is not None:
            return self._wrote(call, [*call.method.written(call.result, call.arguments)])
        return self._read(call)

    def _read(self, call: Call) -> MemoryTexts | None:
        records = call.found()
        groups = [self._hashes(each) for each in records]
        if (run := self._run(call)) is not None:
            for record, group in zip(records, groups, strict=True):
                self._watched.recalled.keep(run, group, record.memory_id)
        return MemoryTexts(read=tuple(groups)) if groups else None

    def _wrote(self, call: Call, records: Sequence[Record]) -> MemoryTexts | None:
        groups, run = [self._hashes(each) for each in records], self._run(call)
        recalled, written = self._watched.recalled, self._watched.written
        owner, echoes, repeats = (call.scope.tenant, call.scope.customer), 0, 0
        for record, group in zip(records, groups, strict=True):
            echoes += run is not None and recalled.has(run, group, record.memory_id)
            if call.scope.customer is not None:
                repeats += written.has(owner, group, record.memory_id)
                written.keep(owner, group, record.memory_id)
        if not groups:
            return None
        return MemoryTexts(wrote=tuple(groups), echoes=echoes, repeats=repeats)

    def _hashes(self, record: Record) -> tuple[str, ...]:
        hashed = self._watched.hashed
        return tuple(hashed(text) for _name, value in record.parts for text in texts_in(value))

    def _run(self, call: Call) -> tuple[str | None, str] | None:
        find = self._tracing.enclosing_thread
        run = call.scope.run or (None if find is None else find())
        return None if run is None else (call.scope.tenant, run)


def hygiene(context: FeatureContext) -> Feature:
    """Return the feature: a factory as `mnemoscope.features` has them."""
    watched = Watched(context.digest_key("hygiene"))

    def steps(parts: GuardParts) -> Sequence[Step]:
        return (WatchTexts(watched, parts.tracing),)

    return Feature(steps=(steps,))
