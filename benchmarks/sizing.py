"""
Computes the tables and the picture of docs/sizing.md: no product in them is typed by hand.

``make fleet ARGS="--constants benchmarks/sizing.json"`` measures, and ``python -m
benchmarks.sizing`` writes the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
CONSTANTS = ROOT / "benchmarks" / "sizing.json"
PAGE = ROOT / "docs" / "sizing.md"
PICTURE = ROOT / "docs" / "sizing.svg"

FLEETS = (100, 10_000, 1_000_000)
TURNS_A_DAY = 4
EVENTS_A_TURN = 15
PEAK = 5
"""How much more the busiest second has than the mean."""

DAY_S = 86_400
MONTH_DAYS = 30
RETENTION_DAYS = 400
FILE_BYTES = 100e9
"""What one SQLite file, or one partition of a month, may have and still be moved in an hour."""

OF_CUSTOMERS = re.compile(r"(sqlite_autoindex_)?audit_(subject|alias|key|erasure)")
"""Tables and indexes that grow with customers, and not with events."""

LEAST = "SQLite, one log, 2 processes"
ONE_LOG = "PostgreSQL, fsync on, one log, 2 processes"
TWO_SHARDS = "PostgreSQL, fsync on, 2 shards"
RELAY = "one relay, PostgreSQL"
FLOOD = "PostgreSQL, one relay, no pauses"


class Load(NamedTuple):
    """What a fleet of so many customers makes."""

    customers: int
    events_a_day: int
    mean_per_s: float
    peak_per_s: float


def load_of(customers: int) -> Load:
    """Return the load of so many customers."""
    day = customers * TURNS_A_DAY * EVENTS_A_TURN
    return Load(customers, day, day / DAY_S, day / DAY_S * PEAK)


def event_bytes(measured: Any) -> float:
    """Return the bytes of an event in all tables and indexes that grow with events."""
    relations = measured["relations"].items()
    return (
        sum(size for name, size in relations if not OF_CUSTOMERS.match(name)) / measured["events"]
    )


def customer_bytes(measured: Any) -> float:
    """Return the bytes of a customer in all others."""
    of_customers = filter(OF_CUSTOMERS.match, measured["relations"])
    return float(sum(measured["relations"][each] for each in of_customers) / measured["customers"])


def stored_bytes(measured: Any, load: Load, days: int) -> float:
    """Return what so many days of a load take on the disk."""
    events = load.events_a_day * days * event_bytes(measured)
    return events + load.customers * customer_bytes(measured)


def tables(constants: Any) -> dict[str, str]:
    """Return the tables of the page by name."""
    return {
        "runs": _runs(constants),
        "rates": _rates(constants),
        "bytes": _bytes(constants),
        "fleets": _fleets(constants),
        "relations": _relations(constants),
        "machine": _machine(constants),
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def _runs(constants: Any) -> str:
    return _table(
        ["", "offered", "recorded", "declared lost", "a call, median · p99", "all there after",
         "`audit verify`"],
        [
            [
                each["name"],
                f"{each['offered']:,}",
                f"{each['recorded']:,}",
                f"{each['lost']:,}",
                f"{each['p50_us'] / 1e3:,.1f} · {each['p99_us'] / 1e3:,.0f} ms",
                f"{each['rest_s']:,.1f} s",
                "ok" if each["verify"] == 0 else f"code {each['verify']}",
            ]
            for each in constants["runs"]
        ],
    )  # fmt: skip


def rates_of(constants: Any) -> dict[str, float]:
    """Return what each part takes, in events a second."""
    (flood,) = (each for each in constants["runs"] if each["name"] == FLOOD)
    # From when the writers began until the relay was through.
    took_s = flood["offered"] / flood["offered_per_s"] + flood["rest_s"]
    rates = {name: float(of["per_s"]) for name, of in constants["rates"].items()}
    return rates | {RELAY: flood["recorded"] / took_s}


def _rates(constants: Any) -> str:
    cpu_us = {name: of["cpu_us"] for name, of in constants["rates"].items()}
    rows = []
    for name, rate in rates_of(constants).items():
        each = cpu_us.get(name)
        of_a_core = [f"{each:,.0f} µs", f"{1e6 / each:,.0f}"] if each else ["", ""]
        rows.append([name, f"{rate:,.0f}", _count(rate * DAY_S), *of_a_core])
    head = ["", "events a second", "a day", "CPU of an event", "so a core of its own, a second"]
    return _table(head, rows)


def _bytes(constants: Any) -> str:
    found = constants["bytes"].items()
    rows = [
        [name, f"{event_bytes(of):,.0f}", f"{customer_bytes(of):,.0f}", _ahead(of)]
        for name, of in found
    ]
    return _table(["", "bytes an event", "and a customer", "written ahead, an event"], rows)


def _ahead(measured: Any) -> str:
    ahead = measured.get("written_ahead")
    return f"{ahead / measured['events']:,.0f}" if ahead else "not measured"


def _relations(constants: Any) -> str:
    postgres, sqlite = (constants["bytes"][each] for each in ("PostgreSQL", "SQLite"))
    names = dict.fromkeys([*postgres["relations"], *sqlite["relations"]])
    rows = []
    for name in names:
        sizes = [_each(name, of) for of in (postgres, sqlite)]
        if max(sizes) >= 10:
            about = "customer" if OF_CUSTOMERS.match(name) else "event"
            rows.append([f"`{name}`", about, *(f"{each:,.0f}" if each else "" for each in sizes)])
    return _table(["table or index", "for each", "PostgreSQL", "SQLite"], rows)


def _each(name: str, measured: Any) -> float:
    of = measured["customers" if OF_CUSTOMERS.match(name) else "events"]
    return float(measured["relations"].get(name, 0) / of)


def _fleets(constants: Any) -> str:
    rates, postgres = rates_of(constants), constants["bytes"]["PostgreSQL"]
    rows = []
    for load in map(load_of, FLEETS):
        month = stored_bytes(postgres, load, MONTH_DAYS)
        kept = stored_bytes(postgres, load, RETENTION_DAYS)
        rows.append(
            [
                f"{load.customers:,}",
                _count(load.events_a_day),
                f"{load.mean_per_s:,.2g}" if load.mean_per_s < 1 else f"{load.mean_per_s:,.0f}",
                f"{load.peak_per_s:,.2g}" if load.peak_per_s < 1 else f"{load.peak_per_s:,.0f}",
                f"{load.peak_per_s / rates[ONE_LOG]:.2%}" if load.peak_per_s < rates[ONE_LOG] / 100
                else f"{load.peak_per_s / rates[ONE_LOG]:.0%}",
                _size(month),
                _size(kept),
            ]
        )  # fmt: skip
    head = ["customers", "events a day", "a second", "at the peak", "of one log", "disk a month",
            f"disk of {RETENTION_DAYS} days"]  # fmt: skip
    return _table(head, rows)


def _machine(constants: Any) -> str:
    runs = constants["runs"]
    low, high = (pick(each["load"] for each in runs) for pick in (min, max))
    return (
        f"Measured on {constants['cores']} cores that others used at the same time (load {low:.0f} "
        f"to {high:.0f} in the runs, {constants['rates_load']:.0f} for the rates), with Python "
        f"{constants['python']}. One sync of its disk took {constants['sync_ms']:.1f} ms."
    )


def _count(number: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if number >= unit:
            return f"{number / unit:,.3g} {name}"
    return f"{number:,.0f}"


def _size(size: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}"
    return f"{size / 1e3:,.0f} kB"


def written(page: str, constants: Any) -> str:
    """Return *page* with its tables computed anew."""
    for name, table in tables(constants).items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _mark, rest = page.partition(begin)
        _old, _mark, after = rest.partition(end)
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def draw(constants: Any) -> None:
    """Draw load and limits by the number of customers."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams |= {"svg.hashsalt": "sizing", "svg.fonttype": "none"}
    from matplotlib import pyplot as plt

    rates, postgres = rates_of(constants), constants["bytes"]["PostgreSQL"]
    customers = [10**exponent for exponent in range(2, 9)]
    loads = [*map(load_of, customers)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    left.loglog(customers, [each.peak_per_s for each in loads], color="black", label="at the peak")
    for name, colour in ((RELAY, "C3"), (LEAST, "C0"), (ONE_LOG, "C1"), (TWO_SHARDS, "C2")):
        left.axhline(rates[name], color=colour, linestyle="--", label=name)
    left.set(xlabel="customers", ylabel="events a second")
    left.legend(fontsize=8)
    month = [stored_bytes(postgres, each, MONTH_DAYS) / 1e9 for each in loads]
    right.loglog(customers, month, color="black", label="a month, PostgreSQL")
    right.axhline(FILE_BYTES / 1e9, color="C0", linestyle="--", label="a file of 100 GB")
    right.set(xlabel="customers", ylabel="GB")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.minorticks_off()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> int:
    """Write the page and the picture."""
    constants = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), constants), encoding="utf-8")
    draw(constants)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
