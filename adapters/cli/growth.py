"""``mnemoscope memory growth``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding

from .exit_codes import INCOMPLETE, say
from .options import Json, ScopeAddress, needed_scope
from .output import fields, print_answer, table

if TYPE_CHECKING:
    from ...memory.growth.measuring import StoreGrowth


def growth(scope: ScopeAddress = None, json: Json = False) -> None:
    """
    Measure the rows and bytes of each store, and the days until it is full.

    What has a ~ is an estimate from some records. The days are those of a straight line through
    earlier measurements, and unknown until there are enough over a day. Exits with 3 if a store
    could not be measured.
    """
    from ...memory.building.opening import purposes_of
    from ...memory.errors import ConfigurationError
    from ...memory.growth.report import GROWTH_HEADS, growth_report
    from ...memory.settings import load_settings
    from .scope import scope_at

    address = needed_scope(scope, "growth")
    settings = load_settings()
    with Console(stderr=True).status("measuring"):
        opened = scope_at(address)
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
    screen = table(*GROWTH_HEADS, rows=report.rows(), figures=len(GROWTH_HEADS) - 4)
    print_answer(_document(report.stores, report.days), Padding(screen, (0, 1)), json=json)
    for line in () if json else report.problems():
        say(line)
    raise typer.Exit(INCOMPLETE if any(report.problems()) else 0)


def _document(found: Sequence[StoreGrowth], days: Mapping[str, float | None]) -> dict[str, Any]:
    return {
        "stores": [
            {
                **fields(each, "store bytes room_bytes problem"),
                "days_to_full": days.get(each.store),
                "lines": [
                    {
                        **fields(line, "purpose rows bytes"),
                        "class": line.kind,
                        "status": line.status or None,
                        "sampled": line.is_sampled,
                    }
                    for line in each.lines
                ],
            }
            for each in found
        ]
    }
