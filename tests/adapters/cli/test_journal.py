"""``mnemoscope journal``: what it shows, what it changes, and mistakes in one line."""

from __future__ import annotations

import json
import os
import time

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.memory.api import Database, Faults, Touches
from mnemoscope.memory.journal.journal import Journal, JournalWrite, Parked
from mnemoscope.memory.journal.records import Write
from mnemoscope.telemetry.event.subject import SubjectKeys

SECRET = bytes(range(32))
SQLITE = Database("sqlite", "/var/lib/app/memory.db (2049:1234)")
QDRANT = Database("qdrant", "https://vectors.internal.example:6333/collections/memories-of-2026")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with the application's key and journal, and no other setting."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL", str(tmp_path / "journal"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def journal(path):
    """The journal of an application that runs."""
    made = Journal(path, key=SubjectKeys(SECRET).key("journal"), faults=Faults())
    made.open()
    return made


@pytest.fixture
def keep(journal):
    """Return how to keep a write of so many seconds ago."""

    def append(write_id, database=SQLITE, *, method="put", ago_s=300, arguments="{}", **given):
        store = "langgraph.store" if database is SQLITE else "qdrant"
        write = Write(
            id=write_id,
            method=method,
            arguments=arguments,
            created_ns=time.time_ns() - ago_s * 10**9,
            labels={"tenant": "acme"},
            customer="grace@example.com",
        )
        touches = Touches(records=frozenset({write_id}))
        return journal.append(journal.queue(database, store), JournalWrite(write, touches, **given))

    return append


@pytest.fixture
def outage(journal, keep):
    """Writes of every kind: waiting, in doubt, under way, set aside, shadowed."""
    for number in range(2):
        keep(f"s{number}")
    queue = journal.queue(SQLITE, "langgraph.store")
    taken = journal.take(queue)
    reasons = ("ValidationError", "UnexpectedAnswerError")
    journal.settle(
        queue, done=[], parked=[Parked(*each) for each in zip(taken, reasons, strict=True)]
    )
    keep("s2", in_doubt=True)
    journal.forget(queue, Touches(unknown=True))
    keep("q0", QDRANT, method="batch_update_points", ago_s=4_000)
    keep("q1", QDRANT, method="upsert", ago_s=0, in_doubt=True, lands=True)


