"""
From a call to its event: the one place where what is raw becomes what may leave.

Every part has a net of its own, so that what fails costs the event that part and no more: one event
for each call, even when the redactor is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..telemetry.event import Event, Journalled, OperationClass, Redacted, Status
from ..telemetry.lane import inside_sink
from ..telemetry.subject import Subject
from .call import Call, error_name, last_event
from .deadline import Expired
from .redaction.content import FAILED, to_content
from .runtime import Runtime

T = TypeVar("T")


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
        # Were it left, the caller would take an earlier call's outcome for this one's.
        last_event.set(None)
        faults = self._runtime.faults
        if faults.tripped:
            faults.count("guard.unreported")
            return
        try:
            event = self._event(call, status, exc)
            last_event.set(event)
            self._runtime.drain.emit(event)
        except Exception as ours:  # noqa: BLE001 - observing fails open
            faults.note("guard.report", ours, trips=True)

    def _event(self, call: Call, status: Status, exc: BaseException | None) -> Event:
        runtime, scope, summary, method = self._runtime, call.scope, call.summary, call.method
        ended, reached = runtime.clock(), call.reached_store_at
        # Before the labels are made, which count what they replace as well.
        redactions = dict(call.redaction.counts) if call.redaction else {}
        content = self._content(call)
        return Event(
            writer_id=runtime.drain.writer_id,
            writer_seq=runtime.drain.next_seq(),
            started_ns=call.started_ns,
            duration_s=max(0.0, ended - call.started),
            waited_s=max(0.0, (ended if reached is None else min(reached, ended)) - call.started),
            operation=method.operation,
            op_class=method.op_class,
            store=self._store,
            method=method.name,
            collection=self._label(call, self._try(lambda: method.collection(call.arguments))),
            status=status,
            neutral=call.neutral,
            late=call.late,
            journal=_journal(call),
            error=_error(exc),
            hits=summary.hits,
            foreign_hits=_foreign(call),
            top_score=summary.scores[0] if summary.scores else None,
            size_bytes=content.size_bytes if content else None,
            memory_ids=tuple(self._label(call, each) or "" for each in summary.memory_ids),
            scores=summary.scores,
            redactions=redactions,
            subject=self._subject(call),
            tenant=self._label(call, scope.tenant),
            agent=self._label(call, scope.agent),
            feature=self._label(call, scope.feature),
            run=self._label(call, scope.run),
            purpose=self._label(call, scope.purpose),
            trace=call.trace,
            parent_run=self._try(runtime.parent_run),
            nested=call.nested,
            content=content,
        )

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
        content = self._try(lambda: call.method.content(call.arguments))
        return None if content is None else to_content(content)

    def labels(self, call: Call) -> dict[str, str]:
        """Return what sinks may know of the call's scope, by attribute; nothing that is unknown."""
        known = {name: self._label(call, getattr(call.scope, name)) for name in _LABELLED}
        return {name: label for name, label in known.items() if label is not None}

    def _label(self, call: Call, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            return call.redaction.label(text) if call.redaction else FAILED
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._runtime.faults.note("guard.label", exc)
            return FAILED

    def _try(self, describe: Callable[[], T]) -> T | None:
        try:
            return describe()
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._runtime.faults.note("guard.describe", exc)
            return None


_LABELLED = ("tenant", "agent", "feature", "run", "purpose")


def _journal(call: Call) -> Journalled:
    # A batch that writes may also read, and each of its operations is reported by itself.
    return call.journal if call.method.op_class in _WRITES else Journalled.NO


_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


def _foreign(call: Call) -> int:
    customer = call.scope.customer
    return sum(owner != customer for owner in call.summary.owners) if customer else 0


def _error(exc: BaseException | None) -> str | None:
    if exc is None:
        return None
    return "TimeoutError" if isinstance(exc, Expired) else error_name(exc)
