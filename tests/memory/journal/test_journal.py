"""The journal by itself: what is kept, in which order, through crashes, forks, other processes."""

from __future__ import annotations

import errno
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.journal.journal_file import Entry, Queue
from mnemoscope.memory.journal.records import Write
from mnemoscope.telemetry.files import framed_file
from mnemoscope.telemetry.files.framed_file import FileFullError
from mnemoscope.telemetry.files.framing import HEADER_BYTES
from mnemoscope.telemetry.process.faults import Faults


class Client:
    """Somebody to have a queue for."""


CLIENT = Client()


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

    def make(**given) -> Journal:
        made.append(Journal(path, faults=faults, clock=clock, **given))
        made[-1].open()
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def journal(open_journal) -> Journal:
    return open_journal()


def a_write(write_id: str, key: str = "crm", **given) -> Write:
    return Write(
        **{"id": write_id, "key": key, "method": "put", "arguments": "{}", "created_ns": 1, **given}
    )


def waiting(journal: Journal, queue: Queue | None = None) -> list[str]:
    return list((queue or journal.queue("crm", CLIENT)).entries)


def keep(journal: Journal, *ids: str, **given) -> list[Entry]:
    return [journal.append(a_write(each, **given)) for each in ids]


def test_what_was_kept_waits_in_order_and_is_read_as_it_was(journal):
    """The oldest first."""
    write = a_write("a", labels={"tenant": "acme"}, customer="ada", trace_id=7, span_id=8)
    journal.append(write)
    keep(journal, "b", "c")

    head = journal.head(journal.queue("crm", CLIENT))

    assert head is not None
    assert journal.read(head) == write
    assert waiting(journal) == ["a", "b", "c"]


def test_what_waits_is_found_by_the_next_process(journal, open_journal):
    """In order, without what was struck out."""
    _a, b, _c = keep(journal, "a", "b", "c")
    journal.done(b)
    journal.close()

    assert waiting(open_journal()) == ["a", "c"]


def test_a_write_that_was_being_made_is_in_doubt_afterwards(journal, open_journal):
    """And only that one."""
    first, _second = keep(journal, "a", "b")
    journal.attempt(first)
    journal.attempt(first)
    journal.close()

    again = open_journal()
    entries = again.queue("crm", CLIENT).entries

    assert [each.in_doubt for each in entries.values()] == [True, False]
    assert again.read(entries["a"]).in_doubt


def test_a_write_is_struck_out_once(journal):
    """Whoever comes second is told so."""
    (entry,) = keep(journal, "a")

    assert [journal.done(entry), journal.done(entry)] == [True, False]


def test_nothing_is_left_in_the_file_when_nothing_waits(journal, path):
    """Not even redacted content stays longer than it must."""
    for entry in keep(journal, "a", "b", arguments="x" * 500):
        journal.done(entry)

    assert path.stat().st_size == HEADER_BYTES


def test_litter_is_cleared_away_while_others_wait(journal, open_journal, path):
    """The file does not grow for ever behind one write that nobody takes; doubt survives."""
    (stuck,) = keep(journal, "stuck")
    journal.attempt(stuck)
    for number in range(60):
        (entry,) = keep(journal, f"w{number}", arguments="x" * 5_000)
        journal.done(entry)
    size = path.stat().st_size
    journal.close()

    again = open_journal()

    assert size < 150_000
    assert waiting(again) == ["stuck"]
    assert again.queue("crm", CLIENT).entries["stuck"].in_doubt


def test_a_full_journal_takes_nothing_more_until_there_is_room(open_journal):
    """It is bounded in bytes; striking out makes room."""
    journal = open_journal(max_bytes=2_000)
    (entry,) = keep(journal, "a", arguments="x" * 1_500)
    with pytest.raises(FileFullError):
        keep(journal, "b", arguments="x" * 1_500)
    journal.done(entry)

    keep(journal, "b", arguments="x" * 1_500)

    assert waiting(journal) == ["b"]


def test_a_disk_that_fails_keeps_nothing_and_breaks_nothing(journal, open_journal, monkeypatch):
    """What was not acknowledged is not there afterwards; what comes later is."""
    keep(journal, "a")
    with monkeypatch.context() as broken:
        broken.setattr(framed_file, "_sync", _fail)
        with pytest.raises(OSError, match="input/output"):
            keep(journal, "b")
    keep(journal, "c")
    journal.close()

    assert waiting(open_journal()) == ["a", "c"]


