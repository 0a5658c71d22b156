"""What is timed: each function returns cases that belong side by side, the bare one first."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.rounds import Case
from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.settings import load_settings
from mnemoscope.telemetry.event.event import Event, OperationClass, Redacted, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef

SINKS = ("otlp", "prometheus", "logs", "langsmith", "audit")
ALL = ",".join(SINKS)
BARE = "bare"
SPAN = "for scale: an OpenTelemetry span alone"
SHORT, LONG = "100 characters, clean", "1,000 characters, clean"
PERSONAL = "100 characters, name, e-mail and telephone number"
OURS, AT_ONCE = "all five, default settings", "all five, no deadline"
NO_SINK = "no sink, no deadline"
NEW_CLEAN, NEW_PERSONAL = "the same, new clean text each call", "the same, new personal data"
DEADLINES = tuple(
    f"deadline_{each}_s" for each in ("recall", "remember", "forget", "resume", "checkpoint")
)
CUSTOMER = "c-4711"
QUERY = "which kind of tea does she like best in the morning"

_TEXT = """
the customer prefers green tea over coffee in morning and asked for quiet table near window when
she comes with two friends please remember that they like to sit outside if weather is good their
order should be ready before noon because it takes a while from office we also talked about new
plan which they want see again next week after holiday report was late but nobody minded
"""
_WORDS = _TEXT.split()
_PEOPLE = ("Ada Lovelace", "Grace Hopper", "Alan Turing", "Katherine Johnson", "Edsger Dijkstra")


class Scopes:
    """
    Scopes with sinks of their own, as an application would configure them.

    Args:
        folder: Where their files go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._count = 0

    def make(self, sinks: str, *, has_deadline: bool = True) -> Mnemoscope:
        """Return a scope with *sinks*, with the deadlines of default settings or with none."""
        self._count += 1
        home = self._folder / str(self._count)
        home.mkdir()
        settings = load_settings(
            sinks=sinks,
            audit_url=f"sqlite:///{home / 'audit.db'}",
            audit_pseudonym_key="ab" * 32,
            log_file=home / "events.jsonl",
            pii_model="none",
            **({} if has_deadline else dict.fromkeys(DEADLINES, 0.0)),
        )
        scope = Mnemoscope(settings)
        self._open.callback(scope.close)
        return scope

    def close(self) -> None:
        """Close them all."""
        self._open.close()


def settled(scope: Mnemoscope) -> Callable[[], None]:
    """Return what waits until the sinks of *scope* have everything, and fails if they never do."""

    def wait() -> None:
        if not scope.flush(60):
            raise RuntimeError(f"events were lost while measuring: {scope.health(1)}")

    return wait


