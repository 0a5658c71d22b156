"""Feeds that keep pace, so that what one reads is there for the others."""

from __future__ import annotations

import threading

from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.queue.codec import EventDecoder
from mnemoscope.telemetry.relay import feed as feed_module
from tests.kit.patience import until

from .conftest import ListedSink

A = "a" * 16


def fill(writer, event_factory, numbers, **fields):
    """Append events with these numbers."""
    for number in numbers:
        writer.append(event_factory(writer_id=A, writer_seq=number, **fields))


def test_what_several_sinks_are_given_is_read_once(driven, writers, event_factory, monkeypatch):
    """However many they are."""
    decoded, decode = [], EventDecoder.decode
    monkeypatch.setattr(
        EventDecoder, "decode", lambda self, data: decoded.append(1) or decode(self, data)
    )
    sinks = [ListedSink(name) for name in ("one", "two", "three")]
    fill(writers(), event_factory, range(1, 101))
    driven(*sinks).work()

    assert [each.numbers for each in sinks] == [[*range(1, 101)]] * 3
    assert len(decoded) == 100


def test_one_that_begins_before_another_reads_up_to_there(
    driven, writers, event_factory, monkeypatch
):
    """So that from there on it is read once for both, as after a restart."""
    monkeypatch.setattr(feed_module, "_MOST", 40)
    decoded, decode = [], EventDecoder.decode
    monkeypatch.setattr(
        EventDecoder, "decode", lambda self, data: decoded.append(1) or decode(self, data)
    )
    ahead, behind = ListedSink("ahead"), ListedSink("behind")
    writer = writers()
    relay = driven(ahead, behind)
    fill(writer, event_factory, range(1, 31))
    relay.step("ahead")
    relay.relay.sources()[0]._held.clear()
    fill(writer, event_factory, range(31, 101))
    decoded.clear()
    relay.work()

    assert ahead.numbers == behind.numbers == [*range(1, 101)]
    assert len(decoded) == 100


def test_a_feed_waits_for_one_that_is_far_behind(driven, writers, event_factory, monkeypatch):
    """It goes on as soon as that has caught up."""
    monkeypatch.setattr(feed_module, "PACE_S", 1_000.0)
    monkeypatch.setattr(feed_module, "_AHEAD_BYTES", 1_000)
    ahead, behind = ListedSink("ahead"), ListedSink("behind")
    fill(writers(), event_factory, range(1, 11), content=content_again("x" * 1_000))
    relay = driven(ahead, behind)
    relay.relay.look()
    first, second = relay.relay.feeds
    waits = []

    class Stopping:
        """Has the other one catch up while the first one waits."""

        def wait(self, pause_s):
            waits.append(pause_s)
            second.turn()

    monkeypatch.setattr(first, "_stopping", Stopping())
    first.turn()

    assert len(waits) == 1
    assert ahead.numbers == behind.numbers == [*range(1, 11)]


def test_a_feed_waits_for_none_that_is_away(driven, writers, event_factory, monkeypatch):
    """A sink that takes nothing delays no other."""
    monkeypatch.setattr(feed_module, "PACE_S", 1_000.0)
    monkeypatch.setattr(feed_module, "_AHEAD_BYTES", 1_000)
    here, away = ListedSink("here"), ListedSink("away")
    away.is_away = True
    fill(writers(), event_factory, range(1, 11), content=content_again("x" * 1_000))
    relay = driven(here, away)
    relay.relay.look()
    first, second = relay.relay.feeds
    waiting = threading.Thread(target=second.turn)
    waiting.start()
    assert until(lambda: not relay.drain.is_up("away"))
    first.turn()

    assert here.numbers == [*range(1, 11)]
    away.is_away = False
    waiting.join()


def test_a_feed_does_not_wait_for_long(driven, writers, event_factory, monkeypatch):
    """A sink that is slow delays the others by so much an event, at most."""
    monkeypatch.setattr(feed_module, "_AHEAD_BYTES", 0)
    monkeypatch.setattr(feed_module, "PACE_S", 1e-6)
    here, slow = ListedSink("here"), ListedSink("slow")
    fill(writers(), event_factory, range(1, 11))
    relay = driven(here, slow)
    relay.relay.look()
    relay.relay.feeds[0].turn()

    assert here.numbers == [*range(1, 11)]
    assert slow.numbers == []
