"""The journal by itself: what is kept, in which order, through crashes, forks, other processes."""

from __future__ import annotations

import gc
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory import ConfigurationError
from mnemoscope.memory.api import Database, Faults, Touches
from mnemoscope.memory.journal.journal import (
    HUNG_S,
    Entry,
    ForgottenError,
    Journal,
    JournalFullError,
    JournalWrite,
    Parked,
    Queue,
    look,
)
from mnemoscope.memory.journal.journal_file import RESERVE_BYTES, JournalError, JournalFile
from mnemoscope.memory.journal.processes import this_process
from mnemoscope.memory.journal.records import Write
from mnemoscope.telemetry.files.permissions import create_private
from tests.kit.patience import GIVE_UP_S

HOUR_NS = 3_600 * 10**9
CRM, OTHER = Database("crm", "one"), Database("crm", "other")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def open_journal(path: Path, faults: Faults, clock) -> Iterator[Callable[..., Journal]]:
    """Return a factory of journals on `path`, as so many processes would have them."""
    made: list[Journal] = []

    def make(**given: Any) -> Journal:
        settings = {"key": bytes(32), "faults": faults, "clock": clock, **given}
        made.append(Journal(path, **settings))
        made[-1].open()
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def journal(open_journal) -> Journal:
    return open_journal()


def queue_of(journal: Journal, database: Database = CRM) -> Queue:
    return journal.queue(database, "crm")


def a_write(name: str, **given: Any) -> Write:
    return Write(**{"id": name, "method": "put", "arguments": "{}", "created_ns": 1, **given})


def record(name: str) -> Touches:
    return Touches(records=frozenset({name}))


def keep(journal: Journal, *names: str, database: Database = CRM, **given: Any) -> list[int]:
    queue = queue_of(journal, database)
    return [
        journal.append(queue, JournalWrite(a_write(each), record(each), **given)) for each in names
    ]


def waiting(journal: Journal, database: Database = CRM) -> list[str]:
    """Return the ids of what waits, in order, and leave it as it is."""
    queue = queue_of(journal, database)
    found = journal.take(queue)
    journal.settle(queue, done=(), untried=[each.seq for each in found if not each.in_doubt])
    return [each.write.id for each in found if each.write is not None]


def open_below(folder: Path) -> list[str]:
    """Return the names of the files in *folder* that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them
            found.append(each.readlink())
    return [each.name for each in found if each.parent == folder]


def test_what_was_kept_waits_in_order_and_is_read_as_it_was(journal):
    """The oldest first, with all that was said of it."""
    write = a_write("a", arguments='{"text":"tea"}', labels={"tenant": "acme"}, customer="c-1")
    journal.append(queue_of(journal), JournalWrite(write, record("a"), in_doubt=True))
    keep(journal, "b")

    first, second = journal.take(queue_of(journal))

    assert (first.write, first.in_doubt) == (write, True)
    assert (second.write, second.in_doubt) == (a_write("b"), False)


def test_all_processes_have_one_order(journal, open_journal):
    """Whoever asks first is first, and what one settles waits for none."""
    other = open_journal()
    (first,) = keep(journal, "a")
    keep(other, "b")
    keep(journal, "c")
    other.settle(queue_of(other), done=[first])

    assert waiting(journal) == waiting(other) == ["b", "c"]


def test_a_journal_that_is_dropped_while_open_leaves_no_file_open(tmp_path, faults):
    """A late answer opens it again after `close`, and nobody closes it then."""
    journal = Journal(tmp_path / "dropped", key=bytes(32), faults=faults)
    keep(journal, "a")
    journal.close()
    assert waiting(journal) == ["a"]
    assert open_below(tmp_path)

    del journal
    gc.collect()

    assert not open_below(tmp_path)


def test_each_database_has_a_queue_of_its_own(journal):
    """What waits for one is never seen by another."""
    keep(journal, "a")
    keep(journal, "b", database=OTHER)

    assert waiting(journal) == ["a"]
    assert waiting(journal, OTHER) == ["b"]


def test_a_database_in_memory_is_this_processs_alone(journal, open_journal, monkeypatch):
    """Another process has another object, whatever its number."""
    here = Database("memory", "object 1", lasting=False)
    keep(journal, "a", database=here)

    assert waiting(journal, here) == ["a"]
    assert waiting(open_journal(), here) == ["a"]
    monkeypatch.setattr(this_process, "name", "process 1 00000000")
    assert waiting(open_journal(), here) == []


def test_a_write_that_was_taken_is_in_doubt_until_it_is_said_that_it_was_not_tried(journal):
    """A process may die between the two."""
    first, second = keep(journal, "a", "b")
    queue = queue_of(journal)
    journal.take(queue)
    journal.settle(queue, done=(), untried=[second])

    assert [(each.seq, each.in_doubt) for each in journal.take(queue)] == [
        (first, True),
        (second, False),
    ]


def test_a_queue_has_one_holder_at_a_time(journal, open_journal):
    """Whoever has the lease makes its writes; those of another queue are anybody's."""
    other = open_journal()
    held = queue_of(journal).lease()
    assert held is not None

    assert queue_of(other).lease() is None
    elsewhere = queue_of(other, OTHER).lease()
    held.release()
    again = queue_of(other).lease()
    assert again is not None
    assert elsewhere is not None
    again.release()
    elsewhere.release()


