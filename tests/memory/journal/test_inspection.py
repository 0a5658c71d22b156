"""A journal from outside: what is listed, what may be tried again, what is dropped for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory.api import Database, Faults, Touches
from mnemoscope.memory.journal.inspection import (
    Inspection,
    InspectionError,
    KeptWrite,
    WriteSelection,
    problem,
)
from mnemoscope.memory.journal.journal import HUNG_S, Journal, JournalWrite, Parked, Queue
from mnemoscope.memory.journal.journal_file import JournalError, JournalFile
from mnemoscope.memory.journal.records import Write

KEY = bytes(range(32))
CRM, NOTES = Database.named("crm", "one"), Database.named("notes", "two")
SECRET = "likes-oolong"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def journal(path: Path, clock: Any) -> Journal:
    """Return the journal of an application that runs."""
    made = Journal(path, key=KEY, faults=Faults(), clock=clock)
    made.open()
    return made


@pytest.fixture
def queue(journal: Journal) -> Queue:
    return journal.queue(CRM, "crm")


@pytest.fixture
def keep(journal: Journal, queue: Queue) -> Callable[..., int]:
    """Return how to keep a write, which returns its place."""

    def append(write_id: str, to: Queue = queue, **given: Any) -> int:
        write = Write(
            id=write_id,
            method="put",
            arguments=f'{{"key":"{write_id}","value":"{SECRET}"}}',
            created_ns=5_000_000_000,
        )
        return journal.append(
            to, JournalWrite(write, Touches(records=frozenset({write_id})), **given)
        )

    return append


@pytest.fixture
def park(journal: Journal, queue: Queue) -> Callable[..., None]:
    """Return how to set aside all that waits."""

    def settle(reason: str = "KeyError") -> None:
        taken = journal.take(queue)
        journal.settle(queue, done=[], parked=[Parked(each, reason) for each in taken])

    return settle


@pytest.fixture
def look(path: Path, clock: Any) -> Callable[..., Inspection]:
    return lambda key=KEY: Inspection(path, key=key, clock=clock)


def told(found: Inspection) -> list[KeptWrite]:
    return found.writes(limit=100)


class TestList:
    def test_each_write_is_told_with_its_state(self, journal, queue, keep, park, look):
        """In order, with what an operator decides by."""
        keep("a")
        park()
        keep("b", in_doubt=True)
        keep("c", in_doubt=True, lands=True)
        keep("d", journal.queue(NOTES, "notes"))
        states = [
            (each.seq, each.database, each.method, each.parked, each.in_doubt, each.in_flight)
            for each in told(look())
        ]

        assert states == [
            (1, "named crm/one", "put", "KeyError", True, False),
            (2, "named crm/one", "put", None, True, False),
            (3, "named crm/one", "put", None, True, True),
            (4, "named notes/two", "put", None, False, False),
        ]

    def test_what_the_store_is_at_work_on_is_that_for_a_while_only(self, keep, look, clock):
        """No call lasts longer."""
        keep("a", in_doubt=True, lands=True)
        clock.now += HUNG_S + 1
        (write,) = told(look())

        assert not write.in_flight

    def test_a_deletion_that_may_have_covered_it_shows(self, journal, queue, keep, park, look):
        """On writes that were set aside; others it waits for, or drops."""
        keep("a")
        park()
        journal.forget(queue, Touches(unknown=True))

        assert [each.shadowed for each in told(look())] == [True]

    def test_totals_are_by_database(self, journal, queue, keep, park, look):
        """By name; the oldest is that of those that wait."""
        keep("d", journal.queue(NOTES, "notes"))
        keep("a")
        park()
        keep("b")
        crm, notes = look().totals()

        assert (crm.store, crm.database, crm.waiting, crm.parked) == ("crm", "named crm/one", 1, 1)
        assert (notes.waiting, notes.parked, notes.oldest_ns) == (1, 0, 5_000_000_000)
        assert crm.size_bytes == sum(each.size_bytes for each in told(look())[1:])
        assert look().totals("named notes/two") == [notes]

    def test_some_are_chosen(self, journal, keep, park, look):
        """By database, by state, by number."""
        keep("a")
        keep("b")
        park()
        keep("c")
        keep("d", journal.queue(NOTES, "notes"))

        def places(**given: Any) -> list[int]:
            return [each.seq for each in look().writes(**{"limit": 9, **given})]

        assert places(parked=True) == [1, 2]
        assert places(database="named notes/two") == [4]
        assert places(limit=3) == [1, 2, 3]

    @pytest.mark.parametrize("key", [None, bytes(32)], ids=["none", "another"])
    def test_without_the_key_all_but_what_it_is_can_be_told(self, keep, look, key):
        """The file says where and since when, but not what."""
        keep("a")
        (write,) = told(look(key))

        assert (write.write, write.method) == (None, None)
        assert (write.seq, write.database) == (1, "named crm/one")

    def test_looking_changes_nothing(self, keep, look, path):
        """Not a byte, and no file is made."""
        keep("a")
        before = path.read_bytes(), sorted(path.parent.iterdir())
        look().totals()
        told(look())
        look().write(1)

        assert (path.read_bytes(), sorted(path.parent.iterdir())) == before

    def test_content_is_in_no_repr(self, keep, look):
        """A traceback with locals must not show it."""
        keep("a")

        assert SECRET not in repr(look().write(1))


class TestRetry:
    def test_it_waits_again_at_its_place(self, journal, queue, keep, park, look):
        """Before what came later."""
        keep("a")
        park()
        keep("b")
        outcome = look().retry(WriteSelection(seqs=(1,)))

        assert [each.seq for each in outcome.writes] == [1]
        assert [each.seq for each in journal.take(queue)] == [1, 2]

    def test_what_may_have_been_deleted_needs_force(self, journal, queue, keep, park, look):
        """It would come back."""
        keep("a")
        park()
        journal.forget(queue, Touches(unknown=True))
        refused = look().retry(WriteSelection(seqs=(1,)))
        forced = look().retry(WriteSelection(seqs=(1,)), force=True)

        assert "a deletion since may have covered it" in refused.refused[0].reason
        assert refused.writes == []
        assert [each.seq for each in forced.writes] == [1]
        assert told(look())[0].parked is None

    def test_what_waits_is_left_as_it_is(self, keep, look):
        """There is nothing to do."""
        keep("a")

        assert "waits already" in look().retry(WriteSelection(seqs=(1,))).refused[0].reason

    def test_what_nobody_can_make_any_more_is_refused_whatever_the_force(
        self, keep, journal, look, path
    ):
        """Its database ended with its process."""
        keep("a", journal.queue(Database("memory", "object 1 of process 1 00000000"), "crm"))
        outcome = look().retry(WriteSelection(all_parked=True), force=True)

        assert "its process has ended" in outcome.refused[0].reason

    def test_all_that_were_set_aside(self, journal, keep, park, look):
        """Of one database, if it is named."""
        keep("a")
        keep("b")
        park()
        other = look().retry(WriteSelection(all_parked=True, database="named crm/one"))

        assert [each.seq for each in other.writes] == [1, 2]
        assert look().retry(WriteSelection(all_parked=True)).writes == []


class TestDrop:
    def test_what_is_dropped_is_in_no_file_any_more(self, keep, look, path):
        """Not even sealed: it is overwritten."""
        keep("a")
        keep("b")
        with closing(sqlite3.connect(path)) as connection:
            sealed = dict(connection.execute("SELECT id, sealed FROM waiting"))
        dropped = look().drop(WriteSelection(seqs=(1,)))
        on_disk = b"".join(each.read_bytes() for each in path.parent.iterdir())

        assert [each.write.id for each in dropped if each.write] == ["a"]
        assert sealed["a"] not in on_disk
        assert sealed["b"] in on_disk

    def test_one_that_is_not_there_keeps_the_others(self, keep, look):
        """All or nothing: it was made meanwhile, or is a slip of the hand."""
        keep("a")
        with pytest.raises(InspectionError, match="there is no write 7"):
            look().drop(WriteSelection(seqs=(1, 7)))

        assert len(told(look())) == 1

    def test_the_name_of_a_database_is_the_whole_of_it(self, keep, look):
        """What is deleted for good is not found by parts of names."""
        keep("a")
        with pytest.raises(InspectionError, match="no such database"):
            look().drop(WriteSelection(all_parked=True, database="named crm"))

    def test_a_place_of_another_database_is_not_taken(self, journal, keep, look):
        """The two were given to be compared."""
        keep("a")
        keep("b", journal.queue(NOTES, "notes"))
        with pytest.raises(InspectionError, match="no write 1 for that database"):
            look().drop(WriteSelection(seqs=(1,), database="named notes/two"))

    def test_on_a_full_disk_the_reserve_makes_room(self, keep, look, path, monkeypatch):
        """Dropping is what makes room, and needs some first."""
        keep("a")
        reserve = path.with_name("journal.reserve")
        found, writing = look(), JournalFile.writing

        def full(file: JournalFile) -> Any:
            if reserve.exists():
                raise JournalError(path, "SQLITE_FULL")
            return writing(file)

        monkeypatch.setattr(JournalFile, "writing", full)
        dropped = found.drop(WriteSelection(seqs=(1,)))

        assert [each.seq for each in dropped] == [1]
        assert not reserve.exists()


class TestProblem:
    def test_a_journal_has_none(self, journal, path):
        """Whether an application has it open or not."""
        assert problem(path) is None

    @pytest.mark.parametrize(
        ("harm", "said"),
        [
            (lambda path: path.write_bytes(b"rubble" * 500), "is no journal of this version"),
            (lambda path: path.write_bytes(b""), "is empty: see that its disk has room"),
            (lambda path: path.chmod(0o644), "is open to other users"),
            (lambda path: path.unlink(), "cannot be used: no such file"),
        ],
        ids=["no database", "empty", "open to others", "missing"],
    )
    def test_it_is_told_in_words(self, journal, path, harm, said):
        """What is wrong, and what to do."""
        journal.close()
        harm(path)

        assert said in (problem(path) or "")

    def test_another_programs_database_is_not_touched(self, path):
        """Nor read as ours."""
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE orders (id)")
        path.chmod(0o600)
        before = path.read_bytes()

        with pytest.raises(InspectionError, match="is no journal of this version"):
            Inspection(path, key=None)
        assert path.read_bytes() == before

    def test_one_of_another_version_is_not_written(self, journal, keep, path, look):
        """Whatever its tables look like."""
        keep("a")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 2")

        with pytest.raises(InspectionError, match="is no journal of this version"):
            look().drop(WriteSelection(seqs=(1,)))
