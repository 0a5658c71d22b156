"""Export a customer: the audit trail's history, and the memories of a scope's stores if given."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from ...audit.bundle.contract import Request, RequestType, StoreStatus
from ...audit.bundle.notice import Notice, parse_notice
from ...audit.bundle.source import source
from ...audit.bundle.writing import Bundle, write_bundle
from ...audit.database.errors import AuditError
from ...audit.erasure.customer_ids import data_subject
from ...audit.log import AuditLog
from ...audit.store.person_lookup import Person
from ...memory.errors import ConfigurationError
from ...memory.scope import Mnemoscope
from ...memory.subject_data.records import DataSubject, Erased, StoreData, SubjectRecord
from .erase import only_part
from .joined import JoinedData
from .requested_person import FLUSH_S, SHARED, holds

TRAIL = "audit trail"
"""How the trail itself is named among the stores, where its answer leaves a doubt."""

_STATUSES = {
    StoreStatus.PARTIAL: "answered in part, then failed",
    StoreStatus.FAILED: "failed",
    StoreStatus.NOT_ASKED: "not asked",
}

Progress = Callable[[int], AbstractContextManager[Callable[[int], object]]]
"""Takes the expected number of events; the body calls what it returns with each count written."""


def _no_progress(_total: int) -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(lambda _done: None)


def new_request(
    kind: RequestType = RequestType.ACCESS,
    *,
    notice: Notice | None = None,
) -> Request:
    """Return a numbered request of now."""
    now_us = time.time_ns() // 1_000
    day = time.strftime("%Y%m%d", time.gmtime(now_us / 1e6))
    return Request(
        request_id=f"{day}-{uuid4().hex[:8]}",
        kind=kind,
        generated_us=now_us,
        version=version("mnemoscope"),
        notice=notice or Notice(),
    )


def read_notice(path: Path | None) -> Notice:
    """
    Return the operator's statements in the file at *path*; None: nothing is stated.

    Raises:
        ConfigurationError: It is no such file.
        OSError: It cannot be read.
    """
    if path is None:
        return Notice()
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ConfigurationError(f"{path} is not JSON") from None
    try:
        return parse_notice(found)
    except ValueError as exc:
        raise ConfigurationError(f"{path}: {exc}") from None


def bundle_path(out: Path | None, request: Request) -> Path:
    """
    Return the path of the bundle: *out*, or a file named by the request in *out* or this folder.

    Raises:
        FileNotFoundError: The folder does not exist.
    """
    name = f"mnemoscope-export-{request.request_id}.zip"
    if out is None:
        return Path(name)
    path = out / name if out.is_dir() else out
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    return path


def export_from_scope(
    scope: Mnemoscope,
    person: Person,
    *,
    request: Request,
    path: Path,
    including_shared: bool = False,
    log: AuditLog | None = None,
    progress: Progress = _no_progress,
    tell: Callable[[str], None] = lambda _line: None,
) -> Bundle:
    """
    Write the bundle from the trail and the stores of *scope*; see `export_from_log`.

    With *including_shared*, it has the content of threads that another customer has written in.
    With *log*, its history is that of this shard; else of all that has something of the person.

    Raises:
        ConfigurationError: The scope is disabled or has no audit trail.
        ScopeError: The customer's id is empty or a wildcard.
    """
    # What was done a moment ago may still be in the queue.
    scope.flush(FLUSH_S)
    # Otherwise this process's latest events would have recipients that cannot be told.
    scope.note_deliveries()
    log = log or only_part(scope.audit, person, "exported")
    first, *others = person.identities
    with scope.customer_data(first.customer, tenant=first.tenant) as data:
        joined = JoinedData(data, dict.fromkeys(others, data))

        def stores() -> Iterator[StoreData]:
            # When the stores are asked, and not before: the history is written first.
            subject = data_subject(
                log.trail,
                first.customer,
                first.tenant,
                others=others,
                including_shared=including_shared,
            )
            if not person.shared_with:
                yield from joined.stores(subject)
                return
            by_id = joined.stores(DataSubject(customer=first.customer, tenant=first.tenant))
            for store, whole in zip(joined.stores(subject), by_id, strict=True):
                # Told apart by what the trail knows to be theirs: where the id finds nothing.
                yield _NotAsked(store, SHARED) if holds(whole, {}) else store

        return export_from_log(
            log,
            person,
            request=request,
            path=path,
            stores=stores(),
            progress=progress,
            tell=tell,
        )


def export_from_log(
    log: AuditLog,
    person: Person,
    *,
    request: Request,
    path: Path,
    stores: Iterable[StoreData] = (),
    progress: Progress = _no_progress,
    tell: Callable[[str], None] = lambda _line: None,
) -> Bundle:
    """
    Write the bundle to *path*, and record in the trail that it was requested and written.

    Args:
        log: The audit trail.
        person: Whose data: see `person_in_log`. What it leaves in doubt makes it incomplete.
        request: The right that is exercised.
        path: The zip file.
        stores: The live stores, asked once the history is written.
        progress: Shows how many events are written.
        tell: Called with a line if the trail can be read only, so that nothing is recorded.

    Raises:
        AuditError: The trail cannot be read, or its keys are others.
        OSError: The bundle cannot be written.
    """
    with source(log, person) as found:
        # Inside of the snapshot: the export does not tell of itself.
        _record(log, "privacy.export.requested", {"request": request.request_id}, tell)
        with progress(found.expected) as advance:
            bundle = write_bundle(
                path,
                request,
                found.evidence,
                subject=found.subject,
                history=found.history,
                stores=chain(_doubts(person), stores),
                progress=advance,
            )
        _record(log, "privacy.export.completed", _outcome(request, bundle), tell)
    return bundle


def bundle_lines(bundle: Bundle, *, from_log_alone: bool) -> Iterator[str]:
    """Yield what is in *bundle* and what is missing of it, a line each."""
    if bundle.holds_nothing:
        yield f"this customer is known, and no data is held about them now: {bundle.path} says so"
    else:
        counts = bundle.counts
        yield (
            f"{bundle.path}: {counts.memories:,} remembered now, {counts.accesses:,} times looked "
            f"up, {counts.events:,} events"
        )
        if counts.beside:
            yield f"and {counts.beside:,} records of earlier versions or messages"
    if from_log_alone:
        yield "from the audit log alone: the stores were not asked; pass --scope to ask them"
    for each in bundle.stores:
        if each.status in _STATUSES and each.name != TRAIL:  # its doubts were told
            error = f" ({each.error})" if each.error else ""
            status = "answered" if each.n_shared else _STATUSES[each.status]
            yield f"{each.name}: {status}{error}"
            if each.n_shared:
                yield "--including-shared exports their content, with what the other has written"
    if bundle.losses:
        yield f"the log declares {bundle.losses:,} events of any customer as lost"
    if bundle.not_stated:
        yield f"not stated, for want of --notice: {', '.join(bundle.not_stated)}"
    if not bundle.complete:
        yield "incomplete: the bundle says so on its first page and in its manifest"


def bundle_document(bundle: Bundle, *, from_log_alone: bool) -> dict[str, Any]:
    """Return what `bundle_lines` say, for a program."""
    return {
        "path": str(bundle.path),
        "events": bundle.events,
        "accesses": bundle.counts.accesses,
        "memories": bundle.memories,
        "beside": bundle.counts.beside,
        "complete": bundle.complete,
        "not_stated": list(bundle.not_stated),
        "from_log_alone": from_log_alone,
        "loss": bundle.losses,
        "stores": [
            {
                "name": each.name,
                "status": each.status.value,
                "n_memories": each.n_memories,
                "error": each.error,
            }
            for each in bundle.stores
        ],
    }


def _doubts(person: Person) -> Iterator[StoreData]:
    """Yield the doubts about the trail's own answer, told like stores that were not asked."""
    # In the bundle itself, too: whoever gets it has not seen the terminal.
    for doubt in person.doubts:
        yield _NotAsked(None, doubt)


