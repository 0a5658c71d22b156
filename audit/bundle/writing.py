"""
The writer of a bundle: one pass over the history, then each store, then the first page.

Each member is a stream, and those that are written beside the first one wait in files without a
name. So a history of a million events takes the memory of one of a hundred.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...memory.subject_data.records import StoreData
from ..queries.runs import SITE
from .alone import verify_alone
from .archive import Archive, Writable, archive_at, unnamed_file
from .contract import (
    BundleSubject,
    Evidence,
    Request,
    RequestType,
    SealedEvent,
    StoreReport,
    StoreStatus,
)
from .conversations import Conversations
from .event_proofs import EventProofs
from .facts import BundleFacts, BundleTotals
from .latest import Latest
from .logged_memories import LoggedMemories
from .manifest import json_page, manifest, manifest_note
from .page import first_page
from .provenance import ProvenanceIndex
from .statements import ACCESS_COLUMNS, access_lines, csv_lines, event_line
from .summary import EventSummary
from .temporary_database import temporary_database

PORTABLE = frozenset({"remember"})
"""The classes that the right to data portability covers: what the agent was given to remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """
    The result of an export.

    Attributes:
        counts: The totals of what is in it.
        losses: How many events the log declares as lost.
        not_stated: What the operator has to state, and has not: see `Notice`.
        holds_nothing: Whether neither the log nor a store that was read has data about the
            customer.
    """

    path: Path
    counts: BundleTotals
    stores: tuple[StoreReport, ...]
    losses: int
    not_stated: tuple[str, ...]
    holds_nothing: bool

    @property
    def events(self) -> int:
        """How many events are in it."""
        return self.counts.events

    @property
    def memories(self) -> int:
        """How many memories agents can recall now, as far as is known."""
        return self.counts.memories

    @property
    def has_all_stores(self) -> bool:
        """Whether every store was read completely."""
        return all(each.status is StoreStatus.COMPLETE for each in self.stores)

    @property
    def complete(self) -> bool:
        """Whether every store was read completely, and nothing remains to be stated."""
        return self.has_all_stores and not self.not_stated


