"""Writes of databases in memory, which nobody has any more once their process has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemoscope.memory.api import Database, Faults
from mnemoscope.memory.guard.touches import UNTOLD
from mnemoscope.memory.journal.journal import Journal, JournalWrite, Parked
from mnemoscope.memory.journal.processes import ENDED, this_process
from mnemoscope.memory.journal.records import Write
from tests.kit.children import exit_code_of_child, somebody_inside

KEEPER = """
import sys
from pathlib import Path
from mnemoscope.memory.database import Database
from mnemoscope.memory.journal.journal import JournalWrite, Journal
from mnemoscope.memory.journal.records import Write
from mnemoscope.memory.guard.touches import UNTOLD
from mnemoscope.telemetry.process.faults import Faults

class Thing: ...

journal, thing = Journal(Path(sys.argv[1]), key=bytes(32), faults=Faults()), Thing()
queue = journal.queue(Database.in_memory(thing), "crm")
write = Write(id="theirs", method="put", arguments="{}", created_ns=1)
journal.append(queue, JournalWrite(write, UNTOLD))
print("kept", flush=True)
sys.stdin.read()
"""


class Thing:
    """A database in memory."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def open_journal(path: Path) -> Iterator[Callable[[], Journal]]:
    """Return how to open the journal, as so many processes would."""
    made: list[Journal] = []

    def make() -> Journal:
        made.append(Journal(path, key=bytes(32), faults=Faults()))
        made[-1].open()
        return made[-1]

    yield make
    for each in made:
        each.close()
    for lock in this_process._locks.values():
        lock.release()
    this_process._locks.clear()


@pytest.fixture
def keeper(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a process that has kept a write of a database in its memory."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    with process:
        yield process
        process.kill()


def keep(journal: Journal, thing: Thing, write_id: str) -> None:
    write = Write(id=write_id, method="put", arguments="{}", created_ns=1)
    journal.append(journal.queue(Database.in_memory(thing), "crm"), JournalWrite(write, UNTOLD))


def locks(path: Path) -> list[str]:
    return [each.name for each in path.parent.iterdir() if ".process-" in each.name]


def reasons(journal: Journal) -> list[str | None]:
    with journal._file.reading() as connection:
        return [each for (each,) in connection.execute("SELECT parked FROM waiting ORDER BY seq")]


def test_what_a_living_process_keeps_is_left_to_it(open_journal, keeper, path):
    """However often the journal is opened meanwhile."""
    open_journal()
    journal = open_journal()

    assert reasons(journal) == [None]
    assert len(locks(path)) == 1


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_when_its_process_has_ended_it_is_set_aside(open_journal, keeper, path, end):
    """However it ended; the lock file is gone, and the next opening finds nothing to do."""
    keeper.send_signal(end)
    keeper.wait()

    assert reasons(open_journal()) == [ENDED]
    assert locks(path) == []
    assert reasons(open_journal()) == [ENDED]


def test_what_was_set_aside_before_its_process_ended_is_told_so_too(open_journal, keeper):
    """Trying it again would not help."""
    journal = open_journal()
    with journal._file.writing() as connection:
        connection.execute("UPDATE waiting SET parked = 'KeyError'")
    keeper.kill()
    keeper.wait()

    assert reasons(open_journal()) == [ENDED]


def test_a_database_that_lasts_is_everybodys(open_journal, keeper, path):
    """Its writes wait for the next process that has it; nobody holds a lock for it."""
    journal = open_journal()
    queue = journal.queue(Database.named("crm", "one"), "crm")
    journal.append(
        queue, JournalWrite(Write(id="a", method="put", arguments="{}", created_ns=1), UNTOLD)
    )
    keeper.kill()
    keeper.wait()

    assert reasons(open_journal()) == [ENDED, None]
    assert locks(path) == []


def test_the_next_scope_of_a_process_finds_what_its_objects_have_waiting(open_journal):
    """A journal that was closed and opened again is another one of the same process."""
    thing = Thing()
    keep(open_journal(), thing, "a")
    journal = open_journal()
    queue = journal.queue(Database.in_memory(thing), "crm")

    assert [each.write.id for each in journal.take(queue) if each.write] == ["a"]


def test_nothing_is_left_of_a_process_of_which_nothing_waits(open_journal, keeper):
    """Neither its databases nor its deletions."""
    journal = open_journal()
    with journal._file.writing() as connection:
        connection.execute("DELETE FROM waiting")
        connection.execute("INSERT INTO forgotten SELECT id, 1, '{}' FROM queue")
    keeper.kill()
    keeper.wait()
    after = open_journal()

    with after._file.reading() as connection:
        for table in ("queue", "forgotten"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608 - a name of ours


def test_a_forked_child_has_databases_of_its_own(open_journal, path):
    """The object is copied: the parent does not make the child's writes, nor answer for its end."""
    journal, thing = open_journal(), Thing()
    keep(journal, thing, "parents")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            keep(journal, thing, "childs")
            os.write(writing, b"kept")
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 4)
    os.close(reading)
    os.waitpid(child, 0)

    assert said == b"kept"
    assert reasons(open_journal()) == [None, ENDED]
    assert len(locks(path)) == 1


def test_a_fork_in_the_middle_of_a_stuck_write(open_journal, monkeypatch):
    """The child is refused at once and says why; it takes no turn, so its parent writes on."""
    file = open_journal()._file
    monkeypatch.setattr(file._writing, "patience_s", 0.01)

    def is_refused():
        try:
            with file.writing():
                return False
        except OSError as exc:
            return "(torn)" in str(exc)

    with somebody_inside(file.writing()):
        status = exit_code_of_child(is_refused)
    with file.writing() as connection:
        waiting = connection.execute("SELECT count(*) FROM waiting").fetchone()

    assert status == 0
    assert waiting == (0,)


def test_a_child_that_outlives_its_parent_does_not_answer_for_it(open_journal, path, tmp_path):
    """The lock ends with the process that took it."""
    script = KEEPER.replace(
        'print("kept", flush=True)\nsys.stdin.read()',
        'import os\nif os.fork():\n    os._exit(0)\nprint("child", flush=True)\nsys.stdin.read()',
    )
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        parent.wait()
        assert parent.stdout is not None
        assert parent.stdout.readline() == "child\n"
        found = reasons(open_journal())

    assert found == [ENDED]


def test_set_aside_by_its_own_is_not_ended(open_journal):
    """Other reasons stay what they are while the process lives."""
    journal, thing = open_journal(), Thing()
    keep(journal, thing, "a")
    queue = journal.queue(Database.in_memory(thing), "crm")
    journal.settle(
        queue, done=[], parked=[Parked(each, "KeyError") for each in journal.take(queue)]
    )

    assert reasons(open_journal()) == ["KeyError"]
