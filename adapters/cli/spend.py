"""``mnemoscope spend``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

from ...memory.errors import ConfigurationError
from .options import AuditUrl, Json, Since, Tenant
from .times import time_us

if TYPE_CHECKING:
    from ...audit.queries.spending import Dimension, Period, PeriodSpend


def spend(
    since: Since = "24h",
    until: Annotated[
        str | None,
        typer.Option(metavar="AGE|TIME", help="Likewise; a day is included. Default: now."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(metavar="LIST", help="Some of feature,node,model,customer,tenant."),
    ] = "feature",
    tenant: Tenant = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    audit_url: AuditUrl = None,
) -> None:
    """
    Show what model calls cost, and what changed most.

    Names the feature whose spend changed most. Compares with the period of equal length before.
    Reads the audit trail and changes nothing. Exits with 0, also where no call was recorded, with 3
    if there is no audit trail, and with 6 if it knows no such tenant.
    """
    if json and csv:
        raise ConfigurationError("pass one of --json and --csv, not both")
    from .spend_screen import as_document, spend_screen, write_csv

    period = period_of(since, until, time.time_ns() // 1_000)
    lines, parts = read_spend(dimensions_of(by), period, tenant, audit_url)
    if json:
        Console().print_json(data=as_document(lines, parts))
    elif csv:
        write_csv(lines, sys.stdout)
    else:
        Console().print(spend_screen(lines, parts))


class SpendReport(NamedTuple):
    """
    The spend of a period.

    Attributes:
        lines: By the dimensions that were asked for.
        parts: By feature, node and model, to find the feature that changed most.
    """

    lines: PeriodSpend
    parts: PeriodSpend


def read_spend(
    by: tuple[Dimension, ...], period: Period, tenant: str | None, audit_url: str | None
) -> SpendReport:
    """
    Read the spend of *period* from the audit trail.

    Raises:
        ConfigurationError: The URL or a setting makes no sense.
        UnknownTenantError: Nothing was ever recorded for *tenant*.
        AuditError: The trail cannot be read.
    """
    from ...audit.queries.spending import spending
    from ...audit.queries.top_mover import PARTS
    from ...audit.store.tenants import check_tenant
    from .scope import open_trail

    trail = open_trail(audit_url)
    with trail.moments() as (snapshot, *beside):
        # Nothing spent and no such tenant would look the same.
        if tenant is not None:
            check_tenant(snapshot, tenant, *beside)
        return SpendReport(
            lines=spending(snapshot, by, period, *beside, tenant=tenant),
            parts=spending(snapshot, PARTS, period, *beside, tenant=tenant),
        )


def dimensions_of(by: str) -> tuple[Dimension, ...]:
    """
    Return the dimensions that ``--by`` names.

    Raises:
        ConfigurationError: One is unknown or named twice.
    """
    from ...audit.queries.spending import DIMENSIONS

    names = [part.strip() for part in by.split(",")]
    known: dict[str, Dimension] = {each: each for each in DIMENSIONS}
    if len(set(names)) != len(names) or not known.keys() >= set(names):
        raise ConfigurationError(f"--by takes some of {','.join(DIMENSIONS)}")
    return tuple(known[name] for name in names)


def period_of(since: str, until: str | None, now_us: int) -> Period:
    """
    Return the period from ``--since`` to ``--until``.

    Raises:
        ConfigurationError: It has no length, or a time cannot be read.
    """
    from ...audit.queries.spending import Period

    since_us = time_us(since, "--since", now_us)
    until_us = now_us if until is None else time_us(until, "--until", now_us, at_end=True)
    if since_us >= until_us:
        raise ConfigurationError("--since must be before --until, and in the past")
    # It would begin before 1970.
    if 2 * since_us < until_us:
        raise ConfigurationError("--since is too long ago: there is no period before")
    return Period(since_us=since_us, until_us=until_us)