def write_bundle(
    path: Path,
    request: Request,
    evidence: Evidence,
    *,
    history: Iterable[SealedEvent],
    subject: BundleSubject | None = None,
    stores: Iterable[StoreData] = (),
    progress: Callable[[int], object] = lambda _done: None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Bundle:
    """
    Write everything that is held about one customer to a zip file at *path*.

    Args:
        path: The file; an existing one is replaced when the new one is whole.
        request: The customer's request.
        evidence: The log, at a moment not before the last event of *history*.
        history: The customer's events, oldest first.
        subject: Who the customer is.
        stores: The live stores. Those that the log names and that are not among them are reported.
        progress: Called with the number of events written since.
        clock_ns: Wall clock: when a store was read.

    Raises:
        OSError: It could not be written. There is no half of it, then or after any other error.
    """
    with ExitStack() as stack:
        archive = stack.enter_context(archive_at(path, request.generated_us))
        database = stack.enter_context(closing(temporary_database()))
        writing = _Writing(archive, request, evidence, _Knowledge(database))
        archive.add("verify.py", verify_alone())
        archive.add("checkpoint.note", evidence.checkpoint.encode())
        writing.history(history, path, progress)
        writing.memories(stores, clock_ns)
        facts = writing.pages(subject or BundleSubject())
        return Bundle(
            path=path,
            counts=facts.counts,
            stores=tuple(facts.stores),
            losses=sum(each.n_events for each in evidence.losses),
            not_stated=facts.not_stated,
            holds_nothing=facts.holds_nothing,
        )


class _Knowledge:
    """
    What is gathered from the history as it passes.

    Attributes:
        memories: What remains by the log.
        provenance: Where each memory came from.
        conversations: What was done in each.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self.memories = LoggedMemories(database)
        self.provenance = ProvenanceIndex(database)
        self.conversations = Conversations(database)
        self.summary = EventSummary()


class _Writing:
    def __init__(
        self, archive: Archive, request: Request, evidence: Evidence, knowledge: _Knowledge
    ) -> None:
        self._archive = archive
        self._request = request
        self._evidence = evidence
        self._known = knowledge
        self._reports: list[StoreReport] = []
        self._latest = Latest()

    def history(
        self, history: Iterable[SealedEvent], path: Path, progress: Callable[[int], object]
    ) -> None:
        known = self._known
        event_proofs = EventProofs(self._evidence, self._request.notice)
        with unnamed_file(path) as proofs, unnamed_file(path) as accesses:
            accesses.write(csv_lines([list(ACCESS_COLUMNS)]))
            with self._archive.member("events.jsonl") as events:
                for sealed in history:
                    proven = event_proofs.proven(sealed)
                    document = proven.document
                    # Before the choice of what is covered: what remains follows from all events,
                    # deletions included.
                    known.memories.add(document)
                    known.provenance.add(document)
                    if not self._covers(document):
                        continue
                    events.write(event_line(document))
                    accesses.write(access_lines(document))
                    proofs.write(proven.line())
                    known.summary.add(document, proven.receipts)
                    known.conversations.add(document)
                    progress(1)
            if self._request.kind is RequestType.ACCESS:
                self._archive.add_file("accesses.csv", accesses)
            self._archive.add_file("proofs.jsonl", proofs)

    def _covers(self, document: dict[str, Any]) -> bool:
        if self._request.kind is RequestType.ACCESS:
            return True
        return document["class"] in PORTABLE and not _is_own_work(document["source"])

    def memories(self, stores: Iterable[StoreData], clock_ns: Callable[[], int]) -> None:
        with self._archive.member("memories.jsonl") as out:
            for store in stores:
                asked_us = clock_ns() // 1_000
                self._reports.append(self._memories_of(store, out, asked_us))
            read_stores = {each.store for each in self._reports}
            # A store of the log that this process has not opened is named as not read, never left
            # out. The site on which people are looked up stores nothing.
            for name in sorted({*self._known.summary.stores} - read_stores - {SITE}):
                n_records = self._from_log(name, name, out)
                status = StoreStatus.NOT_ASKED
                report = StoreReport(name=name, store=name, status=status, n_memories=n_records)
                self._reports.append(report)

    def _memories_of(self, store: StoreData, out: Writable, asked_us: int) -> StoreReport:
        report = StoreReport(
            name=store.name, store=store.store, title=store.title, asked_us=asked_us
        )
        if store.unavailable is not None:
            n_logged = self._from_log(store.name, store.store, out)
            return replace(report, n_memories=n_logged, error=store.unavailable)
        read = Counter[bool]()
        shared = 0
        try:
            for record, is_shared in self._records_of(store):
                # Counted before it is written: it may be another's even where the request does not
                # cover it.
                shared += is_shared
                self._known.memories.leave_out(store.store, record)
                if self._write_record(store.store, record, out):
                    read[record["is_current"]] += 1
        except Exception as exc:  # noqa: BLE001 - whatever it was, the others are still read
            status = StoreStatus.PARTIAL if read.total() else StoreStatus.FAILED
            # What was read is no longer in the log's list, so that nothing is there twice.
            n_memories = read[True] + self._from_log(store.name, store.store, out)
            # Not its message, which may quote what is stored.
            return replace(
                report,
                status=status,
                n_memories=n_memories,
                n_beside=read[False],
                error=type(exc).__qualname__,
            )
        report = replace(
            report, status=StoreStatus.COMPLETE, n_memories=read[True], n_beside=read[False]
        )
        if not shared:
            return report
        # Art. 15(4): what is somebody else's as well cannot be told apart from what is theirs.
        error = f"{shared:,} of its records are another customer's, too: without content here"
        return replace(report, status=StoreStatus.PARTIAL, n_shared=shared, error=error)

    def _records_of(self, store: StoreData) -> Iterator[tuple[dict[str, Any], bool]]:
        """Yield records, and whether each is another customer's, too."""
        for record in store.records():
            if record.is_current or self._request.kind is RequestType.ACCESS:
                yield (
                    {
                        "source": "store",
                        "store": store.name,
                        "kind": record.kind,
                        "id": record.id,
                        "collection": record.collection,
                        "content": record.content,
                        "created": record.created,
                        "updated": record.updated,
                        "is_current": record.is_current,
                    },
                    record.is_shared,
                )

    def _from_log(self, name: str, store: str, out: Writable) -> int:
        n_records = 0
        for memory in self._known.memories.remembered(store):
            line = {"source": "log", "store": name, "kind": "memory", **memory, "is_current": None}
            n_records += self._write_record(store, line, out)
        return n_records

    def _write_record(self, store: str, record: dict[str, Any], out: Writable) -> bool:
        """Write a record, unless the request does not cover it."""
        origin, came_from, used = self._known.provenance.of(store, record)
        if self._request.kind is RequestType.PORTABILITY and _is_own_work(came_from):
            return False
        record = {**record, "origin": origin, "came_from": came_from, "used": used}
        out.write(event_line(record))
        self._latest.add(record)
        return True

    def pages(self, subject: BundleSubject) -> BundleFacts:
        facts = BundleFacts(
            request=self._request,
            subject=subject,
            evidence=self._evidence,
            summary=self._known.summary,
            conversations=self._known.conversations,
            latest=self._latest,
            stores=self._reports,
        )
        self._add_json("recipients.json", facts.summary.recipients())
        self._add_json("redactions.json", facts.summary.withholdings())
        self._archive.add("README.html", first_page(facts).encode("utf-8", "replace"))
        text = manifest(facts, tuple(self._archive.written))
        self._archive.add("manifest.json", text)
        note = manifest_note(self._request, self._evidence, text)
        self._archive.add("manifest.note", note.encode())
        return facts

    def _add_json(self, path: str, document: dict[str, Any]) -> None:
        self._archive.add(path, json_page(document))


def _is_own_work(source: dict[str, Any] | None) -> bool:
    """Return whether an agent wrote it by itself: that right does not cover it (WP 242)."""
    return source is not None and source["kind"] == "agent"
