"""Whose data: who is found, under which tenants and spellings, and what cannot be told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote

import pytest

from mnemoscope.audit import (
    AmbiguousSubjectError,
    AuditError,
    AuditLog,
    Identity,
    OtherSpellings,
    UnknownSubjectError,
)
from mnemoscope.audit.erasure.run import ErasureRun
from mnemoscope.audit.sink.spool import Spool, spool_files
from mnemoscope.audit.store.person_lookup import CustomerQuery, InStores, find_person
from mnemoscope.memory.api import OperationClass, Subject
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.subject import SubjectKeys

OF_VERSION_3 = Path(__file__).parents[1] / "database" / "log_of_version_3.sql"
ADA, UPPER = "ada@example.com", "ADA@example.com"


def forget_spellings(log):
    """Make every alias one of an earlier release, which did not say how it is spelled."""
    with log.tables.writing() as (connection, head):
        connection.execute("UPDATE audit_subject_alias SET folded = NULL, sealed = NULL")
        log.tables.note(connection, head, "subject.linked", {"id_type": "email"})


def people(error):
    return [(each.tenant, each.customer) for each in error.value.found]


class TestTenants:
    def test_the_one_that_is_not_named_is_found(self, log, event_factory):
        """A forgotten tenant is no other person, whose history is empty."""
        log.append([event_factory(run="r")])

        assert log.person(ADA).identities == (Identity(ADA, "acme"),)
        assert [row.run for row in log.history(ADA)] == ["r"]

    def test_operations_without_a_tenant_are_found_too(self, log, event_factory):
        """An empty tenant means these."""
        log.append([event_factory(tenant=None, run="none"), event_factory(run="acme")])

        assert [row.run for row in log.history(ADA, "")] == ["none"]
        with pytest.raises(AmbiguousSubjectError):
            log.person(ADA)

    def test_several_are_told_and_none_is_taken(self, log, event_factory):
        """With all of them in the error, and nobody in its message."""
        log.append([event_factory(), event_factory(tenant="globex")])

        with pytest.raises(AmbiguousSubjectError) as error:
            next(log.history(ADA))
        assert people(error) == [("acme", ADA), ("globex", ADA)]
        assert "example" not in str(error.value)

    def test_all_of_them_are_one_answer(self, log, event_factory):
        """If whoever asks says so."""
        log.append([event_factory(run="a"), event_factory(tenant="globex", run="g")])
        person = log.person(ADA, all_tenants=True)

        assert person.tenants == ("acme", "globex")
        assert [row.run for row in log.history(person)] == ["a", "g"]

    def test_a_mistyped_one_is_unknown_and_the_right_one_is_told(self, log, event_factory):
        """Not a person without data."""
        log.append([event_factory()])

        with pytest.raises(UnknownSubjectError) as error:
            log.person(ADA, "acne")
        assert error.value.others == (Identity(ADA, "acme"),)

    def test_what_was_done_by_id_alone_is_found_in_each(self, log, event_factory):
        """In the tenants of the person, not in others."""
        written = {"memory_ids": ("m",), "customer": None}
        for tenant in ("acme", "globex", "third"):
            theirs = {"memory_ids": ("m",), "op_class": OperationClass.REMEMBER}
            log.append([event_factory(tenant=tenant, customer=ADA, **theirs)])
            log.append([event_factory(tenant=tenant, run=f"by id in {tenant}", **written)])

        person = log.person(ADA, all_tenants=True)
        assert len(list(log.history(person))) == 6

    def test_whom_another_tenant_knows_too_is_said(self, log, event_factory):
        """Stores cannot tell the two apart."""
        log.append([event_factory(), event_factory(tenant="globex")])

        assert log.person(ADA, "acme").shared_with == ("globex",)

    @pytest.mark.parametrize(
        ("held", "shared"),
        [
            (InStores(), ()),
            (InStores(frozenset({ADA})), ("globex",)),
            (InStores(silent=("notes could not be asked",)), ("globex",)),
        ],
        ids=["nothing", "something", "not known"],
    )
    def test_what_no_store_holds_is_shared_with_nobody(self, log, event_factory, held, shared):
        """A store that holds something of that id, or says nothing, cannot tell whose it is."""
        log.append([event_factory(), event_factory(tenant="globex")])
        asked = CustomerQuery(customer=ADA, tenant="acme")

        with log.reading() as snapshot:
            assert find_person(snapshot, asked, held).shared_with == shared
            assert find_person(snapshot, replace(asked, own_stores=True), held).shared_with == ()

    def test_a_spelling_that_no_store_was_asked_for_may_be_held(self, log, event_factory):
        """It is theirs by the log, and none of the usual ones."""
        odd = f" {ADA}"
        log.append([event_factory(customer=odd), event_factory(customer=odd, tenant="globex")])
        asked = CustomerQuery(customer=ADA, tenant="acme", spellings=OtherSpellings.INCLUDE)

        with log.reading() as snapshot:
            assert find_person(snapshot, asked, InStores()).shared_with == ("globex",)


class TestSpellings:
    @pytest.mark.parametrize("asked", [UPPER, f" {ADA} ", "ａda@example.com"])  # noqa: RUF001
    def test_another_one_is_unknown_and_told(self, log, event_factory, asked):
        """Nothing is taken for somebody else's; what is known is listed."""
        log.append([event_factory()])

        with pytest.raises(UnknownSubjectError) as error:
            log.person(asked)
        assert error.value.others == (Identity(ADA, "acme"),)

    def test_another_one_is_used_if_that_is_wanted(self, log, event_factory):
        """Under the id that the stores know."""
        log.append([event_factory()])

        person = log.person(UPPER, spellings=OtherSpellings.INCLUDE)
        assert person.identities == (Identity(ADA, "acme"),)

    def test_two_of_them_are_two_people_until_somebody_decides(self, log, event_factory):
        """Both, or the one that was asked for."""
        log.append([event_factory(run="lower"), event_factory(customer=UPPER, run="upper")])

        with pytest.raises(AmbiguousSubjectError) as error:
            log.person(ADA)
        both = log.person(ADA, spellings=OtherSpellings.INCLUDE)
        one = log.person(ADA, spellings=OtherSpellings.LEAVE_OUT)
        assert people(error) == [("acme", ADA), ("acme", UPPER)]
        assert [row.run for row in log.history(both)] == ["lower", "upper"]
        assert [row.run for row in log.history(one)] == ["lower"]

    def test_a_customer_first_seen_through_the_spool_is_found(self, log, event_factory, tmp_path):
        """It carries what finds them, encrypted."""
        spool = Spool(tmp_path / "spool", log.ring, content=content_again)
        spool.append([event_factory()])
        (file,) = spool_files(tmp_path / "spool")
        assert b"example" not in file.read_bytes()
        log.append([])
        spool.replay(log.record, lambda _gap: None)

        with pytest.raises(UnknownSubjectError) as error:
            log.person(UPPER)
        assert error.value.others == (Identity(ADA, "acme"),)


