"""
The demo's figures: read back from the audit table, and counted in each sink independently.

Of the run itself, only how long it took and which messages were answered is taken on trust. All
else is what anybody could ask of the audit trail afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...audit.log import AuditLog
from ...audit.reading import Remembered, Spend, StoreLatency
from ...audit.wording import text_of
from ...telemetry.event import OperationClass
from ...telemetry.text import utc_text
from .parting import Parting
from .recorder import Recorder
from .surge import Noticed

TENANT = "demo"
EVENTS_METRIC = "mnemoscope_operation_duration_seconds_count"
_NORMAL = frozenset({"ok", "empty"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCounts:
    """
    Events that each sink has, counted where they ended up.

    Attributes:
        audit: Rows of the audit table.
        prometheus: Observations in the metrics text.
        logs: Lines of the log file.
        otlp: Spans that arrived. None: they went to the user's own collector.
        langsmith: Runs that arrived. None: they went to the user's own LangSmith.
    """

    audit: int
    prometheus: int
    logs: int
    otlp: int | None
    langsmith: int | None

    @property
    def agree(self) -> bool:
        """True when every sink that could be counted has the same number of events."""
        counts = (self.audit, self.prometheus, self.logs, self.otlp, self.langsmith)
        return len({count for count in counts if count is not None}) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """
    What is remembered about one customer.

    Attributes:
        name: Who it is, in the conversation's words. No sink knows it.
        customer: The id that the stores know.
        written: What was written about them, in order of the last time.
        redacted: What was replaced in the messages that mem0 keeps, by entity.
    """

    name: str
    customer: str
    written: tuple[Remembered, ...]
    redacted: dict[str, int]

    @property
    def reads(self) -> int:
        """How often one of them was recalled."""
        return sum(each.reads for each in self.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """
    What the last screen shows.

    Attributes:
        turns: Messages of the conversation.
        failures: Runs that raised, by the type of the exception.
        seconds: The whole replay, wall time.
        scripted: The model was the demo's script.
        broken: The store that was broken, and how.
        stores: Latency and status of each store, over all operations.
        recalls: The same, over recalls alone: what the agent waits for before it can think.
        spend: Tokens and cost of each feature.
        models: Tokens and cost of each model.
        surge: What was made to surge, and what the trail says of it.
        parting: What became of the customer who left, if one did.
        memories: Of the customer that was asked about.
        sinks: How many events each sink has.
    """

    turns: int
    failures: dict[str, int]
    seconds: float
    scripted: bool
    broken: tuple[str, str] | None
    stores: tuple[StoreLatency, ...]
    recalls: tuple[StoreLatency, ...]
    spend: tuple[Spend, ...]
    models: tuple[Spend, ...]
    surge: Noticed | None
    parting: Parting | None
    memories: Memories
    sinks: SinkCounts

    @property
    def answered(self) -> int:
        """Messages that were answered."""
        return self.turns - sum(self.failures.values())

    @property
    def as_expected(self) -> bool:
        """True when the sinks agree, who left is gone, and no run raised that should not have."""
        closed = self.broken is not None and self.broken[0] == "checkpointer"
        left = self.parting is None or self.parting.as_asked
        return self.sinks.agree and left and (closed or not self.failures)


def memories_of(log: AuditLog, name: str, customer: str) -> Memories:
    """Ask the audit trail what is remembered about a customer."""
    redacted: Counter[str] = Counter()
    for row in log.history(customer, TENANT):
        if row.store == "mem0" and row.op_class is OperationClass.REMEMBER:
            redacted.update(row.redactions)
    found = (each for each in log.memories(customer, TENANT) if each.written_us)
    return Memories(
        name=name,
        customer=customer,
        written=tuple(sorted(found, key=lambda each: each.written_us[-1])),
        redacted=dict(redacted.most_common()),
    )


def count_events(
    log: AuditLog, *, prometheus: int, log_file: Path, recorder: Recorder, counted: Sequence[str]
) -> SinkCounts:
    """Count the events in each sink; OTLP and LangSmith where they are in *counted*."""
    told = _checkpoints_told(log)
    return SinkCounts(
        audit=log.count(),
        prometheus=prometheus - told,
        logs=len(log_file.read_bytes().splitlines()) - told,
        otlp=len(recorder.spans()) - told if "otlp" in counted else None,
        langsmith=len(recorder.runs()) - told if "langsmith" in counted else None,
    )


def _checkpoints_told(log: AuditLog) -> int:
    """Return how many checkpoints the other sinks were told: about events, and none themselves."""
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT count(*) FROM audit_checkpoint WHERE anchors <> '[]'")
        return int(found.fetchone()[0])


def observations(metrics: str) -> int:
    """Return the number of operations that a metrics text counts."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    families = text_string_to_metric_families(metrics)
    samples = (sample for family in families for sample in family.samples)
    return round(sum(each.value for each in samples if each.name == EVENTS_METRIC))


def unanswered(store: StoreLatency) -> dict[str, int]:
    """Return the operations of *store* that it did not answer, by status."""
    return {name: n for name, n in store.statuses.items() if name not in _NORMAL}


def culprit(figures: Figures) -> str:
    """Say in one sentence who is to blame: who failed, else who is slowest in recall."""
    refused = sum(each.statuses.get("refused", 0) for each in figures.stores)
    if refused:
        return f"The redactor is to blame: {refused} calls were refused. No store was asked then."
    failed = {each.store: unanswered(each) for each in figures.stores if unanswered(each)}
    if failed:
        worst = max(failed, key=lambda name: sum(failed[name].values()))
        ended = ", ".join(f"{n} {status}" for status, n in failed[worst].items())
        return f"{worst} is to blame. Calls that it did not answer: {ended}."
    return _slowest(figures.recalls)


def _slowest(recalls: Sequence[StoreLatency]) -> str:
    waited_s = sum(each.total_s for each in recalls)
    if not waited_s:
        return "No store was asked."
    slowest = max(recalls, key=lambda each: each.total_s)
    return (
        f"No call failed. Of {waited_s:.1f} s in recalls, {slowest.store} took "
        f"{slowest.total_s / waited_s:.0%}: {slowest.operations:,} calls, "
        f"95 of 100 within {slowest.p95_ms:.0f} ms."
    )


def as_document(figures: Figures) -> dict[str, Any]:
    """Return the figures for ``--json``."""
    return {
        "turns": figures.turns,
        "answered": figures.answered,
        "failures": figures.failures,
        "seconds": round(figures.seconds, 3),
        "scripted_model": figures.scripted,
        "broken": figures.broken,
        "stores": [each._asdict() for each in figures.stores],
        "culprit": culprit(figures),
        "spend_by_feature": [each._asdict() for each in figures.spend],
        "spend_by_model": [each._asdict() for each in figures.models],
        "surge": asdict(figures.surge) if figures.surge else None,
        "parting": figures.parting.as_document() if figures.parting else None,
        "customer": figures.memories.customer,
        "memories": [_memory(each) for each in figures.memories.written],
        "redacted": figures.memories.redacted,
        "events": asdict(figures.sinks),
        "sinks_agree": figures.sinks.agree,
    }


def _memory(memory: Remembered) -> dict[str, Any]:
    return {
        "store": memory.store,
        "memory_id": memory.memory_id,
        "content": text_of(memory.content),
        "written": [utc_text(each) for each in memory.written_us],
        "reads": memory.reads,
        "last_read": utc_text(memory.last_read_us) if memory.last_read_us else None,
    }
