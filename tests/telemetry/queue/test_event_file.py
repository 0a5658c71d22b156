"""A file of events that is written: all or nothing, on the disk, and put back if it was removed."""

from __future__ import annotations

import errno
import os

import pytest

from mnemoscope.telemetry.files.framing import scan
from mnemoscope.telemetry.queue.event_file import KIND, PAGE_BYTES, EventFile, FileFullError

SYNC = "mnemoscope.telemetry.queue.event_file._sync"


@pytest.fixture
def file(tmp_path):
    made = EventFile(tmp_path / "one.events", b"head", 64 * 1024)
    yield made
    made.leave()


def records(path):
    """Return how many whole records a file has, and how many bytes of it are damaged."""
    found = scan(path.read_bytes().rstrip(b"\0"), KIND)
    damaged = [each for each in found.damaged if each.start >= PAGE_BYTES]
    return sum(each.start >= PAGE_BYTES for each in found.records), damaged


def test_records_of_one_batch_are_appended_all_or_none(file):
    """Nothing is left of those that found room, whatever comes behind them."""
    file.append_all([b"first"])
    with pytest.raises(FileFullError):
        file.append_all([b"x" * 30_000, b"y" * 30_000, b"z" * 30_000])
    file.append_all([b"second"])

    assert records(file.path) == (2, [])


def test_the_file_and_its_folder_are_synced_once(file, monkeypatch):
    """There is nothing to wait for until more is appended; then it is the file alone."""
    synced = []
    monkeypatch.setattr(SYNC, lambda fd: synced.append(os.fstat(fd).st_ino))
    file.append_all([b"first"])
    file.sync()
    file.sync()
    file.append_all([b"second"])
    file.sync()

    own, folder = file.path.stat().st_ino, file.path.parent.stat().st_ino
    assert synced == [own, folder, own]
    assert file.syncing() is None


def test_what_the_disk_refused_is_written_anew(file, monkeypatch):
    """A system that could not write it forgets it, and calls it synced the next time."""
    file.append_all([b"first"])
    with monkeypatch.context() as broken:
        broken.setattr(SYNC, refuses)
        with pytest.raises(OSError, match="Input"):
            file.sync()
    written = []
    file._map = Watched(file._map, written)
    file.sync()
    file._map = file._map.mapped

    assert written == [slice(None, file.size_bytes)]


def test_more_may_be_appended_while_it_is_synced(file):
    """What came meanwhile is not taken for synced."""
    file.append_all([b"first"])
    sync = file.syncing()
    file.append_all([b"second"])
    sync()

    assert file.syncing() is not None


def test_one_that_was_removed_is_put_back(file):
    """With all that was in it, under its lock, and to be synced anew."""
    file.append_all([b"first"])
    file.sync()
    file.path.unlink()
    file.restore()
    file.append_all([b"second"])

    assert records(file.path) == (2, [])
    assert file.syncing() is not None


def test_one_that_is_there_is_left_as_it_is(file):
    """It is looked at with each batch."""
    before = file.path.stat().st_ino
    file.restore()

    assert file.path.stat().st_ino == before


def refuses(_fd):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


class Watched:
    """A map that notes what is written to it."""

    def __init__(self, mapped, written):
        self.mapped = mapped
        self._written = written

    def __getitem__(self, place):
        return self.mapped[place]

    def __setitem__(self, place, data):
        self._written.append(place)
        self.mapped[place] = data