PASTED = {
    "non-breaking hyphens": lambda text: text.replace("-", "\u2011"),
    "minus signs": lambda text: text.replace("-", "\u2212"),
    "dashes": lambda text: text.replace("-", "\u2013"),
    "a curly apostrophe": lambda text: text.replace("'", "\u2019"),
    "soft hyphens": "\u00ad".join,
    "zero-width spaces": "\u200b".join,
    "marks of direction": lambda text: f"\u202a{text}\u202c\u200e",
    "a mark of byte order": lambda text: f"\ufeff{text}",
    "full width": lambda text: "".join(
        chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text
    ),
    "capitals": str.upper,
    "decomposed": lambda text: normalize("NFD", text),
    "a table's cell": lambda text: f"\t{text}\r\n",
    "non-breaking spaces": lambda text: f"\u00a0{text}\u202f",
    "angle brackets": lambda text: f"<{text}>",
    "round brackets": lambda text: f"({text})",
    "square brackets": lambda text: f"[{text}]",
    "quotes": lambda text: f'"{text}"',
    "curly quotes": lambda text: f"\u201c{text}\u201d",
    "low quotes": lambda text: f"\u201e{text}\u201c",
    "guillemets": lambda text: f"\u00ab\u00a0{text}\u00a0\u00bb",
    "code": lambda text: f"`{text}`",
    "the end of a sentence": lambda text: f"{text}.",
    "one of a list": lambda text: f" {text}; ",
    "a link to mail": lambda text: f"mailto:{text}",
    "a link with a subject": lambda text: f"MAILTO:{quote(text)}?subject=Your%20data",
    "a link to a telephone": lambda text: f"tel:{text}",
    "a mail's sender": lambda text: f'"Ada Lovelace" <{text}>,',
    "all at once": lambda text: f"\u201c<mailto:{text.upper()}>\u201d,\u200b ",
}
"""Ways in which an id comes into a field from elsewhere."""

