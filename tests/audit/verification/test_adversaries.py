# ruff: noqa: S608 - an attacker composes what they like
"""
Who can do what to a trail, and what shows it: the table in docs/audit.md, row by row.

Each test makes the attack. That something does not show is tested as well: the table says so.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.database.schema import columns_of
from mnemoscope.audit.proof.merkle import Frontier
from mnemoscope.audit.record.coverage import summed_tables
from mnemoscope.audit.record.header import of_log, sealed
from mnemoscope.audit.record.sealing import bound, owned
from mnemoscope.audit.store.kept_rows import table_sum
from mnemoscope.audit.store.writer import Head
from mnemoscope.audit.verification.whole import verify
from tests.kit import key_holder, tampering

WHEN_US = 1_800_000_000_000_000


@pytest.fixture
def log(tmp_path, subject_keys, event_factory):
    """Return a log whose last events are behind its last checkpoint."""
    log = AuditLog(
        tmp_path / "audit.db", subject_keys, clock_ns=lambda: WHEN_US * 1_000, retention_days=400
    )
    log.append([event_factory(customer=name) for name in ("ada", "bob", "eve") * 90])
    log.checkpoint_now()
    log.append([event_factory(customer=name) for name in ("ada", "bob", "eve") * 3])
    yield log
    log.close()


@pytest.fixture
def database(log):
    """Return a connection of somebody who has the database, and no key."""
    with closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def written(log):
    """Return what makes the program itself write once more, as it does all day."""

    def written(event):
        log.close()
        log.append([event])

    return written


def sealed_anew(connection, size):
    """Give the head the end that the first *size* events have, as whoever has no key can."""
    pruned = connection.execute("SELECT hash FROM audit_tile WHERE level = 0").fetchall()
    found = connection.execute("SELECT leaf FROM audit_event WHERE seq < ? ORDER BY seq", (size,))
    leaves = [each[at : at + 32] for (each,) in pruned for at in range(0, len(each), 32)]
    leaves += [leaf for (leaf,) in found]
    frontier = Frontier()
    tiles = frontier.extend(leaves)
    connection.execute("DELETE FROM audit_tile WHERE level > 0")
    insert = "INSERT INTO audit_tile(level, idx, hash) VALUES (?, ?, ?)"
    connection.executemany(insert, tiles)
    connection.execute(
        "UPDATE audit_log SET size = ?, prev_leaf = ?, frontier = ?, operations = 279, "
        "newest_us = (SELECT max(recorded_us) FROM audit_event)",
        (size, leaves[-1], frontier.to_bytes()),
    )


def forged(connection, name, data):
    """Add an event about the log itself, which fits to the others."""
    (origin, size, prev), *_ = connection.execute("SELECT origin, size, prev_leaf FROM audit_log")
    kind, fields, occurred_us, columns = of_log(name, data, writer_id="x", occurred_us=WHEN_US)
    placed = {"log": origin, "seq": size, "prev": prev.hex(), "recorded_at": WHEN_US}
    header = sealed({**fields, **placed, "event_id": f"x-log-{size}"})
    leaf = sha256(b"\0" + header).digest()
    row = (size, "x", 0, kind, occurred_us, WHEN_US, *columns, header, leaf)
    marks = ", ".join("?" * len(columns_of("audit_event")))
    connection.execute(f"INSERT INTO audit_event VALUES ({marks})", row)
    sealed_anew(connection, size + 1)


def size_of(connection):
    return connection.execute("SELECT size FROM audit_log").fetchone()[0]


def cut(connection):
    """Cut the last five events, with all that is theirs."""
    size = size_of(connection) - 5
    with tampering.unguarded(connection):
        for table in ("audit_event", "audit_detail", "audit_memory", "audit_usage"):
            connection.execute(f"DELETE FROM {table} WHERE seq >= ?", (size,))
        sealed_anew(connection, size)


def rewritten(connection):
    """Have the last event say something else."""
    seq = size_of(connection) - 1
    found = connection.execute("SELECT header FROM audit_event WHERE seq = ?", (seq,)).fetchone()
    header = sealed({**json.loads(found[0]), "status": "error"})
    leaf = sha256(b"\0" + header).digest()
    with tampering.unguarded(connection):
        connection.execute(
            "UPDATE audit_event SET status = 'error', header = ?, leaf = ? WHERE seq = ?",
            (header, leaf, seq),
        )
        sealed_anew(connection, seq + 1)


def invented(connection):
    """Add an event that never was."""
    forged(connection, "verify.ran", {"result": "ok"})


def erased(connection):
    """Remove a customer, and say that they were erased."""
    whose = "(SELECT min(subject_uid) FROM audit_subject)"
    count = connection.execute(f"DELETE FROM audit_detail WHERE subject_uid = {whose}").rowcount
    connection.execute(f"DELETE FROM audit_subject_alias WHERE subject_uid = {whose}")
    connection.execute(
        "UPDATE audit_subject SET state = 'erased', dek_wrapped = NULL, erased_us = 1 "
        f"WHERE subject_uid = {whose}"
    )
    forged(connection, "subject.erased", {"n_details": count, "gone": "0" * 64})


def pruned(connection):
    """Remove events that are minutes old, and say that retention did."""
    found = connection.execute("SELECT leaf FROM audit_event WHERE seq < 256 ORDER BY seq")
    leaves = b"".join(leaf for (leaf,) in found)
    with tampering.unguarded(connection):
        counts = [
            connection.execute(f"DELETE FROM {table} WHERE seq < 256").rowcount
            for table in ("audit_memory", "audit_usage", "audit_detail", "audit_event")
        ]
    data = {"from_seq": 0, "to_seq": 255, "subtree_root": "", "n_details": counts[2], "n_gone": 0}
    data |= {"n_operations": 255, "n_committed": counts[2], "gone": "0" * 64, "newest_us": 1}
    connection.execute("INSERT INTO audit_tile VALUES (0, 0, ?)", (leaves,))
    connection.execute("UPDATE audit_log SET first_seq = 256")
    forged(connection, "retention.pruned", data)


def swapped(connection):
    """Have the identifiers of two customers name each other's."""
    ((one, ones), (other, others)) = connection.execute(
        "SELECT alias, subject_uid FROM audit_subject_alias LIMIT 2"
    ).fetchall()
    change = "UPDATE audit_subject_alias SET subject_uid = ? WHERE alias = ?"
    connection.executemany(change, [(others, one), (ones, other)])


