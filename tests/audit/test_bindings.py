"""
An answer about a person is right, or there is none, whatever somebody did who has no key.

Every column of every table of customers is changed, swapped, copied, emptied; rows are removed,
doubled and invented. Then each question is asked. What is answered has to be what was answered
before. The database's own triggers are as they were: they are no part of this.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.database.errors import AuditError, TamperedError
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.queries.blast_radius import blast_radius
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.telemetry.event.event import VERDICT, OperationClass, Redacted
from mnemoscope.telemetry.event.verdict_event import Outcome, Point, VerdictEvent
from tests.kit import database_attacks
from tests.kit.gate_trail import AuditedDecisions

LATE_US = 1_900_000_000_000_000
WHO_IS_WHO = ("audit_subject", "audit_key", "audit_erasure", "audit_log")
"""Beginnings of the tables that say who is who, and of what holds them."""

EVENTS = ("audit_event.header", "audit_event.leaf", "audit_detail.sealed", "audit_detail.salt")


def build(url, keys, event_factory):
    """Make a log of two customers, one of whom is two that were merged, and of nobody."""
    with closing(AuditLog(url, keys)) as log:
        writes = {"op_class": OperationClass.REMEMBER, "operation": "create_memory"}
        for number in range(4):
            for name in ("ada", "bob", "zoe", None):
                content = Redacted({"text": f"{name} {number}"})
                ids = (f"m-{name or 'ada'}",)
                log.append(
                    [
                        event_factory(customer=name, memory_ids=ids, content=content, **writes),
                        event_factory(customer=name, memory_ids=ids, run=f"r-{name}"),
                    ]
                )
        zoe, ada = (log.subjects.resolve(name, "acme") for name in ("zoe", "ada"))
        log.subjects.merge(zoe, ada)
        log.subjects.link(ada, "a@example.com", id_type="email", tenant="acme")
        log.append([decision(event_factory, "held-1", "reject")])
        log.checkpoint_now()


def decision(event_factory, approval, choice):
    decided = VerdictEvent(
        rule="approvals",
        kind="Approval",
        point=Point.MEMORY,
        outcome=Outcome.ALLOW,
        reason=choice,
        evidence={"approval": approval, "choice": choice},
        settings="{}",
        facts="{}",
    )
    return event_factory(customer=None, operation=VERDICT, method="approvals", parts=(decided,))


def history(log, name):
    return [(row.seq, row.tenant, row.content) for row in log.history(name)]


def exported(log, name):
    with source(log, log.person(name)) as found:
        return [(each.seq, each.detail) for each in found.history], found.evidence.root


def remembered(log, name):
    return [
        (each.memory_id, each.content)
        for each in remembered_at(log, name, None, LATE_US).remembered
    ]


def reached(log, name):
    found = blast_radius(log, f"m-{name}")
    return [each.customer for each in found.memories], [each.address for each in found.runs]


def decided(log, _name):
    return AuditedDecisions(log).standing("held-1")


def erased(log, name):
    """Erase somebody, and return whose details are gone."""
    person = log.person(name)
    for uid in person.uids:
        log.subjects.erase(uid, "acme")
    with log.reading() as snapshot:
        found = snapshot.execute("SELECT seq FROM audit_detail ORDER BY seq").fetchall()
        keys = snapshot.execute("SELECT count(dek_wrapped) FROM audit_subject").fetchone()
    return found, keys


QUESTIONS = (history, exported, remembered, reached, decided, erased)


def answers(url, keys):
    """Return what each question about each customer is answered; None: not at all."""
    found = {}
    with closing(AuditLog(url, keys)) as log:
        for ask in QUESTIONS:
            for name in ("ada", "bob") if ask is not erased else ("ada",):
                try:
                    found[ask.__name__, name] = ask(log, name)
                except AuditError:
                    found[ask.__name__, name] = None
    return found


def wrong(made, expected, keys):
    """Return the attacks after which an answer is another one; and all answers."""
    there = [(attack[:2], answers(url, keys)) for attack, url in made]
    return [
        (attack, question)
        for attack, found in there
        for question, answer in found.items()
        if answer is not None and answer != expected[question]
    ], there


def sample(target):
    """Return attacks on who is who, one of each kind on each column, and some on events."""
    made = [*database_attacks.row_attacks(target, each=4)]
    chosen = {attack[:2]: attack for attack in made if attack.target.startswith(WHO_IS_WHO)}
    some = {attack.target: attack for attack in made if attack.target.startswith(EVENTS)}
    odd = database_attacks.odd_values(target) if hasattr(target, "path") else ()
    return [*chosen.values(), *some.values(), *list(odd)[::25]]


@pytest.mark.long
def test_no_change_of_who_is_who_gets_a_wrong_answer(tmp_path, subject_keys, event_factory):
    """Show, export, memories of a day, blast radius, approvals, erasure: right, or refused."""
    build(tmp_path / "audit.db", subject_keys, event_factory)
    with closing(database_attacks.SqliteTarget(tmp_path / "audit.db")) as target:
        attacks = sample(target)[::4]
    made = database_attacks.attacked_files(tmp_path / "audit.db", attacks, tmp_path / "copy.db")
    (control,) = database_attacks.attacked_files(
        tmp_path / "audit.db", [NOTHING], tmp_path / "other.db"
    )
    expected = answers(control[1], subject_keys)
    found, there = wrong(made, expected, subject_keys)

    assert None not in expected.values()
    assert len(there) > 50
    assert found == []


@pytest.mark.xdist_group("postgres")
@pytest.mark.long
def test_nor_in_postgresql(postgres, postgres_url, subject_keys, event_factory):
    """Swaps and copies, which keep every row in order by itself."""
    build(postgres_url, subject_keys, event_factory)
    with closing(database_attacks.PostgresTarget(postgres_url)) as target:
        attacks = [
            each
            for each in sample(target)
            if each.name in {"swapped", "copied"} and each.target.startswith("audit_subject")
        ]
    expected = answers_of_control(postgres, postgres_url, subject_keys)
    made = database_attacks.attacked_databases(postgres.url, postgres_url, attacks[::3])
    found, there = wrong(made, expected, subject_keys)

    assert None not in expected.values()
    assert len(there) > 4
    assert found == []


def answers_of_control(server, url, keys):
    ((_attack, copy),) = [
        (each, answers(made, keys))
        for each, made in database_attacks.attacked_databases(server.url, url, [NOTHING])
    ]
    return copy


def nothing(_target):
    return


NOTHING = database_attacks.Attack("nothing", "", database_attacks.partial(nothing))


def test_identities_that_were_swapped_are_named(log, event_factory):
    """The refusal says what does not fit, and nobody's name."""
    log.append([event_factory(), event_factory(customer="bob")])
    log.close()
    with closing(database_attacks.SqliteTarget(log.path)) as target:
        (one, other) = target.rows("SELECT alias, subject_uid FROM audit_subject_alias LIMIT 2")
        for alias, uid in ((one[0], other[1]), (other[0], one[1])):
            target.run("UPDATE audit_subject_alias SET subject_uid = ? WHERE alias = ?", uid, alias)

    with pytest.raises(TamperedError, match="rows of audit_subject_alias were changed") as caught:
        log.person("bob")
    assert "bob" not in str(caught.value)


