"""The audit sink while its database is there, away, back, or never to come."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database.schema import APPLICATION_ID, newest_version
from mnemoscope.audit.proof.note import parse_checkpoint
from mnemoscope.audit.record.sequence_gaps import PATIENCE_S
from mnemoscope.audit.sink.announcer import Announcer
from mnemoscope.audit.sink.sink import CHECKPOINT_EVERY, CHECKPOINT_EVERY_S, AuditSink
from mnemoscope.audit.sink.spool import Spool, spool_files
from mnemoscope.memory.api import Redacted, UnacceptableError, Usage
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from tests.kit.patience import GIVE_UP_S
from tests.kit.still_clock import Clock


@pytest.fixture
def clock():
    return Clock(1_000.0)


@pytest.fixture
def make_sink(tmp_path, path, subject_keys, clock):
    made = []

    def make(*, max_bytes=1_000_000, every_s=0.0, folder=None, **log_options):
        log = AuditLog(path, subject_keys, **log_options)
        spool = Spool(
            (folder or tmp_path) / "audit.spool", log.ring, max_bytes, content=content_again
        )
        sink = AuditSink(log, spool, checkpoint_every_s=every_s, clock=clock)
        sink._heartbeat.start = lambda **_how: None  # the tests beat
        made.append(sink)
        return sink

    yield make
    for each in made:
        each.close(1.0)


@pytest.fixture
def sink(make_sink):
    return make_sink()


@pytest.fixture
def away(path):
    """Return what takes the database away: a file where its folder was; and what brings it back."""

    class Away:
        aside = path.parent.with_name("aside")

        def __enter__(self):
            if path.parent.exists():
                path.parent.rename(self.aside)
            path.parent.touch()

        def __exit__(self, *exc):
            path.parent.unlink()
            if self.aside.exists():
                self.aside.rename(path.parent)

    return Away()


def written(log):
    return [(row.event_id, row.run) for row in log.rows()]


def log_events(path, name):
    """Return the data of the log's events about itself, by name."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT header FROM audit_event WHERE kind = 'log' AND operation = ? ORDER BY seq",
            (name,),
        )
        return [json.loads(header)["data"] for (header,) in found]


def refuses(*_args):
    raise AuditError("it is away")


def fails_with_eio(_fd):
    raise OSError(errno.EIO, "Input/output error")