class _NotAsked:
    """
    A store left out of the export, with the reason.

    Attributes:
        name: See `StoreData.name`.
        store: See `StoreData.store`.
        title: See `StoreData.title`.
    """

    def __init__(self, store: StoreData | None, reason: str) -> None:
        self.name = store.name if store else TRAIL
        self.store = store.store if store else TRAIL
        self.title = store.title if store else ""
        self.unavailable = reason

    def records(self) -> Iterator[SubjectRecord]:
        """Yield no record: the store was left out."""
        return iter(())

    def erase(self) -> Erased:
        """Erase nothing."""
        return Erased(0)

    def files(self) -> tuple[Path, ...]:
        """Return no file: the store was left out."""
        return ()


def _record(log: AuditLog, name: str, data: dict[str, Any], tell: Callable[[str], None]) -> None:
    try:
        log.append_log_event(name, data)
    except AuditError as exc:  # a trail that can only be read is exported all the same
        tell(f"this export could not be recorded in the trail: {' '.join(str(exc).split())}")


def _outcome(request: Request, bundle: Bundle) -> dict[str, Any]:
    return {
        "request": request.request_id,
        "type": request.kind.value,
        "n_events": bundle.events,
        "n_memories": bundle.memories,
        "complete": bundle.complete,
        "stores": {each.name: each.status.value for each in bundle.stores},
    }
