"""One log file of several processes: no line is lost, torn or within another."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import pytest

from mnemoscope.telemetry.logs.file import LogFile
from tests.kit.patience import GIVE_UP_S

WRITER = """
import sys
from pathlib import Path
from mnemoscope.telemetry.logs.file import LogFile

name, path, batches, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
file = LogFile(path, most_bytes=size, kept=100_000)
sys.stdin.readline()
for batch in range(batches):
    file.append("".join(f"{name} {batch} {line} {'x' * 40} end\\n" for line in range(10)))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logs" / "events.jsonl"


def lines_in(path):
    """Return the lines of the file and of all that were moved aside."""
    return [line for each in path.parent.iterdir() for line in each.read_text().splitlines()]


@pytest.mark.parametrize("size", [2_000, 100_000])
def test_processes_lose_no_line_while_each_moves_the_file_aside(path, size):
    """Every line of eight writers is there, once and whole, however often the file is full."""
    batches = 100
    program = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen(
            [*program, str(number), str(path), str(batches), str(size)], stdin=subprocess.PIPE
        )
        for number in range(8)
    ]
    for each in writers:
        each.stdin.write(b"\n")
        each.stdin.flush()
    assert [each.wait(GIVE_UP_S) for each in writers] == [0] * 8
    for each in writers:
        each.stdin.close()
    found = Counter(lines_in(path))

    assert len(list(path.parent.iterdir())) > 1
    assert found == Counter(
        f"{number} {batch} {line} {'x' * 40} end"
        for number in range(8)
        for batch in range(batches)
        for line in range(10)
    )


def test_a_forked_child_takes_its_own_turns(path):
    """A lock that was inherited would be the parent's as well."""
    file = LogFile(path, most_bytes=10**9, kept=1)
    file.append("parent\n")
    inherited = file._fd
    if (child := os.fork()) == 0:
        try:
            opened_anew = file._fd is None
            file.append("child\n")
            os._exit(0 if opened_anew else 1)
        finally:
            os._exit(2)
    _pid, status = os.waitpid(child, 0)
    file.append("parent\n")

    assert os.waitstatus_to_exitcode(status) == 0
    assert file._fd == inherited
    assert lines_in(path) == ["parent", "child", "parent"]
    file.close()


def test_files_of_one_moment_have_names_of_their_own(path):
    """None replaces another."""
    now = datetime(2026, 1, 31, tzinfo=UTC)
    file = LogFile(path, most_bytes=1, kept=10, now=lambda: now)
    for number in range(4):
        file.append(f"{number}\n")
    file.close()

    assert sorted(lines_in(path)) == ["0", "1", "2", "3"]


def test_only_files_of_its_own_are_deleted(path):
    """What somebody put beside them stays."""
    path.parent.mkdir()
    others = ["events.jsonl.1", "events.old.jsonl", "events.2026.jsonl", "notes.txt"]
    for name in others:
        (path.parent / name).write_text("mine\n")
    file = LogFile(path, most_bytes=1, kept=1)
    for number in range(4):
        file.append(f"{number}\n")
    file.close()

    assert {each.name for each in path.parent.iterdir()} >= set(others)
    assert sorted(line for line in lines_in(path) if line != "mine") == ["2", "3"]


class FailingDisk:
    """
    The system's calls on a file, which fail after some bytes, until it is mended.

    Args:
        most: Bytes that are written before a write fails.
        truncates: Whether what was written can be taken back.
    """

    def __init__(self, most, *, truncates=True):
        self.left = most
        self.truncates = truncates
        self.is_broken = True
        self._write, self._truncate = os.write, os.ftruncate

    def write(self, fd, data):
        if not self.is_broken:
            return self._write(fd, data)
        if not self.left:
            raise OSError(errno.EIO, "Input/output error")
        written = self._write(fd, data[: min(self.left, 7)])  # short, as a write may be
        self.left -= written
        return written

    def ftruncate(self, fd, size):
        if self.is_broken and not self.truncates:
            raise OSError(errno.EIO, "Input/output error")
        self._truncate(fd, size)


BATCH = "".join(f'{{"number": {number}}}\n' for number in range(4))
BEFORE, AFTER = "before\n", "after\n"


@pytest.fixture
def broken(monkeypatch):
    """Return what breaks the disk, and the disk."""

    def breaks(most, **how):
        disk = FailingDisk(most, **how)
        monkeypatch.setattr(os, "write", disk.write)
        monkeypatch.setattr(os, "ftruncate", disk.ftruncate)
        return disk

    yield breaks
    monkeypatch.undo()


def failing_once(file, disk):
    with pytest.raises(OSError, match="Input/output"):
        file.append(BATCH)
    disk.is_broken = False


@pytest.mark.parametrize("truncates", [True, False], ids=["taken back", "not taken back"])
@pytest.mark.parametrize("most", range(len(BATCH)))
def test_a_batch_that_failed_at_any_byte_is_there_once_when_it_is_written_again(
    path, broken, most, truncates
):
    """Nothing of it is lost, doubled or torn, also where its beginning could not be taken back."""
    file = LogFile(path, most_bytes=10**9, kept=1)
    file.append(BEFORE)
    disk = broken(most, truncates=truncates)
    failing_once(file, disk)
    file.append(BATCH)
    file.append(AFTER)
    file.close()

    assert path.read_text() == BEFORE + BATCH + AFTER


