"""
The step that shows a customer's own agent what the pseudonyms in an answer stand for.

It stands before all others that look at an answer, so that they, and the event, have pseudonyms. It
fails open for the agent and closed for the customer: the pseudonyms stay where there is no context,
where the call or its answer is somebody else's, where a rule objects, where there is no event to
record it by, and where the vault cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...telemetry.event.event import Event, OperationClass, Status
from ...telemetry.event.sink_pseudonyms import PSEUDONYM
from ..context import current
from ..guard.call import EACH_ITEM, Call, Slot, last_event
from ..guard.script import adrive, drive
from ..guard.step import NOTHING, Faces
from ..limits.policy import LONGEST_S
from .values import TextCopies

if TYPE_CHECKING:
    from ..accounting import ModelAccounting
    from ..guard.operation import Method
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts, StepMaker
    from .originals import CustomerOriginals, OpenedOriginals, Shown

PAUSE_S = 5.0
"""Seconds for which a vault that could not be read is not asked again."""

_SHOWN: Slot[int] = Slot("mnemoscope.reveal.shown", 0)
"""How many originals the items of an answer have shown so far."""


class _Reading:
    """
    An answer as it is read, and the texts with pseudonyms in it.

    Args:
        customer: The customer's originals. None: none is shown.

    Attributes:
        missing: Redacted texts that are not open.
        pseudonyms: How many there are in the answer.
        shown: How many of them became originals.
    """

    __slots__ = ("_customer", "_opened", "missing", "pseudonyms", "shown")

    def __init__(self, customer: CustomerOriginals | None) -> None:
        self._customer = customer
        self._opened: Mapping[str, Shown] = {} if customer is None else customer.known()
        self.missing: list[str] = []
        self.pseudonyms = self.shown = 0

    def text(self, text: str) -> str:
        """Return *text* with its originals, as far as it is open."""
        found = self._opened.get(text)
        if found is None:
            if number := len(PSEUDONYM.findall(text)):
                self.missing.append(text)
                self.pseudonyms += number
            return text
        self.pseudonyms += found[1]
        self.shown += found[1]
        return found[0]

    def open(self) -> Mapping[str, Shown]:
        """Return the missing texts with their originals, read from the vault."""
        return {} if self._customer is None else self._customer.open(self.missing)

    def made_with(self, opened: Mapping[str, Shown], value: Any) -> Any:
        """Return *value* with its originals, now that the missing texts are *opened*."""
        self._opened = {**self._opened, **opened}
        self.missing, self.pseudonyms, self.shown = [], 0, 0
        return TextCopies(self.text).of(value)


class RevealAnswers:
    """
    Reveals the answers of one guard.

    Args:
        classes: Of the calls whose answers are revealed.
        accounting: Has the rules of the scope, and takes the events.
    """

    def __init__(
        self,
        parts: GuardParts,
        opened: OpenedOriginals,
        classes: frozenset[OperationClass],
        accounting: ModelAccounting,
    ) -> None:
        self._store, self._tracing = parts.store, parts.tracing
        self._workers, self._faults, self._clock = parts.workers, parts.faults, parts.clock
        self._wait_s = parts.limits[OperationClass.RECALL].deadline_s or LONGEST_S
        self._opened = opened
        self._classes = classes
        self._drain, self._labels = accounting.drain, accounting.labels
        self._rulebook = accounting.rulebook
        self._asks_again_at = 0.0

    def faces(self, method: Method) -> Faces:
        """Return the face behind the store, for what reads: a batch that writes may read too."""
        may_read = method.sift is not None and OperationClass.RECALL in self._classes
        if method.public or not (may_read or method.op_class in self._classes):
            return NOTHING
        before = self._open_items if method.op_class is OperationClass.RESUME else None
        return Faces(before, self._reveal, None, self._areveal)

    def _open_items(self, call: Call) -> None:
        """Have items of an iterator revealed as they are pulled: no result has them."""
        EACH_ITEM.put(call, (self._reveal_item, self._areveal_item))

    def _reveal(self, call: Call) -> None:
        if self._is_answered(call):
            started = self._clock()
            call.result, shown = self._made(call, call.result)
            self._record(_SHOWN.of(call) + shown, started)

    async def _areveal(self, call: Call) -> None:
        if self._is_answered(call):
            started = self._clock()
            call.result, shown = await self._amade(call, call.result)
            self._record(_SHOWN.of(call) + shown, started)

    def _reveal_item(self, call: Call, item: Any) -> Any:
        made, shown = self._made(call, item)
        _SHOWN.put(call, _SHOWN.of(call) + shown)
        return made

    async def _areveal_item(self, call: Call, item: Any) -> Any:
        made, shown = await self._amade(call, item)
        _SHOWN.put(call, _SHOWN.of(call) + shown)
        return made

    def _is_answered(self, call: Call) -> bool:
        """Return whether *call* has an answer of its store, and an event to record a reveal by."""
        return call.error is None and not call.neutral and last_event.get() is not None

    def _made(self, call: Call, value: Any) -> tuple[Any, int]:
        """Return *value* with its originals, and their number."""
        workers, wait_s = self._workers, self._wait_s
        return drive(self._making(call, value), lambda read: workers.run(read, wait_s, _ignore))

    async def _amade(self, call: Call, value: Any) -> tuple[Any, int]:
        workers, wait_s = self._workers, self._wait_s
        return await adrive(
            self._making(call, value), lambda read: workers.acall(read, wait_s, _ignore)
        )

    def _making(
        self, call: Call, value: Any
    ) -> Generator[Callable[[], Mapping[str, Shown]], Any, tuple[Any, int]]:
        try:
            reading, made = self._begin(call, value)
            if reading.missing:
                made = reading.made_with((yield reading.open), value)
        except Exception as exc:  # noqa: BLE001 - open: the pseudonyms stay
            return self._unread(value, exc)
        return made, reading.shown

    def _begin(self, call: Call, value: Any) -> tuple[_Reading, Any]:
        """Return what is read of *value*, and *value* as far as that is open."""
        customer = self._customer(call)
        if customer is None:
            return _Reading(None), value
        reading = _Reading(customer)
        made = TextCopies(reading.text).of(value)
        if not reading.pseudonyms or not self._is_allowed(call, reading.pseudonyms):
            return _Reading(None), value
        if reading.missing and self._clock() < self._asks_again_at:
            self._faults.count(_FAULT)
            reading.missing = []
        return reading, made

    def _customer(self, call: Call) -> CustomerOriginals | None:
        """Return the originals of the context's customer, if the call and its answer are theirs."""
        scope, context = call.scope, current()
        customer = context.customer
        if not customer or call.nested or scope.customer != customer:
            return None
        if scope.tenant != context.tenant or any(each != customer for each in call.summary.owners):
            return None
        return self._opened.of(customer, context.tenant)

    def _is_allowed(self, call: Call, number: int) -> bool:
        """Ask the rules whether the agent may be shown so many originals."""
        rulebook = self._rulebook
        for rule, reveals in () if rulebook is None else rulebook.revealers:
            try:
                if reveals.may_reveal(self._store):
                    continue
                if rulebook and rulebook.answered(rule, call, reveals.withheld(number)):
                    return False
            except Exception as exc:  # noqa: BLE001 - closed: what cannot be judged is not shown
                self._faults.note("rules.reveal", exc)
                if not rule.shadow:
                    return False
        return True

    def _unread(self, value: Any, exc: Exception) -> tuple[Any, int]:
        self._faults.note(_FAULT, exc)
        self._asks_again_at = self._clock() + PAUSE_S
        return value, 0

    def _record(self, shown: int, started: float) -> None:
        """Emit what was shown, to whom and for what, as an operation of the vault."""
        of = last_event.get()
        if not shown or of is None:
            return
        try:
            event = Event(
                writer_id=of.writer_id,
                writer_seq=self._drain.next_seq(),
                started_ns=of.ended_ns,
                duration_s=self._clock() - started,
                operation="search_memory",
                op_class=OperationClass.RECALL,
                store=STORE,
                method="reveal",
                status=Status.OK,
                trace=self._tracing.capture(),
                hits=shown,
                subject=of.subject,
                tenant=of.tenant,
                agent=of.agent,
                feature=of.feature,
                run=of.run,
                purpose=of.purpose,
                parent_run=of.parent_run,
                nested=True,
                apart=True,
            )
            self._drain.emit(event)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._faults.note("guard.report", exc)


def reveal_steps(
    opened: OpenedOriginals, classes: frozenset[OperationClass], accounting: ModelAccounting
) -> StepMaker:
    """Return the maker of the steps that reveal the answers of calls of *classes*."""

    def steps(parts: GuardParts) -> Sequence[Step]:
        # The vault's own reveals by itself.
        return () if parts.store == STORE else (RevealAnswers(parts, opened, classes, accounting),)

    return steps


STORE = "vault"
_FAULT = "reveal.read"


def _ignore() -> None:
    return