@pytest.fixture
def command(capfd):
    """Return how to run it: the exit code, what it printed, and what it said beside."""

    def call(*arguments):
        code = run(["journal", *arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def document(command):
    """Return how to run it for JSON, and how it must end."""

    def call(*arguments, ends=0):
        code, out, _err = command(*arguments, "--json")
        assert code == ends
        return json.loads(out)

    return call


class TestList:
    def test_it_fits_eighty_columns_and_has_no_colours(self, outage, command):
        """As for a file or a pipe, whatever databases and errors are called."""
        code, out, _err = command("list")

        assert code == 0
        assert max(map(len, out.splitlines())) <= 80
        assert "\x1b" not in out

    def test_totals_are_told_by_database(self, outage, command):
        """And what to do about writes that were set aside."""
        said = " ".join(command("list")[1].split())

        assert str(SQLITE) in said
        assert "1 waiting, the oldest for 5 min; 2 set aside; 2 shadowed; 3 in doubt" in said
        assert "2 waiting, the oldest for 66 min; 1 in doubt; 1 under way" in said
        assert "2 writes were set aside: look with mnemoscope journal show SEQ" in said

    def test_each_write_is_a_line_with_its_state(self, outage, command):
        """In words, not in colours alone."""
        said = " ".join(command("list")[1].split())

        assert "set aside: UnexpectedAnswerError, in doubt, shadowed" in said
        assert "waits, in doubt" in said
        assert "waits, under way, in doubt" in said

    def test_many_are_cut_by_database(self, keep, command, document):
        """The totals have them all."""
        for number in range(30):
            keep(f"s{number}")
        keep("q0", QDRANT)
        found = document("list", "--limit", "3")

        assert [each["seq"] for each in found["writes"]] == [1, 2, 3, 31]
        assert [each["waiting"] for each in found["databases"]] == [30, 1]
        assert "27 more" in command("list", "--limit", "3")[1]

    def test_some_are_chosen(self, outage, document):
        """By what they are called in the list."""
        assert [each["seq"] for each in document("list", "--parked")["writes"]] == [1, 2]
        found = document("list", "--database", str(QDRANT))
        assert {each["database"] for each in found["writes"]} == {str(QDRANT)}
        assert len(found["databases"]) == 1

    def test_nothing_waits(self, journal, command, path):
        """It is said, with the file that was looked at."""
        code, out, _err = command("list")

        assert code == 0
        assert f"Nothing waits in {path}." in " ".join(out.replace("\n", " ").split())

    def test_another_key_hides_what_it_does_not_open(self, outage, command, monkeypatch):
        """Everything else is told."""
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "00" * 32)
        code, out, _err = command("list")

        assert code == 0
        assert "batch_update_points" not in out
        assert "? is a write that the key of the settings does not open" in " ".join(out.split())

    def test_no_key_is_made(self, outage, document, monkeypatch, tmp_path):
        """It is the application's to make."""
        monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
        found = document("list")

        assert {each["method"] for each in found["writes"]} == {None}
        assert not (tmp_path / "data").exists()


class TestShow:
    def test_it_shows_the_redacted_arguments(self, keep, command, document):
        """And all else that is known, but for the customer."""
        keep("s0", arguments='{"key":"k1","value":"wrote to <EMAIL_ADDRESS>"}')
        code, out, _err = command("show", "1")

        assert code == 0
        assert '"value": "wrote to <EMAIL_ADDRESS>"' in out
        assert "acme" in out
        assert "kept with it, not shown" in out
        assert "grace" not in out
        assert document("show", "1")["arguments"]["key"] == "k1"

    def test_content_moves_no_cursor(self, keep, command):
        """Whatever somebody has had remembered."""
        keep("s0", arguments='{"value":"\\u001b[2J \\u009b2J \\ud800 \\u202e"}')
        shown = command("show", "1")[1], command("show", "1", "--json")[1]

        assert not {"\x1b", "\x9b", "\u202e"} & set("".join(shown))

    def test_another_key_is_told_to_be_that(self, keep, command, monkeypatch):
        """It needs the application's."""
        keep("s0")
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "00" * 32)
        code, out, err = command("show", "1")

        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY" in err


class TestRetry:
    def test_what_was_set_aside_waits_again(self, journal, keep, command):
        """An application makes it as it makes all others."""
        keep("s0")
        queue = journal.queue(SQLITE, "langgraph.store")
        journal.settle(queue, done=[], parked=[Parked(journal.take(queue)[0], "KeyError")])
        code, out, _err = command("retry", "--all-parked")

        assert code == 0
        assert out.startswith("waits again: 1: put of ")
        assert [each.seq for each in journal.take(queue)] == [1]

    def test_what_may_have_been_deleted_is_left(self, outage, command, document):
        """It ends with 3, and says why; --force brings it back."""
        code, _out, err = command("retry", "1", "3")
        refused = document("retry", "1", ends=3)["refused"]
        forced = document("retry", "1", "--force")["retried"]

        assert code == 3
        assert "left 1 as it is: a deletion since may have covered it" in err
        assert "left 3 as it is: it was not set aside" in err
        assert "--force" in refused[0]["reason"]
        assert [each["seq"] for each in forced] == [1]


