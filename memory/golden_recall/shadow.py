"""A share of production's recalls, made by a candidate too, behind the answer's back."""

from __future__ import annotations

import asyncio
import inspect
import queue
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...telemetry.event.kinds import OperationClass
from ...telemetry.event.part import EventPart
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.process.fork_lock import ForkLock
from ..context import context
from ..errors import ConfigurationError
from ..features import Feature, FeatureContext, FeatureFactory
from ..guard.step import NOTHING, Faces
from ..health.model import Check, State
from .ranking import recall_at
from .replayed import REPLAY, call_by_name

if TYPE_CHECKING:
    from ...telemetry.process.faults import Faults
    from ..context import Scope
    from ..guard.call import Call
    from ..guard.operation import Arguments, Method
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts

MOST_WAITING: Final = 256
"""Recalls that wait for the candidate at once: a slow one is shown fewer, and delays none."""


class ShadowCounts(EventPart, tag="mnemoscope.shadow", frozen=True):
    """
    The recalls that a candidate made since the last event that said so: about earlier calls.

    Attributes:
        compared: Answers of the candidate.
        equal: Those with the same memories in the same order.
        recall: The sum of their shares of the memories that production found.
        failed: Recalls that the candidate raised at.
        dropped: Recalls that it was not shown, as too many waited.
    """

    compared: int = 0
    equal: int = 0
    recall: float = 0.0
    failed: int = 0
    dropped: int = 0

    def fields(self) -> dict[str, float]:
        """Return the counts."""
        return {f"shadow_{name}": getattr(self, name) for name in self.__struct_fields__}

    def measurements(self) -> dict[str, float]:
        """Return the counts."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class _Shown(NamedTuple):
    """A recall of production, for the candidate."""

    method: Method
    arguments: Arguments
    found: tuple[str, ...]
    scope: Scope

    def __repr__(self) -> str:
        return f"_Shown({self.method.name})"


class _Shadow:
    """The candidate, what waits for it, and what came of it. Thread-safe."""

    def __init__(self, candidate: Any, faults: Faults) -> None:
        self._candidate = candidate
        self._faults = faults
        self._all: Counter[str] = Counter()
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew: the thread, and what waits for it, are the parent's."""
        self._lock = ForkLock()
        self._waiting: queue.Queue[_Shown | None] = queue.Queue(MOST_WAITING)
        self._new: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._ended = False

    def show(self, shown: _Shown) -> None:
        """Have the candidate make a recall, later, if there is room."""
        if self._ended:
            return
        try:
            self._waiting.put_nowait(shown)
        except queue.Full:
            self._count(dropped=1)
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="mnemoscope-shadow", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """End the thread. A recall that the candidate is at is not waited for."""
        self._ended = True
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return  # it looks whether this has ended before each

    def news(self) -> ShadowCounts | None:
        """Return what came of it since the last time. None: nothing."""
        if not self._new:
            return None
        with self._lock:
            found, self._new = self._new, Counter()
        return ShadowCounts(**found)

    def check(self) -> Check:
        """Return what came of it so far."""
        found = self._all
        said = f"{found['compared']:,} recalls compared, {found['equal']:,} of them equal"
        if found["compared"]:
            said += f", mean recall {found['recall'] / found['compared']:.3f}"
        said += f"; {found['failed']:,} failed, {found['dropped']:,} not shown"
        is_well = not found["failed"] and not found["dropped"]
        return Check(name="shadow", state=State.OK if is_well else State.WARNING, detail=said)

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            while (shown := self._waiting.get()) is not None and not self._ended:
                try:
                    self._compare(shown, runner)
                except Exception as exc:  # noqa: BLE001 - what only observes ends no thread of ours
                    self._faults.note("shadow.compare", exc)

    def _compare(self, shown: _Shown, runner: asyncio.Runner) -> None:
        try:
            ids = self._made(shown, runner)
        except Exception:  # noqa: BLE001 - whatever it raises: a finding, and no error of ours
            self._count(failed=1)
            return
        # Of nothing that was found nothing can be lost.
        share = recall_at(len(ids), shown.found, ids) if shown.found else 1.0
        self._count(compared=1, equal=ids == shown.found, recall=share)

    def _made(self, shown: _Shown, runner: asyncio.Runner) -> tuple[str, ...]:
        scope = shown.scope
        with context(tenant=scope.tenant, customer=scope.customer, purpose=REPLAY):
            target = getattr(self._candidate, shown.method.name)
            answer = call_by_name(target, shown.arguments)
            if inspect.isawaitable(answer):
                answer = runner.run(_awaited(answer))
        return shown.method.summary(answer, shown.arguments).memory_ids

    def _count(self, **found: float) -> None:
        with self._lock:
            self._new.update(found)
            self._all.update(found)


async def _awaited(answer: Any) -> Any:
    return await answer


class _ShowRecalls:
    """The step that shows a share of a guard's recalls to a candidate, once they are answered."""

    def __init__(self, shadow: _Shadow, share: float, chance: Callable[[], float]) -> None:
        self._shadow = shadow
        self._share = share
        self._chance = chance

    def faces(self, method: Method) -> Faces:
        """Return the faces of recalls that can be made again. No other method is called, ever."""
        is_recall = method.op_class is OperationClass.RECALL and method.repeat is not None
        return Faces(self._tell, self._show) if is_recall else NOTHING

    def _tell(self, call: Call) -> None:
        # Made with the event, behind this call's answer: no caller waits for a candidate.
        call.additions += (self._news,)

    def _news(self, _store: str, _call: Call) -> ShadowCounts | None:
        return self._shadow.news()

    def _show(self, call: Call) -> None:
        if call.nested or call.error is not None or call.neutral or call.scope.purpose == REPLAY:
            return
        if self._chance() < self._share:
            ids = call.summary.memory_ids
            self._shadow.show(_Shown(call.method, dict(call.arguments), ids, call.scope))


def shadow(
    candidate: Any,
    *,
    store: str,
    share: float = 0.01,
    chance: Callable[[], float] = random.random,
) -> FeatureFactory:
    """
    Return the feature that has *candidate* make a share of a store's recalls, too.

    After the answer, on a thread of its own, one by one. Of the candidate the method that recalled
    is called, with the redacted arguments, and no other.

    Args:
        candidate: A client of the same class: bare, or guarded by another scope.
        store: The store, as events name it.
        share: Of the recalls, from 0 to 1.
        chance: Returns a number from 0 to 1 for each recall.

    Raises:
        ConfigurationError: *share* is not from 0 to 1.
    """
    if not 0.0 <= share <= 1.0:
        raise ConfigurationError(f"shadow: share is {share}: expected a number from 0 to 1")

    def made(given: FeatureContext) -> Feature:
        shown = _Shadow(candidate, given.faults)

        def steps(parts: GuardParts) -> Sequence[Step]:
            return (_ShowRecalls(shown, share, chance),) if parts.store == store else ()

        return Feature(steps=(steps,), checks={"shadow": shown.check}, close=shown.close)

    return made