class TestOutage:
    @pytest.mark.fault(71, "audit database away from the start", expected="spooled, written once")
    def test_a_database_that_is_away_from_the_start(self, sink, event_factory, away, clock, seen):
        """The first events of a process wait like any others."""
        with away:
            sink.write([event_factory(run="1"), event_factory(run="2")])
            waited = sink.waiting
        clock.now_s += 60
        sink.write([event_factory(run="3")])
        seen(f"{waited} of 3 waited, 3 are there in order")

        assert waited == 2
        assert [run for _id, run in written(sink.log)] == list("123")

    def test_events_wait_in_the_spool_and_go_first(self, sink, event_factory, away, clock):
        """Order is kept, each event is there once, and the spool's file is gone afterwards."""
        sink.write([event_factory(run="1")])
        with away:
            sink.write([event_factory(run="2"), event_factory(run="3")])
            assert sink.waiting == 2
            sink.write([event_factory(run="4")])
        clock.now_s += 60
        sink.write([event_factory(run="5")])

        assert [run for _id, run in written(sink.log)] == list("12345")
        assert sink.waiting == 0
        assert spool_files(sink.spool.path) == []

    def test_nothing_is_different_for_having_waited(self, sink, event_factory, away, clock):
        """Customer, tenant, run, memories, scores, usage, content: all comes back as it was."""
        fields = {
            "run": "r",
            "collection": "c",
            "memory_ids": ("a", "b"),
            "scores": (0.5, 0.25),
            "usage": Usage(model="m", namespace=("n",), cost_usd=0.125),
            "content": Redacted({"text": "\u00e9", "n": 1.5}),
        }
        sink.write([event_factory(writer_seq=1, **fields)])
        with away:
            sink.write([event_factory(writer_seq=2, **fields)])
        clock.now_s += 60
        assert sink.flush(GIVE_UP_S)

        straight, waited = sink.log.history("ada@example.com", "acme")
        # It says until when it is kept, which is counted from when it was recorded.
        differing = {"seq", "event_id", "header", "leaf", "salt", "detail"}
        for name in straight.__dataclass_fields__.keys() - differing - {"recorded_us"}:
            assert getattr(straight, name) == getattr(waited, name), name
        assert sink.log.spend()[0].calls == 2

    def test_it_is_said_once_and_once_that_it_is_back(
        self, sink, event_factory, away, clock, caplog
    ):
        """One line an outage: what is wrong, what to do, where events are meanwhile."""
        with caplog.at_level(logging.INFO, logger="mnemoscope.audit"):
            with away:
                for _ in range(5):
                    sink.write([event_factory()])
                    clock.now_s += 20
            sink.write([event_factory()])

        began, ended = (record.getMessage() for record in caplog.records)
        assert "is a file, not a folder" in began
        assert str(sink.spool.path) in began
        assert "5 events that waited" in ended

    def test_the_database_is_asked_less_and_less_often(self, sink, event_factory, away, clock):
        """An outage does not make each batch wait for the database anew."""
        asked = []
        record = sink.log.record
        sink.log.record = lambda *what, **how: asked.append(clock.now_s) or record(*what, **how)
        with away:
            for _ in range(200):
                sink.write([event_factory()])
                clock.now_s += 0.1

        assert 4 <= len(asked) <= 9
        assert sink.waiting == 200

    def test_a_beat_brings_them_in_without_a_new_event(self, sink, event_factory, away, clock):
        """Nobody needs to write for what waits to be recorded."""
        with away:
            sink.write([event_factory()])
            sink.beat()
        clock.now_s += 60
        sink.beat()

        assert (sink.waiting, sink.log.count()) == (0, 1)

    def test_a_crash_in_the_middle_of_a_replay_doubles_nothing(
        self, sink, event_factory, away, clock
    ):
        """What was recorded before is recognised when the spool is read again."""
        with away:
            sink.write([event_factory() for _ in range(600)])
        clock.now_s += 60
        remove = sink.spool._file.remove
        sink.spool._file.remove = lambda: (_ for _ in ()).throw(OSError(5, "EIO"))
        assert not sink.flush(GIVE_UP_S)
        sink.spool._file.remove = remove
        clock.now_s += 60

        assert sink.flush(GIVE_UP_S)
        assert len(set(written(sink.log))) == sink.log.count() == 600

    def test_the_next_process_takes_over_what_was_left(self, make_sink, event_factory, away):
        """A spool whose process is gone is replayed by whoever comes next."""
        first = make_sink()
        with away:
            first.write([event_factory(run="left")])
            first.close(1.0)
        second = make_sink()
        second.write([event_factory(run="new")])

        assert [run for _id, run in written(second.log)] == ["left", "new"]

    @pytest.mark.fault(76, "two processes, one spool folder", expected="each has its own")
    def test_a_spool_in_use_is_left_to_its_process(self, make_sink, event_factory, away):
        """Two processes with the database away have a file each, and neither is read twice."""
        first, second = make_sink(), make_sink()
        with away:
            first.write([event_factory(run="first")])
            second.write([event_factory(run="second")])
        assert first.spool._file.path != second.spool._file.path
        second.probe()
        assert not second.waiting
        assert [run for _id, run in written(second.log)] == ["second"]
        first.probe()
        assert not first.waiting

        assert [run for _id, run in written(first.log)] == ["second", "first"]

    def test_nothing_of_it_can_be_read(self, sink, event_factory, away):
        """The spool is encrypted: neither names nor content are in the file."""
        with away:
            sink.write([event_factory(content=Redacted("content-x"), run="run-x")])
            (path,) = spool_files(sink.spool.path)
            data = path.read_bytes()

            assert path.stat().st_mode & 0o777 == 0o600
            for text in (b"content-x", b"run-x", b"search_memory", b"acme"):
                assert text not in data

    def test_without_a_spool_the_lane_keeps_them(self, path, subject_keys, event_factory, away):
        """It is told that nothing was taken, and asks again."""
        sink = AuditSink(AuditLog(path, subject_keys))
        with away, pytest.raises(AuditError):
            sink.write([event_factory()])
        sink.write([event_factory()])

        assert sink.log.count() == 1
        sink.close(1.0)

    def test_where_neither_takes_anything_it_is_an_error(
        self, make_sink, event_factory, away, tmp_path
    ):
        """Then the lane keeps the batch: nothing is called delivered that is on no disk."""
        (tmp_path / "file").touch()
        sink = make_sink(folder=tmp_path / "file")
        with away:
            with pytest.raises(AuditError, match="cannot be written"):
                sink.write([event_factory()])
            assert not sink.accepts()

    def test_it_accepts_as_soon_as_the_disk_has_room(self, sink, event_factory, away, monkeypatch):
        """Nobody has to be refused first, so that an event tells it."""

        def full(*_args):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with away:
            with monkeypatch.context() as patched:
                patched.setattr(os, "posix_fallocate", full, raising=False)
                with pytest.raises(AuditError, match="no space"):
                    sink.write([event_factory()])
                assert not sink.accepts()
            assert sink.accepts()

    @pytest.mark.fault(75, "spool: EIO when it is synced", expected="an error; later each once")
    def test_a_disk_that_does_not_sync_is_an_error(
        self, sink, event_factory, away, clock, monkeypatch
    ):
        """The lane keeps what may be on no disk, and brings it again; nothing is there twice."""
        batch = [event_factory(), event_factory()]
        with away:
            sink.write([event_factory(run="before")])
            with monkeypatch.context() as broken:
                broken.setattr("mnemoscope.telemetry.queue.event_file._sync", fails_with_eio)
                with pytest.raises(AuditError, match="cannot be written"):
                    sink.write(batch)
            sink.write(batch)
        clock.now_s += 60

        assert sink.flush(GIVE_UP_S)
        assert len(written(sink.log)) == len(set(written(sink.log))) == 3

    def test_an_event_that_cannot_be_written_is_refused_alone(self, sink, event_factory):
        """The lane halves the batch until it stands alone."""
        with pytest.raises(UnacceptableError):
            sink.write([event_factory(memory_ids=("x",), scores=(object(),))])


