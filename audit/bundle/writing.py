"""
The writer of a bundle: one pass over the history, then each store, then the first page.

Each member is a stream, and those that are written beside the first one wait in files without a
name. So a history of a million events takes the memory of one of a hundred.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...memory.subject_data.records import StoreData
from .alone import verify_alone
from .archive import Archive, Writable, archive_at, unnamed_file
from .contract import Evidence, Request, RequestType, SealedEvent, StoreReport, StoreStatus
from .event_proofs import EventProofs
from .facts import Facts
from .latest import Latest
from .logged_memories import LoggedMemories
from .manifest import json_page, manifest, manifest_note
from .page import first_page
from .statements import ACCESS_COLUMNS, access_lines, csv_lines, event_line
from .summary import Summary

PORTABLE = frozenset({"remember"})
"""The classes that the right to data portability covers: what the agent was given to remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """
    The result of an export.

    Attributes:
        path: The zip file.
        events: How many events are in it; how many of them are consultations.
        memories: How many records the stores hold, or the log knows of where they were not read.
        stores: The result of reading each store.
        losses: How many events the log declares as lost.
    """

    path: Path
    events: int
    accesses: int
    memories: int
    stores: tuple[StoreReport, ...]
    losses: int

    @property
    def complete(self) -> bool:
        """Whether every store was read completely."""
        return all(each.status is StoreStatus.COMPLETE for each in self.stores)

    @property
    def holds_nothing(self) -> bool:
        """Whether neither the log nor a store that was read has data about the customer."""
        return not (self.events or self.memories)


def write_bundle(
    path: Path,
    request: Request,
    evidence: Evidence,
    *,
    history: Iterable[SealedEvent],
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
        stores: The live stores. Those that the log names and that are not among them are reported.
        progress: Called with the number of events written since.
        clock_ns: Wall clock: when a store was read.

    Raises:
        OSError: It could not be written. There is no half of it, then or after any other error.
    """
    with closing(LoggedMemories()) as known, archive_at(path, request.generated_us) as archive:
        writing = _Writing(archive, request, evidence, known)
        archive.add("verify.py", verify_alone())
        archive.add("checkpoint.note", evidence.checkpoint.encode())
        writing.history(history, path, progress)
        writing.memories(stores, clock_ns)
        writing.pages()
        return Bundle(
            path=path,
            events=writing.summary.all.count,
            accesses=writing.summary.accesses,
            memories=sum(each.n_memories for each in writing.reports),
            stores=tuple(writing.reports),
            losses=sum(each.n_events for each in evidence.losses),
        )


class _Writing:
    def __init__(
        self, archive: Archive, request: Request, evidence: Evidence, known: LoggedMemories
    ) -> None:
        self.summary = Summary()
        self.reports: list[StoreReport] = []
        self._archive = archive
        self._request = request
        self._evidence = evidence
        self._known = known
        self._latest = Latest()

    def history(
        self, history: Iterable[SealedEvent], path: Path, progress: Callable[[int], object]
    ) -> None:
        event_proofs = EventProofs(self._evidence)
        with unnamed_file(path) as proofs, unnamed_file(path) as accesses:
            accesses.write(csv_lines([list(ACCESS_COLUMNS)]))
            with self._archive.member("events.jsonl") as events:
                for sealed in history:
                    proven = event_proofs.proven(sealed)
                    self._known.add(proven.document)
                    if not self._covers(proven.document):
                        continue
                    events.write(event_line(proven.document))
                    accesses.write(access_lines(proven.document))
                    proofs.write(proven.line())
                    self.summary.add(proven.document)
                    self._latest.add(proven.document)
                    progress(1)
            if self._request.kind is RequestType.ACCESS:
                self._archive.add_file("accesses.csv", accesses)
            self._archive.add_file("proofs.jsonl", proofs)

    def _covers(self, document: dict[str, Any]) -> bool:
        return self._request.kind is RequestType.ACCESS or document["class"] in PORTABLE

    def memories(self, stores: Iterable[StoreData], clock_ns: Callable[[], int]) -> None:
        with self._archive.member("memories.jsonl") as out:
            for store in stores:
                asked_us = clock_ns() // 1_000
                self.reports.append(self._memories_of(store, out, asked_us))
            read_stores = {each.store for each in self.reports}
            for name in sorted(set(self.summary.stores) - read_stores):
                n_records = self._from_log(name, out)
                status = StoreStatus.NOT_ASKED
                report = StoreReport(name=name, store=name, status=status, n_memories=n_records)
                self.reports.append(report)

    def _memories_of(self, store: StoreData, out: Writable, asked_us: int) -> StoreReport:
        report = StoreReport(
            name=store.name, store=store.store, title=store.title, asked_us=asked_us
        )
        if store.unavailable is not None:
            n_records = self._from_log(store.store, out)
            return report.but(StoreStatus.NOT_ASKED, n_records, store.unavailable)
        n_records = 0
        try:
            for record in self._records_of(store):
                self._write_record(record, out)
                n_records += 1
        except Exception as exc:  # noqa: BLE001 - whatever it was, the others are still read
            status = StoreStatus.PARTIAL if n_records else StoreStatus.FAILED
            n_records += self._from_log(store.store, out)
            # Not its message, which may quote what is stored.
            return report.but(status, n_records, type(exc).__qualname__)
        return report.but(StoreStatus.COMPLETE, n_records)

    def _records_of(self, store: StoreData) -> Iterator[dict[str, Any]]:
        for record in store.records():
            if record.is_current or self._request.kind is RequestType.ACCESS:
                yield {
                    "source": "store",
                    "store": store.name,
                    "kind": record.kind,
                    "id": record.id,
                    "collection": record.collection,
                    "content": record.content,
                    "created": record.created,
                    "updated": record.updated,
                    "is_current": record.is_current,
                }

    def _from_log(self, store: str, out: Writable) -> int:
        n_records = 0
        for memory in self._known.remembered(store):
            line = {"source": "log", "store": store, "kind": "memory", **memory, "is_current": None}
            self._write_record(line, out)
            n_records += 1
        return n_records

    def _write_record(self, record: dict[str, Any], out: Writable) -> None:
        out.write(event_line(record))
        self._latest.add_memory(record)

    def pages(self) -> None:
        summary, request = self.summary, self._request
        self._add_json("recipients.json", summary.recipients(request.sinks))
        self._add_json("redactions.json", summary.withholdings())
        page = first_page(Facts(request, self._evidence, summary, self._latest, self.reports))
        self._archive.add("README.html", page.encode("utf-8", "replace"))
        written = tuple(self._archive.written)
        text = manifest(request, self._evidence, summary, self.reports, written)
        self._archive.add("manifest.json", text)
        self._archive.add("manifest.note", manifest_note(request, self._evidence, text).encode())

    def _add_json(self, path: str, document: dict[str, Any]) -> None:
        self._archive.add(path, json_page(document))
