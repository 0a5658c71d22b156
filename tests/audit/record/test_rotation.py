"""Secrets that are rotated, lost, or known to some processes only; customers who are made one."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog, KeyMissingError
from mnemoscope.audit.database.errors import SubjectConflictError
from mnemoscope.audit.proof.merkle import root_of
from mnemoscope.audit.proof.note import parse_checkpoint, verified
from mnemoscope.audit.record.keys import key_id_of
from mnemoscope.audit.record.sealing import draft
from mnemoscope.audit.record.subjects import KnownAliases
from mnemoscope.audit.verification.report import FindingKind
from mnemoscope.audit.verification.whole import verify
from mnemoscope.memory.api import Redacted, Subject
from mnemoscope.telemetry.event.subject import SubjectKeys

OLD, NEW = SubjectKeys(b"the secret of yesterday"), SubjectKeys(b"the secret of tomorrow")
ADA = ("ada@example.com", "acme")


@pytest.fixture
def open_log(path):
    made = []

    def opened(current, *previous):
        made.append(AuditLog(path, current, previous=previous))
        return made[-1]

    yield opened
    for each in made:
        each.close()


@pytest.fixture
def event_of(event_factory):
    """Return a factory of events of Ada's, in a process that knows one secret as the current."""

    def an_event(keys, customer="ada@example.com", **fields):
        subject = Subject(customer, tenant="acme", keys=keys)
        return event_factory(subject=subject, content=Redacted("x"), **fields)

    return an_event


def runs(log):
    return [row.run for row in log.history(*ADA)]