class TestUnusableDatabases:
    def lost_nothing(self, sink, event):
        sink.write([event])
        assert sink.waiting == 1
        with pytest.raises(AuditError) as caught:
            sink.check(1.0)
        assert "\n" not in str(caught.value)
        assert "1 wait" in str(caught.value)
        return str(caught.value)

    @pytest.mark.fault(74, "audit database: newer schema", expected="spooled; one clear line")
    def test_a_newer_version(self, sink, path, event_factory):
        """Events wait until the library is upgraded."""
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE audit_event(seq)")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {newest_version() + 1}")

        assert "Upgrade mnemoscope" in self.lost_nothing(sink, event_factory())

    def test_the_layout_before_the_first_release(self, sink, path, event_factory):
        """Version 1 was never sealed: it is to be moved away."""
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE audit_event(seq)")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA user_version = 1")

        assert "Move it away" in self.lost_nothing(sink, event_factory())

    @pytest.mark.fault(74, "audit database: a table is missing", expected="spooled; one clear line")
    def test_a_missing_table(self, sink, path, event_factory):
        """A database that somebody took a table from is one clear error."""
        sink.write([event_factory()])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE audit_log")
            connection.commit()

        assert "audit_log is missing" in self.lost_nothing(sink, event_factory())

    @pytest.mark.fault(
        75, "audit database: disk full mid-batch", expected="no torn batch; spooled, then written"
    )
    def test_a_full_disk(self, sink, path, event_factory, clock):
        """Nothing of a batch is there, all of it waits, and goes in when there is room."""
        sink.write([event_factory()])
        connection = sink.log.tables.database._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        sink.write([event_factory() for _ in range(200)])
        assert sink.waiting == 200
        assert sink.log.count() == 1
        clock.now_s += 60

        assert sink.flush(GIVE_UP_S)
        assert sink.log.count() == 201

    @pytest.mark.fault(76, "spool with a torn tail", expected="whole records kept, the gap is said")
    def test_a_spool_that_was_torn_keeps_what_is_whole(
        self, sink, event_factory, away, clock, caplog
    ):
        """A half-written record at the end costs that record and no other, and is said."""
        with away:
            sink.write([event_factory(writer_seq=seq) for seq in (1, 2, 3)])
            sink.spool.close()
            (path,) = spool_files(sink.spool.path)
            path.write_bytes(path.read_bytes()[:-20])
            sink.write([event_factory(writer_seq=4)])
        clock.now_s += 60
        assert sink.flush(GIVE_UP_S)

        assert {int(each.partition("-")[2]) for each, _run in written(sink.log)} == {1, 2, 4}
        assert "could not be read" in caplog.text


