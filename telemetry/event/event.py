"""
The event of one operation: the record that every sink receives.

An event holds nothing raw. Content reaches it only as `Redacted`, people only as `Subject`, and
exceptions only as the name of their type. Raw arguments live in `memory.operation`, which this
package cannot import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, final

import msgspec

from .kinds import Deletes, Journalled, OperationClass, Status
from .parent_run import ParentRun
from .part import EventPart
from .subject import Subject
from .trace_ref import TraceRef
from .usage import Usage

__all__ = [
    "AUDIT_CHECKPOINT",
    "Deletes",
    "Event",
    "Journalled",
    "OperationClass",
    "Redacted",
    "Status",
]

PartT = TypeVar("PartT", bound=EventPart)

VERDICT = "verdict"
"""The operation of an event with what a rule decided."""

AUDIT_CHECKPOINT = "audit_checkpoint"
"""The operation of an event with an audit checkpoint: `collection`, `hits` size, `root`."""


@final
class Redacted:
    """
    Content that has been through the redactor: JSON types only.

    Only `memory.privacy` builds one (a test holds that). It shows nothing of itself, so that a
    stray `repr` in a log cannot widen who sees it.

    Attributes:
        size_bytes: What it weighs: a byte a character, eight for any other value.
    """

    __slots__ = ("_read", "_value", "size_bytes")

    def __init__(self, value: Any, size_bytes: int = 0) -> None:
        self._value = value
        self._read: Callable[[Any], Any] | None = None
        self.size_bytes = size_bytes

    @property
    def value(self) -> Any:
        """The content."""
        return self._value if self._read is None else self._read(self._value)

    def read_by(self, read: Callable[[Any], Any]) -> Redacted:
        """Return this content, changed by *read* each time that somebody asks for it."""
        other = Redacted.__new__(Redacted)
        other._value, other._read = self._value, read  # noqa: SLF001 - of the same class
        other.size_bytes = self.size_bytes
        return other

    def __repr__(self) -> str:
        """Return a constant, never the content."""
        return "Redacted(...)"


class Event(msgspec.Struct, frozen=True):
    """
    A finished operation, already redacted.

    By position, in the order of the fields, it is made in a fifteenth of the time that names take.

    Attributes:
        writer_id: The process incarnation that made the event, 16 hex digits.
        writer_seq: Dense per writer, from 1: a gap is a lost event.
        started_ns: Wall clock at the start, nanoseconds since 1970 UTC.
        duration_s: Seconds the caller waited, from a monotonic clock, our own work included.
        waited_s: Seconds of `duration_s` before the store was called: redaction, queueing.
        operation: OTel GenAI name: ``search_memory``, ``upsert_memory``, ``chat``… Low cardinality.
        op_class: What it does to memory.
        store: ``mem0``, ``qdrant``, ``langgraph.store``, ``langgraph.checkpoint``, or the user's.
        db_system: OpenTelemetry's name of the database, where the store is one: ``qdrant``.
        method: The client's own method: ``search``, ``query_points``. Low cardinality.
        deletes: How much it deletes. None where it deletes nothing.
        collection: The store's own grouping, if it has one. Never a label.
        status: How it ended.
        neutral: True when the caller was given a neutral value in place of the store's answer.
        late: True when the store was still at work as the caller was answered, or a redaction after
            which the write is kept in the journal.
        journal: What became of a write that the store did not take.
        error: Qualified name of the exception's type. Never its message.
        hits: Results returned. None where the result has no length.
        foreign_hits: Results that belong to somebody other than the customer: a tripwire.
        top_score: Score of the first result, in the store's own measure.
        size_bytes: What the redacted content weighs; see `Redacted`.
        memory_ids: Ids read or written, in rank order.
        scores: One per memory id, where the store ranks.
        redactions: Entities redacted before the store, by type.
        subject: The customer, opaque: ask it for a keyed hash.
        tenant: The organisation the call was made for. Never a label.
        agent: The agent's name. A capped label.
        feature: What the call is attributed to, ``outer/inner`` when nested. A capped label.
        run: Thread, session or run. Never a label.
        purpose: Why, in the user's words.
        trace: Ids of the span that stands for this operation.
        parent_run: Its place in LangSmith's tree of runs.
        nested: True inside another operation of ours, which already counted the wait.
        parts: What features say about it, each part in a struct of its own.
        answer: What a recall found or a run returned, redacted, where a sink is opted in to
            content. Not sealed.
        server: Host and port that the client asks, where that is a server. Only in traces.
        content: The query or what was written, redacted. Audit only, unless a sink is opted in.
        given: What went into a graph, node, tool or model, as `answer` is what came out of it.
        apart: Nested, and no part of what the other one did: its event tells nothing of this.
    """

    writer_id: str
    writer_seq: int
    started_ns: int
    duration_s: float
    operation: str
    op_class: OperationClass
    store: str
    method: str
    status: Status
    trace: TraceRef
    waited_s: float = 0.0
    db_system: str | None = None
    collection: str | None = None
    deletes: Deletes | None = None
    neutral: bool = False
    late: bool = False
    journal: Journalled = Journalled.NO
    error: str | None = None
    hits: int | None = None
    foreign_hits: int = 0
    top_score: float | None = None
    size_bytes: int | None = None
    memory_ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    redactions: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    subject: Subject | None = None
    tenant: str | None = None
    agent: str | None = None
    feature: str | None = None
    run: str | None = None
    purpose: str | None = None
    parent_run: ParentRun | None = None
    nested: bool = False
    content: Redacted | None = None
    parts: tuple[EventPart, ...] = ()
    server: tuple[str, int] | None = None
    answer: Redacted | None = None
    given: Redacted | None = None
    apart: bool = False

    def part(self, kind: type[PartT]) -> PartT | None:
        """Return the part of one kind, or None where the event has none."""
        for each in self.parts:
            if isinstance(each, kind):
                return each
        return None

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost of a model call; None for all other events."""
        return self.part(Usage)

    @property
    def event_id(self) -> str:
        """
        Unique over all writers: ``<writer_id>-<writer_seq>``.

        What nobody counts, a checkpoint of the audit trail, has its span's id for a number.
        """
        return f"{self.writer_id}-{self.writer_seq or self.trace.span_hex}"

    @property
    def root(self) -> str | None:
        """The Merkle root of an audit checkpoint, in hexadecimal; None for all other events."""
        return self.memory_ids[0] if self.operation == AUDIT_CHECKPOINT else None

    @property
    def is_notice(self) -> bool:
        """True for what mnemoscope says itself: of budgets, rules and audit checkpoints."""
        # Asked several times of every event, by most sinks, and most have no parts.
        if not self.parts:
            return self.operation == AUDIT_CHECKPOINT
        return self.notice is not None or self.operation == AUDIT_CHECKPOINT

    @property
    def notice(self) -> EventPart | None:
        """The part that makes it a notice; None for operations and audit checkpoints."""
        for each in self.parts:
            if each.is_notice:
                return each
        return None

    @property
    def is_frame(self) -> bool:
        """True for a graph, node or tool, whose operations have events of their own."""
        is_model = self.op_class is OperationClass.MODEL
        return is_model and self.usage is None and not self.is_notice

    @property
    def ended_ns(self) -> int:
        """Wall clock at the end, nanoseconds since 1970 UTC."""
        return self.started_ns + round(self.duration_s * 1e9)