def test_whether_anything_waits_is_seen_whoever_changes_it(journal, open_journal):
    """Without a transaction while nothing changes."""
    other = open_journal()
    seen = [journal.waits(queue_of(journal))]
    (seq,) = keep(other, "a")
    seen.append(journal.waits(queue_of(journal)))
    other.settle(queue_of(other), done=[seq])
    seen.append(journal.waits(queue_of(journal)))

    assert seen == [False, True, False]


def test_a_write_that_the_store_is_at_work_on_is_marked(journal, clock):
    """It may land after what is taken behind it. After a minute it is made again."""
    keep(journal, "a")
    keep(journal, "b", in_doubt=True, lands=True)
    before = [each.is_at_work for each in journal.take(queue_of(journal))]
    clock.now += HUNG_S + 1

    assert before == [False, True]
    assert [each.is_at_work for each in journal.take(queue_of(journal))] == [False, False]


@pytest.mark.parametrize(("landed", "left"), [(True, ["b"]), (False, ["a", "b"])])
def test_a_write_that_the_store_has_finished_waits_no_longer(journal, landed, left):
    """Whether the store took it or not."""
    (seq,) = keep(journal, "a", in_doubt=True, lands=True)
    keep(journal, "b")

    assert journal.ended(seq, landed=landed) is landed
    assert waiting(journal) == left
    assert not journal.ended(seq + 7, landed=True)


def test_what_is_set_aside_holds_nobody_up(journal):
    """It stays in the journal, with the reason."""
    keep(journal, "a", "b")
    queue = queue_of(journal)
    journal.settle(queue, done=(), parked=[Parked(journal.take(queue)[0], "ValueError")])
    stats = journal.stats()

    assert waiting(journal) == ["b"]
    assert (stats.waiting, stats.parked) == ({"crm": 1}, {"crm": 1})


def test_what_was_sealed_under_another_key_is_not_read(journal, open_journal, faults):
    """And is not lost either."""
    keep(journal, "a")
    (entry,) = open_journal(key=bytes(31) + b"!").take(queue_of(journal))

    assert entry.write is None
    assert faults.counts["journal.read"] == 1


