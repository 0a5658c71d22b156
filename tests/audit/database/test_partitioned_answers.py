"""A partitioned log and a plain one of the same rows give the same answers."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks import partitions as side_by_side

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.long]


def test_answers_are_the_same(postgres, monkeypatch, capsys):
    """Verify, export, show, spend, latency, runs, people: some thousands of what `make` asks."""
    module = import_module("mnemoscope.audit.database.postgres_partitions")
    monkeypatch.setattr(module, "LEAST_EVENTS", module.LEAST_EVENTS)  # which it sets
    wrong = side_by_side.compared(postgres, 6_000)
    said = capsys.readouterr().out

    assert wrong == 0
    assert said.count("the same") == 11
    assert said.count("verify ok") == 2