@pytest.mark.parametrize("most", range(len(BATCH)))
def test_what_another_process_wrote_meanwhile_stays_and_no_whole_line_is_doubled(
    path, broken, most
):
    """A line that was torn stays torn, on a line of its own; it is there as a whole as well."""
    file, other = (LogFile(path, most_bytes=10**9, kept=1) for _ in range(2))
    file.append(BEFORE)
    disk = broken(most, truncates=False)
    failing_once(file, disk)
    other.append(AFTER)
    file.append(BATCH)
    file.close()
    other.close()

    wanted = Counter((BEFORE + BATCH + AFTER).splitlines())
    found = Counter(path.read_text().splitlines())
    assert wanted <= found
    assert all(line in BATCH for line in found - wanted)
    assert (found - wanted).total() <= 1


@pytest.mark.parametrize("most", range(len(BATCH)))
def test_a_file_that_was_moved_aside_meanwhile_keeps_the_lines_that_are_whole(path, broken, most):
    """As `logrotate` does: the others are in the file that is there now, and none is in both."""
    file = LogFile(path, most_bytes=10**9, kept=1)
    file.append(BEFORE)
    disk = broken(most, truncates=False)
    failing_once(file, disk)
    path.rename(path.with_name("rotated"))
    file.append(BATCH)
    file.close()

    wanted = Counter((BEFORE + BATCH).splitlines())
    found = Counter(lines_in(path))
    assert wanted <= found
    assert (found - wanted).total() <= 1


@pytest.mark.parametrize("most", range(len(BATCH)))
def test_a_pipe_is_written_on_where_it_failed(tmp_path, broken, most):
    """Whoever reads it has the beginning, which cannot be taken back."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file = LogFile(pipe, most_bytes=10**9, kept=1)
    file.append(BEFORE)
    disk = broken(most)
    failing_once(file, disk)
    file.append(BATCH)
    file.close()

    assert os.read(reader, 10_000).decode() == BEFORE + BATCH
    os.close(reader)


@pytest.mark.parametrize("truncates", [True, False], ids=["taken back", "not taken back"])
@pytest.mark.parametrize("again", range(0, len(BATCH) - 1, 5))
@pytest.mark.parametrize("most", range(0, len(BATCH) - 1, 5))
def test_a_batch_that_fails_twice_has_no_whole_line_doubled(path, broken, most, again, truncates):
    """Also where another process has written in between, each time."""
    file, other = (LogFile(path, most_bytes=10**9, kept=1) for _ in range(2))
    disk = broken(most, truncates=False)
    failing_once(file, disk)
    other.append(AFTER)
    disk.left, disk.is_broken, disk.truncates = again, True, truncates
    if len("".join(missing_in(path))) > again:
        failing_once(file, disk)
    other.append(AFTER)
    disk.is_broken = False
    file.append(BATCH)
    file.close()
    other.close()

    wanted = Counter((BATCH + AFTER + AFTER).splitlines())
    found = Counter(path.read_text().splitlines())
    assert wanted <= found
    assert all(line not in BATCH.splitlines() for line in found - wanted)
    assert (found - wanted).total() <= 2


def missing_in(path):
    there = path.read_text().splitlines(keepends=True)
    return [line for line in BATCH.splitlines(keepends=True) if line not in there]


@pytest.mark.parametrize("again", range(0, len(BATCH) - 1, 5))
@pytest.mark.parametrize("most", range(0, len(BATCH) - 1, 5))
def test_a_pipe_is_written_on_where_it_failed_twice(tmp_path, broken, most, again):
    """As after one failure."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file = LogFile(pipe, most_bytes=10**9, kept=1)
    disk = broken(most)
    failing_once(file, disk)
    disk.left, disk.is_broken = min(again, len(BATCH) - most - 1), True
    failing_once(file, disk)
    file.append(BATCH)
    file.append(AFTER)
    file.close()

    assert os.read(reader, 10_000).decode() == BATCH + AFTER
    os.close(reader)


def test_another_batch_than_the_one_that_failed_begins_a_line_of_a_pipe(tmp_path, broken):
    """Whoever reads it has half a line of the one before."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file = LogFile(pipe, most_bytes=10**9, kept=1)
    disk = broken(20)
    failing_once(file, disk)
    file.append(AFTER)
    file.append(BATCH)
    file.close()

    assert os.read(reader, 10_000).decode() == BATCH[:20] + "\n" + AFTER + BATCH
    os.close(reader)


@pytest.mark.parametrize("truncates", [True, False], ids=["taken back", "not taken back"])
def test_another_batch_than_the_one_that_failed_is_whole(path, broken, truncates):
    """Where nobody writes it again, what follows has all of its lines."""
    file = LogFile(path, most_bytes=10**9, kept=1)
    disk = broken(20, truncates=truncates)
    failing_once(file, disk)
    file.append(AFTER)
    file.close()

    assert path.read_text() == AFTER


def test_a_write_that_fails_half_way_leaves_nothing(path, monkeypatch):
    """A line is in the file as a whole, or counted as lost."""
    file = LogFile(path, most_bytes=10**9, kept=1)
    file.append("before\n")
    write, calls = os.write, []

    def half(fd, data):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return write(fd, bytes(data)[:3])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        file.append("half a line\n")
    monkeypatch.undo()
    file.append("after\n")
    file.close()

    assert path.read_text() == "before\nafter\n"
