"""Files of events: what was appended is read, whatever becomes of their writer."""

from __future__ import annotations

import os
import random
import signal
import stat
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope.memory.api import Subject
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.queue import event_file
from mnemoscope.telemetry.queue import writer as relay_writer
from mnemoscope.telemetry.queue.event_file import PAGE_BYTES
from mnemoscope.telemetry.queue.folder import files_in
from mnemoscope.telemetry.queue.source import EventSource, UnreadableError
from mnemoscope.telemetry.queue.writer import QueueWriter
from tests.kit.children import exit_code_of_child
from tests.kit.lengths import examples

KEYS = SubjectKeys(b"sixteen bytes or more")
MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "relay"


@pytest.fixture
def writer(folder):
    """Return the writer of this process."""
    made = QueueWriter(folder, KEYS, 2 * MIB)
    yield made
    made.close()


def opened(path, *, sealed=False):
    """Return the file at *path*, for reading."""
    found = EventSource(path, [KEYS], content_again)
    found.is_sealed = sealed
    return found


def numbers(path, *, sealed=False):
    """Return the numbers of the events in a file, read a few at a time."""
    source, at, found = opened(path, sealed=sealed), 0, []
    while (batch := source.read(at, 7)).end > max(at, PAGE_BYTES):
        found += [each.writer_seq for each in batch.events]
        at = batch.end
    return found


