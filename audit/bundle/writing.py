"""
Writes a bundle: one pass over the history, then what each store says, then the first page.

Nothing is collected: each member is a stream, and what is written beside the first one waits in
files without a name. So a history of a million events takes the memory of one of a hundred.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..stores import Store
from .alone import verify_alone
from .archive import Archive, Writable, archive_at, unnamed_file
from .contract import Evidence, Kind, Request, Sealed, StoreReport, StoreStatus
from .facts import Facts
from .known import Known
from .latest import Latest
from .manifest import json_page, manifest, manifest_note
from .page import first_page
from .proving import Proving
from .statements import ACCESS_COLUMNS, access_lines, csv_lines, event_line
from .summary import Summary

PORTABLE = frozenset({"remember"})
"""What the right to data portability covers: what the agent was given to remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """
    What was written.

    Attributes:
        path: Where.
        events: How many events are in it; how many of them are consultations.
        memories: How many things the stores hold, or the log knows of where they were not asked.
        stores: What became of each store.
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
        """Whether every store told everything."""
        return all(each.status is StoreStatus.COMPLETE for each in self.stores)

    @property
    def holds_nothing(self) -> bool:
        """Whether nothing is held about the customer, as far as anybody was asked."""
        return not (self.events or self.memories)


def write_bundle(  # noqa: PLR0913 - what a bundle is made of
    path: Path,
    request: Request,
    evidence: Evidence,
    *,
    history: Iterable[Sealed],
    stores: Iterable[Store] = (),
    progress: Callable[[int], object] = lambda _done: None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Bundle:
    """
    Write everything that is held about one customer to a zip file at *path*.

    Args:
        path: Where; what is there is replaced when the new one is whole.
        request: Who asks for what.
        evidence: The log, at a moment not before the last event of *history*.
        history: The customer's events, oldest first.
        stores: The live stores. Those that the log names and that are not among them are reported.
        progress: Called with the number of events written since.
        clock_ns: Wall clock: when a store was asked.

    Raises:
        OSError: It could not be written. There is no half of it, then or after any other error.
    """
    with closing(Known()) as known, archive_at(path, request.generated_us) as archive:
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
        self, archive: Archive, request: Request, evidence: Evidence, known: Known
    ) -> None:
        self.summary = Summary()
        self.reports: list[StoreReport] = []
        self._archive = archive
        self._request = request
        self._evidence = evidence
        self._known = known
        self._latest = Latest()

    def history(
        self, history: Iterable[Sealed], path: Path, progress: Callable[[int], object]
    ) -> None:
        proving = Proving(self._evidence)
        with unnamed_file(path) as proofs, unnamed_file(path) as accesses:
            accesses.write(csv_lines([list(ACCESS_COLUMNS)]))
            with self._archive.member("events.jsonl") as events:
                for sealed in history:
                    proven = proving.proven(sealed)
                    self._known.add(proven.document)
                    if not self._covers(proven.document):
                        continue
                    events.write(event_line(proven.document))
                    accesses.write(access_lines(proven.document))
                    proofs.write(proven.line())
                    self.summary.add(proven.document)
                    self._latest.add(proven.document)
                    progress(1)
            if self._request.kind is Kind.ACCESS:
                self._archive.add_file("accesses.csv", accesses)
            self._archive.add_file("proofs.jsonl", proofs)

    def _covers(self, document: dict[str, Any]) -> bool:
        return self._request.kind is Kind.ACCESS or document["class"] in PORTABLE

    def memories(self, stores: Iterable[Store], clock_ns: Callable[[], int]) -> None:
        with self._archive.member("memories.jsonl") as out:
            for store in stores:
                asked_us = clock_ns() // 1_000
                self.reports.append(self._memories_of(store, out, asked_us))
            asked = {each.store for each in self.reports}
            for name in sorted(set(self.summary.stores) - asked):
                told = self._from_log(name, out)
                status = StoreStatus.NOT_ASKED
                report = StoreReport(name=name, store=name, status=status, n_memories=told)
                self.reports.append(report)

    def _memories_of(self, store: Store, out: Writable, asked_us: int) -> StoreReport:
        report = StoreReport(name=store.name, store=store.store, asked_us=asked_us)
        if store.unasked is not None:
            told = self._from_log(store.store, out)
            return report.but(StoreStatus.NOT_ASKED, told, store.unasked)
        told = 0
        try:
            for thing in self._things(store):
                self._tell(thing, out)
                told += 1
        except Exception as exc:  # noqa: BLE001 - whatever it was, the others are still asked
            status = StoreStatus.PARTIAL if told else StoreStatus.FAILED
            told += self._from_log(store.store, out)
            # Not its message, which may quote what is stored.
            return report.but(status, told, type(exc).__qualname__)
        return report.but(StoreStatus.COMPLETE, told)

    def _things(self, store: Store) -> Iterator[dict[str, Any]]:
        for thing in store.held():
            if thing.is_current or self._request.kind is Kind.ACCESS:
                yield {
                    "source": "store",
                    "store": store.name,
                    "kind": thing.kind,
                    "id": thing.id,
                    "collection": thing.collection,
                    "content": thing.content,
                    "created": thing.created,
                    "updated": thing.updated,
                    "is_current": thing.is_current,
                }

    def _from_log(self, store: str, out: Writable) -> int:
        told = 0
        for memory in self._known.remembered(store):
            line = {"source": "log", "store": store, "kind": "memory", **memory, "is_current": None}
            self._tell(line, out)
            told += 1
        return told

    def _tell(self, thing: dict[str, Any], out: Writable) -> None:
        out.write(event_line(thing))
        self._latest.add_memory(thing)

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