class TestRotation:
    def test_a_customer_is_the_same_before_and_after(self, open_log, event_of):
        """Their history is one, and its details open, while the previous secret is named."""
        open_log(OLD).append([event_of(OLD, run="old", memory_ids=("m",))])
        log = open_log(NEW, OLD)
        assert runs(log) == ["old"]
        log.append([event_of(NEW, run="new", memory_ids=("m",))])

        assert runs(log) == ["old", "new"]
        assert len({row.subject_uid for row in log.rows()}) == 1
        assert [row.run for row in log.rows(memory_id="m")] == ["old", "new"]

    def test_it_is_an_event_and_signatures_follow(self, open_log, event_of, path):
        """The log names the key of each secret; both kinds of checkpoint can be checked."""
        before = open_log(OLD)
        before.append([event_of(OLD)])
        first = before.checkpoint_now()
        log = open_log(NEW, OLD)
        log.append([event_of(NEW)])
        second = log.checkpoint_now()

        with log.reading() as snapshot:
            found = snapshot.execute("SELECT key_id, verifier_key FROM audit_key").fetchall()
            (rotated,) = snapshot.execute(
                "SELECT count(*) FROM audit_event WHERE operation = 'key.rotated'"
            ).fetchone()
        verifiers = dict(found)
        assert set(verifiers) == {key_id_of(OLD), key_id_of(NEW)}
        assert verified(first, verifiers[key_id_of(OLD)])
        assert verified(second, verifiers[key_id_of(NEW)])
        assert not verified(second, verifiers[key_id_of(OLD)])
        assert rotated == 1

    def test_who_was_seen_since_needs_the_old_secret_no_more(self, open_log, event_of):
        """On next sight, alias and data key pass to the current secret."""
        open_log(OLD).append([event_of(OLD, run="old")])
        open_log(NEW, OLD).append([event_of(NEW, run="new")])

        assert runs(open_log(NEW)) == ["old", "new"]

    @pytest.mark.fault(
        81, "audit secret rotated while writing", expected="one customer, one history"
    )
    def test_while_processes_write_with_either(self, open_log, event_of):
        """Rolled out in two steps, nothing is lost and nobody becomes two."""
        logs = [(open_log(OLD, NEW), OLD), (open_log(NEW, OLD), NEW)]
        logs[0][0].append([event_of(OLD, customer="first")])
        batches = [
            (log, [[event_of(keys, customer=f"c-{n % 7}") for n in range(20)] for _ in range(10)])
            for log, keys in logs
        ]

        def write(log, all_of_them):
            for batch in all_of_them:
                log.append(batch)

        threads = [threading.Thread(target=write, args=each) for each in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        log = logs[1][0]
        assert log.count() == 401
        for number in range(7):
            rows = list(log.history(f"c-{number}", "acme"))
            assert len({row.subject_uid for row in rows}) == 1
            assert len(rows) == 2 * 10 * (3 if number < 6 else 2)

    def test_two_of_one_customer_are_found_to_be_one(self, open_log, event_of):
        """Where each process knew one secret alone, whoever knows both sees the whole history."""
        open_log(OLD).append([event_of(OLD, customer="first")])
        open_log(NEW, OLD).append([event_of(NEW, customer="first")])
        open_log(OLD).append([event_of(OLD, run="old")])
        only_new = open_log(NEW)
        only_new.append([event_of(NEW, run="new")])
        assert runs(only_new) == ["new"]

        both = open_log(NEW, OLD)
        assert runs(both) == ["old", "new"]
        both.append([event_of(NEW, run="both")])
        assert runs(both) == ["old", "new", "both"]
        assert runs(only_new) == ["old", "new", "both"]

    @pytest.mark.parametrize("is_known", [False, True])
    def test_one_batch_that_names_a_customer_in_two_ways_has_one(
        self, open_log, event_of, is_known
    ):
        """What waited in a spool knows them by the secret of then alone."""
        open_log(OLD).append([event_of(OLD, customer="first")])
        both = open_log(NEW, OLD)
        both.append([event_of(NEW, customer="first")])
        if is_known:
            open_log(NEW).append([event_of(NEW, run="known")])
        waited = draft(event_of(OLD, run="waited"))
        assert waited.alias is not None
        waited.subject = KnownAliases({key_id_of(OLD): waited.alias}, {})
        both.record([waited, draft(event_of(NEW, run="new"))])

        assert {*runs(both)} == {"new", "waited", *(["known"] if is_known else [])}
        with both.reading() as snapshot:
            found = snapshot.execute("SELECT count(*) FROM audit_subject WHERE state = 'active'")
            assert found.fetchone() == (2,)  # Ada, and the first
        assert verify(both).counts[FindingKind.TAMPERED] == 0


class TestUnlistedSecret:
    """A spool may have been written with a secret that the log was never opened with."""

    @pytest.fixture
    def waited(self, open_log, event_of):
        """Return the log, with a customer of whom only such a spool knew."""
        log = open_log(NEW, OLD)
        log.append([event_of(NEW, customer="first")])
        draft_of_then = draft(event_of(OLD, run="waited"))
        assert draft_of_then.alias is not None
        draft_of_then.subject = KnownAliases({key_id_of(OLD): draft_of_then.alias}, {})
        log.record([draft_of_then])
        return log

    def test_its_aliases_are_as_good_as_others_where_it_is_here(self, waited):
        """The customer is found by it, and the log verifies."""
        assert runs(waited) == ["waited"]
        assert verify(waited).state == "ok"

    def test_its_aliases_cannot_be_judged_where_it_is_not(self, waited, open_log):
        """That is no tampering: nobody else could have added them."""
        found = verify(open_log(NEW))

        assert found.counts[FindingKind.TAMPERED] == 0
        assert found.findings[FindingKind.UNVERIFIABLE] == [
            (
                "1 aliases are of a secret that is not here and that the log was never opened "
                "with: whom they name cannot be told"
            )
        ]

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE audit_subject_alias SET key_id = 'x'",
            "UPDATE audit_subject_alias SET subject_uid = 'x'",
            (
                "INSERT INTO audit_subject_alias(alias, key_id, id_type, subject_uid) "
                "SELECT 'x', 'x', id_type, subject_uid FROM audit_subject_alias LIMIT 1"
            ),
        ],
    )
    @pytest.mark.parametrize("previous", [(), (OLD,)], ids=["not here", "here"])
    def test_it_hides_no_change_of_aliases(self, waited, open_log, path, change, previous):
        """Whoever has the database alone adds none by calling its secret unknown."""
        waited.close()
        assert is_told(open_log(NEW, *previous), path, change)

    def test_it_hides_no_change_of_secrets(self, open_log, event_of, path):
        """Nor are those of a listed secret unknown once that is listed by another name."""
        open_log(OLD).append([event_of(OLD)])
        log = open_log(NEW, OLD)
        log.append([event_of(NEW, customer="second")])
        log.close()
        change = f"UPDATE audit_key SET key_id = 'x' WHERE key_id = '{key_id_of(OLD)}'"  # noqa: S608

        assert is_told(open_log(NEW), path, change)


