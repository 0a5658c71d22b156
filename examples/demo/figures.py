"""
The demo's figures: read back from the audit trail, and counted in each sink independently.

Only the run's duration and its failures are measured by the demo itself. All else can be read from
the audit trail afterwards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.queries.reading import Remembered, Spend, StoreLatency
from mnemoscope.audit.queries.text_extraction import text_of
from mnemoscope.audit.record.rows import AuditRow
from mnemoscope.telemetry.event.event import AUDIT_CHECKPOINT, Journalled, OperationClass, Status
from mnemoscope.telemetry.otlp.conventions.semconv import EVENT_ID
from mnemoscope.telemetry.text import utc_text

from .export_and_erase import TENANT, CustomerRequests
from .recorder import CollectorServer
from .surge import SurgeReport
from .turn_time import REST, TurnTime

if TYPE_CHECKING:
    from .memory_server import ServerChange
    from .replay import AnsweredTurn

EVENTS_METRIC = "mnemoscope_operation_duration_seconds_count"
REPLAYS_METRIC = "mnemoscope_journal_writes_total"
_NORMAL = frozenset({"ok", "empty"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCounts:
    """
    The number of events in each sink, counted at its destination.

    Attributes:
        audit: Rows of the audit table.
        prometheus: Observations in the metrics text.
        logs: Lines of the log file.
        otlp: Spans received. None: they went to the user's own collector.
        langsmith: Runs received. None: they went to the user's own LangSmith.
    """

    audit: int
    prometheus: int
    logs: int
    otlp: int | None
    langsmith: int | None

    @property
    def agree(self) -> bool:
        """True if every sink that could be counted has the same number of events."""
        counts = (self.audit, self.prometheus, self.logs, self.otlp, self.langsmith)
        return len({count for count in counts if count is not None}) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """
    The memories of one customer.

    Attributes:
        name: The speaker's name in the conversation. No sink knows it.
        customer: The id that the stores know.
        written: The memories, in order of their last write.
        redacted: Number of replacements in what mem0 stores, by entity.
    """

    name: str
    customer: str
    written: tuple[Remembered, ...]
    redacted: dict[str, int]

    @property
    def reads(self) -> int:
        """Number of times that one of them was recalled."""
        return sum(each.reads for each in self.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """
    The content of the last screen.

    Attributes:
        turns: Messages of the conversation.
        failures: Runs that raised, by the type of the exception.
        seconds: Wall time of the replay.
        shown: Turns that are shown word by word.
        time: Where the time of the turns went.
        writes: What became of calls that a broken store did not take, by `Fate`.
        scripted: The model was the demo's script.
        broken: The store that was broken, and how.
        stores: Latency and status of each store, over all operations.
        recalls: The same over recalls alone, which the agent waits for before it can answer.
        spend: Tokens and cost of each feature.
        models: Tokens and cost of each model.
        surge: The surge, as the trail shows it.
        requests: The second customer's export and erasure, if requested.
        server_change: A memory server over MCP that changed, if requested.
        memories: The memories of the customer that was asked about.
        sinks: The number of events in each sink.
    """

    turns: int
    failures: dict[str, int]
    seconds: float
    shown: tuple[AnsweredTurn, ...]
    time: TurnTime
    writes: dict[Fate, int]
    scripted: bool
    broken: tuple[str, str] | None
    stores: tuple[StoreLatency, ...]
    recalls: tuple[StoreLatency, ...]
    spend: tuple[Spend, ...]
    models: tuple[Spend, ...]
    surge: SurgeReport | None
    requests: CustomerRequests | None
    server_change: ServerChange | None
    memories: Memories
    sinks: SinkCounts

    @property
    def answered(self) -> int:
        """Messages that were answered."""
        return self.turns - sum(self.failures.values())

    @property
    def as_expected(self) -> bool:
        """True if the sinks agree, the requests are complete, and no run raised unexpectedly."""
        fails_closed = self.broken is not None and self.broken[0] == "checkpointer"
        complete = self.requests is None or self.requests.complete
        return self.sinks.agree and complete and (fails_closed or not self.failures)


class Fate(StrEnum):
    """
    What became of a call that a store did not take.

    Attributes:
        REFUSED: The store was not asked: its breaker was open.
        JOURNALLED: The write was kept.
        REPLAYED: It was made again, and the store has it.
        LOST: It is gone.
    """

    REFUSED = "refused"
    JOURNALLED = "journalled"
    REPLAYED = "replayed"
    LOST = "lost"


_FATES = {
    Journalled.APPENDED: Fate.JOURNALLED,
    Journalled.REPLAYED: Fate.REPLAYED,
    Journalled.LOST: Fate.LOST,
}


def fate_of_writes(rows: Iterable[AuditRow]) -> dict[Fate, int]:
    """Count what became of the calls that were not taken at once."""
    found = dict.fromkeys(Fate, 0)
    for row in rows:
        if row.status is Status.REJECTED:
            found[Fate.REFUSED] += 1
        if row.journal in _FATES:
            found[_FATES[row.journal]] += 1
    return found


def memories_of(log: AuditLog, name: str, customer: str) -> Memories:
    """Return the memories that the audit trail knows of a customer."""
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
    log: AuditLog,
    *,
    prometheus: int,
    log_file: Path,
    recorder: CollectorServer,
    counted: Sequence[str],
) -> SinkCounts:
    """
    Count the events in each sink; OTLP and LangSmith where they are in *counted*.

    A span without an event's id is of a phase within an operation.
    """
    lines = [json.loads(each)["operation"] for each in log_file.read_bytes().splitlines()]
    return SinkCounts(
        audit=log.count(),
        prometheus=prometheus,
        logs=_events(lines),
        otlp=_events(each["name"] for each in recorder.spans() if EVENT_ID in each["attributes"])
        if "otlp" in counted
        else None,
        langsmith=_events(each["name"] for each in recorder.runs())
        if "langsmith" in counted
        else None,
    )


def _events(names: Iterable[str]) -> int:
    """Return how many of the named operations are events: the trail's signatures are not."""
    return sum(not each.startswith(AUDIT_CHECKPOINT) for each in names)