def test_the_file_has_nothing_that_can_be_read(journal, path):
    """Neither content nor names of records, collections and people; afterwards not even sealed."""
    touches = Touches(
        within="harbour", records=frozenset({"record-7"}), owners=frozenset({"user_id=grace"})
    )
    write = a_write("a", arguments='{"text":"oolong"}', customer="grace")
    seq = journal.append(queue_of(journal), JournalWrite(write, touches))
    with closing(sqlite3.connect(path)) as connection:
        (sealed,) = connection.execute("SELECT sealed FROM waiting").fetchone()
    while_it_waits = bytes_of(path)
    journal.settle(queue_of(journal), done=[seq])

    for secret in (b"harbour", b"record-7", b"grace", b"oolong"):
        assert secret not in while_it_waits
    assert sealed in while_it_waits
    assert sealed not in bytes_of(path)


def _sealed(path: Path) -> list[bytes]:
    """Return what waits, as it stands in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return [each for (each,) in connection.execute("SELECT sealed FROM waiting ORDER BY seq")]


def test_what_arrived_late_is_overwritten(journal, path):
    """As what was made again is."""
    (seq,) = keep(journal, "a", lands=True)
    (sealed,) = _sealed(path)
    journal.ended(seq, landed=True)

    assert sealed not in bytes_of(path)


def test_what_was_made_is_overwritten_though_some_is_set_aside(journal, path):
    """Nobody may ever look at that."""
    keep(journal, "a", "b")
    queue = queue_of(journal)
    first, second = journal.take(queue)
    aside, made = _sealed(path)
    journal.settle(queue, done=[second.seq], parked=[Parked(first, "ValueError")])

    assert [each in bytes_of(path) for each in (aside, made)] == [True, False]


def test_a_deletion_overwrites_what_was_made_before(journal, path):
    """While others wait, what has been made may be in the file still; not after a deletion."""
    keep(journal, "a", "b")
    queue = queue_of(journal)
    made, _waits = _sealed(path)
    journal.settle(queue, done=[journal.take(queue)[0].seq])
    journal.forget(queue, record("a"))

    assert made not in bytes_of(path)


@pytest.fixture
def unerasable(journal, path, monkeypatch) -> bytes:
    """Return what was made, and could not be overwritten then."""
    (seq,) = keep(journal, "a")
    (sealed,) = _sealed(path)
    with monkeypatch.context() as failing:
        failing.setattr(JournalFile, "erase", _failing)
        journal.settle(queue_of(journal), done=[seq])
    assert sealed in bytes_of(path)
    return sealed


def test_what_could_not_be_overwritten_is_so_later(journal, unerasable, path, faults):
    """It is noted, and tried again by whoever makes writes again."""
    journal.tidy()

    assert faults.counts["journal.erase"] == 1
    assert unerasable not in bytes_of(path)


def test_who_opens_the_journal_overwrites_what_another_left(unerasable, open_journal, path):
    """One that died between the two."""
    open_journal()

    assert unerasable not in bytes_of(path)


def test_a_deletion_that_cannot_overwrite_is_refused(journal, monkeypatch):
    """What it has dropped is told all the same."""
    keep(journal, "a")
    told: list[Write] = []
    monkeypatch.setattr(JournalFile, "erase", _failing)
    with pytest.raises(JournalError):
        journal.forget(queue_of(journal), record("a"), tell=told.extend)

    assert [each.id for each in told] == ["a"]


def bytes_of(path: Path) -> bytes:
    """Return what is on the disk of a journal, in all its files."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.iterdir()) if each.is_file())


# -- room ------------------------------------------------------------------------------------------


def test_a_full_journal_takes_nothing_more_until_there_is_room(open_journal):
    """It is bounded in bytes; what is settled makes room."""
    journal = open_journal(max_bytes=100_000)
    queue, large = queue_of(journal), a_write("a", arguments="x" * 50_000)
    seq = journal.append(queue, JournalWrite(large, record("a")))
    with pytest.raises(JournalFullError):
        journal.append(queue, JournalWrite(a_write("b", arguments="x" * 50_000), record("b")))
    journal.settle(queue, done=[seq])

    journal.append(queue, JournalWrite(a_write("c", arguments="x" * 50_000), record("c")))
    assert waiting(journal) == ["c"]


