"""The tables of ``mnemoscope journal``, which fit 80 columns, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.journal.inspection import DatabaseTotals, KeptWrite, Refused
from ...telemetry.text import utc_text
from .output import day_time, fields

_SHOWN = 20
"""Writes that are told of one by one; ``--json`` has all."""

_DOUBTS = {"shadowed": "shadowed", "in_doubt": "in doubt", "in_flight": "under way"}
_NOT_READ = "? is a write that the key of the settings does not open: show needs its own key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """
    The data of ``mnemoscope journal list``.

    Attributes:
        writes: The first writes of each, in order.
        parked: Only those that were set aside are meant.
        now_ns: Nanoseconds since 1970 UTC.
    """

    path: str
    totals: Sequence[DatabaseTotals]
    writes: Sequence[KeptWrite]
    parked: bool
    now_ns: int


# -- list ------------------------------------------------------------------------------------------


def list_screen(listing: Listing) -> RenderableType:
    """Return the totals of each database, with its first writes below."""
    if not listing.totals:
        return Padding(Text(f"Nothing waits in {listing.path}."), (0, 1))
    by_database = groupby(listing.writes, lambda each: (each.store, each.database))
    writes = {name: list(found) for name, found in by_database}
    parts: list[RenderableType] = []
    for each in listing.totals:
        shown = writes.get((each.store, each.database), [])
        parts += [_database(each, listing.now_ns), _table(shown)]
        # Of what was asked for: with --parked what waits is not left out, but not meant.
        left = (0 if listing.parked else each.waiting) + each.parked - len(shown)
        if left > 0:
            parts.append(Text(f"({left:,} more: --limit)\n", style="dim"))
    parked = sum(each.parked for each in listing.totals)
    if any(each.write is None for each in listing.writes):
        parts.append(Text(_NOT_READ, style="yellow"))
    if parked:
        parts.append(
            Text(
                f"→ {_writes(parked)} set aside: look with mnemoscope journal show SEQ, then "
                "journal retry or journal drop.",
                style="bold",
            )
        )
    return Padding(Group(*parts), (0, 1))


def _database(totals: DatabaseTotals, now_ns: int) -> Text:
    said = [f"{totals.waiting:,} waiting"]
    if totals.oldest_ns is not None:
        said[0] += f", the oldest for {_age(now_ns - totals.oldest_ns)}"
    if totals.parked:
        said.append(f"{totals.parked:,} set aside")
    counts = ((getattr(totals, name), word) for name, word in _DOUBTS.items())
    said += [f"{count:,} {word}" for count, word in counts if count]
    said.append(f"{totals.size_bytes:,} bytes")
    return Text.assemble(
        (totals.store, "bold cyan"), (f"  {printable(totals.database)}\n"), ("; ".join(said), "dim")
    )


def _age(age_ns: int) -> str:
    # A clock that was set back makes it negative.
    age_s = max(0, age_ns // 10**9)
    # From two of a unit on: "1 h" for 119 minutes says too little.
    for unit_s, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if age_s >= 2 * unit_s:
            return f"{age_s // unit_s:,} {unit}"
    return f"{age_s} s"


def _table(writes: Sequence[KeptWrite]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("seq", justify="right", no_wrap=True)
    table.add_column("since, UTC", no_wrap=True)
    table.add_column("method", overflow="fold", max_width=20)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("state", ratio=1, overflow="fold")
    for each in writes:
        since, size = day_time(each.since_ns // 1_000), f"{each.size_bytes:,}"
        table.add_row(str(each.seq), since, each.method or "?", size, _state(each))
    return table


def _state(write: KeptWrite) -> Text:
    if write.parked is None:
        words, style = ["waits"], ""
    else:
        words, style = [f"set aside: {write.parked}"], "yellow"
    words += [word for name, word in reversed(_DOUBTS.items()) if getattr(write, name)]
    return Text(", ".join(words), style=style)


def list_document(listing: Listing) -> dict[str, Any]:
    """Return the same for ``--json``."""
    return {
        "path": listing.path,
        "databases": [_totals_document(each) for each in listing.totals],
        "writes": [document(each) for each in listing.writes],
    }


def _totals_document(totals: DatabaseTotals) -> dict[str, Any]:
    found = totals._asdict()
    oldest_ns = found.pop("oldest_ns")
    return {**found, "oldest": None if oldest_ns is None else utc_text(oldest_ns // 1_000)}


def document(write: KeptWrite) -> dict[str, Any]:
    """Return *write* in JSON types, without what it holds."""
    names = "seq store database method in_doubt in_flight parked shadowed size_bytes"
    return {**fields(write, names), "since": utc_text(write.since_ns // 1_000)}


# -- show ------------------------------------------------------------------------------------------


def show_screen(write: KeptWrite) -> RenderableType:
    """Return all there is to know of *write*, its redacted arguments last."""
    shown = show_document(write)
    rows = [
        ("seq", str(write.seq)),
        ("store", write.store),
        ("database", write.database),
        ("since", shown["since"]),
        ("method", write.method or "?"),
        ("state", _state(write).plain),
        ("bytes", f"{write.size_bytes:,}"),
        *shown["labels"].items(),
        ("customer", "kept with it, not shown" if shown["has_customer"] else ""),
        ("trace", shown["trace_id"]),
    ]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in rows:
        if said:
            table.add_row(name, printable(said))
    # Readable: it is for the person who decides about it.
    arguments = json.dumps(shown["arguments"], indent=2, ensure_ascii=False)
    return Padding(
        Group(table, Text("\narguments, redacted", style="dim"), Text(printable(arguments))), (0, 1)
    )


def show_document(write: KeptWrite) -> dict[str, Any]:
    """Return all there is to know of *write* in JSON types. It must have been opened."""
    kept = write.write
    assert kept is not None  # noqa: S101 - the command says so where it has not been
    return {
        **document(write),
        "labels": dict(kept.labels),
        "has_customer": kept.customer is not None,
        "trace_id": f"{kept.trace_id:032x}",
        "arguments": json.loads(kept.arguments),
    }


# -- retry and drop --------------------------------------------------------------------------------


def change_lines(verb: str, writes: Sequence[KeptWrite]) -> Iterator[str]:
    """Yield a line for each of the first *writes*, and one for the others, or that none is."""
    if not writes:
        yield "nothing was changed"
    for each in writes[:_SHOWN]:
        doubt = "; the store may have it already" if each.in_doubt or each.in_flight else ""
        yield f"{verb} {each.seq}: {_named(each)}{doubt}"
    if (more := len(writes) - _SHOWN) > 0:
        yield f"{verb} {more:,} more; --json has them"


def refusal_lines(refused: Sequence[Refused]) -> Iterator[str]:
    """Yield a line for each of the first that were *refused*, and one for the others."""
    for each in refused[:_SHOWN]:
        yield f"left {each.write.seq} as it is: {each.reason}"
    if (more := len(refused) - _SHOWN) > 0:
        yield f"left {more:,} more as they are; --json has them"


def _named(write: KeptWrite) -> str:
    since = f"{utc_text(write.since_ns // 1_000)[:19].replace('T', ' ')} UTC"
    return f"{write.method or '?'} of {since} for {write.store}, {printable(write.database)}"


def _writes(count: int) -> str:
    return f"{count:,} write was" if count == 1 else f"{count:,} writes were"


def printable(text: str) -> str:
    """Return *text* with an escape in place of what would move a terminal's cursor."""
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    # Escaped, not dropped: that it is there may be what is wrong with it.
    return json.dumps(character)[1:-1]