def test_striking_out_survives_a_disk_that_fails(journal, faults, monkeypatch):
    """The write has been made: it must not be made again by this process."""
    (entry,) = keep(journal, "a")
    monkeypatch.setattr(framed_file, "_write", _fail)

    assert journal.done(entry)
    assert waiting(journal) == []
    assert faults.counts["journal.done"] == 1


def _fail(*_args: object) -> None:
    raise OSError(errno.EIO, "input/output error")


def test_a_journal_that_cannot_be_opened_is_tried_again_later(path, faults, clock):
    """Not at every call, and never into the caller's face."""
    path.mkdir()
    journal = Journal(path, faults=faults, clock=clock)
    first, second = journal.is_open(), journal.is_open()
    path.rmdir()
    clock.now += 31
    third = journal.is_open()
    journal.close()

    assert (first, second, third) == (False, False, True)
    assert faults.counts["journal.open"] == 1


@pytest.mark.parametrize("content", [b"", b"\0" * 1_000, b"PK\x03\x04 somebody's archive" * 20])
def test_a_file_that_is_no_journal_is_put_aside(path, open_journal, content):
    """It is named, and the journal begins anew."""
    path.write_bytes(content)

    journal = open_journal()
    keep(journal, "a")

    quarantined = journal.stats().quarantined
    assert [each.read_bytes() for each in quarantined] == [content] * bool(content)
    assert waiting(journal) == ["a"]


def test_torn_and_flipped_journals_keep_what_can_be_read(journal, open_journal, path):
    """One write is lost to the damage, no more, and it is counted."""
    entries = keep(journal, "a", "b", "c")
    journal.close()
    data = bytearray(path.read_bytes())
    data[entries[1].span.end - 1] ^= 1
    path.write_bytes(data[:-1])

    again = open_journal()

    assert waiting(again) == ["a"]
    assert len(again.stats().quarantined) == 1


# -- queues ----------------------------------------------------------------------------------------


def test_each_client_has_a_queue_of_its_own(journal):
    """In the order in which they come; the same client has the same one."""
    clients = [Client(), Client()]

    keys = [journal.queue("crm", each).key for each in (*clients, *clients)]

    assert keys == ["crm", "crm#2", "crm", "crm#2"]


def test_a_client_takes_the_queue_of_one_that_is_gone(journal):
    """An application that makes a client for each request has one queue, not thousands."""
    keys = [journal.queue("crm", Client()).key for _ in range(3)]

    assert keys == ["crm"] * 3


def test_writes_wait_in_the_queue_of_their_client(journal):
    """One store that is down does not hold up another."""
    keep(journal, "a")
    keep(journal, "b", key="other")

    assert waiting(journal) == ["a"]
    assert waiting(journal, journal.queue("other", CLIENT)) == ["b"]


# -- other processes -------------------------------------------------------------------------------


def test_a_second_process_has_a_file_of_its_own(journal, open_journal, path):
    """And sees nothing of what the first one keeps."""
    second = open_journal()
    keep(journal, "a")
    keep(second, "b")

    assert (waiting(journal), waiting(second)) == (["a"], ["b"])
    assert second.stats().path == path.with_name("journal.2")


def test_what_dead_processes_left_is_taken_over(journal, open_journal, path):
    """By whoever opens the journal next; their files go when nothing waits in them."""
    second, third = open_journal(), open_journal()
    keep(second, "old", created_ns=1)
    keep(third, "new", created_ns=2)
    for each in (journal, second, third):
        each.close()

    again = open_journal()
    found = waiting(again)
    for entry in list(again.queue("crm", CLIENT).entries.values()):
        again.done(entry)

    assert found == ["old", "new"]
    assert sorted(each.name for each in path.parent.glob("journal*") if each.suffix != ".lock") == [
        "journal"
    ]


def test_what_a_process_left_that_died_meanwhile_is_taken_over_on_demand(journal, open_journal):
    """Before anything is deleted."""
    second = open_journal()
    keep(second, "a")
    elsewhere = journal.waits_elsewhere(journal.queue("crm", CLIENT))
    second.close()

    journal.adopt()

    assert elsewhere
    assert waiting(journal) == ["a"]
    assert not journal.waits_elsewhere(journal.queue("crm", CLIENT))