def test_a_journal_that_cannot_be_opened_says_what_waits_in_it(
    journal, open_journal, path, faults, monkeypatch
):
    """Another process may be at it: a later write must not come before."""
    keep(journal, "a")
    monkeypatch.setattr(JournalFile, "open", _failing)
    late = Journal(path, key=bytes(32), faults=faults)

    assert late.waits(queue_of(late))
    assert not late.waits(queue_of(late, OTHER))
    late.close()


@pytest.mark.parametrize("is_there", [False, True], ids=["no file", "empty file"])
def test_nothing_waits_in_a_journal_that_nobody_could_begin(path, faults, monkeypatch, is_there):
    """A full disk leaves it without a table; a healthy store has nothing to wait for."""
    if is_there:
        create_private(path)
    monkeypatch.setattr(JournalFile, "open", _failing)
    journal = Journal(path, key=bytes(32), faults=faults)

    assert not journal.waits(queue_of(journal))
    journal.close()


def test_what_waits_in_a_file_that_can_neither_be_opened_nor_read_is_not_guessed(path, faults):
    """Nobody knows whether a later write would come before."""
    path.write_bytes(b"damaged" * 1000)
    path.chmod(0o600)
    journal = Journal(path, key=bytes(32), faults=faults)

    with pytest.raises(JournalError):
        journal.waits(queue_of(journal))
    journal.close()


@pytest.fixture
def full_disk(monkeypatch, path) -> Callable[[], None]:
    """Return what fills the disk: nothing is written while the reserve takes the last room."""

    def fill() -> None:
        writing = JournalFile.writing

        def full(file: JournalFile, *given: Any) -> Any:
            if file._reserve.exists():
                raise JournalError(path, "SQLITE_FULL")
            return writing(file, *given)

        monkeypatch.setattr(JournalFile, "writing", full)

    return fill


def test_a_full_disk_is_drained(journal, path, full_disk):
    """What makes room needs some: the reserve gives it, and is laid again afterwards."""
    (seq,) = keep(journal, "a")
    reserve = path.with_name("journal.reserve")
    laid = reserve.stat().st_size
    full_disk()
    with pytest.raises(JournalError):
        keep(journal, "b")
    journal.settle(queue_of(journal), done=[seq])

    assert laid == reserve.stat().st_size == RESERVE_BYTES
    assert journal.stats().waiting == {}


def test_on_a_full_disk_a_journal_is_opened(journal, open_journal, full_disk):
    """In the room of the reserve: who begins then sees what waits, and may forget it."""
    keep(journal, "a")
    full_disk()
    late = open_journal()

    assert late.waits(queue_of(late))
    assert [each.id for each in late.forget(queue_of(late), record("a")).writes] == ["a"]


def test_a_full_disk_forgets(journal, full_disk):
    """A deletion is noted in the room of the reserve."""
    keep(journal, "a")
    full_disk()

    assert [each.id for each in journal.forget(queue_of(journal), record("a")).writes] == ["a"]


def test_what_the_store_has_is_not_taken_again_where_the_disk_fails(journal, monkeypatch):
    """Not by this process; it is said as soon as the disk is back."""
    first, _second = keep(journal, "a", "b")
    queue = queue_of(journal)
    with monkeypatch.context() as broken:
        broken.setattr(Journal, "_changed", _failing)
        with pytest.raises(JournalError):
            journal.settle(queue, done=[first])

    assert [each.write and each.write.id for each in journal.take(queue)] == ["b"]
    journal.settle(queue, done=())
    assert waiting(journal) == ["b"]


def _failing(*_given: Any) -> None:
    raise JournalError(Path("journal"), "SQLITE_IOERR")


# -- deletions -------------------------------------------------------------------------------------