def overwrite(path, at, data):
    """Change a file somewhere."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_what_was_appended_is_read_in_its_order(writer, folder, event_factory):
    """While its writer lives."""
    for number in range(1, 51):
        assert writer.append(event_factory(writer_seq=number)) is None

    assert numbers(*files_in(folder)) == list(range(1, 51))


def test_files_are_their_owners_alone(writer, folder, event_factory):
    """And so is their folder."""
    writer.append(event_factory())
    (path,) = files_in(folder)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_nothing_of_an_event_can_be_read_in_them(writer, folder, event_factory):
    """Whoever finds the file on a disk learns how many events are in it, and how long they are."""
    customer = Subject("ada-in-clear", tenant="acme-in-clear", keys=KEYS)
    writer.append(
        event_factory(
            subject=customer,
            run="run-in-clear",
            memory_ids=("id-in-clear",),
            content=content_again({"query": "words in-clear"}),
        )
    )
    (path,) = files_in(folder)

    assert b"in-clear" not in path.read_bytes()


def test_no_file_is_made_before_the_first_event(writer, folder):
    """A process that never remembers anything leaves nothing behind."""
    writer.close()

    assert not folder.exists()


def test_a_writer_that_ends_gives_back_what_it_did_not_use(writer, folder, event_factory):
    """A job of every minute must not fill a disk."""
    writer.append(event_factory())
    (path,) = files_in(folder)
    before = path.stat().st_size
    writer.close()

    assert path.stat().st_size < PAGE_BYTES + MIB < before + MIB
    assert numbers(path, sealed=True) == [1]
    assert opened(path).state().is_ended


def test_a_third_file_waits_for_the_first_to_be_read(writer, folder, event_factory):
    """A relay that is slow delays nobody: what finds no room is counted, and said in the file."""
    big = content_again("x" * 10_000)
    reasons = [
        writer.append(event_factory(writer_seq=number, content=big)) for number in range(1, 401)
    ]
    first, second = files_in(folder)
    kept = reasons.count(None)

    assert set(reasons) == {None, "full"}
    assert numbers(first) + numbers(second) == list(range(1, kept + 1))
    assert (opened(second).state().counter, opened(second).state().dropped) == (400, 400 - kept)
    assert not writer.has_room()


def test_there_is_room_again_once_the_older_file_is_gone(writer, folder, event_factory):
    """The next event begins another."""
    big = content_again("x" * 10_000)
    number = 0
    while writer.append(event_factory(writer_seq=(number := number + 1), content=big)) is None:
        pass
    files_in(folder)[0].unlink()

    assert writer.has_room()
    assert writer.append(event_factory(writer_seq=number + 1, content=big)) is None
    assert numbers(files_in(folder)[-1]) == [number + 1]


def test_a_full_disk_is_no_signal(writer, folder, event_factory, monkeypatch):
    """Room is taken before it is written to: events wait, then are lost and counted."""
    monkeypatch.setattr(relay_writer, "MOST_UNWRITTEN", 2)

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(event_file.os, "posix_fallocate", full, raising=False)

    told = [writer.append(event_factory(writer_seq=number)) for number in range(1, 4)]
    assert told == [None, None, "disk"]
    assert (writer.unwritten, writer.dropped) == (2, 1)
    assert files_in(folder) == []
    assert [each for each in folder.iterdir() if each.suffix == ".new"] == []


class Disk:
    """A disk that has room for so many bytes."""

    def __init__(self, monkeypatch, left_bytes):
        self.left_bytes = left_bytes
        monkeypatch.setattr(event_file.os, "posix_fallocate", self.allocate, raising=False)

    def allocate(self, fd, start, size_bytes):
        if size_bytes > self.left_bytes:
            raise OSError(28, "No space left on device")
        self.left_bytes -= size_bytes
        os.truncate(fd, max(os.fstat(fd).st_size, start + size_bytes))

    def statvfs(self, _folder):
        return SimpleNamespace(f_bavail=self.left_bytes, f_frsize=1)


@pytest.mark.parametrize("pieces", range(4))
@pytest.mark.parametrize("size", [10, 1_000, 20_000])
def test_nothing_is_lost_while_the_disk_fills_and_comes_back(
    folder, event_factory, monkeypatch, caplog, pieces, size
):
    """Wherever it is full: events wait, in order; who asks first is refused; it is said once."""
    writer = QueueWriter(folder, KEYS, 8 * MIB, clock=lambda: 0.0)
    monkeypatch.setattr(relay_writer, "RETRY_S", 0.0)
    disk = Disk(monkeypatch, PAGE_BYTES + pieces * MIB)
    content, number = content_again("x" * size), 0
    while writer.has_room():
        number += 1
        assert writer.append(event_factory(writer_seq=number, content=content)) is None
        assert writer.unwritten <= (pieces == 0)  # a file is made with the first event
    for _ in range(3):
        number += 1
        assert writer.append(event_factory(writer_seq=number, content=content)) is None
    disk.left_bytes = 64 * MIB
    number += 1
    assert writer.append(event_factory(writer_seq=number, content=content)) is None
    writer.sync()
    writer.close()

    kept = [each for path in files_in(folder) for each in numbers(path, sealed=True)]
    assert kept == list(range(1, number + 1))
    assert len([each for each in caplog.messages if "takes no events" in each]) == 1


def test_there_is_room_as_soon_as_the_disk_has_some(folder, event_factory, monkeypatch):
    """Who was refused is so no more once somebody has made room, and before the next retry."""
    writer = QueueWriter(folder, KEYS, 8 * MIB, clock=lambda: 0.0)
    disk = Disk(monkeypatch, PAGE_BYTES + MIB)
    monkeypatch.setattr(relay_writer.os, "statvfs", disk.statvfs)
    content, number = content_again("x" * 20_000), 0
    while writer.has_room():
        number += 1
        writer.append(event_factory(writer_seq=number, content=content))
    assert not writer.has_room()

    disk.left_bytes = 64 * MIB
    assert writer.has_room()
    assert writer.append(event_factory(writer_seq=number + 1)) is None
    assert writer.unwritten == 0


def test_what_waits_for_the_disk_at_the_end_is_counted(folder, event_factory, monkeypatch):
    """The file says how many events are in none."""
    writer = QueueWriter(folder, KEYS, 2 * MIB)
    writer.append(event_factory(writer_seq=1))
    Disk(monkeypatch, 0)
    big = content_again("x" * 300_000)
    for number in range(2, 9):
        writer.append(event_factory(writer_seq=number, content=big))
    waiting = writer.unwritten
    writer.close()
    (path,) = files_in(folder)

    assert waiting > 0
    assert opened(path).state() == (path.stat().st_size, 8, 8 - len(numbers(path, sealed=True)), 1)


@pytest.mark.parametrize("removed", ["file", "folder"])
def test_what_somebody_removed_is_put_back_before_it_is_called_synced(
    writer, folder, event_factory, removed
):
    """With all that was in it: whoever waited for the disk finds it there."""
    writer.append(event_factory(writer_seq=1))
    writer.sync()
    for path in files_in(folder):
        path.unlink()
    if removed == "folder":
        folder.rmdir()
    writer.append(event_factory(writer_seq=2))
    writer.sync()

    (path,) = files_in(folder)
    assert numbers(path) == [1, 2]


def test_there_is_no_room_while_what_was_written_cannot_be_synced(writer, folder, event_factory):
    """Whatever keeps it from the disk; and there is again once that is over."""
    writer.append(event_factory(writer_seq=1))
    for path in files_in(folder):
        path.unlink()
    folder.rmdir()
    folder.touch()  # no folder can be made of that name
    with pytest.raises(OSError, match="Not a directory"):
        writer.sync()
    assert not writer.has_room()
    assert not writer.has_room()  # before it is tried again, too

    folder.unlink()
    writer.sync()
    assert writer.has_room()
    assert numbers(files_in(folder)[0]) == [1]


def test_a_folder_that_others_may_read_is_not_used(folder, writer, event_factory):
    """Nor made theirs."""
    folder.mkdir(mode=0o755)
    writer.append(event_factory())

    assert files_in(folder) == []
    assert writer.unwritten == 1


def test_a_forked_child_has_files_of_its_own(writer, folder, event_factory):
    """And leaves its parent's alone."""
    writer.append(event_factory(writer_seq=1))

    def work():
        for number in range(1, 4):
            writer.append(event_factory(writer_id="c" * 16, writer_seq=number))

    assert exit_code_of_child(work) == 0
    writer.append(event_factory(writer_seq=2))
    found = {opened(path).writer: numbers(path) for path in files_in(folder)}

    assert found == {event_factory().writer_id: [1, 2], "c" * 16: [1, 2, 3]}