STORED = [
    "c-42",
    ADA,
    "ada+news@example.com",
    "Zo\u00eb@example.com",
    "o'brien-7",
    "+34600123456",
    "4711",
    "acme/ada_7",
    "auth0|5f7c8ec7c33c6c004bbafe82",
    "123e4567-e89b-12d3-a456-426614174000",
    "\u6771\u4eac-7",
    "\u0639\u0644\u064a",
]


class TestPasted:
    @pytest.mark.parametrize("stored", STORED)
    @pytest.mark.parametrize("way", PASTED)
    def test_an_id_is_found_however_it_is_pasted(self, log, event_factory, stored, way):
        """It is told, and used if that is wanted: the one person, and nobody beside them."""
        strangers = ["c42", "ada@example.org", "ada", "o-brien-7", "471", "ad\u00e0@example.com"]
        log.append([event_factory(customer=each) for each in (stored, *strangers)])
        pasted = PASTED[way](stored)

        found = log.person(pasted, spellings=OtherSpellings.INCLUDE)

        assert found.identities == (Identity(stored, "acme"),)
        if pasted != stored:
            with pytest.raises(UnknownSubjectError) as error:
                log.person(pasted)
            assert error.value.others[0] == Identity(stored, "acme")

    @pytest.mark.parametrize(
        "stored", ["\U0001f469\u200d\U0001f4bb\ufe0f-7", "\u0645\u06cc\u200c\u062e"]
    )
    @pytest.mark.parametrize("way", sorted({*PASTED} - {"soft hyphens", "zero-width spaces"}))
    def test_what_joins_letters_and_pictures_stays(self, log, event_factory, stored, way):
        """It is a part of an id, and not seen all the same."""
        log.append([event_factory(customer=stored)])

        found = log.person(PASTED[way](stored), spellings=OtherSpellings.INCLUDE)
        assert found.identities == (Identity(stored, "acme"),)

    @pytest.mark.parametrize(
        "pasted", ["+34 600 123 456", "tel:+34-600-12-34-56", "(+34) 600.123.456"]
    )
    def test_a_telephone_number_is_found_in_groups(self, log, event_factory, pasted):
        """As people write it."""
        log.append([event_factory(customer="+34600123456")])

        found = log.person(pasted, spellings=OtherSpellings.INCLUDE)
        assert found.identities == (Identity("+34600123456", "acme"),)

    def test_a_number_in_other_groups_is_somebody_else(self, log, event_factory):
        """Who has 12-34 is not who has 1234."""
        log.append([event_factory(customer="1234567")])

        with pytest.raises(UnknownSubjectError) as error:
            log.person("12-34567", spellings=OtherSpellings.INCLUDE)
        assert error.value.others == ()

    def test_an_id_with_brackets_is_not_the_one_without(self, log, event_factory):
        """Whoever is known as it was typed is the one who is meant."""
        log.append([event_factory(customer="[ada]", run="a"), event_factory(customer="ada")])

        found = log.person("[ada]", spellings=OtherSpellings.INCLUDE)
        assert found.identities == (Identity("[ada]", "acme"),)

    def test_an_address_without_its_tag_is_told_and_never_taken(self, log, event_factory):
        """It may be somebody else's."""
        log.append([event_factory()])

        for spellings in OtherSpellings:
            with pytest.raises(UnknownSubjectError) as error:
                log.person("ada+news@example.com", spellings=spellings)
            assert error.value.others == (Identity(ADA, "acme"),)

    def test_what_a_store_has_as_it_was_pasted_is_theirs(self, log, event_factory):
        """And not that of whom the log knows without the brackets."""
        log.append([event_factory(customer="ada")])
        asked = CustomerQuery(customer="[ada]", spellings=OtherSpellings.INCLUDE)

        with log.reading() as snapshot:
            found = find_person(snapshot, asked, InStores(frozenset({"[ada]", "ada"})))
        assert found.identities == (Identity("[ada]"),)

    @pytest.mark.parametrize("text", ["", "<>", "mailto:", "\u200b", "*", '"*"'])
    def test_what_is_no_id_has_no_other_reading(self, log, event_factory, text):
        """A wildcard in quotes is everybody as little as one without."""
        log.append([event_factory()])

        with pytest.raises(UnknownSubjectError) as error:
            log.person(text, spellings=OtherSpellings.INCLUDE)
        assert error.value.others == ()


