"""What a process says of itself in the log, and what is found of one that is gone."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.record.writer_events import (
    ENDED,
    HEARTBEAT,
    HEARTBEAT_S,
    IDLE_AFTER_S,
    SILENT_AFTER_S,
    STARTED,
    STOPPED,
)
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool, spool_files
from mnemoscope.audit.store.roll import AHEAD, AHEAD_FIRST
from mnemoscope.audit.verification.report import FindingKind
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.files.framing import scan
from mnemoscope.telemetry.queue.event_file import KIND, PAGE_BYTES, QUARANTINE
from tests.kit.patience import GIVE_UP_S

NOW_US = 1_800_000_000_000_000


class Clock:
    """Seconds that stand still until they are moved, for both kinds of clock."""

    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        return self.now_s

    def ns(self):
        return NOW_US * 1_000 + int(self.now_s * 1e9)


@dataclass
class Process:
    """A process of an application, as far as its audit trail goes."""

    sink: AuditSink
    drain: Drain
    event: object
    emitted: list = field(default_factory=list)

    def emit(self, count=1):
        """Count so many events, and write none of them."""
        made = [
            self.event(writer_id=self.drain.writer_id, writer_seq=self.drain.next_awaited_seq())
            for _ in range(count)
        ]
        self.emitted += made
        return made

    def write(self, count=1):
        """Count so many events and write them."""
        self.sink.write(self.emit(count))

    def die(self):
        """Be killed: the kernel closes the files."""
        self.sink._presence.roll.forked()
        if self.sink.spool is not None:
            self.sink.spool.close()
        self.sink.log.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def start(tmp_path, path, subject_keys, event_factory, clock):
    made = []

    def started(mode="fail_open", folder=None):
        log = AuditLog(path, subject_keys, clock_ns=clock.ns)
        spool = Spool(
            (folder or tmp_path / "spool") / "audit.spool", log.ring, content=content_again
        )
        sink = AuditSink(log, spool, mode=mode, clock=clock)
        sink._heartbeat.start = lambda **_how: None  # the tests beat
        drain = Drain([sink])
        sink.attach(drain)
        made.append(sink)
        return Process(sink, drain, event_factory)

    yield started
    for each in made:
        each.close(1.0)


@pytest.fixture
def said(path, subject_keys):
    """Return the names and data of what the log says of writers."""

    def found(*names):
        log = AuditLog(path, subject_keys)
        with log.reading() as snapshot:
            rows = snapshot.execute(
                "SELECT header FROM audit_event WHERE kind = 'log' ORDER BY seq"
            )
            known = [json.loads(header) for (header,) in rows]
        return [(each["operation"], each["data"]) for each in known if each["operation"] in names]

    return found


@pytest.fixture
def verified(path, subject_keys, clock):
    """Return what `verify` finds."""

    def found(after_s=0.0, spool=None):
        clock.now_s += after_s
        log = AuditLog(path, subject_keys, clock_ns=clock.ns)
        log.spool_path = spool
        log.checkpoint_now()
        found = verify(log)
        log.close()
        assert not found.findings[FindingKind.TAMPERED]
        return found

    return found


def go_on(process):
    """Count events and hand them over, as a thread of an application does."""
    for _ in range(50):
        (made,) = process.emit()
        time.sleep(0)  # where the interpreter may well turn to another thread
        process.drain.emit(made)


def failing(*_given):
    raise AuditError("no disk")


def rolls(tmp_path):
    return sorted((tmp_path / "spool").glob("roll-audit.spool.*"))


class TestALife:
    def test_it_begins_with_the_first_event_and_ends_in_order(self, start, said, verified):
        """Its first batch says that it began, and what it was asked for; its end is said too."""
        process = start("durable")
        process.write(3)
        process.sink.close(1.0)

        (begun, first), (ended, last) = said(STARTED, HEARTBEAT, STOPPED)
        assert (begun, ended) == (STARTED, STOPPED)
        assert first.items() >= {"counter": 3, "mode": "durable"}.items()
        assert last["counter"] == 3
        found = verified(SILENT_AFTER_S * 2)
        assert (found.state, found.writers["stopped"]) == ("ok", 1)

    def test_a_process_without_an_event_writes_nothing(self, start, tmp_path, path):
        """Neither into the log nor into a file."""
        process = start()
        process.sink.beat()
        process.sink.close(1.0)

        assert not path.exists()
        assert rolls(tmp_path) == []

    def test_heartbeats_come_with_events(self, start, said, clock):
        """At most one in five seconds, in the transaction of the events; none without events."""
        process = start()
        for _ in range(11):
            process.write()
            process.sink.beat()
            clock.now_s += HEARTBEAT_S / 4

        assert [data["counter"] for _name, data in said(HEARTBEAT)] == [5, 9]

    def test_it_says_once_a_day_that_it_is_still_idle(self, start, said, clock):
        """So that the log has lived through the time, and old events may go."""
        process = start()
        process.write()
        for _hour in range(75):
            clock.now_s += 3_600
            process.sink.beat()

        assert [data["idle"] for _name, data in said(HEARTBEAT)] == [True] * 4

    def test_it_says_once_that_it_is_idle(self, start, said, verified, clock):
        """Then its silence means nothing, until the next event, with which it is back."""
        process = start()
        process.write(2)
        for _ in range(5):
            clock.now_s += IDLE_AFTER_S
            process.sink.beat()
        assert [data["idle"] for _name, data in said(HEARTBEAT)] == [True]
        found = verified(SILENT_AFTER_S * 10)
        assert (found.state, found.writers["idle"]) == ("ok", 1)
        process.write()

        assert [data["idle"] for _name, data in said(HEARTBEAT)] == [True, False]
        found = verified()
        assert (found.state, found.writers["writing"]) == ("ok", 1)

    def test_the_last_events_are_declared_at_the_end(self, start, said, verified):
        """What was counted and never came, with nothing after it to show the gap."""
        process = start()
        process.write(2)
        process.emit(3)
        process.sink.close(1.0)

        ((_name, gap),) = said("audit.gap")
        assert (gap["from_wseq"], gap["to_wseq"]) == (3, 5)
        assert verified().state == "loss"

    def test_what_is_under_way_at_its_end_is_not_told_as_lost(self, start, said, verified, caplog):
        """A thread has counted an event and not handed it over yet: the end is said behind it."""
        process = start()
        process.write(2)
        late = process.emit()
        process.sink.rest()
        before = said("audit.gap", STOPPED)
        process.sink.write(late)
        process.sink.rest()

        assert (before, caplog.messages) == ([], [])
        ((_name, stopped),) = said("audit.gap", STOPPED)
        assert stopped["counter"] == 3
        assert verified().state == "ok"

    def test_whoever_rests_while_threads_go_on_says_nothing_that_is_not_so(
        self, start, said, verified, caplog
    ):
        """At whatever moment of the others' events, in whatever order they arrive."""
        process = start()
        threads = [threading.Thread(target=go_on, args=(process,)) for _ in range(4)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            process.drain.rest(GIVE_UP_S)
        process.drain.close(GIVE_UP_S)

        assert said("audit.gap") == []
        assert [each for each in caplog.messages if "lost" in each] == []
        found = verified()
        assert (found.state, found.writers["stopped"]) == ("ok", 1)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
    def test_a_child_is_a_writer_of_its_own(self, start, said, verified, tmp_path):
        """It counts from one, says that it began, and leaves the parent's entry alone."""
        process = start()
        process.write(2)
        child = os.fork()
        if not child:
            try:
                process.write(3)
                process.sink.close(1.0)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert len(rolls(tmp_path)) == 1
        process.write()
        process.sink.close(1.0)

        counted = {data["writer"]: data["counter"] for _name, data in said(STOPPED)}
        assert sorted(counted.values()) == [3, 3]
        assert len(said(STARTED)) == 2
        assert verified().state == "ok"


class TestADeath:
    def test_its_missing_events_are_declared_by_the_next(self, start, said, verified, tmp_path):
        """The lock of its entry is free, so it is certainly gone: what it had counted is known."""
        process = start()
        process.write(2)
        process.emit(3)
        process.sink.beat()
        process.die()
        start().write()

        ((_gap, gap), (_ended, ended)) = said("audit.gap", ENDED)
        assert (gap["from_wseq"], gap["to_wseq"], gap["reason"]) == (3, 5, "unknown_end")
        assert (ended["counter"], ended["at_most"]) == (5, 2 + AHEAD_FIRST)
        found = verified()
        assert (found.state, found.writers["unknown"], found.lost) == ("loss", 1, 3)
        assert (
            f"at most {2 + AHEAD_FIRST - 5} later ones are missing"
            in found.findings[FindingKind.LOSS][1]
        )
        assert len(rolls(tmp_path)) == 1  # of the one that lives

    def test_one_that_never_got_into_the_log(self, start, said, verified):
        """Killed before its first batch: that it was there is known all the same."""
        process = start()
        process.emit(7)
        process.die()
        start().write()

        ((_name, ended),) = said(ENDED)
        assert (ended["counter"], ended["at_most"]) == (1, AHEAD_FIRST)
        assert verified().state == "loss"

    def test_it_writes_before_it_counts_on(self, start, said):
        """However many it counted unseen, none is beyond what its entry said."""
        process = start()
        process.emit(AHEAD * 3 + 1)
        process.die()
        start().write()

        ((_name, ended),) = said(ENDED)
        assert ended["counter"] <= AHEAD * 3 + 1 <= ended["at_most"]
        assert ended["at_most"] - ended["counter"] < AHEAD

    def test_an_event_of_a_signal_handler_meanwhile(self, start, said, monkeypatch):
        """It interrupts the very call that makes the entry, and waits for nothing."""
        process = start()
        write, inner = os.pwrite, []

        def interrupted(*given):
            if not inner:
                inner.append(None)
                process.emit()
            return write(*given)

        monkeypatch.setattr(os, "pwrite", interrupted)
        process.emit()
        process.die()
        start().write()

        assert len(process.emitted) == 2
        assert [data["at_most"] for _name, data in said(ENDED)] == [AHEAD_FIRST + 1]

    def test_where_no_entry_can_be_made_events_are_recorded(self, start, verified, tmp_path):
        """A disk that takes no file costs what would be known of a death, and nothing else."""
        (tmp_path / "file").touch()
        process = start(folder=tmp_path / "file")
        process.write(AHEAD + 2)
        process.sink.close(1.0)

        assert verified().state == "ok"

    def test_durable_events_that_are_all_there_are_no_loss(self, start, verified):
        """Those that it counted without its calls being over are nobody's."""
        process = start("durable")
        process.write(2)
        process.die()
        start().write()

        found = verified()
        assert (found.state, found.writers["unknown"]) == ("ok", 1)

    @pytest.mark.parametrize("is_said_before", [False, True])
    def test_calls_that_were_under_way_are_no_loss(
        self, start, said, verified, tmp_path, is_said_before
    ):
        """In `durable` a call that has returned is recorded: a later one had not."""
        process = start("durable")
        process.write(2)
        process.emit(3)
        process.sink.beat()
        process.die()
        spool = tmp_path / "spool" / "audit.spool"
        if is_said_before:
            for _ in range(2):
                start().write()
            ((_name, gap),) = said("audit.gap")
            assert (gap["from_wseq"], gap["to_wseq"], gap["reason"]) == (3, 5, "under_way")
        else:
            start(folder=tmp_path / "elsewhere").write()
            assert spool_files(spool) == []

        found = verified(spool=spool)
        assert (found.state, found.gaps, found.lost, found.under_way) == ("ok", 0, 0, 3)
        assert "under way at the end of a process: 3" in found.verdict()

    @pytest.mark.parametrize("how", ["model call", "waited too long", "could not be kept"])
    def test_a_call_that_may_have_returned_is_a_loss(
        self, start, said, verified, monkeypatch, tmp_path, how
    ):
        """Its event was not waited for, or not to the end; those after it were under way."""
        process = start("durable")
        process.write(2)
        if how == "model call":
            process.drain.next_seq()
        elif how == "waited too long":
            process.emit()
            process.drain.numbers.let_go()
        else:
            monkeypatch.setattr(process.sink, "_store", failing)
            with pytest.raises(AuditError):
                process.write()
        process.emit(2)
        process.sink.beat()
        process.die()
        start().write()

        found = [(gap["from_wseq"], gap["to_wseq"], gap["reason"]) for _, gap in said("audit.gap")]
        assert found == [(3, 3, "unknown_end"), (4, 5, "under_way")]
        found = verified()
        assert (found.state, found.lost, found.under_way) == ("loss", 1, 2)

    def test_one_that_lives_is_left_alone(self, start, said, verified):
        """Its lock is held."""
        process = start()
        process.write(2)
        start().write()

        assert said(ENDED) == []
        assert verified().writers["writing"] == 2

    def test_verify_sees_it_before_another_process_comes(self, start, verified, tmp_path):
        """On the machine where it was, and leaves to the next process what is to be recorded."""
        process = start()
        process.write(2)
        process.emit(3)
        process.sink.beat()
        process.die()

        for _ in range(2):
            found = verified(spool=tmp_path / "spool" / "audit.spool")
            assert (found.state, found.writers["unknown"]) == ("loss", 1)
            (line,) = found.findings[FindingKind.LOSS]
            assert f"3 events are missing for sure, and at most {2 + AHEAD_FIRST - 5} more" in line
        assert len(rolls(tmp_path)) == 1

    def test_verify_knows_who_lives(self, start, verified, tmp_path):
        """However long it has had nothing to say: its lock is held."""
        process = start()
        process.write(2)

        found = verified(SILENT_AFTER_S * 2, spool=tmp_path / "spool" / "audit.spool")
        assert (found.state, found.writers["writing"]) == ("ok", 1)

    def test_on_another_machine_it_falls_silent(self, start, verified, tmp_path):
        """Nobody can be certain; `verify` says what is known, and that it is not all."""
        process = start(folder=tmp_path / "elsewhere")
        process.write(2)
        process.die()
        start().sink.probe()

        assert verified(SILENT_AFTER_S - 1).state == "ok"
        found = verified(2)
        assert (found.state, found.writers["silent"]) == ("loss", 1)
        (line,) = found.findings[FindingKind.LOSS]
        assert "ended without saying so" in line
        assert "2 events counted" in line

    def test_what_is_missing_for_sure_of_a_silent_one(self, start, verified, tmp_path, clock):
        """It had counted more than it could record."""
        process = start(folder=tmp_path / "elsewhere")
        process.write()
        clock.now_s += HEARTBEAT_S
        emitted = process.emit(4)
        process.sink.write(emitted[:1])
        process.die()

        found = verified(SILENT_AFTER_S * 2)
        assert "3 of them are missing for sure" in found.findings[FindingKind.LOSS][0]

    def test_a_changed_entry_is_not_believed(self, start, said, tmp_path, caplog):
        """Who lowers the count has no key; the entry stays, and is told."""
        process = start()
        process.write(3)
        process.die()
        (entry,) = rolls(tmp_path)
        entry.write_bytes(entry.read_bytes().replace(b",3,3,", b",1,3,"))
        start().write()

        assert said(ENDED) == []
        assert entry.exists()
        assert "was changed" in caplog.text


class Outage:
    """While it is entered, the folder of the database is a file."""

    def __init__(self, path):
        self._folder = path.parent

    def __enter__(self):
        self._folder.mkdir(exist_ok=True)
        self._folder.rename(self._folder.with_name("aside"))
        self._folder.touch()

    def __exit__(self, *exc):
        self._folder.unlink()
        self._folder.with_name("aside").rename(self._folder)


class TestTheSpool:
    @pytest.fixture
    def outage(self, path):
        return Outage(path)

    def test_one_that_is_removed_shows(self, start, outage, verified, tmp_path):
        """The acknowledged events of a killed durable process were in it: their number is known."""
        with outage:
            process = start("durable")
            process.write(4)
            process.die()
        start(folder=tmp_path / "elsewhere").write()
        spool = tmp_path / "spool" / "audit.spool"
        assert verified(spool=spool).state == "unverifiable"
        for each in spool_files(spool):
            each.unlink()
        assert verified(spool=spool).state == "loss"
        start().write()

        found = verified()
        assert (found.state, found.lost) == ("loss", 4)

    def test_one_that_is_there_is_taken_over(self, start, outage, verified):
        """Nothing is missing then."""
        with outage:
            process = start("durable")
            process.write(4)
            process.die()
        start().write()

        assert verified().state == "ok"

    def test_a_process_that_began_before_the_outage(self, start, outage, verified, tmp_path):
        """With the whole folder removed, that it fell silent is what is left to see."""
        process = start("durable")
        process.write()
        with outage:
            process.write(4)
            process.die()
        for each in (tmp_path / "spool").iterdir():
            each.unlink()
        start().write()

        found = verified(SILENT_AFTER_S * 2)
        assert found.writers["silent"] == 2
        assert found.state == "loss"

    def test_an_end_in_order_during_an_outage_is_said_later(self, start, outage, said, verified):
        """By the process that takes the spool over."""
        with outage:
            process = start()
            process.write(4)
            process.sink.close(1.0)
        start().write()

        assert [data["counter"] for _name, data in said(STOPPED)] == [4]
        assert verified().state == "ok"


class TestWhatIsDoneToASpool:
    """The roll says what its process had counted: whatever is gone is missed, by number."""

    @pytest.fixture
    def outage(self, path):
        return Outage(path)

    @pytest.fixture
    def spool(self, tmp_path):
        return tmp_path / "spool" / "audit.spool"

    @pytest.fixture
    def left(self, start, outage, spool):
        """Have a process write four events during an outage, and be killed; return its file."""
        with outage:
            process = start("durable")
            for _ in range(4):
                process.write()
            process.die()
        (file,) = spool_files(spool)
        return file

    def test_what_waits_is_told(self, left, start, verified, spool):
        """How many, until a process has taken it in."""
        assert verified(spool=spool).waiting == 4
        process = start()
        process.write()
        process.sink.close(1.0)

        found = verified(spool=spool)
        assert (found.state, found.waiting, left.exists()) == ("ok", 0, False)

    @pytest.mark.parametrize("kept", [0, 2])
    def test_one_that_is_cut_shows(self, left, start, said, verified, kept):
        """What is left of it is recorded, and the rest is declared, once."""
        os.truncate(left, records_in(left)[kept].start)
        for _ in range(2):
            process = start()
            process.write()
            process.sink.close(1.0)

        ((_name, gap),) = said("audit.gap")
        assert (gap["from_wseq"], gap["to_wseq"]) == (kept + 1, 4)
        assert verified().state == "loss"

    def test_a_record_that_was_changed_is_missed(self, left, start, said, spool, caplog):
        """It costs itself, and its file is put aside, as what cannot be read."""
        third = records_in(left)[2]
        data = bytearray(left.read_bytes())
        data[third.end - 1] ^= 1
        left.write_bytes(data)
        start().write()

        ((_name, gap),) = said("audit.gap")
        assert (gap["from_wseq"], gap["to_wseq"]) == (3, 3)
        assert "could not be read" in caplog.text
        assert spool_files(spool) == []
        assert [each for each in spool.parent.iterdir() if QUARANTINE in each.name] != []

    def test_one_that_is_removed_while_its_process_lives_is_put_back(
        self, start, outage, verified, spool, clock
    ):
        """With the next event, and all that was in it."""
        with outage:
            process = start("durable")
            process.write(2)
            (file,) = spool_files(spool)
            file.unlink()
            process.write(2)
        assert spool_files(spool) == [file]
        clock.now_s += 60
        process.sink.beat()

        assert process.sink.log.count() == 4
        assert verified(spool=spool).state == "ok"

    def test_the_room_of_processes_that_are_gone_is_counted(self, start, outage, spool):
        """However often one is started anew while the database is away, the bound holds."""
        with outage:
            for _ in range(8):
                process = start("durable")
                process.sink.spool.max_bytes = 64 * 1024
                with suppress(AuditError):
                    for _ in range(100):
                        process.write()
                process.die()

        assert sum(each.stat().st_size for each in spool_files(spool)) <= 64 * 1024

    def test_many_that_are_gone_are_taken_over_in_few_transactions(self, start, outage, spool):
        """As after a crash loop: each had few events, and the log is asked once for all."""
        with outage:
            for _ in range(20):
                process = start("durable")
                process.write(2)
                process.die()
        process, asked = start(), []
        record = process.sink.log.record
        process.sink.log.record = lambda drafts, **how: (
            asked.append(len(drafts)) or record(drafts, **how)
        )
        process.sink.beat()

        assert process.sink.log.count() == 40
        assert len([each for each in asked if each]) == 1
        assert spool_files(spool) == []


def records_in(file):
    """Return where the records of a spool's file are, without that of its head."""
    return [each for each in scan(file.read_bytes(), KIND).records if each.start >= PAGE_BYTES]
