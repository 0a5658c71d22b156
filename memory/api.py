"""
The public protocols of adapters and sinks, for packages that bring one of their own.

An adapter is a `StoreAdapter`, found by the entry point ``mnemoscope.store_adapters``. Its table
describes each method of the client once, as a `Method`, made by `recall`, `remember` or `forget`;
`bind` describes one client, as a `StoreBinding`. A sink is built by a `SinkFactory`, found by the
entry point ``mnemoscope.sinks``. The adapters and sinks of this package are found the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ..telemetry.event.event import Deletes, OperationClass
from .context import Scope
from .errors import ScopeError
from .guard.call import Below, nothing_below
from .guard.failures import CallerMistake
from .guard.operation import (
    Allows,
    Arguments,
    Keep,
    Method,
    Operation,
    PastRecall,
    Record,
    Summary,
)
from .guard.rows import checkpoint, fewer, forget, method_table, recall, remember, resume
from .guard.step import Around, AsyncInvoke, BreaksOff, Faces, Invoke, Step, Turns
from .limits.time_left import time_left_s

if TYPE_CHECKING:
    from ..telemetry.delivery.registry import SinkContext, SinkFactory
    from ..telemetry.delivery.sink import (
        Checkable,
        DeliveryError,
        PartialError,
        Sink,
        SinkOutput,
        UnacceptableError,
        UnavailableError,
    )
    from ..telemetry.event.event import Event, Redacted
    from ..telemetry.event.kinds import Status
    from ..telemetry.event.memory_label import MemoryLabel
    from ..telemetry.event.outcome_event import OutcomeEvent
    from ..telemetry.event.part import EventPart
    from ..telemetry.event.subject import Subject
    from ..telemetry.event.trace_ref import TraceRef
    from ..telemetry.event.usage import Usage
    from ..telemetry.process.faults import Faults
    from ..telemetry.prometheus.live import LiveMetric, Sample
    from .accounting import ModelAccounting
    from .database import Database
    from .features import Feature, FeatureContext, FeatureFactory
    from .guard.call import Call, Slot
    from .guard.guard import Guard
    from .guard.steps.making import GuardParts, StepMaker
    from .guard.steps.report import Parts
    from .guard.touches import Touches
    from .guard.writes import Deduplication, JournalledWrites, Lookup
    from .guard_factory import GuardFactory
    from .health.model import Check, State
    from .limits.key_use import KeyUse
    from .limits.policy import Policy
    from .privacy.engine.redaction import Redaction
    from .rules.capabilities import (
        ChecksItself,
        ConfinesAnswers,
        ConfinesReveals,
        EmbedsText,
        ForeseesActions,
        SeesAnswers,
        SelectsMethods,
        WitnessesActions,
    )
    from .rules.held_writes import Decisions, KeyedRule
    from .rules.memory_labels import LabelsMemories, MemoryLabels
    from .rules.rule import PASSES, Fact
    from .rules.rulebook import KeepsBooks, Rulebook
    from .rules.run_facts import KeyedHashes, RunFacts
    from .run_observers import GraphRun, ObservedRun, RunObserver
    from .scoped_redactor import ScopedRedactor
    from .subject_data.keeping import (
        KeepsRecords,
        KeptRecord,
        RecordCount,
        RecordPage,
        StoreKeeper,
    )
    from .subject_data.records import (
        PAGE_SIZE,
        DataSubject,
        Erased,
        KnowsDimensions,
        LoggedMemory,
        MemoryRemover,
        Page,
        StoredMemory,
        SubjectDataProvider,
        SubjectRecord,
        VectorDimensions,
    )
    from .subject_data.registry import SubjectDataRegistry

Row: TypeAlias = Method | Callable[[Arguments], Method]
"""A method of a client, or a function, never raising, that returns it by the call's arguments."""