class TestOnePerson:
    def test_further_ids_are_in_the_same_answer(self, log, event_factory):
        """Whoever asks knows that they are one person's."""
        log.append([event_factory(run="a"), event_factory(customer="c-42", run="c")])
        person = log.person("c-42", also=[ADA])

        assert [each.customer for each in person.identities] == ["c-42", ADA]
        assert [row.run for row in log.history(person)] == ["a", "c"]

    def test_a_further_id_that_nobody_has_is_unknown(self, log, event_factory):
        """A mistyped one would be missing in silence."""
        log.append([event_factory()])

        with pytest.raises(UnknownSubjectError, match="further name"):
            log.person(ADA, also=["c-24"])

    def test_merged_customers_are_one_and_their_other_ids_are_asked_for(self, log, event_factory):
        """The log has all events; stores are asked for an id by whoever knows it."""
        log.append([event_factory(run="a"), event_factory(customer="c-42", run="c")])
        log.subjects.merge(log.subjects.resolve("c-42"), log.subjects.resolve(ADA))

        person, whole = log.person(ADA), log.person(ADA, also=["c-42"])
        assert [row.run for row in log.history(person)] == ["a", "c"]
        assert ["1 more id" in each for each in person.doubts] == [True]
        assert (len(whole.identities), whole.doubts) == (2, ())

    def test_one_person_in_two_tenants_is_not_two(self, log, event_factory):
        """Where they were merged."""
        log.append([event_factory(run="a"), event_factory(tenant="globex", run="g")])
        log.subjects.merge(log.subjects.resolve(ADA, "globex"), log.subjects.resolve(ADA, "acme"))

        assert [row.run for row in log.history(ADA)] == ["a", "g"]