@pytest.mark.parametrize("ask", [history, exported, remembered, reached])
def test_a_detail_that_was_deleted_is_not_left_out_of_an_answer(
    ask, tmp_path, subject_keys, event_factory
):
    """Only it says whose its event is: the answer would lack that without a trace."""
    build(tmp_path / "audit.db", subject_keys, event_factory)
    with closing(AuditLog(tmp_path / "audit.db", subject_keys)) as log:
        log.subjects.erase(log.subjects.resolve("bob", "acme"), "acme")
        assert ask(log, "ada")  # what an erasure removed is no such thing
        (seq, *_rest), *_ = history(log, "ada")
        with closing(database_attacks.SqliteTarget(log.path)) as target, target.unguarded():
            for table in ("audit_detail", "audit_memory"):
                target.run(f"DELETE FROM {table} WHERE seq = ?", seq)  # noqa: S608

        with pytest.raises(TamperedError, match="other details are gone"):
            ask(log, "ada")


def test_a_customer_who_changes_while_they_are_erased_is_not(log, event_factory, monkeypatch):
    """What was checked is what is erased: anything that came between ends it."""
    log.append([event_factory(), event_factory(customer="bob")])
    uid = log.subjects.resolve("bob", "acme")
    checked = log.subjects._checked

    def and_then(self, *given):
        found = checked(*given)
        log.subjects.__class__._checked = original
        log.subjects.link(uid, "b@example.com", id_type="email", tenant="acme")
        return found

    original = type(log.subjects)._checked
    monkeypatch.setattr(type(log.subjects), "_checked", and_then)
    with pytest.raises(AuditError, match="meanwhile, so nothing was done"):
        log.subjects.erase(uid, "acme")
    assert len(list(log.history("bob"))) == 1


@pytest.mark.parametrize("sums", ["NULL", "'x'", "'{}'"])
def test_sums_that_were_removed_are_not_made_anew_in_good_faith(log, event_factory, sums):
    """The program goes on recording, and nobody is answered from what it found there."""
    log.append([event_factory(), event_factory(customer="bob")])
    log.close()
    with closing(database_attacks.SqliteTarget(log.path)) as target:
        target.run(f"UPDATE audit_log SET sums = {sums}")  # noqa: S608
        target.run(
            "UPDATE audit_subject_alias SET subject_uid = (SELECT min(subject_uid) FROM "
            "audit_subject WHERE kind = 'customer')"
        )
    log.append([event_factory()])
    log.close()
    with closing(database_attacks.SqliteTarget(log.path)) as target, target.unguarded():
        target.run("UPDATE audit_event SET operation = 'x' WHERE operation = 'seal.broken'")

    with pytest.raises(TamperedError):
        log.person("bob")
