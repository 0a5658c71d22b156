"""``mnemoscope audit show``."""

from __future__ import annotations

import json as json_format
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import RenderableType

from ....memory.errors import ConfigurationError
from ....telemetry.text import utc_text
from ..exit_codes import say
from ..options import TIMES, AuditUrl, Json, Limit, Tenant
from ..output import fields, print_answer
from ..person_options import Also, AnyOfThem, Exact, query_of, say_who
from ..times import is_day, time_us
from .operation_document import operation_document

if TYPE_CHECKING:
    from ....audit.log import AuditLog
    from ....audit.queries.memory_model import Memory, UsedMemory
    from ....audit.queries.provenance import Recall, RecalledMemory
    from ....audit.record.rows import AuditRow
    from ....audit.store.person_lookup import CustomerQuery, Person

DEFAULT_SINCE = "24h"
"""The start of the period that is shown without a customer, memory or run."""


def show(
    customer: Annotated[
        str | None, typer.Option(metavar="ID", help="Operations on this customer's memory.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="ID", help="Operations on this memory.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="What this run recalled, and where it came from. Add --customer if the run's "
            "name contains their id.",
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="AGE|TIME", help=TIMES)] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="AGE|TIME",
            help="With --customer: what was remembered about them at this time (UTC); of a day "
            "without a time, at its end.",
        ),
    ] = None,
    tenant: Tenant = None,
    also: Also = None,
    any_of_them: AnyOfThem = False,
    exact: Exact = False,
    limit: Limit = 50,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Show the audit trail by customer, memory, run and time.

    Without a customer, memory or run: the last 24 hours. The newest are shown, with their content
    redacted, as it is stored. Reads the audit trail and changes nothing. Of a customer it exits
    with 5 if several people have that id, with 6 if nobody is known by it; with 6 if no such tenant
    is known.
    """
    if memory is not None and (customer or run):
        raise ConfigurationError("--memory cannot be combined with --customer or --run")
    if as_of is not None and run is not None:
        raise ConfigurationError("pass one of --as-of and --run, not both")
    if as_of is not None and customer is None:
        raise ConfigurationError("--as-of needs a customer: pass --customer")
    if as_of is not None and since is not None:
        raise ConfigurationError("--as-of is one time: --since has no meaning with it")
    if customer is None and (also or any_of_them or exact):
        raise ConfigurationError("--also, --any and --exact need --customer")
    from ..scope import open_trail

    now_us = time.time_ns() // 1_000
    log = open_trail(audit_url)
    person = None
    if customer is not None:
        query = query_of(customer, tenant, also=also, any_of_them=any_of_them, exact=exact)
        person = _person(log, query)
    else:
        _check_tenant(log, tenant)
    if as_of is not None and person is not None:
        # A day's end is the next one's beginning, which is not asked for.
        at_us = time_us(as_of, "--as-of", now_us, at_end=True) - is_day(as_of)
        answer = _as_of(log, person, at_us)
    elif run is not None:
        answer = _recalls(log, run, person, tenant, limit)
    else:
        narrowed = person is not None or memory is not None
        # A whole trail may be of millions; a person's or a memory's history is asked for as a
        # whole.
        since = since or (None if narrowed else DEFAULT_SINCE)
        since_us = 0 if since is None else time_us(since, "--since", now_us)
        if person is not None:
            _say_left_out(log, person)
        answer = _operations(deque(_rows(log, person, memory, tenant, since_us), limit))
    print_answer(answer.documents, answer.screen, json=json)


class _Answer(NamedTuple):
    documents: list[dict[str, Any]]
    screen: RenderableType


def _person(log: AuditLog, query: CustomerQuery) -> Person:
    from ...customer_requests.requested_person import person_in_log

    person = person_in_log(log, query)
    say_who(query, person)
    return person


def _say_left_out(log: AuditLog, person: Person) -> None:
    """Say how much was done for nobody to what was only recalled for them."""
    from ....audit.bundle.sentences import counted
    from ....audit.queries.reading import n_of_documents

    with log.moments() as moments:
        left_out = sum(n_of_documents(each, person.uids, person.tenants) for each in moments)
    if left_out:
        were = counted(left_out, "operation names", "operations name")
        say(
            f"{were} nobody, on what was recalled for them and not written for them, and so not "
            "shown: pass --memory ID to see what became of one"
        )


def _check_tenant(log: AuditLog, tenant: str | None) -> None:
    from ....audit.store.tenants import check_tenant

    if tenant is not None:
        with log.moments() as (snapshot, *beside):
            check_tenant(snapshot, tenant, *beside)


def _as_of(log: AuditLog, person: Person, at_us: int) -> _Answer:
    from ....audit.queries.memory_model import remembered_at
    from .show_screen import memories_screen

    found = remembered_at(log, person, None, at_us)
    documents = [*map(_memory_document, found.remembered), *map(_used_document, found.used)]
    return _Answer(documents, memories_screen(found, at_us))


def _recalls(
    log: AuditLog, run: str, person: Person | None, tenant: str | None, limit: int
) -> _Answer:
    from ....audit.queries.provenance import recalls, rows_of, verbatim
    from .show_screen import recalls_screen

    rows: Iterable[AuditRow] = rows_of(log, run, person)
    if person is None:
        rows = _in_tenant(rows, tenant)
    # The newest: a deque lets the oldest go, and no more than that is held.
    found = deque(recalls(log, rows), limit)
    # A user who passes the customer's id may see it in the names of runs.
    run_name = str if person is None else partial(verbatim, customer=person.identities[0].customer)
    return _Answer([_recall_document(each) for each in found], recalls_screen(found, run_name))


def _operations(rows: Collection[AuditRow]) -> _Answer:
    from .show_screen import operations_screen

    return _Answer([operation_document(each) for each in rows], operations_screen(rows))


def _rows(
    log: AuditLog, person: Person | None, memory: str | None, tenant: str | None, since_us: int
) -> Iterator[AuditRow]:
    if person is not None:
        history: Iterable[AuditRow] = log.history(person)
        return (row for row in history if row.occurred_us >= since_us)
    return _in_tenant(log.rows(since_us=since_us, memory_id=memory), tenant)


def _in_tenant(rows: Iterable[AuditRow], tenant: str | None) -> Iterator[AuditRow]:
    return (row for row in rows if tenant in {None, row.tenant or ""})


def _memory_document(memory: Memory) -> dict[str, Any]:
    return {
        **_place(memory),
        "relation": "remembered",
        "written": utc_text(memory.written_us),
        "changed": utc_text(memory.changed_us),
        **fields(memory, "agent run in_doubt"),
    }


def _used_document(memory: UsedMemory) -> dict[str, Any]:
    last_used = utc_text(memory.last_us)
    return {**_place(memory), "relation": "used", "times": memory.times, "last_used": last_used}


def _place(memory: Memory | UsedMemory) -> dict[str, Any]:
    return {
        **fields(memory, "store collection memory_id"),
        "content": json_format.loads(memory.content) if memory.content else None,
    }


def _recall_document(recall: Recall) -> dict[str, Any]:
    seen = [_seen_document(each) for each in recall.seen]
    return {**operation_document(recall.row), "memories": seen}


def _seen_document(seen: RecalledMemory) -> dict[str, Any]:
    return {
        **fields(seen, "memory_id rank score"),
        "origin": None if seen.origin is None else operation_document(seen.origin),
        "before": [operation_document(each) for each in seen.before],
        "since": [operation_document(each) for each in seen.since],
    }