def test_a_living_processs_file_is_not_touched(journal, open_journal):
    """However much waits in it."""
    second = open_journal()
    keep(second, "a")

    journal.adopt()

    assert (waiting(journal), waiting(second)) == ([], ["a"])


def test_only_writes_for_the_same_queue_wait_elsewhere(journal, open_journal):
    """What another process keeps for another store concerns nobody here."""
    second = open_journal()
    keep(second, "a", key="other")
    (done,) = keep(second, "b")
    second.done(done)

    assert not journal.waits_elsewhere(journal.queue("crm", CLIENT))
    assert journal.waits_elsewhere(journal.queue("other", CLIENT))


_FORKING = """
import os, sys
from pathlib import Path
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.journal.records import Write
from mnemoscope.telemetry.files.file_lock import try_lock
from mnemoscope.telemetry.process.faults import Faults

path = Path(sys.argv[1])
journal = Journal(path, faults=Faults())
client = object()

def keep(name):
    journal.append(Write(id=name, key="crm", method="put", arguments="{}", created_ns=1))
    return os.path.basename(journal.stats().path), list(journal._queues["crm"].entries)

print("parent", *keep("a"), flush=True)
if os.fork() == 0:
    print("child", *keep("b"), flush=True)
    os._exit(0)
os.wait()
print("parent", *keep("c"), try_lock(path), flush=True)
"""


def test_a_child_leaves_the_parents_writes_and_its_file_to_it(path, open_journal):
    """It keeps its own in another file; the parent's right to its file outlives the child."""
    told = subprocess.run(
        [sys.executable, "-c", _FORKING, str(path)], check=True, capture_output=True, text=True
    )

    assert told.stdout.splitlines() == [
        "parent journal ['a']",
        "child journal.2 ['b']",
        "parent journal ['a', 'c'] None",
    ]
    assert sorted(waiting(open_journal())) == ["a", "b", "c"]


_WRITER = """
import sys
from pathlib import Path
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.journal.records import Write
from mnemoscope.telemetry.process.faults import Faults

def say(*words):
    sys.stdout.write(" ".join(words) + "\\n")
    sys.stdout.flush()

journal = Journal(Path(sys.argv[1]), faults=Faults())
for number in range(1_000_000):
    name = f"{sys.argv[2]}-{number}"
    write = Write(id=name, key="crm", method="put", arguments="x" * (number % 300), created_ns=1)
    entry = journal.append(write)
    say("kept", name)
    if number % 3 == 0:
        journal.attempt(entry)
        say("tried", name)
        say("striking", name)
        journal.done(entry)
        say("struck", name)
"""


@pytest.mark.parametrize("seed", range(4))
def test_nothing_acknowledged_is_lost_to_kill_9(path, open_journal, seed):
    """At whatever moment: kept stays kept, struck out stays struck out."""
    chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
    said: list[list[str]] = []
    for number in range(3):
        command = [sys.executable, "-c", _WRITER, str(path), f"{seed}.{number}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said += [writer.stdout.readline().split() for _ in range(chance.randrange(5, 200))]
            writer.kill()
            said += [line.split() for line in writer.stdout]
    by_word = {
        word: {each[1] for each in said if each[0] == word}
        for word in ("kept", "striking", "struck")
    }

    found = set(waiting(open_journal()))

    assert by_word["kept"] - by_word["striking"] <= found
    assert not by_word["struck"] & found


def test_two_processes_at_once_keep_everything(path, open_journal):
    """Each in a file of its own, taken over by the next."""
    command = [sys.executable, "-c", _WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    said: list[list[str]] = []
    for writer in writers:
        assert writer.stdout is not None
        said += [writer.stdout.readline().split() for _ in range(50)]
    for writer in writers:
        writer.kill()
        said += [line.split() for line in writer.stdout or ()]
        writer.wait()
        (writer.stdout or sys.stdin).close()
    kept = {each[1] for each in said if each[0] == "kept"}
    striking = {each[1] for each in said if each[0] == "striking"}

    assert kept - striking <= set(waiting(open_journal()))


def test_a_journal_nobody_holds_lets_go_of_its_file(path, faults):
    """Scopes come and go in one process."""
    for _ in range(3):
        journal = Journal(path, faults=faults)
        journal.open()
        opened = journal.stats().path
        del journal

        assert opened == path