def removed(connection):
    """Have a customer be found no more."""
    connection.execute(
        "DELETE FROM audit_subject_alias WHERE alias = (SELECT min(alias) FROM audit_subject_alias)"
    )


def added(connection):
    """Have a customer be found by another identifier, too."""
    connection.execute(
        "INSERT INTO audit_subject_alias(alias, key_id, id_type, subject_uid) "
        "SELECT 'x', key_id, id_type, subject_uid FROM audit_subject_alias LIMIT 1"
    )


def added_of_nobody(connection):
    """Have a customer be found by an identifier of a secret that nobody has."""
    connection.execute(
        "INSERT INTO audit_subject_alias(alias, key_id, id_type, subject_uid) "
        "SELECT 'x', 'x', id_type, subject_uid FROM audit_subject_alias LIMIT 1"
    )


def resealed(log, connection):
    """Make the sums of the tables and the seal of the head anew, as whoever has the key can."""
    with log.reading() as snapshot:
        seals = snapshot.seals
        sums = {
            table: seals.masked(table, table_sum(snapshot, seals, table))
            for table in summed_tables(snapshot.version)
        }
        head = {**snapshot.head, "sums": json.dumps(sums)}
    head = {name: head[name] for name in Head._fields if name != "seal"}
    seal = seals.head(head)
    connection.execute("UPDATE audit_log SET sums = ?, seal = ?", (head["sums"], seal))


def changed(log, connection, keys, change):
    """Change rows, and make all else fit as whoever has the key can."""
    log.close()
    with tampering.unguarded(connection):
        assert connection.execute(f"UPDATE {change}").rowcount
    key_holder.forge(log.path, keys, change)


FORGERIES = [cut, rewritten, invented, erased, pruned]


