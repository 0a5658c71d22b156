"""One log file of several processes: no line is lost, torn or within another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import pytest
from patience import GIVE_UP_S

from mnemoscope.telemetry.logs.file import LogFile

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