class TestDrop:
    def test_what_was_dropped_is_printed(self, outage, command, document, path):
        """With whether the store may have it; where there is no log, it is told beside."""
        code, out, err = command("drop", "1")

        assert code == 0
        assert out.startswith("dropped 1: put of ")
        assert "the store may have it already" in out
        assert err == f"1 dropped by hand from the journal {path}\n"
        assert 1 not in [each["seq"] for each in document("list")["writes"]]

    def test_the_log_tells_of_it(self, outage, command, monkeypatch, tmp_path):
        """As of the events of the application; there is no event of this."""
        log = tmp_path / "log.jsonl"
        monkeypatch.setenv("MNEMOSCOPE_LOG_FILE", str(log))
        log.write_text("{}\n")
        _code, _out, err = command("drop", "--all-parked", "--yes")
        line = json.loads(log.read_text().splitlines()[1])

        assert (line["level"], line["seqs"]) == ("WARNING", [1, 2])
        assert err == ""

    def test_a_log_of_ocsf_is_left_as_it_is(self, outage, command, monkeypatch, tmp_path):
        """What reads it knows events of that schema alone: it is told beside."""
        log = tmp_path / "log.jsonl"
        monkeypatch.setenv("MNEMOSCOPE_LOG_FILE", str(log))
        monkeypatch.setenv("MNEMOSCOPE_LOG_FORMAT", "ocsf")
        _code, _out, err = command("drop", "1")

        assert not log.exists()
        assert "dropped by hand" in err

    def test_a_log_that_cannot_be_written_is_said(self, outage, command, monkeypatch, tmp_path):
        """What was dropped is gone all the same."""
        monkeypatch.setenv("MNEMOSCOPE_LOG_FILE", str(tmp_path))
        code, _out, err = command("drop", "1")

        assert code == 0
        assert "could not be told: is a directory" in err

    @pytest.mark.parametrize("chosen", [("1", "2"), ("--all-parked",)], ids=["two", "all"])
    def test_more_than_one_needs_a_yes(self, outage, command, document, chosen):
        """It asks nothing, and cannot be undone."""
        code, _out, err = command("drop", *chosen)
        dropped = document("drop", *chosen, "--yes")["dropped"]

        assert code == 4
        assert err == "mnemoscope: pass --yes to drop more than one write. Nothing was changed.\n"
        assert [each["seq"] for each in dropped] == [1, 2]

    def test_nothing_to_drop_is_no_mistake(self, keep, command):
        """For whoever runs it by the clock."""
        keep("s0")

        assert command("drop", "--all-parked", "--yes")[:2] == (0, "nothing was changed\n")


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (("show", "7"), 2, "there is no write 7"),
            (("drop",), 4, "pass the places of writes, or --all-parked"),
            (("drop", "1", "--all-parked"), 4, "pass the places of writes, or --all-parked"),
            (("drop", "one"), 4, "SEQ"),
            (("list", "--database", "sqlite"), 2, "there is no such database"),
            (("list", "--journal", "/no/such/journal"), 2, "there is no journal at /no/such"),
        ],
    )
    def test_one_ends_in_one_line(self, journal, command, arguments, code, said):
        """With the code that it always has."""
        ended, out, err = command(*arguments)

        assert (ended, out) == (code, "")
        assert said in err
        assert len(err.splitlines()) == 1

    @pytest.mark.parametrize("wanted", [("list",), ("show", "1"), ("retry", "1"), ("drop", "1")])
    @pytest.mark.parametrize(
        ("harm", "said"),
        [
            (lambda path: path.unlink(), "there is no journal at"),
            (lambda path: path.write_bytes(b"rubble" * 500), "is no journal of this version"),
            (lambda path: path.chmod(0o644), "chmod 600"),
        ],
        ids=["missing", "foreign", "open to others"],
    )
    def test_a_file_that_cannot_be_used_ends_in_one_line(
        self, journal, command, path, wanted, harm, said
    ):
        """And with 2; nothing is made in its place."""
        journal.close()
        harm(path)
        before = path.read_bytes() if path.exists() else None
        ended, out, err = command(*wanted)

        assert (ended, out) == (2, "")
        assert said in err
        assert len(err.splitlines()) == 1
        assert (path.read_bytes() if path.exists() else None) == before

    def test_no_journal_is_configured(self, command, monkeypatch):
        """Then no write is kept, either."""
        monkeypatch.delenv("MNEMOSCOPE_JOURNAL")
        code, _out, err = command("list")

        assert code == 4
        assert "MNEMOSCOPE_JOURNAL is not set" in err
        assert len(err.splitlines()) == 1
