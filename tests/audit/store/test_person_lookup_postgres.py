"""Whose data, in PostgreSQL: the same lookup, in the words of another database."""

from __future__ import annotations

import pytest

from mnemoscope.audit import (
    AmbiguousSubjectError,
    AuditLog,
    Identity,
    OtherSpellings,
    UnknownSubjectError,
)

pytestmark = pytest.mark.xdist_group("postgres")
ADA, UPPER = "ada@example.com", "ADA@example.com"


@pytest.fixture
def log(postgres_url, subject_keys):
    log = AuditLog(postgres_url, subject_keys)
    yield log
    log.close()


def test_a_person_is_found_in_any_tenant_and_spelling(log, event_factory):
    """One is found, several are told, nobody is an error."""
    log.append([event_factory(run="r"), event_factory(customer="bob"), event_factory(tenant=None)])

    with pytest.raises(AmbiguousSubjectError) as several:
        log.person(ADA)
    with pytest.raises(UnknownSubjectError) as unknown:
        log.person(UPPER, "acme")
    assert [each.tenant for each in several.value.found] == ["", "acme"]
    assert unknown.value.others == (Identity(ADA, ""), Identity(ADA, "acme"))
    assert [row.run for row in log.history(ADA, "acme")] == ["r"]
    assert log.person("bob").doubts == ()


def test_merged_customers_are_one(log, event_factory):
    """Their other ids are asked for."""
    log.append([event_factory(run="a"), event_factory(customer="c-42", run="c")])
    log.subjects.merge(log.subjects.resolve("c-42"), log.subjects.resolve(ADA))

    person = log.person(ADA)
    assert [row.run for row in log.history(person)] == ["a", "c"]
    assert len(person.doubts) == 1


def test_customers_of_an_earlier_release_are_found(log, event_factory):
    """In the tenant of their details; other spellings stay in doubt until they are seen again."""
    log.append([event_factory(run="r"), event_factory(customer="bob", tenant="globex")])
    with log.tables.writing() as (connection, head):
        connection.execute("UPDATE audit_subject_alias SET folded = NULL, sealed = NULL")
        log.tables.note(connection, head, "subject.linked", {"id_type": "email"})

    assert log.person(ADA).tenants == ("acme",)
    assert len(log.person(ADA).doubts) == 1
    assert log.person(ADA, spellings=OtherSpellings.LEAVE_OUT).doubts == ()
    assert log.person("bob").tenants == ("globex",)