class TestTheDatabaseAlone:
    """Somebody who may write to the database. What they do to rows is in `test_rows`."""

    @pytest.mark.parametrize("forgery", FORGERIES)
    @pytest.mark.fault(80, "the newest events forged without the key", expected="found")
    def test_what_they_forge_shows_at_once(self, log, database, forgery):
        """Chain, tree and head fit; the seal of the head does not."""
        forgery(database)

        found = verify(log)
        assert any("its seal does not fit" in each for each in found.findings["tampered"])

    @pytest.mark.parametrize("forgery", FORGERIES)
    def test_the_program_does_not_seal_what_they_forged(
        self, log, database, forgery, written, event_factory
    ):
        """It goes on recording, and says for good that its head had been changed."""
        forgery(database)
        written(event_factory(writer_seq=280))

        found = verify(log)
        assert any(
            "had been changed by somebody else" in each for each in found.findings["tampered"]
        )

    def test_rows_go_on_showing_beside_a_head_that_was_changed(
        self, log, database, written, event_factory
    ):
        """What is recorded afterwards does not take them for what was there."""
        with tampering.unguarded(database):
            database.execute("UPDATE audit_subject_alias SET id_type = 'x'")
            database.execute("UPDATE audit_log SET epoch = 7")
        written(event_factory(writer_seq=280))

        expected = "rows of audit_subject_alias were changed, added, removed or put back"
        assert any(expected in each for each in verify(log).findings["tampered"])

    @pytest.mark.parametrize("sums", ["NULL", "'x'", "'[]'", "'{}'", """'{"audit_key": "00"}'"""])
    def test_sums_that_are_none_keep_nobody_from_recording(
        self, log, database, written, event_factory, sums
    ):
        """They are made anew; that they were changed is said for good."""
        database.execute(f"UPDATE audit_log SET sums = {sums}")
        written(event_factory(writer_seq=280))

        assert log.count() == 280
        assert verify(log).state == "tampered"

    def test_they_cannot_make_a_log_look_older_than_it_is(self, log, database):
        """As one of before there were seals, which would be sealed as it is found."""
        database.execute("UPDATE audit_log SET seal = NULL, sums = NULL, sealed_from = NULL")

        assert verify(log).state == "tampered"


class TestTheDatabaseAndABackup:
    """Somebody who also has an older copy, in which everything fits."""

    def test_a_whole_copy_put_back_shows_against_an_anchor_alone(
        self, log, tmp_path, event_factory
    ):
        """A checkpoint that is kept elsewhere is of more events than there are."""
        log.close()
        shutil.copyfile(log.path, tmp_path / "old.db")
        log.append([event_factory(writer_seq=280)])
        anchor = log.checkpoint_now()
        log.close()
        shutil.copyfile(tmp_path / "old.db", log.path)

        assert verify(log).state == "ok"
        assert verify(log, checkpoints=[anchor]).state == "tampered"

    @pytest.mark.parametrize("table", ["audit_subject", "audit_subject_alias", "audit_log"])
    def test_one_table_put_back_shows_at_once(self, log, database, tmp_path, table):
        """The rows of somebody who was erased since; or the head of before."""
        log.close()
        shutil.copyfile(log.path, tmp_path / "old.db")
        log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
        database.execute("ATTACH ? AS old", (str(tmp_path / "old.db"),))
        with tampering.unguarded(database):
            database.execute(f"DELETE FROM main.{table}")
            database.execute(f"INSERT INTO main.{table} SELECT * FROM old.{table}")

        assert verify(log).state == "tampered"

    def test_an_erased_detail_in_exchange_for_another_shows_at_once(self, log, database, tmp_path):
        """As many are gone as the log says; not the same ones."""
        log.close()
        shutil.copyfile(log.path, tmp_path / "old.db")
        log.subjects.erase(log.subjects.resolve("eve", "acme"), "acme")
        database.execute("ATTACH ? AS old", (str(tmp_path / "old.db"),))
        database.execute("DELETE FROM audit_detail WHERE seq = 1")
        database.execute("INSERT INTO audit_detail SELECT * FROM old.audit_detail WHERE seq = 3")

        expected = "other details are gone than those that the log says it removed"
        assert expected in verify(log).findings["tampered"]


