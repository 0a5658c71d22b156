"""``mnemoscope audit export``: the trail, the stores if there is a scope, and one zip file."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from rich.console import Console

from ...audit.bundle.contract import Kind, Request, StoreStatus
from ...audit.bundle.source import source
from ...audit.bundle.writing import Bundle, write_bundle
from ...audit.errors import AuditError
from ...audit.leads import leads
from ...audit.log import AuditLog
from ...audit.stores import Store
from ...memory.assembly import wanted_sinks
from ...memory.front_door import Mnemoscope, open_audit
from ...memory.settings import load_settings
from .counting import counting
from .outcome import USAGE, CommandError, say
from .scope import scope_at

FLUSH_S = 5.0
"""Seconds that events under way are given to arrive in the trail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What the command line was given; see `audit_export`."""

    customer: str
    tenant: str | None = None
    out: Path | None = None
    portability: bool = False
    scope: str | Mnemoscope | None = None
    notice: Path | None = None
    audit_url: str | None = None


def export(options: ExportOptions, console: Console) -> Bundle:
    """
    Write the bundle.

    Raises:
        ConfigurationError: A setting makes no sense, or there is no scope at its address.
        AuditError: The trail cannot be read, or nobody can be found in it.
        CommandError: The notice is none.
        OSError: The bundle could not be written.
    """
    request = _request(options)
    path = _path(options.out, request)
    with _asked(options) as (log, stores), source(log, options.customer, options.tenant) as found:
        _record(log, "privacy.export.requested", {"request": request.request_id})
        with counting(console, "exporting", found.expected) as progress:
            bundle = write_bundle(
                path,
                request,
                found.evidence,
                history=found.history,
                stores=stores(),
                progress=progress,
            )
        _record(log, "privacy.export.completed", _outcome(request, bundle))
    return bundle


def _request(options: ExportOptions) -> Request:
    now = time.time_ns() // 1_000
    given = {"audit_url": options.audit_url} if options.audit_url else {}
    day = time.strftime("%Y%m%d", time.gmtime(now / 1e6))
    return Request(
        request_id=f"{day}-{uuid4().hex[:8]}",
        kind=Kind.PORTABILITY if options.portability else Kind.ACCESS,
        generated_us=now,
        version=version("mnemoscope"),
        notice=_notice(options.notice),
        sinks=tuple(each for each in wanted_sinks(load_settings(**given)) if each != "audit"),
    )


def _notice(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CommandError(f"{path} is not JSON", USAGE) from None
    parts = {each: _part(found, each) for each in ("controller", "art15")}
    if None in parts.values():
        raise CommandError(f"{path} needs objects named controller and art15", USAGE)
    return parts


def _part(found: Any, name: str) -> dict[str, Any] | None:
    part: Any = cast("dict[str, Any]", found).get(name, {}) if isinstance(found, dict) else None
    return cast("dict[str, Any]", part) if isinstance(part, dict) else None


Stores = Callable[[], Iterator[Store]]


@contextmanager
def _asked(options: ExportOptions) -> Generator[tuple[AuditLog, Stores]]:
    """Return the trail, and what asks the stores once the history is written."""
    if options.scope is None:
        given = {"audit_url": options.audit_url} if options.audit_url else {}
        yield open_audit(**given), _nobody
        return
    with _opened(options.scope) as scope:
        scope.flush(FLUSH_S)
        with _stores(scope, options) as stores:
            yield scope.audit, stores


@contextmanager
def _opened(given: str | Mnemoscope) -> Generator[Mnemoscope]:
    if isinstance(given, Mnemoscope):
        yield given
        return
    with closing(scope_at(given)) as scope:
        yield scope


def _nobody() -> Iterator[Store]:
    return iter(())


@contextmanager
def _stores(scope: Mnemoscope, options: ExportOptions) -> Generator[Stores]:
    with scope.places(options.customer, tenant=options.tenant) as places:

        def stores() -> Iterator[Store]:
            yield from places.stores(leads(scope.audit, options.customer, options.tenant))

        yield stores


def _path(out: Path | None, request: Request) -> Path:
    name = f"mnemoscope-export-{request.request_id}.zip"
    if out is None:
        return Path(name)
    path = out / name if out.is_dir() else out
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    return path


def _record(log: AuditLog, name: str, data: dict[str, Any]) -> None:
    """Record that somebody looked; a trail that can only be read is still exported."""
    try:
        log.append_log_event(name, data)
    except AuditError as exc:
        say(f"this export could not be recorded in the trail: {' '.join(str(exc).split())}")


def _outcome(request: Request, bundle: Bundle) -> dict[str, Any]:
    return {
        "request": request.request_id,
        "type": request.kind.value,
        "n_events": bundle.events,
        "n_memories": bundle.memories,
        "complete": bundle.complete,
        "stores": {each.name: each.status.value for each in bundle.stores},
    }


def show(bundle: Bundle, options: ExportOptions, *, json: bool) -> None:
    """Print what was written: for a person on standard error, or as JSON on standard output."""
    if json:
        Console().print_json(data=as_document(bundle, options))
        return
    if bundle.holds_nothing:
        say(f"no data held: {bundle.path} says so")
    else:
        say(f"{bundle.path}: {bundle.events:,} events, {bundle.memories:,} things remembered")
    if options.scope is None:
        say("from the audit log alone: the stores were not asked; pass --scope to ask them")
    for each in bundle.stores:
        if each.status is not StoreStatus.COMPLETE:
            why = f" ({each.error})" if each.error else ""
            say(f"{each.name}: {_WORDS[each.status]}{why}")
    if bundle.losses:
        say(f"the log declares {bundle.losses:,} events as lost, whoever they were about")
    if not bundle.complete:
        say("incomplete: the bundle says so on its first page and in its manifest")


_WORDS = {
    StoreStatus.PARTIAL: "told a part, then failed",
    StoreStatus.FAILED: "failed",
    StoreStatus.NOT_ASKED: "not asked",
}


def as_document(bundle: Bundle, options: ExportOptions) -> dict[str, Any]:
    """Return what was written, for ``--json``."""
    return {
        "path": str(bundle.path),
        "events": bundle.events,
        "accesses": bundle.accesses,
        "memories": bundle.memories,
        "complete": bundle.complete,
        "from_log_alone": options.scope is None,
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
