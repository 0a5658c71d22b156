"""Calls at a rate, to five sinks: `make sustained` offers 20,000 a second for a minute."""

from __future__ import annotations

import argparse
import contextlib
import os

import pytest

from benchmarks import sustained

pytestmark = [
    pytest.mark.forks_often,
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]

SECONDS, RATE, THREADS = 0.5, 400, 4


@pytest.fixture
def books(tmp_path):
    """Return a function that returns what became of a short load; restore the environment."""
    before = dict(os.environ)

    def found(way, **given):
        asked = {"seconds": SECONDS, "rate": RATE, "threads": THREADS, "patience": 60.0}
        asked |= {"relay_mib": 2} | given
        with contextlib.closing(sustained.Received()) as received:
            return sustained.WAYS[way](tmp_path, argparse.Namespace(**asked), received)

    yield found
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("way", sustained.WAYS)
def test_each_call_is_in_each_sink(books, way):
    """Counted where the sinks deliver to: nothing is dropped, and nothing is unaccounted for."""
    seen = books(way)

    assert (seen.missing, seen.lost) == (0, 0)
    assert seen.calls_per_s > 0


def test_what_no_sink_got_is_missing(books, monkeypatch):
    """A collector that counts less than it was sent would be noticed."""
    monkeypatch.setitem(sustained.OF_A_CALL, "otlp", b"another operation")

    assert books("relay").missing > 0


def test_the_rate_that_is_kept_up_is_found():
    """Between one that is kept up and one that is not, to a sixteenth of what was asked."""

    def offered(rate):
        behind_s = 0.0 if rate <= 700 else 9.0
        return sustained.Books(rate, 0, 0, behind_s, 1.0)

    given = argparse.Namespace(rate=1_600, seconds=10.0)

    assert 600 < sustained.find_rate(offered, given) <= 700
