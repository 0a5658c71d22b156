"""The relay: every event to every sink, whoever is killed or away meanwhile."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.sink import FollowedWriter
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.process.version import running_version
from mnemoscope.telemetry.queue.folder import files_in
from mnemoscope.telemetry.queue.writer import QueueWriter
from mnemoscope.telemetry.relay import relay as relay_module
from mnemoscope.telemetry.relay.folder import (
    Beat,
    FolderTakenError,
    beat,
    silent_s,
    standing,
    take_folder,
)
from mnemoscope.telemetry.relay.sink import RelaySink
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S, until

from .conftest import KEYS, MIB, KeepingSink, ListedSink

A, B = "a" * 16, "b" * 16
DAY_S = 86_400.0

SILENT_AFTER_S = 10.0
"""After which a relay without a sign of life is taken for dead."""


def fill(writer, event_factory, numbers, writer_id=A, **fields):
    """Append events with these numbers."""
    for number in numbers:
        writer.append(event_factory(writer_id=writer_id, writer_seq=number, **fields))


def test_each_sink_gets_each_event_of_each_process_once(driven, writers, event_factory):
    """In the order of its writer."""
    first, second = ListedSink("first"), ListedSink("second")
    fill(writers(), event_factory, range(1, 101), A)
    fill(writers(), event_factory, range(1, 51), B)
    driven(first, second).work()

    for sink in (first, second):
        found = {
            each: [e.writer_seq for e in sink.events if e.writer_id == each] for each in (A, B)
        }
        assert found == {A: [*range(1, 101)], B: [*range(1, 51)]}


def test_it_delivers_while_they_write(driven, writers, event_factory):
    """What comes later is delivered later."""
    sink, writer = ListedSink(), writers()
    relay = driven(sink)
    for number in range(1, 6):
        fill(writer, event_factory, [number])
        relay.work()

    assert sink.numbers == [1, 2, 3, 4, 5]


def test_a_sink_that_is_away_delays_no_other(driven, writers, event_factory):
    """What it has not taken waits in files, and reaches it when it is back."""
    here, away = ListedSink("here"), ListedSink("away")
    away.is_away = True
    writer = writers()
    fill(writer, event_factory, range(1, 11))
    writer.close()
    relay = driven(here, away)
    relay.relay.look()
    waiting = threading.Thread(target=relay.relay.feeds[1].turn)
    waiting.start()
    relay.work("here")

    assert here.numbers == [*range(1, 11)]
    assert relay.relay.feeds[1].behind_bytes() > 0 == relay.relay.feeds[0].behind_bytes()
    assert relay.relay.feeds[1].lag_s() > 0
    assert away.events == []
    away.is_away = False
    waiting.join()
    relay.work()

    assert away.numbers == [*range(1, 11)]


def test_what_was_not_acknowledged_is_sent_again(driven, writers, event_factory, folder):
    """By the relay after one that was killed; and nothing else is."""
    fill(writers(), event_factory, range(1, 11))
    here, away = ListedSink("here"), ListedSink("away")
    first = driven(here, away)
    first.step("here")
    first.kill()
    driven(here, away).work()

    assert (here.numbers, away.numbers) == ([*range(1, 11)], [*range(1, 11)])


def test_a_damaged_position_costs_a_second_delivery(driven, writers, event_factory, folder):
    """And no event."""
    fill(writers(), event_factory, range(1, 11))
    sink = ListedSink()
    first = driven(sink)
    first.step()
    first.kill()
    (folder / "position-listed.json").write_bytes(b'{"torn')
    driven(sink).work()

    assert sink.numbers == [*range(1, 11)] * 2


def test_the_older_file_of_a_writer_is_read_first(driven, writers, event_factory, folder):
    """And removed, so that there is room for the next."""
    big, writer, sink = content_again("x" * 10_000), writers(), ListedSink()
    fill(writer, event_factory, range(1, 151), content=big)

    assert len(files_in(folder)) == 2
    driven(sink).work()
    assert sink.numbers == [*range(1, 151)]
    assert len(files_in(folder)) == 1
    assert writer.has_room()


def test_files_of_processes_that_ended_are_removed_once_read(
    driven, writers, event_factory, folder
):
    """By all sinks; those of the living stay."""
    ended, living = writers(), writers()
    fill(ended, event_factory, [1], A)
    fill(living, event_factory, [1], B)
    ended.close()
    relay = driven(ListedSink("one"), ListedSink("two"))
    relay.work("one")
    before = len(files_in(folder))
    relay.work()

    assert before == 2
    assert [path.name[:16] for path in files_in(folder)] == [B]


def test_the_end_of_a_writer_is_told_once_all_sinks_have_its_events(
    driven, writers, event_factory, folder
):
    """With the number of its last event, and of those that found no room."""
    keeping, big, writer = KeepingSink(), content_again("x" * 10_000), writers()
    fill(writer, event_factory, range(1, 401), content=big)
    writer.close()
    relay = driven(keeping)
    relay.relay.look()
    before = keeping.look()
    relay.work()

    assert before == {A: FollowedWriter(400, "durable", running_version())}
    assert keeping.look() == {}
    assert keeping.ended == [(A, 400, True)]
    assert files_in(folder) == []


def test_an_end_that_cannot_be_told_yet_is_told_later(driven, writers, event_factory, folder):
    """The file stays until then."""
    keeping, writer = KeepingSink(), writers()
    fill(writer, event_factory, [1])
    writer.close()
    relay = driven(keeping)
    relay.step()
    keeping.is_away = True
    relay.work()
    waiting = files_in(folder)
    keeping.is_away = False
    relay.work()

    assert len(waiting) == 1
    assert (keeping.ended, files_in(folder)) == ([(A, 1, True)], [])


def test_a_killed_writers_events_are_delivered(driven, event_factory, folder):
    """All that were appended; its end is told as no orderly one."""
    writer, keeping = QueueWriter(folder, KEYS, 2 * MIB), KeepingSink()

    def work():
        fill(writer, event_factory, range(1, 201))
        os.kill(os.getpid(), signal.SIGKILL)

    exit_code_of_child(work)
    driven(keeping).work()

    assert keeping.numbers == [*range(1, 201)]
    assert keeping.ended == [(A, 200, False)]


def test_what_a_killed_writer_did_not_use_is_given_back(driven, event_factory, folder):
    """Although somebody still has to read what it did."""
    writer, away = QueueWriter(folder, KEYS, 8 * MIB), ListedSink()

    def work():
        fill(writer, event_factory, [1])
        os.kill(os.getpid(), signal.SIGKILL)

    exit_code_of_child(work)
    driven(away).relay.look()

    assert files_in(folder)[0].stat().st_size < MIB


def test_a_sink_that_is_behind_makes_room_for_the_others(driven, writers, event_factory, folder):
    """It loses the oldest, which is counted; whoever accounts for writers loses nothing."""
    big, writer = content_again("x" * 10_000), writers()
    behind, keeping = ListedSink("behind"), KeepingSink()
    relay = driven(behind, keeping)
    fill(writer, event_factory, range(1, 181), content=big)
    relay.work("keeping")
    before = len(files_in(folder))
    relay.ticks += relay_module.PATIENCE_S
    relay.work("keeping")
    relay.work()

    assert keeping.numbers == [*range(1, 181)]
    assert (before, len(files_in(folder))) == (2, 1)
    assert behind.numbers == [*range(relay.relay.feeds[0].skipped + 1, 181)]


@pytest.mark.parametrize("step_s", [DAY_S, -DAY_S, 3_650 * DAY_S, -3_650 * DAY_S])
def test_a_clock_that_is_set_has_nothing_left_out(driven, writers, event_factory, step_s):
    """How long room has been needed is lived through, and not read off a wall clock."""
    big, writer = content_again("x" * 10_000), writers()
    behind, keeping = ListedSink("behind"), KeepingSink()
    relay = driven(behind, keeping)
    fill(writer, event_factory, range(1, 181), content=big)
    relay.work("keeping")
    for _ in range(3):
        relay.now += step_s
        relay.work("keeping")
    relay.work()

    assert behind.numbers == keeping.numbers == [*range(1, 181)]


def test_no_room_is_made_of_what_the_audit_trail_has_not_taken(
    driven, writers, event_factory, folder
):
    """Its writer has no room meanwhile, and says how many events that costs."""
    big, writer = content_again("x" * 10_000), writers()
    behind, keeping = ListedSink("behind"), KeepingSink()
    relay = driven(behind, keeping)
    fill(writer, event_factory, range(1, 181), content=big)
    relay.relay.look()
    relay.ticks += relay_module.PATIENCE_S
    relay.work()

    assert behind.numbers == keeping.numbers == [*range(1, 181)]


def test_a_sink_that_is_behind_loses_the_oldest_of_what_the_dead_left(
    driven, writers, event_factory, folder, monkeypatch
):
    """Else processes that come and go would fill the disk."""
    monkeypatch.setattr(relay_module, "MAX_LEFT_BYTES", 0)
    writer, behind = writers(), ListedSink("behind")
    fill(writer, event_factory, range(1, 4))
    writer.close()
    relay = driven(behind)
    relay.relay.look()
    relay.ticks += relay_module.PATIENCE_S
    relay.relay.look()
    relay.relay.look()

    assert relay.relay.feeds[0].skipped == 3
    assert files_in(folder) == []


def test_a_folder_has_one_relay(driven, folder):
    """The second says in one line who reads it."""
    first = driven(ListedSink())

    with pytest.raises(FolderTakenError, match=rf"^process {os.getpid()} reads .* already"):
        take_folder(folder)
    first.kill()
    take_folder(folder).release()


def test_a_file_of_another_key_waits_for_it(driven, writers, event_factory, folder):
    """It is counted, and hinders no other."""
    stranger = QueueWriter(folder, SubjectKeys(b"another secret of ours"), 2 * MIB)
    fill(stranger, event_factory, [1], B)
    stranger.close()
    fill(writers(), event_factory, [1], A)
    sink = ListedSink()
    relay = driven(sink)
    relay.work()
    found = {each.name: each.value for each in relay.relay.samples()}

    assert [each.writer_id for each in sink.events] == [A]
    assert found["mnemoscope_relay_unreadable_files"] == 1
    assert len(files_in(folder)) == 2


def test_its_figures_tell_of_each_sink(driven, writers, event_factory):
    """And of events that found no room, which no process is left to tell of."""
    writer, big = writers(), content_again("x" * 10_000)
    fill(writer, event_factory, range(1, 401), content=big)
    sink = ListedSink()
    relay = driven(sink)
    relay.work()
    kept = len(sink.events)
    writer.close()
    relay.work()
    found = {(each.name, each.labels.get("sink")): each.value for each in relay.relay.samples()}

    assert found["mnemoscope_sink_events_total", "listed"] == kept
    assert found["mnemoscope_sink_dropped_total", "relay"] == 400 - kept
    assert found["mnemoscope_relay_behind_bytes", "listed"] == 0
    assert found["mnemoscope_relay_writers", None] == 0


def test_it_runs_until_it_is_told_to_stop(folder, driven, writers, event_factory):
    """It delivers meanwhile, and gives signs of life."""
    sink, stopping, writer = ListedSink(), threading.Event(), writers()
    made = driven(sink)
    relay = made.relay
    thread = threading.Thread(target=relay.run, args=(stopping,))
    thread.start()
    try:
        fill(writer, event_factory, range(1, 11))
        delivered = until(lambda: sink.numbers == [*range(1, 11)])
        is_seen = until(lambda: silent_s(folder) < SILENT_AFTER_S)
    finally:
        stopping.set()
        thread.join()

    assert delivered
    assert is_seen
    take_folder(folder).release()


class TestStanding:
    """What others can tell of a relay."""

    def test_nobody_reads(self, folder):
        """With what is to be done."""
        found = standing(folder)

        assert (found.is_alive, silent_s(folder)) == (False, None)
        assert found.problem == f"no relay reads {folder}: start `mnemoscope relay {folder}`"

    def test_it_is_gone(self, folder):
        """Its last sign of life was long ago."""
        folder.mkdir(mode=0o700)
        beat(folder, Beat(pid=7, at=1_000.0))

        assert "was last seen 500 s ago" in standing(folder, lambda: 1_500.0).problem

    @pytest.mark.parametrize("ahead_s", [SILENT_AFTER_S + 1, DAY_S, 3_650 * DAY_S])
    def test_a_sign_from_a_time_to_come_is_none_of_life(self, folder, ahead_s):
        """The clock was set back: whoever lives gives another by it, and the dead do not."""
        folder.mkdir(mode=0o700)
        beat(folder, Beat(pid=7, at=1_000.0 + ahead_s))
        at = (folder / "beat.json").stat().st_mtime

        assert not standing(folder, lambda: 1_000.0).is_alive
        assert silent_s(folder, lambda: at - ahead_s) > SILENT_AFTER_S

    def test_it_is_behind(self, folder):
        """It lives, and says who holds it up."""
        folder.mkdir(mode=0o700)
        beat(folder, Beat(pid=7, at=1_000.0, lag_s=75.0, slowest="otlp", behind_bytes=12))
        found = standing(folder, lambda: 1_001.0)

        assert found.is_alive
        assert "otlp has not taken events of 75 s ago" in found.problem

    def test_it_is_well(self, folder):
        """Then there is no problem."""
        folder.mkdir(mode=0o700)
        beat(folder, Beat(pid=7, at=1_000.0))

        assert standing(folder, lambda: 1_001.0).problem is None

    def test_a_process_sees_its_age(self, folder):
        """In the figures of its own."""
        folder.mkdir(mode=0o700)
        beat(folder, Beat(pid=7, at=0.0))
        at = (folder / "beat.json").stat().st_mtime
        (sample,) = RelaySink(folder, KEYS, clock=lambda: at + 40.0).samples()

        assert (sample.name, sample.value) == ("mnemoscope_relay_silent_seconds", 40.0)


def test_an_idle_relay_wakes_no_sink(driven, monkeypatch):
    """It looks at the files once for all of them, and finds that none has grown."""
    monkeypatch.setattr(relay_module, "LOOK_EVERY_S", 0.001)
    relay, stopping = driven(ListedSink()).relay, threading.Event()
    counts = {"looks": 0, "turns": 0}
    (feed,) = relay.feeds
    look, turn = relay.look, feed.turn

    def looked() -> None:
        counts["looks"] += 1
        look()

    def turned() -> bool:
        counts["turns"] += 1
        return turn()

    monkeypatch.setattr(relay, "look", looked)
    monkeypatch.setattr(feed, "turn", turned)
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    until(lambda: counts["looks"] > 100)
    stopping.set()
    running.join()

    assert counts["turns"] <= 3


def test_the_rest_of_a_backlog_is_not_waited_with(
    driven, writers, event_factory, folder, monkeypatch
):
    """Whatever it was woken for has long been forgotten when a slow sink has the last of a file."""
    looks, go = [], threading.Event()

    class Slow(ListedSink):
        def write(self, batch, /):
            go.wait(GIVE_UP_S)
            super().write(batch)

    monkeypatch.setattr(relay_module, "LOOK_EVERY_S", 0.001)
    relay, stopping = driven(Slow()).relay, threading.Event()
    look = relay.look
    monkeypatch.setattr(relay, "look", lambda: looks.append(look()))
    writer = writers()
    fill(writer, event_factory, range(1, 2_501))
    writer.close()
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    until(lambda: len(looks) > 20)
    go.set()
    emptied = until(lambda: not files_in(folder))
    stopping.set()
    running.join()

    assert emptied


def test_what_comes_between_two_looks_is_one_batch(driven, writers, event_factory, monkeypatch):
    """A trickle costs a sink one request for each look, and not one for each event."""
    batches = []

    class Batched(ListedSink):
        def write(self, batch, /):
            batches.append(len(batch))

    monkeypatch.setattr(relay_module, "LOOK_EVERY_S", 0.001)
    relay, stopping = driven(Batched()).relay, threading.Event()
    fill(writers(), event_factory, range(1, 101))
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    until(lambda: sum(batches) == 100)
    stopping.set()
    running.join()

    assert batches == [100]
