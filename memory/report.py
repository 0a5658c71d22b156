"""
From a call to its event: the one place where what is raw becomes what may leave.

Every part has a net of its own, so that what fails costs the event that part and no more: one event
for each call, even when the redactor is broken.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

from ..telemetry.event import Event, Journalled, OperationClass, Redacted, Status
from ..telemetry.lane import inside_sink
from ..telemetry.subject import Subject
from ..telemetry.thawed import draft_of
from .call import Call, error_name, last_event
from .context import NOBODY
from .deadline import Expired
from .errors import RedactionError
from .redaction.content import FAILED, to_content
from .runtime import Runtime, no_parent

_draft: Callable[[], Any] = draft_of(Event)


class Reporter:
    """
    Emits exactly one event for each call of a guard. Fails open.

    Args:
        store: The guard's store.
        runtime: Drain, keys, clock.
    """

    def __init__(self, store: str, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime

    def ended(self, call: Call, status: Status, exc: BaseException | None = None) -> None:
        """Report that *call* ended with *status*, because of *exc* if there is one."""
        if inside_sink():
            return
        faults, event = self._runtime.faults, None
        try:
            if faults.tripped:
                faults.count("guard.unreported")
            else:
                event = self._event(call, status, exc)
        except Exception as ours:  # noqa: BLE001 - observing fails open
            faults.note("guard.report", ours, trips=True)
        finally:
            # None too: else the caller would take an earlier call's outcome for this one's.
            last_event.set(event)
        if event is not None:
            try:
                self._runtime.drain.emit(event)
            except Exception as ours:  # noqa: BLE001 - observing fails open
                faults.note("guard.report", ours, trips=True)

    def _event(self, call: Call, status: Status, exc: BaseException | None) -> Event:
        runtime, summary, method = self._runtime, call.summary, call.method
        drain, started, redaction = runtime.drain, call.started, call.redaction
        ended, reached = runtime.clock(), call.reached_store_at
        if reached is None or reached > ended:
            reached = ended
        # Before the labels are made, which count what they replace as well.
        redactions = dict(redaction.counts) if redaction and redaction.counts else {}
        content = self._content(call)
        event = _draft()
        event.writer_id = drain.writer_id
        event.writer_seq = drain.next_seq()
        event.started_ns = call.started_ns
        event.duration_s = ended - started if ended > started else 0.0
        event.waited_s = reached - started if reached > started else 0.0
        event.operation = method.operation
        event.op_class = method.op_class
        event.store = self._store
        event.method = method.name
        event.collection = self._collection(call)
        event.status = status
        event.neutral = call.neutral
        event.late = call.late
        # A batch that writes may also read, and each of its operations is reported by itself.
        event.journal = call.journal if method.op_class in _WRITES else Journalled.NO
        event.error = None if exc is None else _error(exc)
        event.hits = summary.hits
        event.foreign_hits = _foreign(call) if summary.owners else 0
        event.top_score = summary.scores[0] if summary.scores else None
        event.size_bytes = content.size_bytes if content else None
        event.memory_ids = self._ids(call) if summary.memory_ids else ()
        event.scores = summary.scores
        event.redactions = redactions
        event.trace = call.trace
        event.parent_run = None if runtime.parent_run is no_parent else self._parent_run()
        event.nested = call.nested
        event.content = content
        return self._told_for_whom(event, call)

    def _told_for_whom(self, event: Any, call: Call) -> Event:
        """Fill the rest of a draft, and make it an event."""
        scope = call.scope
        if scope is NOBODY:
            event.subject = event.tenant = event.agent = None
            event.feature = event.run = event.purpose = None
        else:
            event.subject = self._subject(call)
            event.tenant = scope.tenant and self._label(call, scope.tenant)
            event.agent = scope.agent and self._label(call, scope.agent)
            event.feature = scope.feature and self._label(call, scope.feature)
            event.run = scope.run and self._label(call, scope.run)
            event.purpose = scope.purpose and self._label(call, scope.purpose)
        # What only model calls have.
        event.usage = event.crossing = event.iteration = event.inner_cost_usd = None
        event.__class__ = Event
        made: Event = event
        return made

    def _subject(self, call: Call) -> Subject | None:
        scope = call.scope
        if scope.customer is None:
            return None
        return Subject(scope.customer, tenant=scope.tenant, keys=self._runtime.keys)

    def _content(self, call: Call) -> Redacted | None:
        """Return what the audit trail keeps, and nothing of arguments that are not redacted."""
        if call.status is Status.REFUSED:
            return to_content(FAILED)
        if not call.redacted:
            return None
        try:
            content = call.method.content(call.arguments)
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._runtime.faults.note("guard.describe", exc)
            return None
        return None if content is None else to_content(content)

    def _collection(self, call: Call) -> str | None:
        try:
            name = call.method.collection(call.arguments)
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._runtime.faults.note("guard.describe", exc)
            return None
        return None if name is None else self._label(call, name)

    def _parent_run(self) -> str | None:
        try:
            return self._runtime.parent_run()
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._runtime.faults.note("guard.describe", exc)
            return None

    def _ids(self, call: Call) -> tuple[str, ...]:
        ids = call.summary.memory_ids
        try:
            if call.redaction is not None:
                return call.redaction.labels(ids)
        except Exception:  # noqa: BLE001, S110 - one by one, what fails costs and tells of one
            pass
        return tuple(self._label(call, each) for each in ids)

    def labels(self, call: Call) -> dict[str, str]:
        """Return what sinks may know of the call's scope, by attribute; nothing that is unknown."""
        known = {name: getattr(call.scope, name) for name in _LABELLED}
        return {name: self._label(call, of) for name, of in known.items() if of is not None}

    def _label(self, call: Call, text: str) -> str:
        try:
            return call.redaction.label(text) if call.redaction else FAILED
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._runtime.faults.note("guard.label", exc)
            return FAILED


_LABELLED = ("tenant", "agent", "feature", "run", "purpose")


_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


def _foreign(call: Call) -> int:
    customer, owners = call.scope.customer, call.summary.owners
    return len(owners) - owners.count(customer) if customer else 0


def _error(exc: BaseException) -> str:
    return "TimeoutError" if isinstance(exc, Expired) else error_name(exc)


def status_of(exc: BaseException, *, neutral: bool) -> Status:
    """Return how a call ended that *exc* came of, where its caller gets a *neutral* value or it."""
    if isinstance(exc, Expired):
        return Status.TIMEOUT
    if isinstance(exc, RedactionError):
        return Status.REFUSED
    if isinstance(exc, (CancelledError, GeneratorExit)):
        return Status.CANCELLED
    return Status.DEGRADED if neutral else Status.ERROR