def observations(metrics: str) -> int:
    """Return the number of operations counted in a metrics text."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    families = text_string_to_metric_families(metrics)
    samples = (sample for family in families for sample in family.samples)
    return round(sum(each.value for each in samples if _is_of_event(each.name, each.labels)))


def _is_of_event(name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a sample counts events: a write that was made again is no operation anew."""
    return name == EVENTS_METRIC or (name == REPLAYS_METRIC and labels["outcome"] != "appended")


def time_sentence(time: TurnTime) -> str:
    """Return a sentence that says what the turns waited for."""
    if not time.total_s:
        return "No message was answered."
    shares = [
        f"{seconds / time.total_s:.0%} {_PART_NAMES[name]}" for name, seconds in time.parts.items()
    ]
    return f"Of {time.total_s:.1f} s in turns: {', '.join(shares)}."


_PART_NAMES = {
    "model": "for the model",
    "mem0": "for mem0",
    "qdrant": "for Qdrant",
    "langgraph.store": "for the store",
    "langgraph.checkpoint": "for checkpoints",
    REST: "in the graph, mnemoscope and the demo",
}


def unanswered(store: StoreLatency) -> dict[str, int]:
    """Return the number of operations that *store* did not answer, by status."""
    return {name: n for name, n in store.statuses.items() if name not in _NORMAL}


def culprit(figures: Figures) -> str:
    """Return a sentence that names the store to blame: a failing one, else the slowest one."""
    refused = sum(each.statuses.get("refused", 0) for each in figures.stores)
    if refused:
        return (
            f"The redactor is to blame: {refused} calls were refused before any store was called."
        )
    # What is denied is a decision of the guard's, whatever the store does.
    failed = {
        each.store: {name: n for name, n in unanswered(each).items() if name != "denied"}
        for each in figures.stores
    }
    if any(failed.values()):
        worst = max(failed, key=lambda name: sum(failed[name].values()))
        ended = ", ".join(f"{n} {status}" for status, n in failed[worst].items())
        return f"{worst} is to blame. Calls that it did not answer: {ended}."
    return _slowest(figures.recalls)


def _slowest(recalls: Sequence[StoreLatency]) -> str:
    waited_s = sum(each.total_s for each in recalls)
    if not waited_s:
        return "No store was called."
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
        "turn_time": figures.time._asdict(),
        "shown_turns": [each._asdict() for each in figures.shown],
        "writes": {str(each): count for each, count in figures.writes.items()},
        "culprit": culprit(figures),
        "spend_by_feature": [each._asdict() for each in figures.spend],
        "spend_by_model": [each._asdict() for each in figures.models],
        "surge": _surge(figures.surge) if figures.surge else None,
        "parting": figures.requests.as_document() if figures.requests else None,
        "mcp": figures.server_change.as_document() if figures.server_change else None,
        "customer": figures.memories.customer,
        "memories": [_memory(each) for each in figures.memories.written],
        "redacted": figures.memories.redacted,
        "events": asdict(figures.sinks),
        "sinks_agree": figures.sinks.agree,
    }


def _surge(surge: SurgeReport) -> dict[str, Any]:
    return {"feature": surge.feature, "began_us": surge.began_us, "said": surge.answer}


def _memory(memory: Remembered) -> dict[str, Any]:
    return {
        "store": memory.store,
        "memory_id": memory.memory_id,
        "content": text_of(memory.content),
        "written": [utc_text(each) for each in memory.written_us],
        "reads": memory.reads,
        "last_read": utc_text(memory.last_read_us) if memory.last_read_us else None,
    }