class TestTheKey:
    """Somebody who has the database and the key: all that they write fits."""

    def test_events_written_anew_show_against_an_anchor_alone(self, log, tmp_path, event_factory):
        """The log goes on from an older copy, with other events."""
        log.close()
        shutil.copyfile(log.path, tmp_path / "old.db")
        log.append([event_factory(writer_seq=280)])
        anchor = log.checkpoint_now()
        log.close()
        shutil.copyfile(tmp_path / "old.db", log.path)
        log.append([event_factory(writer_seq=280, feature="another")])
        log.checkpoint_now()

        assert verify(log).state == "ok"
        assert verify(log, checkpoints=[anchor]).state == "tampered"

    def test_a_detail_given_to_somebody_else_shows_at_once(self, log):
        """Its event, which has its owner in its commitment, would have to be written anew."""
        with log.tables.writing() as (connection, head), log.reading() as snapshot:
            seq, bob = 1, log.subjects.resolve("bob", "acme")
            ((uid, sealed_detail),) = snapshot.execute(
                "SELECT subject_uid, sealed FROM audit_detail WHERE seq = ?", (seq,)
            ).fetchall()
            plaintext = snapshot.plaintext(seq, uid, sealed_detail)
            whole = json.loads(plaintext)
            expires_us = whole.pop("expires_us")
            del whole["owner"]
            theirs = owned(json.dumps(whole).encode(), bob, expires_us)
            nonce = bytes(12)
            aead = snapshot._ciphers.of(bob)
            connection.execute(
                "UPDATE audit_detail SET subject_uid = ?, sealed = ?, dek_id = "
                "(SELECT dek_id FROM audit_subject WHERE subject_uid = ?) WHERE seq = ?",
                (bob, nonce + aead.encrypt(nonce, theirs, bound(head.origin, seq, bob)), bob, seq),
            )

        assert "the detail of event 1 is not what was sealed" in verify(log).findings["tampered"]

    @pytest.mark.parametrize("column", ["method = 'x'", "feature = 'x'", "duration_us = 7"])
    def test_events_made_to_fit_show_against_an_anchor_alone(
        self, log, database, subject_keys, column
    ):
        """Whatever can be computed from them is made anew, and signed."""
        anchor = log.checkpoint_now()
        changed(log, database, subject_keys, f"audit_event SET {column} WHERE seq = 9")

        assert verify(log).state == "ok"
        assert verify(log, checkpoints=[anchor]).state == "tampered"

    @pytest.mark.parametrize(
        "change",
        [
            "audit_detail SET salt = zeroblob(32)",
            "audit_detail SET run_ref = zeroblob(16)",
            "audit_subject SET state = 'erased'",
            "audit_subject_alias SET id_type = 'x'",
        ],
    )
    def test_what_events_commit_to_shows_at_once(self, log, database, subject_keys, change):
        """Sums and signatures fit; the events, which are as they were, have something else."""
        changed(log, database, subject_keys, change)

        assert verify(log).state == "tampered"

    @pytest.mark.parametrize(
        "change", ["audit_log SET created_us = 7", "audit_key SET first_used_us = 7"]
    )
    def test_what_no_event_has_never_shows(self, log, database, subject_keys, change):
        """Times of the log itself, and of its keys."""
        anchor = log.checkpoint_now()
        changed(log, database, subject_keys, change)

        assert verify(log, checkpoints=[anchor]).state == "ok"

    @pytest.mark.parametrize("change", [swapped, removed, added, added_of_nobody])
    def test_identifiers_that_no_event_names_show_at_once(self, log, database, change):
        """Sums and seal are made anew with the key; the events have another sum of them."""
        change(database)
        resealed(log, database)

        assert verify(log).findings["tampered"] == [
            "customers or their identifiers are not those that events name"
        ]

    def test_identifiers_changed_by_an_event_of_their_own_never_show(self, log):
        """As if the program itself had made two customers one: it is an event, and fits."""
        ada, bob = (log.subjects.resolve(name, "acme") for name in ("ada", "bob"))
        with log.tables.writing() as (connection, head):
            change = "UPDATE audit_subject_alias SET subject_uid = ? WHERE subject_uid = ?"
            for new, old in (("aside", ada), (ada, bob), (bob, "aside")):
                connection.execute(change, (new, old))
            log.tables.note(connection, head, "subject.linked", {"id_type": "customer"})

        assert verify(log, checkpoints=[log.checkpoint_now()]).state == "ok"
        assert log.subjects.resolve("ada", "acme") == bob

    def test_the_program_changes_no_identifiers_without_an_event(self, log):
        """Refused where it is written, not where a log no longer verifies."""
        with (
            pytest.raises(ValueError, match="no event has it"),
            log.tables.writing() as (connection, _),
        ):
            connection.execute("DELETE FROM audit_subject_alias")

        assert verify(log).state == "ok"
