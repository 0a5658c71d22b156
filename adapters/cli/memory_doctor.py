"""``mnemoscope memory doctor``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ...memory.errors import ConfigurationError
from ...telemetry.text import json_text
from .exit_codes import INCOMPLETE, UNHEALTHY, say
from .options import AuditUrl, Json, Limit, ScopeAddress, Tenant
from .output import fields, print_json, table
from .person_options import Also, AnyOfThem, Exact, query_of, say_who

if TYPE_CHECKING:
    from ...memory.hygiene.findings import Address, HygieneFinding
    from ..customer_requests.hygiene import Examination


def memory_doctor(
    customer: Annotated[
        str | None, typer.Option(metavar="ID", help="The customer whose memories are looked at.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Everybody's memories, by the audit trail alone.")
    ] = False,
    tenant: Tenant = None,
    also: Also = None,
    any_of_them: AnyOfThem = False,
    exact: Exact = False,
    unused_days: Annotated[
        int, typer.Option(metavar="N", min=1, help="Never recalled in so many days is a finding.")
    ] = 90,
    no_near: Annotated[
        bool, typer.Option("--no-near", help="Leave out what says the same in other words.")
    ] = False,
    cleaning_list: Annotated[
        Path | None,
        typer.Option(
            "--cleaning-list",
            metavar="FILE",
            help="Write which memories supersede others, as JSON.",
        ),
    ] = None,
    limit: Limit = 50,
    scope: ScopeAddress = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Find echoes, duplicates, partial writes and unused memories.

    Nothing is changed, and no text is shown: findings have ids of memories and events. With --scope
    the stores of your application are read as well. Exits with 1 if something was found, with 3 if
    a store could not be read; with 5 if several people have that id, with 6 if nobody has.
    """
    if (customer is None) is not everybody:
        raise ConfigurationError("pass one of --customer and --all")
    if everybody and (scope or tenant or also or any_of_them or exact):
        raise ConfigurationError("--all reads the whole trail, and no stores: pass nothing with it")
    how: dict[str, Any] = {
        "now_us": time.time_ns() // 1_000,
        "unused_days": unused_days,
        "nears": not no_near,
    }
    found = (
        _everybody(audit_url, how)
        if customer is None
        else [
            _of_person(
                query_of(customer, tenant, also=also, any_of_them=any_of_them, exact=exact),
                scope,
                audit_url,
                how,
            )
        ]
    )
    if cleaning_list is not None:
        listed = [each for one in found for each in _superseded(one.findings)]
        cleaning_list.write_text(json_text({"supersede": listed}) + "\n", encoding="utf-8")
        say(f"{cleaning_list}: {len(listed):,} memories that others supersede, to be approved")
    if json:
        print_json([_document(each) for each in found])
    else:
        _show(found, limit, from_trail=scope is None)
    if any(each.unread for each in found):
        raise typer.Exit(INCOMPLETE)
    if any(each.findings for each in found):
        raise typer.Exit(UNHEALTHY)


def _everybody(audit_url: str | None, how: dict[str, Any]) -> list[Examination]:
    from ..customer_requests.hygiene import examine_all
    from .scope import open_trail

    return [*examine_all(open_trail(audit_url), **how)]


def _of_person(
    query: Any, scope: str | None, audit_url: str | None, how: dict[str, Any]
) -> Examination:
    from ..customer_requests.hygiene import examine_person
    from ..customer_requests.requested_person import person_in_log, person_in_scope
    from .scope import open_trail, scope_with_trail

    if scope is None:
        log = open_trail(audit_url)
        person = person_in_log(log, query)
        say_who(query, person)
        return examine_person(log, person, None, **how)
    with scope_with_trail(scope, audit_url) as opened:
        person = person_in_scope(opened, query)
        say_who(query, person)
        return examine_person(opened.audit, person, opened, **how)


def _show(found: Sequence[Examination], limit: int, *, from_trail: bool) -> None:
    findings = [each for one in found for each in one.findings]
    memories = sum(each.use.memories for each in found)
    console = Console()
    if from_trail:
        say("from the audit trail alone: pass --scope to read the stores as well")
    for name, why in (each for one in found for each in one.unread.items()):
        say(f"{name} could not be read ({why})")
    console.print(_use_line(found))
    if not findings:
        console.print(f"{memories:,} memories, and nothing was found")
        return
    counts = Counter(each.ailment.value for each in findings)
    said = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    console.print(f"{memories:,} memories: {said}")
    made = table("finding", "memories, first what stays", "recalls", "tokens", figures=2)
    for each in findings[:limit]:
        ids = [memory_id for _store, _collection, memory_id in each.memories]
        shown = "\n".join([*ids[:_IDS], *([f"and {len(ids) - _IDS:,} more"] if ids[_IDS:] else [])])
        costs = (str(each.recalls or ""), str(each.tokens or ""))
        made.add_row(each.ailment.value, each.note or shown or " ".join(each.events), *costs)
    console.print(made)
    if findings[limit:]:
        console.print(f"and {len(findings) - limit:,} more: --limit, or --json for all")


def _use_line(found: Sequence[Examination]) -> str:
    recalls, runs, tokens, ever = (
        sum(getattr(each.use, name) for each in found)
        for name in ("recalls", "runs", "tokens", "ever_recalled")
    )
    each = f", {tokens / runs:,.0f} tokens a run" if runs else ""
    return f"found {recalls:,} times in {runs:,} runs{each}; {ever:,} were ever recalled"


_IDS = 4
"""Ids of one finding that are shown."""


def _superseded(findings: Sequence[HygieneFinding]) -> list[dict[str, Any]]:
    """Return each memory that another supersedes, with the one that stays: never both of two."""
    by: dict[Address, tuple[Address, str]] = {}

    def staying(memory: Address) -> Address:
        while memory in by:
            memory = by[memory][0]
        return memory

    for each in findings:
        for memory in each.memories if each.keep is not None else ():
            if memory not in by and each.keep and staying(each.keep) != memory:
                by[memory] = each.keep, each.ailment.value
    return [
        {
            **_address(memory),
            "superseded_by": _address(staying(memory)),
            "because": because,
            "approved": False,
        }
        for memory, (_keep, because) in by.items()
    ]


def _document(found: Examination) -> dict[str, Any]:
    return {
        "subject": found.subject,
        "memories": found.use.memories,
        "use": found.use._asdict(),
        "unread": found.unread,
        "findings": [
            {
                "finding": each.ailment.value,
                "memories": [_address(memory) for memory in each.memories],
                "events": list(each.events),
                "note": each.note or None,
                **fields(each, "recalls tokens"),
                "superseded_by": None if each.keep is None else each.keep[2],
            }
            for each in found.findings
        ],
    }


def _address(memory: Address) -> dict[str, Any]:
    return dict(zip(("store", "collection", "memory_id"), memory, strict=True))