def test_what_was_appended_outlives_a_kill(folder, event_factory):
    """Without a call of the system in between."""
    writer = QueueWriter(folder, KEYS, 2 * MIB)

    def work():
        for number in range(1, 1_001):
            writer.append(event_factory(writer_id="c" * 16, writer_seq=number))
        os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code_of_child(work) == -signal.SIGKILL
    (path,) = files_in(folder)

    assert opened(path).is_free()
    assert numbers(path) == list(range(1, 1_001))


def test_a_living_writers_file_is_not_free(writer, folder, event_factory):
    """Its lock is the kernel's, and ends with its process."""
    writer.append(event_factory())

    assert not opened(*files_in(folder)).is_free()


def test_threads_append_side_by_side(writer, folder, event_factory):
    """Each event once."""
    events = [event_factory(writer_seq=number) for number in range(1, 2_001)]

    def work(part):
        for each in events[part::8]:
            writer.append(each)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(numbers(*files_in(folder))) == list(range(1, 2_001))


def test_each_thread_is_told_of_its_own_event(folder, event_factory, monkeypatch):
    """Also where another one wrote it, so that what is lost is counted once each."""
    writer, told = QueueWriter(folder, KEYS, 2 * MIB), []
    big = content_again("x" * (2 * MIB))
    lock = writer._lock

    class Lock:
        """Has another thread append an event first."""

        def __enter__(self):
            writer._lock = lock
            other = threading.Thread(
                target=lambda: told.append(writer.append(event_factory(writer_seq=2)))
            )
            other.start()
            other.join()
            lock.acquire()

        def __exit__(self, *_error):
            lock.release()

    monkeypatch.setattr(writer, "_lock", Lock())
    told.append(writer.append(event_factory(writer_seq=1, content=big)))
    writer.close()

    assert told == [None, "disk"]
    assert writer.dropped == 1


def test_a_signal_handler_may_make_an_event_in_the_midst_of_one(writer, folder, event_factory):
    """It is appended behind the one that it interrupted, by the same thread."""
    event, inner = event_factory(writer_seq=1), event_factory(writer_seq=2)
    put, interrupted = writer._put, []

    def interrupting(*args):
        if not interrupted:
            interrupted.append(writer.append(inner))
        return put(*args)

    writer._put = interrupting
    writer.append(event)

    assert numbers(*files_in(folder)) == [1, 2]