def is_told(log, path, change):
    """Return whether a change by somebody who has no key is called tampering."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    return verify(log).counts[FindingKind.TAMPERED] > 0


class TestLoss:
    @pytest.mark.fault(81, "audit secret lost", expected="an error, never an empty history")
    def test_a_lost_secret_is_an_error_and_never_an_empty_history(self, open_log, event_of):
        """Reading, erasing, listing memories: all say that the key is missing."""
        open_log(OLD).append([event_of(OLD)])
        stranger = open_log(NEW)

        for ask in (
            lambda: list(stranger.history(*ADA)),
            lambda: stranger.memories(*ADA),
            lambda: stranger.subjects.resolve(*ADA),
            lambda: list(stranger.rows(run="r")),
            lambda: list(stranger.rows()),
            stranger.check,
        ):
            with pytest.raises(KeyMissingError, match="MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"):
                ask()

    def test_nothing_is_written_with_a_strangers_secret(self, open_log, event_of):
        """Two secrets that do not know each other would make one customer two for ever."""
        open_log(OLD).append([event_of(OLD)])

        with pytest.raises(KeyMissingError, match="MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"):
            open_log(NEW).append([event_of(NEW)])
        assert open_log(OLD).count() == 1

    def test_figures_need_no_secret(self, open_log, event_of):
        """Latency and counts name nobody, so anybody who may read the file has them."""
        open_log(OLD).append([event_of(OLD)])
        stranger = open_log(NEW)

        assert stranger.count() == 1
        assert stranger.latency()[0].operations == 1


class TestErasure:
    def test_nothing_of_theirs_is_left_and_the_root_is_the_same(self, open_log, event_of, path):
        """Data key, aliases, details, memories are gone; every header is still there."""
        log = open_log(NEW)
        log.append([event_of(NEW, memory_ids=("m",)) for _ in range(3)])
        log.append([event_of(NEW, customer="bob", run="bob")])
        before = parse_checkpoint(log.checkpoint_now())
        uid = log.subjects.resolve(*ADA)
        with closing(sqlite3.connect(path)) as connection:
            (wrapped,) = connection.execute(
                "SELECT dek_wrapped FROM audit_subject WHERE subject_uid = ?", (uid,)
            ).fetchone()
            sealed = [row[0] for row in connection.execute("SELECT sealed FROM audit_detail")][:3]

        files = list(path.parent.iterdir())
        assert all(any(each in file.read_bytes() for file in files) for each in (wrapped, *sealed))
        assert log.subjects.erase(uid, "acme") == 3

        assert log.subjects.resolve(*ADA) is None
        with log.hashes() as hashes:
            assert root_of(hashes.leaves(0, before.size)) == before.root
        assert [row.run for row in log.history("bob", "acme")] == ["bob"]
        assert [row.detail is None for row in log.rows()] == [True, True, True, False]
        for file in path.parent.iterdir():
            for each in (wrapped, *sealed):
                assert each not in file.read_bytes(), file.name

    def test_who_is_seen_again_is_somebody_new(self, open_log, event_of):
        """Also in a process that had remembered the shredded key."""
        log, other = open_log(NEW), open_log(NEW)
        other.append([event_of(NEW, run="before")])
        uid = log.subjects.resolve(*ADA)
        log.subjects.erase(uid, "acme")
        other.append([event_of(NEW, run="after")])

        assert runs(log) == ["after"]
        assert log.subjects.resolve(*ADA) != uid

    def test_what_was_done_by_id_alone_goes_too(self, open_log, event_of, event_factory):
        """A delete that named only the memory is part of what was remembered about them."""
        log = open_log(NEW)
        unnamed = {"customer": None, "content": Redacted("x")}
        log.append(
            [
                event_of(NEW, memory_ids=("m",)),
                event_factory(memory_ids=("m",), **unnamed),
                event_factory(memory_ids=("other",), **unnamed),
            ]
        )

        assert log.subjects.erase(log.subjects.resolve(*ADA), "acme") == 2
        assert [row.detail is None for row in log.rows()] == [True, True, False]


class TestOnePerson:
    def test_another_identifier_leads_to_the_same_history(self, open_log, event_of):
        """A customer who is known by id and by e-mail address is found by either."""
        log = open_log(NEW)
        log.append([event_of(NEW, run="r")])
        log.subjects.link(log.subjects.resolve(*ADA), "a.lovelace", id_type="login", tenant="acme")

        assert [row.run for row in log.history("a.lovelace", "acme")] == ["r"]
        assert log.subjects.resolve("a.lovelace", "globex") is None

    def test_an_identifier_of_somebody_else_is_refused(self, open_log, event_of):
        """Two people do not become one by an oversight; the error says what to do."""
        log = open_log(NEW)
        log.append([event_of(NEW), event_of(NEW, customer="bob")])

        with pytest.raises(SubjectConflictError, match="merge them"):
            log.subjects.link(log.subjects.resolve(*ADA), "bob", id_type="login", tenant="acme")
        assert len(list(log.history("bob", "acme"))) == 1

    def test_merged_customers_share_one_history(self, open_log, event_of):
        """Past and future events of both, whichever id is asked for; it is an event of the log."""
        log = open_log(NEW)
        log.append([event_of(NEW, run="ada"), event_of(NEW, customer="bob", run="bob")])
        log.subjects.merge(log.subjects.resolve("bob", "acme"), log.subjects.resolve(*ADA))
        log.append([event_of(NEW, customer="bob", run="later")])

        assert runs(log) == ["ada", "bob", "later"]
        assert [row.run for row in log.history("bob", "acme")] == runs(log)
        assert log.subjects.erase(log.subjects.resolve(*ADA), "acme") == 3
        assert log.subjects.resolve("bob", "acme") is None

    def test_only_two_who_are_there_can_be_merged(self, open_log, event_of):
        """Not one with themselves, nor with nobody."""
        log = open_log(NEW)
        log.append([event_of(NEW)])
        uid = log.subjects.resolve(*ADA)

        for other in (uid, "nobody"):
            with pytest.raises(AuditError, match="two customers that are there"):
                log.subjects.merge(uid, other)


def test_previous_keys_come_from_the_environment(tmp_path, monkeypatch):
    """A comma between them; the log knows all of them."""
    from mnemoscope.memory import load_settings, open_audit

    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path))
    first, second = ("00" * 16, "11" * 16)
    given = {"audit_pseudonym_key": "22" * 16, "audit_previous_keys": f"{first}, {second}"}
    ring = open_audit(**given).ring

    assert len(list(ring)) == 3
    assert first not in repr(load_settings(**given))