def _never(_client: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterServices:
    """
    What a scope offers to an adapter while a client is wrapped.

    Attributes:
        policy: What the guards are allowed to do.
        digest_key: Returns a secret key of 32 bytes for a purpose, for keyed digests.
        redactor: Redacts text outside a call.
        accounting: Counts model calls that a store makes by itself.
        faults: Where errors of the adapter's own are noted.
        guards: Makes the guards.
        subject_data: What the wrapped clients' stores hold about people.
        key_use: The key of digests and pseudonyms, for adapters whose stores can carry its id.
        named: The database as the user calls it. None: what the client tells counts.
    """

    policy: Policy
    digest_key: Callable[[str], bytes]
    redactor: ScopedRedactor
    accounting: ModelAccounting
    faults: Faults
    guards: GuardFactory
    subject_data: SubjectDataRegistry
    key_use: KeyUse
    named: Database | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBinding:
    """
    All that is to be known of one client, so that it can be guarded.

    Attributes:
        methods: The guarded methods by name, asynchronous twins included. Of others, those in the
            adapter's `not_guarded` go straight to the client; what nobody names is guarded as a
            write, its arguments redacted as values.
        caller_mistakes: Exceptions out of the store that are mistakes of the caller, each with the
            place in the client that raises it. All others are the store's failure.
        exits: ``SystemExit`` is its failure too: a library below the client ends the process.
        client: What is called. None: the client that was given.
        client_class: Returns the class of the guarded client. None: a subclass of the client's
            class whose `methods` are guarded.
        subject_data: Lists and erases what the store holds about a person. None: it cannot.
        writes: How writes are kept in the journal and made again. None: they are not.
        database: What the client writes to. None: that cannot be told for certain.
        server: Host and port that the client asks. None: it asks none, or that is not known.
        turns: How it takes calls, if it is not thread-safe.
        breaks_off: Tells whether the client breaks a call off at its deadline. None: it cannot.
        inline: Tells whether a synchronous call must stay on the caller's thread.
        steps: Steps of the adapter's own, between the journal and the breaker.
        around: What is around every call of the store, the innermost first.
        retries: Ask again inside a call, for classes whose policy says so.
        parts: Splits calls that hold several operations, each of which has an event.
        on_guarded: Called with the guard, once it is there.
        below: Returns the guards of clients that this one does its own work in, each with the
            collections that are its own there: those calls are parts of its calls. What its models
            or callbacks call elsewhere is not.
        public: What of it is nobody's personal data, as the user says: all, or these parts.
            Told by `doctor`; the rows say what it means for their calls.
        shared: Whether other machines can use the store, as far as is known. Then a key that was
            made on this one is told as a warning: they would not find what is stored under it.
    """

    methods: Mapping[str, Row]
    caller_mistakes: Sequence[CallerMistake] = ()
    exits: bool = False
    client: Any = None
    client_class: Callable[[type[Any]], type[Any]] | None = None
    subject_data: SubjectDataProvider | None = None
    writes: JournalledWrites | None = None
    database: Database | None = None
    server: tuple[str, int] | None = None
    turns: Turns | None = None
    breaks_off: BreaksOff | None = None
    inline: Callable[[Any], bool] = _never
    steps: Sequence[Step] = ()
    around: Sequence[Around] = ()
    retries: bool = False
    parts: Parts | None = None
    on_guarded: Callable[[Guard], None] | None = None
    below: Below = nothing_below
    public: bool | frozenset[str] = False
    shared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAdapter:
    """
    One kind of store that mnemoscope can guard.

    Attributes:
        store: Its name in events and metrics: ``qdrant``. Low cardinality.
        client_types: Classes of its clients.
        db_system: OpenTelemetry's ``db.system.name``, where the store is a database.
        bind: ``bind(client, services, **options)`` returns what is to be known of *client*, which
            is not guarded yet; *options* are as the user passed them to ``scope.guard``, but
            for ``adapter`` and ``name``, which are its own.
        rebind: ``rebind(client, guard, services, **options)`` wraps a client that the same scope
            guards already, with other options. None: it stays as it is.
        instruments: Guard each client as it is made, in an application that is instrumented: for
            classes that users construct.
        prepare: Called once, before the first client of an instrumented application is made.
        not_guarded: Public methods that go straight to the client, and why that is right.
        raises: Guarded methods of classes that fail open which have no neutral value, and why: the
            caller is given the store's error.
    """

    store: str
    client_types: tuple[type[Any], ...]
    bind: Callable[..., StoreBinding]
    db_system: str | None = None
    rebind: Callable[..., Any] | None = None
    instruments: bool = False
    prepare: Callable[[], None] | None = None
    not_guarded: Mapping[str, str] = field(default_factory=dict[str, str])
    raises: Mapping[str, str] = field(default_factory=dict[str, str])


__all__ = [
    "PAGE_SIZE",
    "PASSES",
    "AdapterServices",
    "Allows",
    "Arguments",
    "Around",
    "AsyncInvoke",
    "BreaksOff",
    "Call",
    "CallerMistake",
    "Check",
    "Checkable",
    "ChecksItself",
    "ConfinesAnswers",
    "ConfinesReveals",
    "DataSubject",
    "Database",
    "Decisions",
    "Deduplication",
    "Deletes",
    "DeliveryError",
    "EmbedsText",
    "Erased",
    "Event",
    "EventPart",
    "Faces",
    "Fact",
    "Faults",
    "Feature",
    "FeatureContext",
    "FeatureFactory",
    "ForeseesActions",
    "GraphRun",
    "GuardParts",
    "Invoke",
    "JournalledWrites",
    "Keep",
    "KeepsBooks",
    "KeepsRecords",
    "KeptRecord",
    "KeyUse",
    "KeyedHashes",
    "KeyedRule",
    "KnowsDimensions",
    "LabelsMemories",
    "LiveMetric",
    "LoggedMemory",
    "Lookup",
    "MemoryLabel",
    "MemoryLabels",
    "MemoryRemover",
    "Method",
    "ModelAccounting",
    "ObservedRun",
    "Operation",
    "OperationClass",
    "OutcomeEvent",
    "Page",
    "PartialError",
    "PastRecall",
    "Policy",
    "Record",
    "RecordCount",
    "RecordPage",
    "Redacted",
    "Redaction",
    "Row",
    "Rulebook",
    "RunFacts",
    "RunObserver",
    "Sample",
    "Scope",
    "ScopeError",
    "ScopedRedactor",
    "SeesAnswers",
    "SelectsMethods",
    "Sink",
    "SinkContext",
    "SinkFactory",
    "SinkOutput",
    "Slot",
    "State",
    "Status",
    "Step",
    "StepMaker",
    "StoreAdapter",
    "StoreBinding",
    "StoreKeeper",
    "StoredMemory",
    "Subject",
    "SubjectDataProvider",
    "SubjectDataRegistry",
    "SubjectRecord",
    "Summary",
    "Touches",
    "TraceRef",
    "Turns",
    "UnacceptableError",
    "UnavailableError",
    "Usage",
    "VectorDimensions",
    "WitnessesActions",
    "checkpoint",
    "fewer",
    "forget",
    "method_table",
    "recall",
    "remember",
    "resume",
    "time_left_s",
]

_MODULES = {
    name: module
    for module, names in {
        "..telemetry.delivery.registry": "SinkContext SinkFactory",
        "..telemetry.delivery.sink": (
            "Checkable DeliveryError PartialError Sink SinkOutput UnacceptableError "
            "UnavailableError"
        ),
        "..telemetry.event.event": "Event Redacted",
        "..telemetry.event.kinds": "Status",
        "..telemetry.event.memory_label": "MemoryLabel",
        "..telemetry.event.outcome_event": "OutcomeEvent",
        "..telemetry.event.part": "EventPart",
        "..telemetry.event.subject": "Subject",
        "..telemetry.event.trace_ref": "TraceRef",
        "..telemetry.event.usage": "Usage",
        "..telemetry.process.faults": "Faults",
        "..telemetry.prometheus.live": "LiveMetric Sample",
        ".accounting": "ModelAccounting",
        ".database": "Database",
        ".features": "Feature FeatureContext FeatureFactory",
        ".guard.call": "Call Slot",
        ".guard.steps.making": "GuardParts StepMaker",
        ".health.model": "Check State",
        ".guard.touches": "Touches",
        ".guard.writes": "Deduplication JournalledWrites Lookup",
        ".limits.key_use": "KeyUse",
        ".limits.policy": "Policy",
        ".privacy.engine.redaction": "Redaction",
        ".rules.capabilities": (
            "ChecksItself ConfinesAnswers ConfinesReveals EmbedsText ForeseesActions SeesAnswers "
            "SelectsMethods WitnessesActions"
        ),
        ".rules.held_writes": "Decisions KeyedRule",
        ".rules.memory_labels": "LabelsMemories MemoryLabels",
        ".rules.rule": "Fact PASSES",
        ".rules.rulebook": "KeepsBooks Rulebook",
        ".rules.run_facts": "KeyedHashes RunFacts",
        ".run_observers": "GraphRun ObservedRun RunObserver",
        ".scoped_redactor": "ScopedRedactor",
        ".subject_data.keeping": "KeepsRecords KeptRecord RecordCount RecordPage StoreKeeper",
        ".subject_data.records": (
            "DataSubject Erased KnowsDimensions LoggedMemory MemoryRemover PAGE_SIZE Page "
            "StoredMemory SubjectDataProvider SubjectRecord VectorDimensions"
        ),
        ".subject_data.registry": "SubjectDataRegistry",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Import *name* when it is first used: configuring a scope needs few of them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __package__), name)