def test_a_deletion_drops_what_it_covers_whoever_keeps_it(journal, open_journal):
    """And tells what, so that an event says so."""
    keep(open_journal(), "a", "b")
    keep(journal, "a2", database=OTHER)
    dropped = journal.forget(queue_of(journal), record("a"))

    assert ([each.id for each in dropped.writes], dropped.left) == (["a"], False)
    assert waiting(journal) == ["b"]
    assert waiting(journal, OTHER) == ["a2"]


def test_what_somebody_makes_just_now_is_left_to_be_waited_for(journal):
    """Whoever has the lease may drop it: then nobody does."""
    keep(journal, "a", in_doubt=True)
    queue = queue_of(journal)
    noted = journal.forget(queue, record("a"))
    dropped = journal.forget(queue, record("a"), leased=True)

    assert (noted.writes, noted.left) == ([], True)
    assert ([each.id for each in dropped.writes], dropped.left) == (["a"], False)


def test_what_the_store_is_at_work_on_is_not_dropped_by_anybody(journal):
    """It may land yet, and nothing would tell."""
    keep(journal, "a", in_doubt=True, lands=True)

    assert journal.forget(queue_of(journal), record("a"), leased=True).left


def test_what_may_be_covered_is_left(journal):
    """It is for the caller to have it made before."""
    journal.append(queue_of(journal), JournalWrite(a_write("add"), Touches(unknown=True)))
    dropped = journal.forget(queue_of(journal), record("a"))

    assert (dropped.writes, dropped.left) == ([], True)


def test_what_is_set_aside_and_may_be_covered_is_marked(journal, path):
    """It is made again only if somebody insists, and keeps no deletion waiting."""
    journal.append(queue_of(journal), JournalWrite(a_write("add"), Touches(unknown=True)))
    queue = queue_of(journal)
    journal.settle(queue, done=(), parked=[Parked(journal.take(queue)[0], "ValueError")])

    assert not journal.forget(queue, record("a")).left
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT shadowed FROM waiting").fetchall() == [(1,)]


def test_names_under_another_key_cannot_be_compared(journal, open_journal, path, wall):
    """A deletion may cover whatever another key hides, and a write whatever was deleted."""
    other, wall.now = open_journal(key=bytes(31) + b"!", wall_ns=wall), HOUR_NS
    keep(journal, "a", "b")
    queue = queue_of(other)
    waits = other.forget(queue, record("a")).left
    other.settle(queue, done=(), parked=[Parked(each, "unreadable") for each in other.take(queue)])

    assert waits
    assert not other.forget(queue, record("a")).left
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT shadowed FROM waiting").fetchall() == [(1,), (1,)]
    with pytest.raises(ForgottenError):
        keep(journal, "c")


def test_a_write_from_before_a_deletion_is_not_kept_after_it(journal, open_journal, wall):
    """Whichever process it comes from; one from after it is."""
    other = open_journal(wall_ns=wall)
    before = journal.order()
    other.forget(queue_of(other), record("a"))
    after = journal.order()
    with pytest.raises(ForgottenError):
        journal.append(queue_of(journal), JournalWrite(a_write("a"), record("a"), asked_ns=before))
    for name, asked_ns in (("a", after), ("b", before)):
        journal.append(
            queue_of(journal), JournalWrite(a_write(name), record(name), asked_ns=asked_ns)
        )

    assert waiting(journal) == ["a", "b"]


def test_the_order_of_calls_outlives_the_machines_restart(open_journal, clock):
    """Its clock begins anew, and what is known is older than what is asked for then."""
    lived = [7 * HOUR_NS]
    first = open_journal(monotonic_ns=lambda: lived[0])
    waits, written = first.order() + HOUR_NS, first.order() + 2 * HOUR_NS
    first.append(queue_of(first), JournalWrite(a_write("a"), record("a"), asked_ns=waits))
    first.note_written(queue_of(first), record("b"), written)
    first.close()
    lived[0] = 1
    second = open_journal(monotonic_ns=lambda: lived[0])

    assert second.order() > written > waits


