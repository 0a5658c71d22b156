"""Figures of docs/sizing.md follow from what was measured; a small fleet accounts for itself."""

from __future__ import annotations

import argparse
import json
import re

import pytest

from benchmarks import fleet, sizing

CONSTANTS = json.loads(sizing.CONSTANTS.read_text(encoding="utf-8"))
PAGE = sizing.PAGE.read_text(encoding="utf-8")


def rows_of(name: str) -> list[list[str]]:
    """Return the cells of a table of the page, below its head."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end of", PAGE, re.DOTALL)
    assert found is not None
    _head, _line, *rows = found[1].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_page_is_what_the_constants_give():
    """Nothing in its tables was typed or left behind."""
    assert sizing.written(PAGE, CONSTANTS) == PAGE


def test_the_disk_of_a_million_customers_is_a_product_of_what_was_measured():
    """Once more without the page's own functions: events of a month, by the bytes of all tables."""
    measured = CONSTANTS["bytes"]["PostgreSQL"]
    customers = events = 0
    for name, size in measured["relations"].items():
        if name.startswith(("audit_subject", "audit_alias", "audit_key", "audit_erasure")):
            customers += size
        else:
            events += size
    expected = 1e6 * 4 * 15 * 30 * events / measured["events"]
    expected += 1e6 * customers / measured["customers"]
    *_others, (name, a_day, _mean, _peak, _share, month, _kept) = rows_of("fleets")

    assert (name, a_day) == ("1,000,000", "60 million")
    assert float(month.removesuffix(" TB")) == pytest.approx(expected / 1e12, rel=0.01)


def test_the_share_of_one_log_is_the_peak_by_its_rate():
    """A million customers, five times the mean of their day."""
    rate = CONSTANTS["rates"]["PostgreSQL, fsync on, one log, 2 processes"]["per_s"]
    *_others, (_name, _a_day, _mean, peak, share, _month, _kept) = rows_of("fleets")

    assert float(peak.replace(",", "")) == round(1e6 * 4 * 15 * 5 / 86_400)
    assert float(share.rstrip("%")) == round(1e6 * 4 * 15 * 5 / 86_400 / rate * 100)


def test_the_text_assumes_what_the_tables_do():
    """The words beside the tables, and the numbers that they are computed with."""
    words = {4: "four", 5: "five"}

    assert f"{words[sizing.TURNS_A_DAY]} turns a day" in PAGE
    assert f"a turn makes {sizing.EVENTS_A_TURN} events" in PAGE
    assert f"second has {words[sizing.PEAK]} times the mean" in PAGE


def test_each_run_accounted_for_all():
    """Offered is recorded or declared, and the trail of each was verified."""
    runs = CONSTANTS["runs"]

    assert len(runs) >= 7
    assert {each["offered"] - each["recorded"] - each["lost"] for each in runs} == {0}
    assert all(each["is_whole"] and each["writers"] >= 200 for each in runs)


@pytest.mark.long
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("relay", [False, True])
def test_a_small_fleet_accounts_for_each_event(tmp_path, shards, relay):
    """With clocks that are wrong, by processes that end while others write."""
    given = argparse.Namespace(processes=6, threads=2, seconds=1.0, pause=0.05)
    url = f"sqlite:///{tmp_path}/audit.db"

    account = fleet.run("small", tmp_path, url, given, shards=shards, relay=relay)

    assert account["offered"] > 6
    assert account["recorded"] == account["offered"]
    assert account["is_whole"]
