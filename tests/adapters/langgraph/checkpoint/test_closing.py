"""Closing a scope while checkpoints wait in its process."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import load_settings
from mnemoscope.memory.health.checks import examine
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.unplugged_savers import Memory, put, steps


def left(collector):
    """Return how many writes were appended, made again and lost, by their events."""
    return Counter(each.journal for each in collector.collected)


def test_what_is_lost_is_told(degraded, patient, collector, caplog):
    """An event for each write, the number in the log and in health."""
    bare = Memory()
    saver = degraded(bare)
    put(saver, "1")
    bare.plug.out = True
    for step, on in (("2", "1"), ("3", "2"), ("4", "3")):
        put(saver, step, on)
    with caplog.at_level(logging.WARNING, "mnemoscope"):
        patient.parts.close(20)
    lost = [each for each in collector.collected if each.journal is Journalled.LOST]
    health = examine(load_settings(), patient.parts.guards, 2.0)
    check = next(each for each in health.checks if each.name == "store.langgraph.checkpoint")

    assert [each.error.rpartition(".")[2] for each in lost] == ["ScopeClosedError"] * 3
    assert {each.run for each in lost} == {"t-1"}
    assert "3 writes that waited in this process are lost" in caplog.text
    assert "3 writes that waited were lost as the scope closed" in check.detail
    assert guard_of(saver).waits == 0


def test_what_can_be_written_is_written(degraded, patient, hold, collector):
    """The database is back, and nobody has looked yet."""
    bare = Memory()
    saver = degraded(bare)
    put(saver, "1")
    bare.plug.out = True
    put(saver, "2", "1")
    hold(saver)
    bare.plug.out = False
    patient.parts.close(20)

    assert steps(bare) == ["2", "1"]
    assert left(collector)[Journalled.LOST] == 0


@pytest.mark.usefixtures("one_database")
def test_clients_of_one_database_lose_each_write_once(degraded, patient, collector):
    """They share what waits, and each tells of its own."""
    assert langgraph_checkpoint.database_of(None) is not None
    bares = Memory(), Memory()
    first, second = map(degraded, bares)
    put(first, "1")
    for bare in bares:
        bare.plug.out = True
    put(first, "2", "1")
    put(second, "3", "2")
    patient.parts.close(20)

    assert left(collector)[Journalled.LOST] == left(collector)[Journalled.APPENDED] == 2


def test_nothing_waits_afterwards(degraded, patient):
    """Nobody would write it, and nobody would tell: the caller hears of the outage."""
    bare = Memory()
    saver = degraded(bare)
    put(saver, "1")
    patient.parts.close(20)
    bare.plug.out = True
    with pytest.raises(ConnectionError):
        put(saver, "2", "1")