def test_another_key_is_told_in_one_line(writer, folder, event_factory):
    """And which setting names it; a previous key reads what it wrote."""
    writer.append(event_factory())
    (path,) = files_in(folder)
    other = SubjectKeys(b"another secret of ours")

    with pytest.raises(UnreadableError, match="MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"):
        EventSource(path, [other], content_again)
    assert EventSource(path, [other, KEYS], content_again).read(0, 9).events


@pytest.mark.parametrize("content", [b"", b"x" * 40, b"\0" * PAGE_BYTES])
def test_what_is_no_file_of_events_is_told(folder, content):
    """And not read."""
    folder.mkdir()
    path = folder / "a.events"
    path.write_bytes(content)

    with pytest.raises(UnreadableError):
        EventSource(path, [KEYS], content_again)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the bytes of a file of twenty events, and where each of them begins and ends."""
    from mnemoscope.memory.api import Event, OperationClass, Status, TraceRef

    folder = tmp_path_factory.mktemp("files") / "relay"
    writer, ends = QueueWriter(folder, KEYS, 2 * MIB), [PAGE_BYTES]
    for number in range(1, 21):
        writer.append(
            Event(
                "a" * 16,
                number,
                number,
                0.1,
                "search_memory",
                OperationClass.RECALL,
                "mem0",
                "search",
                Status.OK,
                TraceRef(1, number),
            )
        )
        ends.append(writer._file.size_bytes)
    writer.close()
    return files_in(folder)[0].read_bytes(), ends


ANYWHERE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40)
)


@given(data=st.data())
@ANYWHERE
def test_a_torn_tail_costs_what_was_not_whole(whole, tmp_path, data):
    """Wherever the file ends, or nothing was written behind: all that is whole before is read."""
    content, ends = whole
    cut = data.draw(st.integers(PAGE_BYTES, len(content)))
    tail = data.draw(st.sampled_from([b"", bytes(5_000)]))
    path = tmp_path / "torn.events"
    path.write_bytes(content[:cut] + tail)

    assert numbers(path, sealed=True) == list(range(1, sum(end <= cut for end in ends)))


@given(data=st.data())
@ANYWHERE
def test_damage_costs_the_records_that_it_is_in(whole, tmp_path, data):
    """And none behind it; nothing that was changed passes for an event."""
    content, ends = whole
    start = data.draw(st.integers(PAGE_BYTES, len(content) - 1))
    length = data.draw(st.integers(1, 2_000))
    seed = data.draw(st.integers(0, 2**32))
    stop = min(len(content), start + length)
    noise = random.Random(seed).randbytes(stop - start)  # noqa: S311 - not secret
    path = tmp_path / "damaged.events"
    path.write_bytes(content[:start] + noise + content[stop:])
    hit = {
        number
        for number, (begin, end) in enumerate(pairwise(ends), start=1)
        if begin < stop and start < end
    }
    found = numbers(path, sealed=True)

    assert set(found) - hit == set(range(1, 21)) - hit
    # One byte in 256 is what it was: a record may be whole after all.
    assert len(found) == len(set(found)) <= 20
    assert found == sorted(found)


def test_a_record_that_is_being_written_is_waited_for(writer, folder, event_factory):
    """And so is what comes behind it, once."""
    for number in range(1, 4):
        writer.append(event_factory(writer_seq=number))
    (path,) = files_in(folder)
    whole, source = path.read_bytes(), opened(path)
    first = source.read(0, 1).end
    overwrite(path, first + 40, b"torn")

    assert source.read(first, 9).events == []
    overwrite(path, 0, whole)
    assert [each.writer_seq for each in source.read(first, 9).events] == [2, 3]


def test_a_record_that_stays_damaged_is_left_out(writer, folder, event_factory):
    """It is counted; a living writer's later events are not held up."""
    for number in range(1, 4):
        writer.append(event_factory(writer_seq=number))
    (path,) = files_in(folder)
    source = opened(path)
    first = source.read(0, 1).end
    overwrite(path, first + 40, b"torn")

    assert source.read(first, 9).events == []
    assert [each.writer_seq for each in source.read(first, 9).events] == [3]
    assert source.damaged == 1
