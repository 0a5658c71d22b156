"""
The step that leaves out of an answer what rules do not allow: by its place, then by its origin.

It fails closed, and stands behind the rules, which see of an answer what its caller sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...telemetry.event.event import OperationClass, Status
from ...telemetry.process.faults import Faults
from ..context import current
from ..errors import RefusedError
from ..guard.call import Call
from ..guard.operation import Method, Record
from ..guard.step import NOTHING, Faces

if TYPE_CHECKING:
    from .capabilities import ConfinesAnswers
    from .memory_labels import MemoryLabels
    from .rulebook import Rulebook

_RECALL = OperationClass.RECALL


class SiftAnswers:
    """
    Sifts answers by the labels of the memories in them. Added only where a rule makes labels.

    Args:
        faults: Where failing functions of the adapter are noted.
    """

    def __init__(
        self, rulebook: Rulebook, labels: MemoryLabels, faults: Faults, store: str
    ) -> None:
        self._rulebook = rulebook
        self._labels = labels
        self._faults = faults
        self._store = store

    def faces(self, method: Method) -> Faces:
        """Return the face behind the store, for what reads: a batch that writes may read too."""
        if method.sift is not None:
            return Faces(after=self._sift, aafter=self._asift)
        return Faces(after=self._note_read) if method.op_class is _RECALL else NOTHING

    def _note_read(self, call: Call) -> None:
        """Note that the run has read an answer of which the rule was asked before."""
        if call.covered or call.error is not None or call.result is None or call.summary.hits == 0:
            return
        try:
            self._labels.read(self._labels.rule.trust_of(self._store), current())
        except Exception as exc:  # noqa: BLE001 - closed: see there
            self._withhold(call, exc)

    def _sift(self, call: Call) -> None:
        if call.covered or call.error is not None or call.result is None:
            return  # the caller gets no answer, or one that is sifted further out
        try:
            records = call.found()
            tags = [self._labels.tags(self._store, call, each) for each in records]
            if self._labels.trail is not None and (missing := self._missing(tags)):
                self._look_up(missing)
            self._judge(call, records, tags)
        except Exception as exc:  # noqa: BLE001 - closed: see there
            self._withhold(call, exc)

    async def _asift(self, call: Call) -> None:
        if call.covered or call.error is not None or call.result is None:
            return
        try:
            records = call.found()
            tags = [self._labels.tags(self._store, call, each) for each in records]
            if missing := self._missing(tags):
                import asyncio  # noqa: PLC0415 - a tenth of the time to configure a scope

                await asyncio.to_thread(self._look_up, missing)
            self._judge(call, records, tags)
        except Exception as exc:  # noqa: BLE001 - closed: see there
            self._withhold(call, exc)

    def _missing(self, tags: list[list[str]]) -> list[str]:
        """Return the tags to be looked up. What others write since counts where trust is asked."""
        labels = self._labels
        return labels.missing(tags, again=labels.rule.demand(current().purpose) is not None)

    def _look_up(self, tags: list[str]) -> None:
        try:
            self._labels.look_up(tags)
        except Exception as exc:  # noqa: BLE001 - what cannot be looked up is unknown
            self._faults.note("rules.labels", exc)

    def _judge(self, call: Call, records: list[Record], tags: list[list[str]]) -> None:
        """Leave out what has too little trust; note that the run has read the rest."""
        labels, rule, scope = self._labels, self._labels.rule, current()
        trusts = labels.trusts(tags)
        rule.note_found(records, trusts)
        demanded = rule.demand(scope.purpose)
        if (
            demanded is not None
            and call.method.sift is not None
            and any(each < demanded for each in trusts)
            and self._rulebook.answered(rule, call, rule.answer_facts(trusts)) is not None
        ):
            keeps = iter([each >= demanded for each in trusts])
            call.answer(call.method.sift(call.result, call.arguments, lambda _each: next(keeps)))
            trusts = [each for each in trusts if each >= demanded]
        if trusts:
            labels.read(min(trusts), scope)

    def _withhold(self, call: Call, exc: Exception) -> None:
        """Have a recall find nothing of which it cannot be told how far it may be trusted."""
        self._faults.note("rules.sift", exc)
        rule = self._labels.rule
        self._labels.read(0, current())
        if rule.demand(current().purpose) is None or not rule.leaves_out:
            return
        _refuse(call, rule.name, self._faults)


class ConfineAnswers:
    """
    Leaves out of answers what stands where the caller may not read: a search answers from below.

    Args:
        faults: Where failing functions of the adapter are noted.
    """

    def __init__(self, rulebook: Rulebook, faults: Faults, store: str) -> None:
        self._rulebook = rulebook
        self._faults = faults
        self._store = store

    def faces(self, method: Method) -> Faces:
        """Return the face behind the store, for what may answer from elsewhere."""
        return NOTHING if method.within is None else Faces(after=self._confine)

    def _confine(self, call: Call) -> None:
        if call.covered or call.error is not None or not call.result or call.method.within is None:
            return
        for rule, confines in self._rulebook.confiners:
            try:
                places: list[bool] = []

                def allows(
                    place: str, confines: ConfinesAnswers = confines, of: Any = places
                ) -> bool:
                    of.append(confines.allows(self._store, place))
                    return bool(of[-1])

                kept = call.method.within(call.result, call.arguments, allows)
                lacking = len(places) - sum(places)
                if lacking and self._rulebook.answered(rule, call, confines.left_out(lacking)):
                    call.answer(kept)
            except Exception as exc:  # noqa: BLE001 - closed: what cannot be judged is not shown
                self._faults.note("rules.confine", exc)
                if not rule.shadow:
                    _refuse(call, rule.name, self._faults)
                    return


def _refuse(call: Call, rule: str, faults: Faults) -> None:
    """Have a recall find nothing whose answer cannot be sifted."""
    neutral, call.result = call.method.neutral, None
    call.status, call.error = Status.DENIED, RefusedError(rule, "cannot_sift")
    if neutral is not None and not call.sheltered:
        try:
            call.result, call.neutral = neutral(call.arguments), True
        except Exception as exc:  # noqa: BLE001 - then the caller sees the refusal
            faults.note("guard.neutral", exc)