def test_a_journal_of_the_version_before_is_taken_over(open_journal, path):
    """Its writes come before all that is asked for now, whatever their wall clock said."""
    first = open_journal()
    far = first.order() + 10**18
    keep(first, "a")
    first.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE waiting DROP COLUMN asked_ns")
        connection.execute("UPDATE waiting SET created_ns = ?", (far,))
    second = open_journal()

    assert second.order() > far
    assert [each.asked_ns for each in second.take(queue_of(second))] == [far]


@pytest.fixture
def wall() -> Callable[[], int]:
    """Return a wall clock that the test sets, in nanoseconds."""

    class Wall:
        now = 1

        def __call__(self) -> int:
            return self.now

    return Wall()


# -- the file --------------------------------------------------------------------------------------


def test_all_files_are_the_owners_alone(journal, path):
    """Those that are made beside it too."""
    keep(journal, "a")
    lease = queue_of(journal).lease()
    assert lease is not None
    lease.release()

    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert len(modes) > 1
    assert set(modes.values()) == {0o600}


def test_a_file_that_others_can_read_is_refused(path, open_journal):
    """It is told what to do; nothing is written."""
    path.touch(0o666)
    path.chmod(0o666)

    with pytest.raises(ConfigurationError, match="chmod 600"):
        open_journal()
    assert path.read_bytes() == b""


def test_somebody_elses_database_is_refused_and_left_as_it_is(path, open_journal):
    """Such as the audit trail's."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    path.chmod(0o600)
    before = path.read_bytes()

    with pytest.raises(ConfigurationError, match="no journal of this version"):
        open_journal()
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database" * 100, b"\x89mnemo\r\n" + bytes(500)])
def test_what_is_no_database_is_refused_and_left_as_it_is(path, open_journal, content):
    """A file of another program, or a journal of 0.1, whose writes only 0.1 can make."""
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(ConfigurationError, match="no journal of this version"):
        open_journal()
    assert path.read_bytes() == content


def test_a_journal_that_cannot_be_opened_is_tried_again_later(path, faults, clock):
    """Not at every call, and never into the caller's face."""
    path.mkdir()
    journal = Journal(path, key=bytes(32), faults=faults, clock=clock)
    tries = [journal.is_open(), journal.is_open()]
    path.rmdir()
    clock.now += 60

    assert tries == [False, False]
    assert faults.counts["journal.open"] == 1
    assert journal.is_open()


def test_looking_makes_nothing(path):
    """A file that is not there is an empty journal."""
    stats = look(path, 1_000_000)

    assert (stats.waiting, stats.size_bytes, stats.oldest_ns) == ({}, 0, None)
    assert not path.exists()


# -- other processes -------------------------------------------------------------------------------

_FORKING = """
import os, sys
from pathlib import Path
from mnemoscope.memory.database import Database
from mnemoscope.memory.journal.journal import JournalWrite, Journal
from mnemoscope.memory.journal.records import Write
from mnemoscope.memory.guard.touches import UNTOLD
from mnemoscope.telemetry.process.faults import Faults

journal = Journal(Path(sys.argv[1]), key=bytes(32), faults=Faults())
queue = journal.queue(Database("crm", "one"), "crm")

def keep(name):
    write = Write(id=name, method="put", arguments="{}", created_ns=1)
    journal.append(queue, JournalWrite(write, UNTOLD))

keep("a")
lease = queue.lease()
if os.fork() == 0:
    keep("b")
    print(journal.waits(queue), queue.lease(), flush=True)
    os._exit(0)
os.wait()
keep("c")
print(journal.waits(queue), queue.lease(), flush=True)
lease.release()
"""