def beat_for(seconds, sink, clock):
    """Let time go by as it does: a beat each second."""
    for _ in range(int(seconds)):
        clock.now_s += 1
        sink.beat()


class TestGaps:
    def test_a_hole_in_a_writers_counter_is_declared(self, sink, path, event_factory, clock):
        """Events that the lane had to drop are named, with their exact number."""
        sink.write([event_factory(writer_seq=seq) for seq in (1, 2, 8)])
        sink.beat()
        assert log_events(path, "audit.gap") == []
        beat_for(PATIENCE_S + 1, sink, clock)

        assert log_events(path, "audit.gap") == [
            {
                "count": 5,
                "from_wseq": 3,
                "reason": "undelivered",
                "to_wseq": 7,
                "writer": "00000000000000aa",
            }
        ]
        assert sink.stats.lost == 5

    @pytest.mark.parametrize("slow", [(2,), (4,)], ids=["in that write", "behind it"])
    def test_what_waits_for_a_write_that_takes_long_is_no_loss(
        self, sink, path, event_factory, clock, monkeypatch, slow
    ):
        """The sink's own time is no patience: nothing could arrive in it."""
        record = sink.log.record

        def take_a_minute(*given, **how):
            clock.now_s += 60
            return record(*given, **how)

        sink.write([event_factory(writer_seq=seq) for seq in (3, 1)])
        with monkeypatch.context() as patch:
            patch.setattr(sink.log, "record", take_a_minute)
            sink.write([event_factory(writer_seq=seq) for seq in slow])
        sink.write([event_factory(writer_seq=seq) for seq in {2, 4}.difference(slow)])
        beat_for(PATIENCE_S + 1, sink, clock)

        assert log_events(path, "audit.gap") == []

    def test_what_comes_out_of_order_is_no_loss(self, sink, path, event_factory, clock):
        """Threads overtake one another: a hole has time to be filled."""
        sink.write([event_factory(writer_seq=seq) for seq in (3, 1)])
        clock.now_s += PATIENCE_S / 2
        sink.write([event_factory(writer_seq=2)])
        clock.now_s += PATIENCE_S
        sink.beat()

        assert log_events(path, "audit.gap") == []

    def test_the_end_waits_for_nothing(self, sink, path, event_factory):
        """A hole that is open when the sink is closed is declared."""
        sink.write([event_factory(writer_seq=4)])
        sink.close(1.0)

        assert [each["count"] for each in log_events(path, "audit.gap")] == [3]

    def test_an_overflowing_lane_and_the_log_agree(self, path, subject_keys, event_factory):
        """What the lane counts as dropped, where there is no spool, the log declares."""
        sink = AuditSink(AuditLog(path, subject_keys))
        hold = sink._guard
        drain = Drain([sink], limits=LaneLimits(items=10, batch=5))
        with hold:
            for _ in range(200):
                drain.emit(event_factory())
        assert not drain.flush(GIVE_UP_S)
        (books,) = drain.stats()
        drain.close(GIVE_UP_S)

        declared = sum(each["count"] for each in log_events(path, "audit.gap"))
        assert declared == books.dropped["overflow"] > 0
        assert sink.log.count() + declared == 200

    @pytest.mark.fault(
        84, "outage longer than the spool", expected="newest dropped, exact gap declared"
    )
    def test_a_full_spool_loses_nothing_that_it_took(
        self, make_sink, path, event_factory, away, clock
    ):
        """Once the database is back every event is there or declared, to the last one."""
        sink, refused = make_sink(max_bytes=40_000), 0
        with away:
            for _ in range(200):
                try:
                    sink.write([event_factory()])
                except AuditError:
                    refused += 1
            assert sink.spool.size_bytes <= 40_000
        clock.now_s += 60
        sink.write([event_factory()])
        beat_for(PATIENCE_S + 1, sink, clock)

        (gap,) = log_events(path, "audit.gap")
        there = sorted(int(each.partition("-")[2]) for each, _run in written(sink.log))
        assert 0 < refused == gap["count"] < 200
        assert gap["to_wseq"] == 200
        assert there == [*range(1, gap["from_wseq"]), 201]

    def test_it_is_said_how_full_the_spool_is(self, make_sink, event_factory, away):
        """By the doctor, of the fullest of all files: at 100 % events are lost."""
        sink = make_sink(max_bytes=10_000)
        with away:
            sink.write([event_factory()])
            share = sink.spool.size_bytes / 10_000
            with pytest.raises(AuditError, match=f"fullest file is {share:.0%} full"):
                sink.check(1.0)

    def test_a_full_spool_does_not_accept(self, make_sink, event_factory, away):
        """In strict mode an operation is refused rather than an older one forgotten."""
        sink = make_sink(max_bytes=70_000)
        with away:
            sink.write([event_factory()])
            assert sink.accepts()
            for _ in range(20):
                sink.write([event_factory()])
            assert not sink.accepts()


