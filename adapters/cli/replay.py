"""``mnemoscope replay``: recalls on record, made again by a candidate."""

from __future__ import annotations

import json as json_format
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from inspect import isroutine
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .exit_codes import INCOMPLETE, UNHEALTHY, USAGE, CommandError, say
from .options import TIMES, AuditUrl, Json, MostRecalls, ScopeAddress
from .output import print_answer
from .progress import progress_bar
from .times import time_us

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ...memory.golden_recall import FunctionCandidate, GoldenCase, ReplayReport
    from ..toolkit.repeated_recalls import GuardedCandidate

DEFAULT_SINCE = "24h"


def replay(
    against: Annotated[
        str,
        typer.Option(
            metavar="MODULE:NAME",
            help="The candidate: a Mnemoscope, a client, or a function that returns one; or a "
            "function of a query and a number of memories that returns their ids.",
        ),
    ],
    since: Annotated[str | None, typer.Option(metavar="AGE|TIME", help=TIMES)] = None,
    cases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An evaluation set, of which approved cases count."),
    ] = None,
    k: Annotated[int, typer.Option("--k", metavar="N", min=1, help="N memories count.")] = 10,
    most: MostRecalls = 1_000,
    change: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=JSON", help="An argument in place of the one on record."),
    ] = None,
    scope: ScopeAddress = None,
    customers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ids of customers, a line each, if neither the stores of the candidate nor those "
            "of --scope list them.",
        ),
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option(metavar="SHARE", min=0.0, max=1.0, help="Exit with 1 below this recall."),
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Show the redacted queries of the worst.")
    ] = False,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Make recalls on record again with a candidate, and show how far its answers differ.

    Works on redacted text, as it is on record, and needs the key of the audit trail. The candidate
    is only read. A recall that it fails counts as nothing found. Exits with 1 if recall is below
    --fail-under; with 3 if the candidate failed, could not make some, or there is nothing to make.
    """
    from ...memory.golden_recall import compare
    from .replay_screen import comparison_document, comparison_screen
    from .scope import found_at, open_trail

    if since is not None and cases is not None:
        raise CommandError("pass one of --since and --cases: a set has its own recalls", USAGE)
    changes = dict(map(_changed, change or ()))
    log = open_trail(audit_url)
    chosen, left_out = _chosen(log, since or DEFAULT_SINCE, cases, most)
    if not chosen:
        _say_left_out(left_out)
        say("no recall on record can be made again")
        raise typer.Exit(INCOMPLETE)
    console, ids = Console(stderr=True), _ids(customers, scope)
    with (
        closing(_candidate(found_at(against, "--against"), log, chosen, ids, changes)) as candidate,
        progress_bar(console, "making recalls again", len(chosen)) as tell,
    ):
        found = compare(chosen, candidate, k, tell)
    document = comparison_document(found, left_out, with_content=content)
    print_answer(document, comparison_screen(found, against, with_content=content), json=json)
    if not json:
        _say_left_out(left_out)
    raise typer.Exit(_code(found, fail_under))


def _code(found: ReplayReport, fail_under: float | None) -> int:
    recall = found.recall.candidate
    if fail_under is not None and (recall is None or recall < fail_under):
        measured = "unknown" if recall is None else f"{recall:.3f}"
        say(f"recall@{found.k} is {measured}, and {fail_under} was wanted at least")
        return UNHEALTHY
    # What is unknown of a candidate is not good, however good the rest is.
    return INCOMPLETE if found.errors or found.left_out or not found.outcomes else 0


def _changed(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    try:
        if name.isidentifier() and separator:
            return name, json_format.loads(value)
    except ValueError:
        pass
    raise CommandError("--change takes NAME=JSON, such as threshold=0.45", USAGE)


def _chosen(
    log: AuditLog, since: str, cases: Path | None, most: int
) -> tuple[list[GoldenCase], Counter[str]]:
    from .evaluation import approved_cases
    from .recorded_recalls import recorded_recalls

    if cases is not None:
        return approved_cases(log, cases)
    # The machine's clock, as of all commands that take an age.
    now_us = time.time_ns() // 1_000
    return recorded_recalls(log, time_us(since, "--since", now_us), most)


def _say_left_out(left_out: Counter[str]) -> None:
    for why, count in left_out.most_common():
        say(f"not made again: {count:,}: {why}")


def _candidate(
    found: Any, log: AuditLog, chosen: list[GoldenCase], ids: Iterable[str], changes: dict[str, Any]
) -> GuardedCandidate | FunctionCandidate:
    from ...memory.golden_recall import FunctionCandidate
    from ...memory.scope import Mnemoscope
    from ..toolkit.proxy import guard_of
    from ..toolkit.repeated_recalls import GuardedCandidate
    from .recorded_recalls import customers_by_number, customers_in

    if isroutine(found):
        if changes:
            raise CommandError("--change needs a client: a function takes no arguments", USAGE)
        return FunctionCandidate(found, customers_by_number(log, chosen, ids))
    scope = found if isinstance(found, Mnemoscope) else _quiet_scope()
    # Else the first recalls would wait for models to load, and be late where there is a deadline.
    scope.prepare()
    if isinstance(found, Mnemoscope):
        clients = [client for _provider, client in found.subject_data.clients()]
    else:
        clients = [found if guard_of(found) is not None else scope.guard(found)]
    known = customers_by_number(log, chosen, chain(ids, customers_in(scope)))
    return GuardedCandidate(clients, known, changes)


def _ids(file: Path | None, scope: str | None) -> Iterator[str]:
    """Yield ids of customers from a file, or as the stores of the application list them."""
    from .recorded_recalls import customers_in
    from .scope import scope_at

    if file is not None:
        yield from file.read_text("utf-8").splitlines()
    if scope is not None:
        yield from customers_in(scope_at(scope))


def _quiet_scope() -> Any:
    """Return a scope that reports to nobody, with the settings that redact as the application's."""
    from ...memory.scope import Mnemoscope
    from ...memory.settings import load_settings

    # Without a deadline: how long a candidate takes is measured, not cut off.
    settings = load_settings(deadline_recall_s=0, sinks="")
    return Mnemoscope(settings, only_sinks=[])
