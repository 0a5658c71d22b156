"""``mnemoscope audit show``: which of its answers is asked for, and each as a document."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from ...audit.leads import verbatim
from ...audit.log import AuditLog
from ...audit.memory_model import Memory, remembered_at
from ...audit.provenance import Recall, Seen, recalls, rows_of
from ...audit.rows import AuditRow
from ...memory.errors import ConfigurationError
from ...memory.front_door import open_audit
from ...telemetry.text import json_text, utc_text
from . import browsing_screen as screens
from .moment import moment_us

DEFAULT_SINCE = "24h"
"""Where nothing narrows the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """
    What ``mnemoscope audit show`` is asked.

    Attributes:
        customer: Whose history.
        memory: Which memory's.
        run: What it saw.
        since: Nothing older: an age or an ISO 8601 time.
        as_of: The moment at which the customer's memory is wanted; likewise.
        tenant: Whose customer; or only what was done for this tenant.
        limit: The newest so many operations.
        audit_url: The trail. None: the configured one.
        json: Print JSON.

    Raises:
        ConfigurationError: They do not go together.
    """

    customer: str | None = None
    memory: str | None = None
    run: str | None = None
    since: str | None = None
    as_of: str | None = None
    tenant: str | None = None
    limit: int = 50
    audit_url: str | None = None
    json: bool = False

    def __post_init__(self) -> None:
        if self.memory is not None and (self.customer or self.run):
            raise ConfigurationError("--memory goes alone: without --customer and --run")
        if self.as_of is not None and self.run is not None:
            raise ConfigurationError("pass one of --as-of and --run, not both")
        if self.as_of is not None and self.customer is None:
            raise ConfigurationError("--as-of wants to know of whom: pass --customer")
        if self.as_of is not None and self.since is not None:
            raise ConfigurationError("--as-of is a moment: --since has no meaning with it")


def show(options: ShowOptions, console: Console, now_us: int | None = None) -> None:
    """
    Print the answer.

    Raises:
        ConfigurationError: A time cannot be read, or the trail's URL.
        AuditError: The trail cannot be read, or was written with other keys.
    """
    now_us = time.time_ns() // 1_000 if now_us is None else now_us
    given = {"audit_url": options.audit_url} if options.audit_url else {}
    log = open_audit(**given)
    if options.as_of is not None and options.customer is not None:
        moment = moment_us(options.as_of, "--as-of", now_us)
        found = remembered_at(log, options.customer, options.tenant, moment)
        _print(options, console, [_memory(each) for each in found], screens.memories(found, moment))
    elif options.run is not None:
        of_run = rows_of(log, options.run, options.customer, options.tenant)
        seen = deque(recalls(log, of_run), options.limit)
        screen = screens.recalls(seen, partial(_run_name, customer=options.customer))
        _print(options, console, [_recall(each) for each in seen], screen)
    else:
        rows = deque(_rows(log, options, now_us), options.limit)
        _print(options, console, [_operation(each) for each in rows], screens.operations(rows))


def _print(options: ShowOptions, console: Console, documents: list[Any], screen: Any) -> None:
    if options.json:
        console.print_json(json_text(documents))
    else:
        console.print(screen)


def _rows(log: AuditLog, options: ShowOptions, now_us: int) -> Iterator[AuditRow]:
    narrowed = options.customer is not None or options.memory is not None
    since = options.since or (None if narrowed else DEFAULT_SINCE)
    since_us = 0 if since is None else moment_us(since, "--since", now_us)
    if options.customer is not None:
        found: Iterable[AuditRow] = log.history(options.customer, options.tenant)
        return (row for row in found if row.occurred_us >= since_us)
    rows = log.rows(since_us=since_us, memory_id=options.memory)
    return (row for row in rows if options.tenant in {None, row.tenant})


def _run_name(run: str, customer: str | None) -> str:
    # Whoever knows the customer's id may see it again.
    return run if customer is None else verbatim(run, customer)


def _operation(row: AuditRow) -> dict[str, Any]:
    return {
        "time": utc_text(row.occurred_us),
        "seq": row.seq,
        "event_id": row.event_id,
        "operation": row.operation,
        "class": row.op_class.value,
        "store": row.store,
        "method": row.method,
        "collection": row.collection,
        "status": row.status.value,
        "neutral": row.neutral,
        "duration_ms": row.duration_us / 1e3,
        "hits": row.hits,
        "tenant": row.tenant,
        "agent": row.agent,
        "feature": row.feature,
        "run": row.run,
        "purpose": row.purpose,
        "memories": [each._asdict() for each in row.memories],
        "content": json.loads(row.content) if row.content else None,
        "erased": row.detail is None,
    }


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        "store": memory.store,
        "collection": memory.collection,
        "memory_id": memory.memory_id,
        "content": json.loads(memory.content) if memory.content else None,
        "written": utc_text(memory.written_us),
        "changed": utc_text(memory.changed_us),
        "agent": memory.agent,
        "run": memory.run,
        "in_doubt": memory.in_doubt,
    }


def _recall(recall: Recall) -> dict[str, Any]:
    return {**_operation(recall.row), "memories": [_seen(each) for each in recall.seen]}


def _seen(seen: Seen) -> dict[str, Any]:
    return {
        "memory_id": seen.memory_id,
        "rank": seen.rank,
        "score": seen.score,
        "origin": None if seen.origin is None else _operation(seen.origin),
        "before": [_operation(each) for each in seen.before],
        "since": [_operation(each) for each in seen.since],
    }