class TestEarlierReleases:
    def test_the_tenant_is_that_of_their_details(self, log, event_factory):
        """Which the key opens, so that nobody is missed for a tenant that was not named."""
        log.append([event_factory(run="r"), event_factory(tenant="globex", customer="bob")])
        forget_spellings(log)

        assert log.person(ADA).tenants == ("acme",)
        assert [row.run for row in log.history(ADA)] == ["r"]

    def test_usual_spellings_are_looked_for(self, log, event_factory):
        """Though not all there may be."""
        log.append([event_factory()])
        forget_spellings(log)

        with pytest.raises(UnknownSubjectError) as error:
            log.person(ADA.upper())
        assert error.value.others == (Identity(ADA, "acme"),)

    def test_that_others_cannot_be_ruled_out_is_a_doubt(self, log, event_factory):
        """Until they are seen again, or whoever asks knows that there is no other id."""
        log.append([event_factory(), event_factory(customer="bob")])
        forget_spellings(log)

        (doubt,) = log.person(ADA).doubts
        exact = log.person(ADA, spellings=OtherSpellings.LEAVE_OUT)
        assert doubt.startswith("1 customers were last seen before")
        assert exact.doubts == ()

    def test_who_is_seen_again_is_in_doubt_no_more(self, log, event_factory, path, subject_keys):
        """A writer that knows them writes what it lacked."""
        log.append([event_factory(), event_factory(customer="bob")])
        forget_spellings(log)
        with closing(AuditLog(path, subject_keys)) as later:
            later.append([event_factory(), event_factory(customer="bob")])

        assert log.person(ADA).doubts == ()

    def test_a_tenant_that_was_redacted_is_a_doubt(self, log, event_factory, subject_keys):
        """Its name is not in the log, so its customers cannot be looked up."""
        hidden = Subject("bob", tenant="Smith & Sons", keys=subject_keys)
        log.append([event_factory(), event_factory(subject=hidden, tenant="<PERSON> & Sons")])
        forget_spellings(log)

        with pytest.raises(UnknownSubjectError) as error:
            log.person("bob")
        assert any("theirs cannot be read" in each for each in error.value.doubts)
        assert log.person("bob", "Smith & Sons").uids

    def test_a_log_that_nobody_wrote_since_can_be_read(self, tmp_path):
        """Its tables lack the columns until a writer makes them."""
        with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
            connection.executescript(OF_VERSION_3.read_text())
        with closing(AuditLog(tmp_path / "old.db", SubjectKeys(bytes(range(32))))) as log:
            found = list(log.history("ada"))

        assert {row.tenant for row in found} == {"acme"}


def test_what_was_exchanged_is_an_error(log, event_factory):
    """An alias that has somebody else's spelling is nobody's."""
    log.append([event_factory(), event_factory(customer="bob")])
    with log.tables.writing() as (connection, head):
        rows = connection.execute("SELECT alias, sealed FROM audit_subject_alias").fetchall()
        aliases, sealed = zip(*rows, strict=True)
        for each in zip(reversed(sealed), aliases, strict=True):
            connection.execute("UPDATE audit_subject_alias SET sealed = ? WHERE alias = ?", each)
        log.tables.note(connection, head, "subject.linked", {"id_type": "email"})

    with pytest.raises(AuditError, match="audit verify"):
        log.person(ADA)


def test_no_id_and_no_tenant_is_in_the_files(log, event_factory, path):
    """Nor any spelling of them."""
    log.append([event_factory(tenant="globex-holding")])
    log.close()

    for file in path.parent.iterdir():
        content = file.read_bytes().lower()
        assert b"ada@example" not in content
        assert b"globex-holding" not in content


def test_an_erased_customer_leaves_no_spelling(log, event_factory, path):
    """What finds them goes with their aliases."""
    log.append([event_factory(), event_factory(customer="bob")])
    with log.reading() as snapshot:
        uid = log.subjects.resolve(ADA)
        (kept,) = snapshot.execute(
            "SELECT sealed FROM audit_subject_alias WHERE subject_uid = ?", (uid,)
        ).fetchone()
    log.subjects.erase(uid, "acme")
    log.close()

    assert all(bytes(kept) not in file.read_bytes() for file in path.parent.iterdir())
    with pytest.raises(UnknownSubjectError):
        log.person(ADA)


class Nowhere:
    """The data of a customer in an application that has no stores."""

    def settle(self):
        return ()

    def sealed(self):
        return {}

    def stores(self, subject):
        return ()

    def erase_pseudonyms(self):
        return None

    def files(self):
        return {}


def test_an_erasure_that_is_under_way_is_known_by_its_id(log, event_factory):
    """After the trail was shredded, and until it ends: it is resumed without a tenant, too."""
    log.append([event_factory()])
    asked = {"mem0"}  # the trail knows of the store, which is not there any more

    def die(step):
        if step == "searching files":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ErasureRun(log, Nowhere(), customer=ADA, tenant="acme", vouched=asked, tell=die).run()
    person = log.person(ADA)
    tenant = person.tenants[0]
    ended = ErasureRun(log, Nowhere(), customer=ADA, tenant=tenant, vouched=asked).run()

    assert (person.identities, person.uids) == ((Identity(ADA, "acme"),), ())
    assert (ended.resumed, ended.complete) == (True, True)
    with pytest.raises(UnknownSubjectError):
        log.person(ADA)
