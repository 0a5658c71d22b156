"""
The step that emits a call's event: the one place where raw data becomes an event.

Every part of an event is made by itself, so that what fails costs the event that part and no more:
one event for each call, even when the redactor is broken.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import length_hint
from typing import Any

from msgspec.structs import replace

from ....telemetry.delivery.drain import Drain
from ....telemetry.delivery.lane import inside_sink
from ....telemetry.event.event import Event, Journalled, OperationClass, Redacted, Status
from ....telemetry.event.parent_run import ParentRun
from ....telemetry.event.part import EventPart
from ....telemetry.event.subject import Subject, SubjectKeys
from ....telemetry.event.trace import Tracing
from ....telemetry.process.faults import Faults
from ...context import EMPTY_SCOPE, Scope
from ...errors import RedactionError
from ...limits.workers import Expired
from ...privacy.engine.content import FAILED, to_content
from ...scoped_redactor import ScopedRedactor
from ..call import Call, error_name, last_event
from ..operation import Arguments, Method, nothing
from ..step import Faces

Parts = Callable[[Call], Iterable[Call]]
"""Returns the parts of a call, each as a call with its status. Nothing: it has none."""


def no_parent() -> ParentRun | None:
    """Return no parent run, for scopes without the LangSmith sink."""
    return None


_TOLD = frozenset({1, 1_000, 1_000_000})
"""Which of them are logged, so that a log has three lines of it at most."""

_MESSAGE = (
    "calls that name no tenant, customer or agent: %s so far, the latest to %s. What they remember "
    "cannot be found, exported or erased as anybody's: set mnemoscope.memory.context(customer=...) "
    "around them"
)

logger = logging.getLogger("mnemoscope")


class UnattributedCalls:
    """
    Counts the calls of a scope of which nobody is known, and says so, once and at long intervals.

    Attributes:
        tells: One for each call, taken as its event is made: whether to `tell`. It runs no
            instruction of ours and needs no lock.
    """

    def __init__(self) -> None:
        self._numbers = iter(range(1, sys.maxsize))
        self.tells = map(_TOLD.__contains__, self._numbers)

    @property
    def count(self) -> int:
        """Number of hits in the result."""
        return sys.maxsize - 1 - length_hint(self._numbers)

    def tell(self, store: str) -> None:
        """Log how many there were, the latest of *store*."""
        logger.warning(_MESSAGE, f"{self.count:,}", store)


class Report:
    """
    Emits exactly one event for each call of a guard. Fails open.

    Args:
        db_system: OpenTelemetry's name of the database, where the store is one.
        server: Host and port that the client asks, if it is known.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.
        tracing: Knows the thread of the graph around a call.
        parent_run: Returns the place in LangSmith's tree, if that sink is on.
        unattributed: Counts the calls of which nobody is known.
        open_redaction: Opens the redaction of a call that was refused before it had one.
        redactor: Begins the redactions of a call's further parts.
        parts: Splits calls that hold several operations: each has an event. None: none does.
        tells: Returns what a store answered, redacted, for the event. None: nobody asks for it.
    """

    def __init__(
        self,
        store: str,
        *,
        db_system: str | None = None,
        server: tuple[str, int] | None = None,
        drain: Drain,
        keys: SubjectKeys,
        faults: Faults,
        clock: Callable[[], float],
        tracing: Tracing,
        parent_run: Callable[[], ParentRun | None] = no_parent,
        unattributed: UnattributedCalls,
        open_redaction: Callable[[Call], None],
        redactor: ScopedRedactor,
        parts: Parts | None = None,
        tells: Callable[[Call], Redacted | None] | None = None,
    ) -> None:
        self._store = store
        self._db_system = db_system
        self._server = server
        self._drain = drain
        self._keys = keys
        self._faults = faults
        self._clock = clock
        self._tracing = tracing
        self._read_parent = parent_run
        self._unattributed, self._is_told = unattributed, unattributed.tells
        self._open_redaction = open_redaction
        self._redactor = redactor
        self._parts = parts
        self._make = self._event if tells is None else partial(self._event_with, tells)

    def faces(self, method: Method) -> Faces:
        """Return the face after the store: for every method."""
        is_whole = self._parts is None and method.whose is None
        return Faces(after=self._emit if is_whole else self.report)

    def report_unawaited(self, call: Call) -> None:
        """Emit the event of *call*, which ended while no caller was there to wait for it."""
        self.report(call)
        self._drain.numbers.let_go()

    def report(self, call: Call) -> None:
        """Emit the event of *call*, whose status and error say how it ended, or of each part."""
        try:
            found = None if self._parts is None else self._parts(call)
            parts = self._split(call, found) if found or call.method.whose else ()
        except Exception as ours:  # noqa: BLE001 - observing fails open
            self._faults.note("guard.report", ours)
            parts = ()
        for each in parts or (call,):
            self._emit(each)

    def _split(self, call: Call, operations: Iterable[Call] | None) -> list[Call]:
        parts = (part for each in operations or (call,) for part in _owned(each))
        return [*_numbered(parts, self._tracing, self._redactor)]

    def _emit(self, call: Call) -> None:
        if inside_sink():
            return
        event = None
        try:
            if self._faults.suspected and self._faults.tripped:
                self._faults.count("guard.unreported")
            else:
                event = self._make(call)
        except Exception as ours:  # noqa: BLE001 - observing fails open
            self._faults.note("guard.report", ours, trips=True)
        finally:
            # None too: else the caller would take an earlier call's outcome for this one's.
            last_event.set(event)
        if event is not None:
            try:
                self._drain.emit(event)
            except Exception as ours:  # noqa: BLE001 - observing fails open
                self._faults.note("guard.report", ours, trips=True)

    def _event(self, call: Call) -> Event:
        redaction = call.redaction
        if redaction is None and call.status is Status.DENIED:
            with suppress(RedactionError):  # its labels are left out then
                self._open_redaction(call)
            redaction = call.redaction
        summary, method = call.summary, call.method
        started = call.started
        ended, reached = self._clock(), call.reached_store_at
        if reached is None or reached > ended:
            reached = ended
        # Before the labels are made, which count what they replace as well.
        redactions = dict(redaction.counts) if redaction is not None and redaction.counts else {}
        content = self._content(call)
        scope = call.scope
        if scope is EMPTY_SCOPE:
            subject = tenant = agent = feature = run = purpose = None
            if not call.nested and next(self._is_told):
                self._unattributed.tell(self._store)
        else:
            subject = self._subject(call)
            tenant = scope.tenant and self._label(call, scope.tenant)
            agent = scope.agent and self._label(call, scope.agent)
            feature = scope.feature and self._label(call, scope.feature)
            run = scope.run and self._label(call, scope.run)
            purpose = scope.purpose and self._label(call, scope.purpose)
        if run is None and call.trace.parent_span_id is not None:
            run = self._thread(call)
        # By position: names cost a caller fifteen times as much.
        event = Event(
            self._drain.numbers.writer_id,
            self._drain.next_awaited_seq(),
            call.started_ns,
            ended - started if ended > started else 0.0,
            method.operation,
            method.op_class,
            self._store,
            method.name,
            call.status,
            call.trace,
            reached - started if reached > started else 0.0,
            self._db_system,
            None if method.collection is nothing else self._collection(call),
            method.deletes,
            call.neutral,
            call.late,
            # A batch that writes may also read, and each of its operations is reported by itself.
            call.journal if method.op_class in _WRITES else Journalled.NO,
            None if call.error is None else _error(call.error),
            summary.hits,
            _foreign(call) if summary.owners else 0,
            summary.scores[0] if summary.scores else None,
            None if content is None else content.size_bytes,
            self._ids(call) if summary.memory_ids else (),
            summary.scores,
            redactions,
            subject,
            tenant,
            agent,
            feature,
            run,
            purpose,
            None if self._read_parent is no_parent else self._parent_run(call),
            call.nested,
            content,
            self._added(call) if call.additions else (),
            self._server,
        )
        return replace(event, apart=True) if call.nested and not call.covered else event

    def _subject(self, call: Call) -> Subject | None:
        scope = call.scope
        if scope.customer is None:
            return None
        return Subject(scope.customer, tenant=scope.tenant, keys=self._keys)

    def _content(self, call: Call) -> Redacted | None:
        """Return the redacted content for the audit trail, unless an outer call's event has it."""
        if call.status is Status.REFUSED:
            return to_content(FAILED)
        if not call.redacted or call.is_repeated or call.method.content is nothing:
            return None
        try:
            content = call.method.content(call.arguments)
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("guard.describe", exc)
            return None
        return None if content is None else to_content(content)

    def _event_with(self, tells: Callable[[Call], Redacted | None], call: Call) -> Event:
        event = self._event(call)
        try:
            return replace(event, answer=tells(call))
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("guard.describe", exc)
            return event

    def _added(self, call: Call) -> tuple[EventPart, ...]:
        """Return the parts that features add to the event of *call*."""
        parts: tuple[EventPart, ...] = ()
        for add in call.additions:
            try:
                part: Any = add(self._store, call)
                if isinstance(part, EventPart):
                    parts += (part,)
                elif part is not None:
                    self._faults.note("guard.addition", TypeError("no part of an event"))
            except Exception as exc:  # noqa: BLE001 - costs the event one part
                self._faults.note("guard.addition", exc)
        return parts

    def _collection(self, call: Call) -> str | None:
        try:
            name = call.method.collection(call.arguments)
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("guard.describe", exc)
            return None
        return None if name is None else self._label(call, name)

    def _parent_run(self, call: Call) -> ParentRun | None:
        try:
            place = self._read_parent()
            if place is None or not place.tags:
                return place
            return replace(place, tags=tuple(self._label(call, tag) for tag in place.tags))
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("guard.describe", exc)
            return None

    def _thread(self, call: Call) -> str | None:
        """Return the thread of the graph around *call*, which names no run of its own."""
        try:
            find = self._tracing.enclosing_thread
            thread = None if find is None else find()
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self._faults.note("guard.describe", exc)
            return None
        return None if thread is None else self._label(call, thread)

    def _ids(self, call: Call) -> tuple[str, ...]:
        ids = call.summary.memory_ids
        try:
            if call.redaction is not None:
                return call.redaction.labels(ids)
        except Exception:  # noqa: BLE001, S110 - one by one, what fails costs and tells of one
            pass
        return tuple(self._label(call, each) for each in ids)

    def labels(self, call: Call) -> dict[str, str]:
        """Return the redacted labels of the call's scope, by attribute, without unknown ones."""
        known = {name: getattr(call.scope, name) for name in _LABELLED}
        return {name: self._label(call, of) for name, of in known.items() if of is not None}

    def _label(self, call: Call, text: str) -> str:
        try:
            return call.redaction.label(text) if call.redaction else FAILED
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._faults.note("guard.label", exc)
            return FAILED