def clean_texts(chars: int, count: int) -> list[str]:
    """Return *count* different texts of about *chars* characters without personal data."""
    chosen = random.Random(chars)  # noqa: S311 - the same texts in every run
    return [
        " ".join(chosen.choices(_WORDS, k=max(1, chars * 10 // 57))).capitalize()
        for _ in range(count)
    ]


def dirty_texts(chars: int, count: int) -> list[str]:
    """Return *count* different texts with a name, an e-mail address and a telephone number."""
    chosen = random.Random(chars)  # noqa: S311
    return [
        f"My name is {chosen.choice(_PEOPLE)}, mail me at user{number}@example.com or call "
        f"+1 212 555 {number % 10_000:04}. {text}"
        for number, text in enumerate(clean_texts(max(10, chars - 90), count))
    ]


def _memories() -> Iterator[dict[str, Any]]:
    """Yield answers of mem0 with three memories, more than the redactor's cache holds."""
    return cycle([{"results": [_memory() for _ in range(3)]} for _ in range(5_000)])


def _memory() -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "memory": "likes tea", "score": 0.9, "user_id": CUSTOMER}


def mem0_search(scopes: Scopes, texts: int) -> list[Case]:
    """``Memory.search`` with nothing in its body, so that all that is left is what we add."""
    from mem0 import Memory

    answers = _memories()

    def stub() -> Any:
        memory: Any = Memory.__new__(Memory)
        memory.search = lambda query, *, filters: next(answers)
        return memory

    def case(
        name: str, memory: Any, scope: Mnemoscope | None, queries: Sequence[str] = (QUERY,)
    ) -> Case:
        query = cycle(queries)
        return Case(
            name=name,
            call=lambda: memory.search(next(query), filters={"user_id": CUSTOMER}),
            settle=settled(scope) if scope else lambda: None,
        )

    def ours(name: str, sinks: str, queries: Sequence[str] = (QUERY,), **given: bool) -> Case:
        scope = scopes.make(sinks, **given)
        return case(name, scope.mem0(stub()), scope, queries)

    return [
        case(BARE, stub(), None),
        ours(OURS, ALL),
        ours(NEW_CLEAN, ALL, clean_texts(100, texts)),
        ours(NEW_PERSONAL, ALL, dirty_texts(100, texts)),
        ours(AT_ONCE, ALL, has_deadline=False),
        ours(NO_SINK, "", has_deadline=False),
        Case(name=SPAN, call=_one_span()),
    ]


def qdrant_query(scopes: Scopes) -> list[Case]:
    """``QdrantClient.query_points`` with nothing in its body and three points in its answer."""
    from qdrant_client import QdrantClient
    from qdrant_client.http import models

    answers = cycle(
        [
            models.QueryResponse(
                points=[
                    models.ScoredPoint(id=3 * n + i, version=1, score=0.9, payload={"n": i})
                    for i in range(3)
                ]
            )
            for n in range(5_000)
        ]
    )
    vector = [0.5] * 64

    def stub() -> Any:
        client: Any = QdrantClient(":memory:")
        client.query_points = lambda collection_name, query, limit: next(answers)
        return client

    def case(name: str, client: Any, scope: Mnemoscope | None) -> Case:
        return Case(
            name=name,
            call=lambda: client.query_points("facts", query=vector, limit=3),
            settle=settled(scope) if scope else lambda: None,
        )

    def ours(name: str, sinks: str, **given: bool) -> Case:
        scope = scopes.make(sinks, **given)
        return case(name, scope.qdrant(stub()), scope)

    return [
        case(BARE, stub(), None),
        ours(OURS, ALL),
        ours(AT_ONCE, ALL, has_deadline=False),
        *(ours(f"{each} alone, no deadline", each, has_deadline=False) for each in SINKS),
        ours(NO_SINK, "", has_deadline=False),
        Case(name=SPAN, call=_one_span()),
    ]


def mem0_add(scopes: Scopes, texts: int) -> list[Case]:
    """``Memory.add`` with nothing in its body."""
    from mem0 import Memory

    def stub() -> Any:
        memory: Any = Memory.__new__(Memory)
        answer = {"results": [{"id": str(uuid.uuid4()), "memory": "likes tea", "event": "ADD"}]}
        memory.add = lambda messages, *, user_id: answer
        return memory

    def case(name: str, given: Sequence[str], **how: bool) -> Case:
        said, scope = cycle(given), scopes.make(ALL, **how)
        memory = scope.mem0(stub())
        return Case(
            name=name,
            call=lambda: memory.add(next(said), user_id=CUSTOMER),
            settle=settled(scope),
        )

    bare = stub()
    return [
        Case(name=BARE, call=lambda: bare.add(QUERY, user_id=CUSTOMER)),
        case(OURS, (QUERY,)),
        case(NEW_CLEAN, clean_texts(100, texts)),
        case(NEW_PERSONAL, dirty_texts(100, texts)),
        case(AT_ONCE, (QUERY,), has_deadline=False),
    ]


def _one_span() -> Callable[[], object]:
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("bench")
    attributes = {"db.system.name": "qdrant", "db.operation.name": "query", "hits": 3}

    def call() -> None:
        with tracer.start_as_current_span("search_memory", attributes=attributes):
            pass

    return call


def redaction(texts: int) -> list[Case]:
    """One text of its own each call, patterns only; and the same text again."""
    redactor = build_redactor(model="none", keys=SubjectKeys(b"sixteen bytes or more"))

    def case(name: str, given: Sequence[str]) -> Case:
        text = cycle(given)
        return Case(name=name, call=lambda: redactor.begin(known=(CUSTOMER,)).text(next(text)))

    return [
        case("100 characters, clean, seen before", clean_texts(100, 1)),
        case(SHORT, clean_texts(100, texts)),
        case(LONG, clean_texts(1_000, texts)),
        case(PERSONAL, dirty_texts(100, texts)),
    ]


def audit_rates(url: str | Path, events: Sequence[Event]) -> tuple[float, float]:
    """Append *events* in durable batches of 64, verify them; return how many a second of each."""
    from mnemoscope.audit.log import AuditLog
    from mnemoscope.audit.verification.whole import verify

    log = AuditLog(url, SubjectKeys(b"sixteen bytes or more"))
    log.append(events[:1])
    began = time.perf_counter()
    for first in range(1, len(events), 64):
        log.append(events[first : first + 64])
    appended = time.perf_counter()
    found = verify(log, with_details=False)
    verified = time.perf_counter()
    log.close()
    assert found.events >= len(events)
    return (len(events) - 1) / (appended - began), found.events / (verified - appended)


def recalls(count: int) -> list[Event]:
    """Return *count* events of recalls by a hundred customers."""
    keys = SubjectKeys(b"sixteen bytes or more")
    people = [Subject(f"c-{n}", tenant="acme", keys=keys) for n in range(100)]
    return [
        Event(
            writer_id="00000000000000aa",
            writer_seq=number + 1,
            started_ns=1_700_000_000_000_000_000 + number * 1_000,
            duration_s=0.01,
            operation="search_memory",
            op_class=OperationClass.RECALL,
            store="mem0",
            method="search",
            status=Status.OK,
            trace=TraceRef(number + 1, number + 1),
            subject=people[number % len(people)],
            tenant="acme",
            content=Redacted({"query": QUERY}),
        )
        for number in range(count)
    ]