def test_a_child_shares_the_journal_and_leaves_the_lease_to_its_parent(path, open_journal):
    """The lease outlives the child; what both keep is in order."""
    told = subprocess.run(
        [sys.executable, "-c", _FORKING, str(path)], check=True, capture_output=True, text=True
    )

    assert told.stdout.splitlines() == ["True None", "True None"]
    assert waiting(open_journal()) == ["a", "b", "c"]


_WRITER = """
import sys
from pathlib import Path
from mnemoscope.memory.database import Database
from mnemoscope.memory.journal.journal import JournalWrite, Journal
from mnemoscope.memory.journal.records import Write
from mnemoscope.memory.guard.touches import Touches
from mnemoscope.telemetry.process.faults import Faults

def say(*words):
    sys.stdout.write(" ".join(words) + "\\n")
    sys.stdout.flush()

journal = Journal(Path(sys.argv[1]), key=bytes(32), faults=Faults())
queue = journal.queue(Database("crm", "one"), "crm")
for number in range(1_000_000):
    name = f"{sys.argv[2]}-{number}"
    touches = Touches(records=frozenset({name}))
    write = Write(id=name, method="put", arguments="x" * (number % 9_000), created_ns=1)
    seq = journal.append(queue, JournalWrite(write, touches))
    say("kept", name)
    if number % 3:
        say("going", name)
        if number % 3 == 1:
            journal.settle(queue, done=[seq])
        else:
            journal.forget(queue, touches)
        say("gone", name)
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
def test_nothing_acknowledged_is_lost_to_kill_9(path, open_journal, seed):
    """Four processes on one journal: what was kept stays, what was settled or forgotten is gone."""
    chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
    said: list[list[str]] = []
    writers = [_writer(path, f"{seed}.{number}") for number in range(4)]
    for writer in writers:
        lines = writer.stdout
        assert lines is not None
        said += [lines.readline().split() for _ in range(chance.randrange(5, 30))]
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        said += [line.split() for line in writer.stdout or ()]
        writer.wait()
        (writer.stdout or sys.stdin).close()
    by_word = {
        word: {each[1] for each in said if each[0] == word} for word in ("kept", "going", "gone")
    }
    journal = open_journal()
    found: set[str] = set()
    queue = queue_of(journal)
    while batch := journal.take(queue):
        found |= {each.write.id for each in batch if each.write is not None}
        journal.settle(queue, done=[each.seq for each in batch])

    assert by_word["kept"]
    assert by_word["kept"] - by_word["going"] <= found
    assert not by_word["gone"] & found


def _writer(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_lease_ends_with_its_holder(path, open_journal):
    """However it dies: the kernel lets go."""
    code = _FORKING.split("if os.fork()", maxsplit=1)[0] + 'print("held", flush=True)\ninput()\n'
    journal = open_journal()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        while_it_lives = queue_of(journal).lease()
        os.kill(holder.pid, signal.SIGKILL)
    after = queue_of(journal).lease()

    assert while_it_lives is None
    assert after is not None
    after.release()


def test_a_batch_is_bounded(journal):
    """However many wait, few are in memory."""
    queue = queue_of(journal)
    for number in range(3):
        large = a_write(str(number), arguments="x" * 3_000_000)
        journal.append(queue, JournalWrite(large, record(str(number))))

    found: list[Entry] = journal.take(queue)
    assert [each.seq for each in found] == [1]


def test_a_file_that_was_replaced_is_not_closed_under_a_reader(tmp_path):
    """SQLite would read what is no longer its own: the process would end there."""
    file = JournalFile(tmp_path / "journal.db")
    file.open()
    changed = threading.Event()

    def write():
        with file.writing():
            changed.set()

    with file.reading() as connection:
        (tmp_path / "journal.db").rename(tmp_path / "elsewhere.db")
        create_private(tmp_path / "journal.db")
        writer = threading.Thread(target=write)
        writer.start()
        assert not changed.wait(0.2)
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] > 0
    writer.join(GIVE_UP_S)
    file.close()

    assert changed.is_set()