_LABELLED = ("tenant", "agent", "feature", "run", "purpose")


_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


def _foreign(call: Call) -> int:
    customer, owners = call.scope.customer, call.summary.owners
    return len(owners) - owners.count(customer) if customer else 0


def _error(exc: BaseException) -> str:
    return "TimeoutError" if isinstance(exc, Expired) else error_name(exc)


# -- parts -----------------------------------------------------------------------------------------


def _owned(call: Call) -> Iterator[Call]:
    """Yield *call* for each owner that its records name: they are that person's, whoever wrote."""
    whose = call.method.whose
    if whose is None or not call.redacted:
        yield call
        return
    for owner, arguments in whose(call.arguments):
        part = call if arguments is call.arguments else _with_part(call, arguments)
        if owner is not None and owner != call.scope.customer:
            part = part.but(scope=Scope(customer=owner).with_defaults(call.scope))
        yield part


def _with_part(call: Call, arguments: Arguments) -> Call:
    """Return *call* with a part of its *arguments* alone."""
    told = bool(call.summary.memory_ids)
    summary = call.method.summary(call.result, arguments) if told else call.summary
    return call.but(arguments=arguments, summary=summary)


def _numbered(parts: Iterable[Call], tracing: Tracing, redactor: ScopedRedactor) -> Iterator[Call]:
    """
    Yield *parts*, all but the first with a span and counts of their own.

    The first one counts the wait and the redactions. The others are nested, and apart: no other
    event tells what they did.
    """
    for index, part in enumerate(parts):
        if not index:
            yield part
            continue
        yield part.but(
            nested=True,
            covered=False,
            trace=tracing.capture(),
            redaction=part.redaction and redactor.begin_labels(part.scope),
        )
