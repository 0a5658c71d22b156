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

_SAMPLED = "~"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000


def growth(scope: ScopeAddress = None, json: Json = False) -> None:
    """
    Measure the rows and bytes of each store, and the days until it is full.

    What has a ~ is an estimate from some records. The days are those of a straight line through
    earlier measurements, and unknown until there are enough over a day. Exits with 3 if a store
    could not be measured.
    """
    from ...memory.build import purposes_of
    from ...memory.errors import ConfigurationError
    from ...memory.growth.forecast import SizeHistory
    from ...memory.growth.measuring import measure
    from ...memory.growth.sampler import note
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
        found = measure(stores, purposes, settings.growth_limits)
        try:
            days: Mapping[str, float | None] = note(
                SizeHistory(settings.growth_file), found, time.time()
            )
        except OSError as exc:
            say(f"{settings.growth_file} cannot be written: {(exc.strerror or '').lower()}")
            days = {}
    if json:
        Console().print_json(data=_document(found, days))
    else:
        Console().print(_screen(found, days))
        for each in found:
            if each.problem is not None:
                say(f"{each.store}: {each.problem}")
    raise typer.Exit(INCOMPLETE if any(each.problem for each in found) else 0)


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


def _screen(found: Sequence[StoreGrowth], days: Mapping[str, float | None]) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("store", "class", "purpose", "status"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "size", "full in"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        left = days.get(each.store)
        full = "unknown" if left is None else f"{left:,.0f} days"
        for line in each.lines:
            mark = _SAMPLED if line.is_sampled else ""
            size = "unknown" if line.bytes is None else f"{mark}{_size(line.bytes)}"
            labels = (each.store, line.kind, line.purpose, line.status)
            table.add_row(*labels, f"{mark}{line.rows:,}", size, full)
            full = ""
    return Padding(table, (0, 1))


def _size(size_bytes: float) -> str:
    for unit in _UNITS:
        if size_bytes < _STEP or unit == _UNITS[-1]:
            return f"{size_bytes:,.0f} {unit}" if unit == "B" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= _STEP
    return ""