class TestCheckpoints:
    def test_the_log_is_signed_also_when_idle(self, make_sink, event_factory, clock):
        """Its silence means something: nobody could have signed meanwhile."""
        sink, announced = make_sink(every_s=CHECKPOINT_EVERY_S), []
        sink.announce = lambda note: announced.append(note) or ("other",)
        sink.write([event_factory()])
        for _ in range(3):
            clock.now_s += CHECKPOINT_EVERY_S
            sink.beat()
            sink.beat()

        assert [parse_checkpoint(note).size for note in announced] == [2, 2, 2]

    def test_one_an_hour_is_kept(self, make_sink, event_factory, clock):
        """All are sent elsewhere; an idle process does not fill the database with them."""
        sink = make_sink(
            every_s=CHECKPOINT_EVERY_S,
            clock_ns=lambda: 1_800_000_000_000_000_000 + int(clock.now_s * 1e9),
        )
        sink.write([event_factory()])
        for _ in range(150):
            clock.now_s += CHECKPOINT_EVERY_S
            sink.beat()

        with sink.log.reading() as snapshot:
            found = snapshot.execute("SELECT size FROM audit_checkpoint").fetchall()
        assert found == [(2,)] * 3

    @pytest.mark.long
    def test_many_events_are_not_waited_for(self, make_sink, event_factory):
        """Every 4,096 events there is a signature."""
        sink = make_sink(every_s=CHECKPOINT_EVERY_S)
        for _ in range(10):
            sink.write([event_factory() for _ in range(CHECKPOINT_EVERY // 8)])

        with sink.log.reading() as snapshot:
            (count,) = snapshot.execute("SELECT count(*) FROM audit_checkpoint").fetchone()
        assert count == 1

    def test_other_sinks_are_told(self, make_sink, event_factory, clock, caplog):
        """The claim goes where who rewrites the log does not reach; the audit sink ignores it."""
        seen = []

        class Other:
            name = "other"
            idempotent = False

            def write(self, batch):
                seen.extend(batch)

            def flush(self, timeout_s):
                return True

            def close(self, timeout_s):
                return None

        sink = make_sink(every_s=CHECKPOINT_EVERY_S)
        drain = Drain([sink, Other()])
        sink.announce = Announcer(drain)
        sink.write([event_factory()])
        clock.now_s += CHECKPOINT_EVERY_S
        with caplog.at_level(logging.INFO, logger="mnemoscope.audit"):
            sink.beat()
        sink.write(seen)
        assert drain.flush(GIVE_UP_S)

        (told,) = seen
        with sink.log.reading() as snapshot:
            note, anchors = snapshot.execute(
                "SELECT note, anchors FROM audit_checkpoint"
            ).fetchone()
        claim = parse_checkpoint(note)
        assert (told.operation, told.store, told.writer_seq) == ("audit_checkpoint", "audit", 0)
        assert (told.collection, told.hits) == (claim.origin, claim.size)
        assert told.memory_ids == (claim.root.hex(),)
        assert json.loads(anchors) == ["other"]
        assert note in caplog.text
        assert sink.log.count() == 1
        drain.close(GIVE_UP_S)
