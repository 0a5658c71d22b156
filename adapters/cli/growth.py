"""``mnemoscope memory growth``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from .exit_codes import INCOMPLETE, USAGE, CommandError, say
from .options import Json, ScopeAddress

if TYPE_CHECKING:
    from ...memory.growth.measuring import StoreGrowth
    from ...memory.growth.report import GrowthReport


def growth(scope: ScopeAddress = None, json: Json = False) -> None:
    """
    Measure the rows and bytes of each store, and the days until it is full.

    What has a ~ is an estimate from some records. The days are those of a straight line through
    earlier measurements, and unknown until there are enough over a day. Exits with 3 if a store
    could not be measured.
    """
    from ...memory.building.opening import purposes_of
    from ...memory.errors import ConfigurationError
    from ...memory.growth.report import growth_report
    from ...memory.settings import load_settings
    from .scope import scope_at

    if scope is None:
        raise CommandError(
            "pass --scope package.module:name, your Mnemoscope or a function that returns one",
            USAGE,
        )
    settings = load_settings()
    with Console(stderr=True).status("measuring"):
        opened = scope_at(scope)
        stores = opened.subject_data.named()
        try:
            purposes = purposes_of(opened.audit)
        except ConfigurationError:
            purposes = None
        report = growth_report(
            stores,
            purposes,
            limits=settings.growth_limits,
            path=settings.growth_file,
            at_s=time.time(),
        )
    if report.problem is not None:
        say(report.problem)
    if json:
        Console().print_json(data=_document(report.stores, report.days))
    else:
        Console().print(_screen(report))
        for line in report.problems():
            say(line)
    raise typer.Exit(INCOMPLETE if any(report.problems()) else 0)


def _document(found: Sequence[StoreGrowth], days: Mapping[str, float | None]) -> dict[str, Any]:
    return {
        "stores": [
            {
                "store": each.store,
                "bytes": each.bytes,
                "room_bytes": each.room_bytes,
                "days_to_full": days.get(each.store),
                "problem": each.problem,
                "lines": [
                    {
                        "class": line.kind,
                        "purpose": line.purpose,
                        "status": line.status or None,
                        "rows": line.rows,
                        "bytes": line.bytes,
                        "sampled": line.is_sampled,
                    }
                    for line in each.lines
                ],
            }
            for each in found
        ]
    }


def _screen(report: GrowthReport) -> RenderableType:
    from ...memory.growth.report import GROWTH_HEADS

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in GROWTH_HEADS[:4]:
        table.add_column(name, overflow="fold")
    for name in GROWTH_HEADS[4:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.rows():
        table.add_row(*row)
    return Padding(table, (0, 1))
