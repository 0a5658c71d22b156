"""The signed end of the log: how far behind it may be, and what it shows."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.proof.note import parse_checkpoint
from mnemoscope.audit.record.sealing import draft
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.store.heads import EVENTS, QUIET_S
from mnemoscope.audit.verification.whole import SIGNED_WITHIN_S, verify
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit import tampering


class Clock:
    """A wall clock that stands still until it is moved."""

    def __init__(self):
        self.now_ns = 1_800_000_000_000_000_000

    def __call__(self):
        return self.now_ns

    def pass_s(self, seconds):
        self.now_ns += int(seconds * 1e9)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(path, subject_keys, clock):
    log = AuditLog(path, subject_keys, clock_ns=clock)
    yield log
    log.close()


def signed(log):
    """Return how many events the signed end is of, and how many there are."""
    with log.reading() as snapshot:
        ((note,),) = snapshot.execute("SELECT note FROM audit_head").fetchall()
        return parse_checkpoint(note).size, snapshot.size


class TestWhenItIsSigned:
    def test_at_most_so_many_events_are_not(self, log, event_factory):
        """However they come: by ones or in large batches."""
        for size in (1, 100, 100, 100, 1, EVENTS, EVENTS * 3, 5, 7, 250):
            log.append([event_factory() for _ in range(size)])
            covered, there = signed(log)
            assert there - covered < EVENTS

    def test_an_event_after_a_second_is_signed_with_it(self, log, event_factory, clock):
        """So a single one, as they come in quiet times, does not wait at all."""
        log.append([event_factory()])
        for _ in range(3):
            clock.pass_s(1)
            log.append([event_factory()])
            covered, there = signed(log)
            assert covered == there

    def test_an_event_after_which_none_is_known_of_is_signed_soon(self, log, event_factory, clock):
        """The process may end without a word; but many by ones are not signed one by one."""
        for seconds, is_signed in ((QUIET_S, True), (QUIET_S / 2, False), (QUIET_S / 2, True)):
            clock.pass_s(seconds)
            log.record([draft(event_factory())], is_quiet=True)
            covered, there = signed(log)
            assert (covered == there) == is_signed

    def test_a_sink_knows_whether_more_was_counted(self, log, event_factory, clock):
        """What another thread has counted is on its way, and the end is signed with it."""
        sink = AuditSink(log)
        drain = Drain([sink])
        sink.attach(drain)
        made = [
            event_factory(writer_id=drain.writer_id, writer_seq=drain.next_seq()) for _ in range(4)
        ]
        outcome = []
        for each in made:
            clock.pass_s(2 * QUIET_S)
            sink.write([each])
            outcome.append(signed(log))
        sink.close(1.0)

        covered, there = outcome[-2]
        assert covered < there
        covered, there = outcome[-1]
        assert covered == there

    def test_the_last_of_many_is_signed_at_the_next_beat(self, log, event_factory):
        """A beat comes every second, whether or not another event does."""
        sink = AuditSink(log)
        sink.write([event_factory()])
        sink.write([event_factory()])
        covered, there = signed(log)
        assert covered < there
        sink.beat()

        covered, there = signed(log)
        assert covered == there

    def test_an_idle_beat_writes_nothing(self, log, event_factory):
        """There is nothing to sign."""
        sink = AuditSink(log)
        sink.write([event_factory()])
        sink.beat()
        with closing(sqlite3.connect(log.path)) as connection:
            before = connection.execute("PRAGMA data_version").fetchone()
            sink.beat()
            assert connection.execute("PRAGMA data_version").fetchone() == before

    def test_it_is_signed_when_the_log_is_closed(self, log, path, subject_keys, event_factory):
        """Nobody beats then."""
        log.append([event_factory()])
        log.append([event_factory()])
        log.close()

        covered, there = signed(AuditLog(path, subject_keys))
        assert covered == there

    def test_what_another_process_left_is_signed_by_the_next(
        self, log, path, subject_keys, event_factory
    ):
        """With its first transaction, whatever that is."""
        log.append([event_factory()])
        log.append([event_factory()])
        other = AuditLog(path, subject_keys)
        other.record(())
        other.close()

        covered, there = signed(log)
        assert covered == there

    def test_there_is_one_of_it(self, log, event_factory, clock):
        """However long the log is."""
        for _ in range(20):
            clock.pass_s(1)
            log.append([event_factory()])

        with log.reading() as snapshot:
            assert snapshot.execute("SELECT count(*) FROM audit_head").fetchone() == (1,)
            assert snapshot.execute("SELECT count(*) FROM audit_checkpoint").fetchone() == (0,)


class TestWhatItShows:
    @pytest.fixture
    def tail(self, log, event_factory, clock):
        """Return what changes a copy of a log whose last events no checkpoint covers."""
        log.append([event_factory() for _ in range(20)])
        log.checkpoint_now()
        clock.pass_s(1)
        log.append([event_factory() for _ in range(5)])
        log.close()
        return log.path

    @pytest.fixture
    def changed(self, tail, tmp_path, subject_keys, clock):
        def state(*statements):
            copy = tampering.copy_of(tail, tmp_path / "copy.db")
            with closing(sqlite3.connect(copy)) as connection:
                for statement in statements:
                    connection.execute(statement)
                connection.commit()
            log = AuditLog(copy, subject_keys, clock_ns=clock)
            try:
                return verify(log).state
            finally:
                log.close()

        return state

    def test_the_control(self, changed):
        """Untouched, it is in order, and all of it is signed."""
        assert changed() == "ok"

    def test_a_tail_that_was_cut(self, tail, tmp_path, subject_keys, event_factory, clock):
        """The rows of the end put back as they were at the checkpoint, all but the signed end."""
        log = AuditLog(tail, subject_keys, clock_ns=clock)
        before = tmp_path / "before.db"
        log.checkpoint_now()
        log.close()
        shutil.copyfile(tail, before)
        log.append([event_factory() for _ in range(5)])
        log.close()
        with closing(sqlite3.connect(tail)) as connection:
            (note,) = connection.execute("SELECT note FROM audit_head").fetchone()
        with closing(sqlite3.connect(before)) as connection:
            connection.execute("UPDATE audit_head SET note = ?", (note,))
            connection.commit()

        assert verify(AuditLog(before, subject_keys, clock_ns=clock)).state == "tampered"

    def test_a_checkpoint_does_not_pass_for_it(self, changed):
        """It is signed by the right key, and says of itself what it is."""
        assert (
            changed(
                "UPDATE audit_head SET note = (SELECT note FROM audit_checkpoint LIMIT 1)",
            )
            == "tampered"
        )

    def test_without_it_the_end_cannot_be_vouched_for(self, changed):
        """Also where a checkpoint covers what is there."""
        assert changed("DELETE FROM audit_head") == "unverifiable"

    def test_a_second_one_is_no_help(self, changed):
        """There is one end."""
        assert changed("INSERT INTO audit_head SELECT 1, note FROM audit_head") == "tampered"

    def test_events_that_nothing_signs_are_told(self, log, event_factory, clock):
        """On their way for some seconds; afterwards whoever has no key may have made them."""
        log.append([event_factory()])
        log.append([event_factory() for _ in range(3)])
        found = verify(log)
        assert (found.state, found.size - found.signed) == ("ok", 3)
        assert "3 not signed yet" in found.verdict()
        clock.pass_s(SIGNED_WITHIN_S + 1)

        found = verify(log)
        assert found.state == "unverifiable"
        assert found.findings["unverifiable"] == ["3 events from 2 on are not signed (yet)"]

    def test_events_of_the_future_are_not_on_their_way(self, log, event_factory, clock):
        """A clock that was put forward by whoever added them excuses nothing."""
        log.append([event_factory()])
        log.append([event_factory()])
        clock.pass_s(-3_600)

        assert verify(log).state == "unverifiable"
